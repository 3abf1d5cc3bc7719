"""A small ledger: what was spent, on what."""
