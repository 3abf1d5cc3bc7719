"""What the demo is made of: a sample project, and the scripts of the agents that work on it. Prints nothing."""
