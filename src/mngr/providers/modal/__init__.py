"""Hosts that are sandboxes of Modal (modal.com), through its own Python package: `pip install 'mngr[modal]'`.

That package takes half a second to import, so only one process has it: `helper`. It starts with the first need, serves
all programs of this user through a socket, and ends soon after the last of them."""
