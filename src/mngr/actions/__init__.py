"""The verbs, callable without a terminal."""
