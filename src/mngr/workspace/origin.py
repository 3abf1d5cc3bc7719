"""Where the code of an agent on another machine came from: this machine, and a repository on it."""

from __future__ import annotations

import os

from mngr.system.state_dir import StateDir

_FILE = "machine"


def machine_id(host: StateDir) -> str:
    """What this machine, with this state directory, is called on others; empty when it never sent anything there."""
    return host.read(os.path.join(host.dir, _FILE)).decode("ascii", "replace").strip() if known(host) else ""


def known(host: StateDir) -> bool:
    return _FILE in host.entries(host.dir)


def ensure_machine_id(host: StateDir) -> str:
    """The machine's id, made at the first use. Twice at the same time gives one id."""
    with host.locked(_FILE, timeout=60, what="the id of this machine"):
        if not known(host):
            host.write(os.path.join(host.dir, _FILE), os.urandom(8).hex().encode() + b"\n")
    return machine_id(host)
