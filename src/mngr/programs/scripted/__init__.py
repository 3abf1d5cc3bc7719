"""The scripted agent: behaves in a terminal like a coding agent, and does exactly what a small script says."""
