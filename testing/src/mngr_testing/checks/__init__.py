"""Lists of behaviours that any implementation has to show. For pytest."""
