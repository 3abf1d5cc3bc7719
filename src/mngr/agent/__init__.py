"""Agents: their records, their events, and what state they are in."""
