"""What the demo is made of: a sample project, the scripts of its agents, and the report. Prints nothing."""
