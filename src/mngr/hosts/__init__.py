"""Places where commands run and files live."""
