"""A run in words and rows, for the terminal, the pages and other programs. Pure."""
