"""Test map-reduce: collect tests, give each to an agent, verify what comes back, integrate it. Prints nothing."""
