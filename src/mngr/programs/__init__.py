"""What an agent can be: a kind is mostly data, and can come from settings alone."""
