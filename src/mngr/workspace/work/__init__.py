"""An agent's work: measured, saved and restored."""
