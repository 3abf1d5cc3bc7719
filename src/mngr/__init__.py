"""mngr: run many coding agents in parallel, anywhere, and trust what comes back."""

__version__ = "0.1.0"
