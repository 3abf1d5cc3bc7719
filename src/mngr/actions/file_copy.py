"""Move files between an agent's work dir and here. What would be written over is saved first."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mngr.actions import source_cache
from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.record import Record
from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.system import process
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry

SECONDS = 3600.0
_PUSHED = "pushed"


class Copied(NamedTuple):
    name: str
    source: str
    target: str
    files: tuple[str, ...]
    saved: SavedEntry | None


class AgentPath(NamedTuple):
    """A path at an agent: `tree` says that it is a directory, `whole` that it is the work dir itself."""

    name: str
    path: str
    exists: bool
    tree: bool
    whole: bool


def look(site: Site, agent_id: str, path: str | None) -> AgentPath:
    """A path of the agent's work dir, or without one what it put into `$MNGR_ARTIFACTS_DIR`."""
    record = site.store.read(agent_id)
    if path is None:
        full = os.path.join(launch.task_dir(record, site.store.state_dir(agent_id)), "artifacts")
    else:
        full = inside(record, path)
    whole = os.path.normpath(full) == os.path.normpath(record.workspace.work_dir)
    return AgentPath(record.name, full, os.path.lexists(full), os.path.isdir(full), whole)


def _look(site: Site, agent_id: str, path: str | None) -> AgentPath:
    """What the agent's site says of the path. Its last part names files here, so it has to be a name."""
    found = site.run(look, agent_id, path)
    if not found.path.startswith("/") or os.path.normpath(found.path) != found.path or found.path == "/":
        raise MngrError(f"`{site.name}` sent a path that is not one of an agent", exit_code=UNREACHED)
    return found


def pull(site: Site, agent_id: str, path: str, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's work dir to the caller's machine."""
    found = _look(site, agent_id, path)
    destination = os.path.abspath(os.path.join(site.near.cwd, target or "."))
    inside_it = target.endswith("/") and not found.tree if target else not found.whole and found.tree
    if inside_it:
        destination = os.path.join(destination, os.path.basename(os.path.normpath(found.path)))
    return _pull(site, found, destination, dry_run)


def pull_artifacts(site: Site, agent_id: str, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy what the agent put into `$MNGR_ARTIFACTS_DIR` to the caller's machine."""
    found = _look(site, agent_id, None)
    destination = os.path.abspath(os.path.join(site.near.cwd, target or f".mngr/artifacts/{found.name}"))
    return _pull(site, found, destination, dry_run)


def _pull(site: Site, found: AgentPath, destination: str, dry_run: bool) -> Copied:
    if not found.exists:
        raise MngrError(f"`{found.path}` does not exist", hint=f"`mngr exec {found.name} ls` shows what is there")
    if site.is_near:
        return _copy(site, found.name, found.path, destination, dry_run)
    with scratch(site.near) as room:
        source = os.path.join(room, os.path.basename(os.path.normpath(found.path)))
        site.fetch_files(found.path, source, tree=found.tree)
        done = _copy(site.near, found.name, source, destination, dry_run)
    return done._replace(source=found.path)


def push(site: Site, agent_id: str, source: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the caller's machine into the agent's work dir."""
    full = os.path.abspath(os.path.join(site.near.cwd, source))
    if not os.path.lexists(full):
        raise UsageError(f"`{source}` does not exist")
    if site.is_near:
        return receive(site, agent_id, full, path, dry_run=dry_run)
    place = site.run(source_cache.files_place, agent_id, _PUSHED)
    try:
        staged = os.path.join(place, os.path.basename(full))
        site.send_files(full, staged, tree=os.path.isdir(full))
        return site.run(receive, agent_id, staged, path, dry_run=dry_run)._replace(source=full)
    finally:
        with held():
            site.run(source_cache.forget_files, agent_id, _PUSHED)


def receive(site: Site, agent_id: str, full: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's own machine into its work dir."""
    record = site.store.read(agent_id)
    target = inside(record, path)
    if path.endswith("/") and not os.path.isdir(full):
        target = os.path.join(target, os.path.basename(full))
    return _copy(site, record.name, full, target, dry_run)


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


def inside(record: Record, path: str) -> str:
    """A path of the work dir; one that leads outside is refused."""
    full = os.path.normpath(os.path.join(record.workspace.work_dir, path))
    if full != record.workspace.work_dir and not full.startswith(record.workspace.work_dir.rstrip("/") + "/"):
        raise UsageError(f"`{path}` is not inside the work dir of `{record.name}`")
    return full


def _copy(site: Site, name: str, source: str, destination: str, dry_run: bool) -> Copied:
    process.require_program("rsync")
    tree = os.path.isdir(source)
    if not tree and os.path.isdir(destination):
        destination = os.path.join(destination, os.path.basename(source))
    ours = "/.mngr" if os.path.isdir(f"{source}/.mngr") and os.listdir(f"{source}/.mngr") == ["task"] else "/.mngr/task"
    words = ["rsync", "-a", "--checksum", "--exclude", "/.git", "--exclude", ours, "--out-format=%n"]
    slash = "/" if tree else ""
    copy = [*words, source + slash, destination + slash]
    if tree and not dry_run and not os.path.lexists(destination):  # nothing can be written over
        os.makedirs(destination)
        copied = _changes(copy, "the files could not be copied") if os.listdir(source) else ()
        return Copied(name, source, destination, tuple(path for path in copied if not path.endswith("/")), None)
    changed = _changes([*words, "--dry-run", source + slash, _probe(destination) + slash])
    root = destination if tree else os.path.dirname(destination)
    names = changed if tree else tuple(os.path.basename(destination) for _ in changed)
    over = [path.removesuffix("/") for path in names if _takes_a_place(root, path)]
    written = tuple(path for path in names if not path.endswith("/"))
    if dry_run or not names:
        return Copied(name, source, destination, written, None)
    entry = saved_work.save_files(site.host, name, root, over, "a copy over existing files") if over else None
    os.makedirs(root, exist_ok=True)
    checked(process.run(copy, timeout=SECONDS), "the files could not be copied")
    return Copied(name, source, destination, written, entry)


def _changes(words: list[str], failed: str = "the files could not be compared") -> tuple[str, ...]:
    """What a copy writes, or would write, directories with a slash at their end, as rsync itself tells, which writes
    odd bytes of names as `\\#012`."""
    result = checked(process.run(words, timeout=SECONDS), failed)
    lines = [line for line in result.stdout.split(b"\n") if line and line != b"./"]
    return tuple(
        os.fsdecode(re.sub(rb"\\#([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line)) for line in lines
    )


def _probe(path: str) -> str:
    """The path, or the first part of it that does not exist: rsync compares with one missing level, not with two."""
    while not os.path.isdir(os.path.dirname(path)):
        path = os.path.dirname(path)
    return path


def _takes_a_place(root: str, path: str) -> bool:
    """Whether something is there that the file, or the directory, would replace."""
    target = os.path.join(root, path.removesuffix("/"))
    return os.path.lexists(target) and not (path.endswith("/") and os.path.isdir(target))
