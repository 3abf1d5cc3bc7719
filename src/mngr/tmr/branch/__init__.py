"""The branch: verified work of many agents on one linear history, and its gate."""
