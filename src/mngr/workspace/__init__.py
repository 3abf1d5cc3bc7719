"""An agent's copy of the code: planned, made, and its work saved before it can go."""
