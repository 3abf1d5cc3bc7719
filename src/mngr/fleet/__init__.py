"""All agents of one user, on this machine and on others."""
