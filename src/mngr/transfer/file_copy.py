"""Move files between an agent's work dir and here. What would be written over is saved first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mngr.actions import source_cache
from mngr.actions.file_copy import AgentPath, Copied, copy, look, receive
from mngr.actions.site import Site
from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.system.inside import UnsafePath
from mngr.system.interrupts import held
from mngr.transfer import rsync

_PUSHED = "pushed"


def _look(site: Site, agent_id: str, path: str | None) -> AgentPath:
    """What the agent's site says of the path. Its last part names files here, so it has to be a name."""
    found = site.run(look, agent_id, path)
    if not found.path.startswith("/") or os.path.normpath(found.path) != found.path or found.path == "/":
        raise MngrError(f"`{site.name}` sent a path that is not one of an agent", exit_code=UNREACHED)
    return found


def pull(site: Site, agent_id: str, path: str, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's work dir to the caller's machine."""
    found = _look(site, agent_id, path)
    inside_it = target.endswith("/") and not found.tree if target else not found.whole and found.tree
    name = os.path.basename(found.path) if inside_it else ""
    return _pull(site, found, _destination(site.local, target or ".", name), dry_run)


def pull_artifacts(site: Site, agent_id: str, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy what the agent put into `$MNGR_ARTIFACTS_DIR` to the caller's machine."""
    found = _look(site, agent_id, None)
    return _pull(site, found, _destination(site.local, target or f".mngr/artifacts/{found.name}"), dry_run)


def _destination(local: Site, target: str, name: str = "") -> tuple[str, str]:
    """A path of the user's as a directory and a path below it in which no link is followed: an agent's files may hold
    links, and an earlier pull or merge has brought those here. Links above the current directory, or above the home or
    the top directory that another path begins with, are the user's own."""
    full = os.path.normpath(os.path.join(local.path(target), name))
    for root in (local.cwd, local.path("~")):
        if f"{full}/".startswith(f"{root.rstrip('/')}/"):
            return root, os.path.relpath(full, root)
    top, _, path = full[1:].partition("/")
    return (f"/{top}", path or ".") if os.path.isdir(f"/{top}") else ("/", full[1:])


def _pull(site: Site, found: AgentPath, destination: tuple[str, str], dry_run: bool) -> Copied:
    if not found.exists:
        raise MngrError(f"`{found.path}` does not exist", hint=f"`mngr exec {found.name} ls` shows what is there")
    try:
        if site.is_local:
            source = (found.root, os.path.relpath(found.path, found.root))
            return copy(site, found.name, source, destination, dry_run)
        with scratch(site.local) as room:
            name = os.path.basename(found.path)
            rsync.fetch(site, found.path, os.path.join(room, name), tree=found.tree)
            done = copy(site.local, found.name, (room, name), destination, dry_run)
        return done._replace(source=found.path)
    except UnsafePath as error:
        raise UnsafePath(error.message, hint="name the place that it leads to, if that is where the files go") from None


def push(site: Site, agent_id: str, source: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the caller's machine into the agent's work dir."""
    full = site.local.path(source)
    if not os.path.lexists(full):
        raise UsageError(f"`{source}` does not exist")
    if site.is_local:
        return receive(site, agent_id, full, path, dry_run=dry_run)
    place = site.run(source_cache.files_place, agent_id, _PUSHED)
    try:
        staged = os.path.join(place, os.path.basename(full))
        rsync.send(site, full, staged, tree=os.path.isdir(full))
        return site.run(receive, agent_id, staged, path, dry_run=dry_run)._replace(source=full)
    finally:
        with held():
            site.run(source_cache.forget_files, agent_id, _PUSHED)


@contextmanager
def scratch(site: Site) -> Iterator[str]:
    """A private directory for files on their way. It goes with the end of the block."""
    site.host.prepare()
    directory = os.path.join(site.host.dir, "sources", f"scratch-{os.urandom(8).hex()}")
    site.host.make_dir(directory)
    try:
        yield directory
    finally:
        with held():
            site.host.remove(directory)
