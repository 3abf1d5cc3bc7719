"""One external program each."""
