"""Move files between an agent's work dir and here. What would be written over is saved first."""

from __future__ import annotations

import os

from mngr import process
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import launch
from mngr.errors import MngrError, UsageError
from mngr.process import checked
from mngr.records import NamedTuple
from mngr.workspaces import saved
from mngr.workspaces.saved import Entry

SECONDS = 3600.0


class Copied(NamedTuple):
    name: str
    source: str
    target: str
    files: tuple[str, ...]
    saved: Entry | None


def pull(fleet: Fleet, agent: Agent, path: str, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's work dir here."""
    source = inside(agent, path)
    whole = os.path.normpath(source) == os.path.normpath(agent.record.work_dir)
    destination = os.path.abspath(os.path.join(fleet.cwd, target or "."))
    inside_it = target.endswith("/") and not os.path.isdir(source) if target else not whole and os.path.isdir(source)
    if inside_it:
        destination = os.path.join(destination, os.path.basename(os.path.normpath(source)))
    return _copy(fleet, agent.name, source, destination, dry_run)


def pull_artifacts(fleet: Fleet, agent: Agent, target: str | None, *, dry_run: bool = False) -> Copied:
    """Copy what the agent put into `$MNGR_ARTIFACTS_DIR`."""
    source = os.path.join(launch.task_dir(agent.record, fleet.store.state_dir(agent.id)), "artifacts")
    destination = os.path.abspath(os.path.join(fleet.cwd, target or f".mngr/artifacts/{agent.name}"))
    return _copy(fleet, agent.name, source, destination, dry_run)


def push(fleet: Fleet, agent: Agent, source: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory from here into the agent's work dir."""
    full = os.path.abspath(os.path.join(fleet.cwd, source))
    if not os.path.lexists(full):
        raise UsageError(f"`{source}` does not exist")
    target = inside(agent, path)
    if path.endswith("/") and not os.path.isdir(full):
        target = os.path.join(target, os.path.basename(full))
    return _copy(fleet, agent.name, full, target, dry_run)


def inside(agent: Agent, path: str) -> str:
    """A path of the work dir; one that leads outside is refused."""
    full = os.path.normpath(os.path.join(agent.record.work_dir, path))
    if full != agent.record.work_dir and not full.startswith(agent.record.work_dir.rstrip("/") + "/"):
        raise UsageError(f"`{path}` is not inside the work dir of `{agent.name}`")
    return full


def _copy(fleet: Fleet, name: str, source: str, destination: str, dry_run: bool) -> Copied:
    process.require_program("rsync")
    if not os.path.lexists(source):
        raise MngrError(f"`{source}` does not exist", hint=f"`mngr exec {name} ls` shows what is there")
    tree = os.path.isdir(source)
    if not tree and os.path.isdir(destination):
        destination = os.path.join(destination, os.path.basename(source))
    ours = "/.mngr" if os.path.isdir(f"{source}/.mngr") and os.listdir(f"{source}/.mngr") == ["task"] else "/.mngr/task"
    words = ["rsync", "-a", "--checksum", "--exclude", "/.git", "--exclude", ours, "--out-format=%n"]
    slash = "/" if tree else ""
    copy = [*words, source + slash, destination + slash]
    if tree and not dry_run and not os.path.lexists(destination):  # nothing can be written over
        os.makedirs(destination)
        copied = _changes(fleet, copy, "the files could not be copied") if os.listdir(source) else ()
        return Copied(name, source, destination, tuple(path for path in copied if not path.endswith("/")), None)
    changed = _changes(fleet, [*words, "--dry-run", source + slash, _probe(destination) + slash])
    root = destination if tree else os.path.dirname(destination)
    names = changed if tree else tuple(os.path.basename(destination) for _ in changed)
    over = [path.removesuffix("/") for path in names if _takes_a_place(root, path)]
    written = tuple(path for path in names if not path.endswith("/"))
    if dry_run or not names:
        return Copied(name, source, destination, written, None)
    entry = saved.save_files(fleet.host, name, root, over, "a copy over existing files") if over else None
    os.makedirs(root, exist_ok=True)
    checked(fleet.host.run(copy, timeout=SECONDS), "the files could not be copied")
    return Copied(name, source, destination, written, entry)


def _changes(fleet: Fleet, words: list[str], failed: str = "the files could not be compared") -> tuple[str, ...]:
    """What a copy writes, or would write, directories with a slash at their end, as rsync itself tells, which writes
    odd bytes of names as `\\#012`."""
    import re

    result = checked(fleet.host.run(words, timeout=SECONDS), failed)
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
