"""Remembers when your houseplants want water."""
