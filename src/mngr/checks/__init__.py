"""Lists of behaviours that any implementation has to show. For pytest; mngr itself needs nothing of it."""
