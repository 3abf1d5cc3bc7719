"""Agents on other machines: the same program runs there, and the two ends exchange verbs over one byte stream."""
