"""The parts of `mngr create`."""
