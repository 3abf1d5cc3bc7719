"""Hosts that an existing Ray cluster places on its nodes, through Ray's own package: `pip install 'mngr[ray]'`.

A host is a named actor that outlives us, the supervisor, and a directory of its own on the actor's node. Only the
process `helper` has Ray's package."""
