"""Judging: from an agent's work to what is true of it."""
