"""For tests of plugins and of mngr itself: stand-ins for the services of others, and lists of what every
implementation has to do. Of mngr, only `mngr demo` with real programs uses it."""
