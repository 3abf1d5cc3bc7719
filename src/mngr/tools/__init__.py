"""One external program each, over any Runner."""
