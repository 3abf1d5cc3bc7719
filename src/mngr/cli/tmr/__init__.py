"""The parts of `mngr tmr` that a person sees; the work itself is in `mngr.tmr`."""
