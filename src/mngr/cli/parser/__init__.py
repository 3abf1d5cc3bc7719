"""Options, help and completion."""
