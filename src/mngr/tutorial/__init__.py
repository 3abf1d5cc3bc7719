"""The tutorial tools: which example of a script which test cites, and agents that bring both together."""
