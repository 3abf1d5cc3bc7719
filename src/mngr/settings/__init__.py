"""Settings: their schema, values, layers, edits, and what the user trusts."""
