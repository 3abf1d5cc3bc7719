"""Runs of one agent that works on a tutorial or its tests, on the engine and the measurements of `tmr`."""
