"""Files of an agent's work dir: which there are, and copies of others. What would be written over is saved first."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.record import Record
from mngr.errors import UsageError
from mngr.system import process
from mngr.system.process import checked
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry

SECONDS = 3600.0


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


def receive(site: Site, agent_id: str, full: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's own machine into its work dir."""
    record = site.store.read(agent_id)
    target = inside(record, path)
    if path.endswith("/") and not os.path.isdir(full):
        target = os.path.join(target, os.path.basename(full))
    return copy(site, record.name, full, target, dry_run)


def inside(record: Record, path: str) -> str:
    """A path of the work dir; one that leads outside is refused."""
    full = os.path.normpath(os.path.join(record.workspace.work_dir, path))
    if full != record.workspace.work_dir and not full.startswith(record.workspace.work_dir.rstrip("/") + "/"):
        raise UsageError(f"`{path}` is not inside the work dir of `{record.name}`")
    return full


def copy(site: Site, name: str, source: str, destination: str, dry_run: bool) -> Copied:
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
