"""Snapshots: an agent's workspace, conversation and settings as they were at one moment, under a name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.hosts.host import Host
from mngr.interrupts import held
from mngr.process import CommandFailed
from mngr.tools.git import Git
from mngr.workspaces import saved_entry, saved_work, unsaved_work
from mngr.workspaces.plan import NONE
from mngr.workspaces.saved_entry import SNAPSHOTS, EntryPlace, SavedEntry

_TRIES = 8


def name_of(entry: SavedEntry) -> str:
    """The name that the user gave it; its id is `AGENT/NAME`."""
    return entry.id.partition("/")[2]


def check_place(record: Record) -> None:
    """Raise when there is nothing to take a snapshot of, or what there is belongs to the user and not to the agent."""
    if record.transfer == NONE:
        raise MngrError(
            f"`{record.name}` works in your own directory `{record.work_dir}`: a snapshot would be restored over it",
            hint="commit there instead, or use an agent with a copy of its own",
        )
    if not os.path.isdir(record.work_dir) or (record.repo is not None and not unsaved_work.own_repository(record)):
        what = "repository" if os.path.isdir(record.work_dir) else "work directory"
        raise MngrError(
            f"the {what} of `{record.name}` in `{record.work_dir}` is gone, so there is nothing to keep",
            hint="`mngr snapshot list` shows what can be restored",
        )


def take(host: Host, record: Record, state_dir: str, name: str, *, ignored_max_mb: float) -> SavedEntry:
    """Keep everything. The agent may work on meanwhile: what changes under our hands is read again. On failure nothing
    is left behind."""
    check_place(record)
    place = saved_entry.reserve(host, SNAPSHOTS, record.name, record, name)
    directory = os.path.join(host.dir, SNAPSHOTS, place.id)
    try:
        entry = _settled(host, record, place, ignored_max_mb)
        history = os.path.join(directory, "agent")
        host.make_dir(history)
        copy_files(host, state_dir, history, conversation(host, state_dir, record))
        host.write(os.path.join(history, "env"), host.read(os.path.join(state_dir, "env")))
        saved_entry.write(host, entry)
    except BaseException:
        with held():
            for repo in (record.repo, place.store):
                if repo and os.path.isdir(repo):
                    saved_entry.forget_refs(Git(repo), place.ref)
            host.remove(directory)
        raise
    return entry


def conversation(host: Host, directory: str, record: Record) -> list[str]:
    """The files of an agent's state directory that hold what was said and what happened: ours, and those of its
    program, each by its path there. They may be gone by the time they are read."""
    found = [name for name in host.entries(directory) if name.endswith(".jsonl")]
    if record.one_shot:
        from mngr.agents.kinds.driver import PROMPT

        found.append(PROMPT)  # its task, which every start does again
    if record.driver:
        from mngr.agents.kinds import driver

        parts = driver.find(record.driver).conversation
        found += [path for path in _files_below(directory, driver.HOME) if _is_part(path, driver.HOME, parts)]
    return found


def copy_files(host: Host, source: str, target: str, paths: Iterable[str]) -> None:
    """Those that are still there: a program that works tidies up its own."""
    for path in paths:
        try:
            data = host.read(os.path.join(source, path))
        except FileNotFoundError:
            continue
        host.make_dir(os.path.dirname(os.path.join(target, path)))
        host.write(os.path.join(target, path), data)


def _files_below(directory: str, part: str) -> list[str]:
    """Plain files only: a link leads to what is the user's own."""
    return [
        os.path.relpath(path, directory)
        for root, _, names in os.walk(os.path.join(directory, part))
        for name in names
        if not os.path.islink(path := os.path.join(root, name)) and os.path.isfile(path)
    ]


def _is_part(path: str, home: str, parts: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    inside = path.removeprefix(f"{home}/")
    return any(inside.startswith(f"{part}/") or fnmatchcase(inside, part) for part in parts)


def _settled(host: Host, record: Record, place: EntryPlace, ignored_max_mb: float) -> SavedEntry:
    """Read the workspace until nothing went away and no commit was made in the meantime; from an agent that never
    rests, what was seen last."""
    git = Git(record.work_dir)
    entry = None
    for tries_left in reversed(range(_TRIES)):
        head = _head(git) if record.repo else ""
        try:
            found = unsaved_work.everything(host, record, ignored_max_mb=ignored_max_mb)
            entry = saved_work.keep_workspace(place, record, found, reason="snapshot", whole=True)
        except (CommandFailed, OSError, ValueError):
            if not tries_left and entry is None:
                raise
            continue
        if not record.repo or _head(git) == head:
            break
    assert entry is not None
    return entry


def _head(git: Git) -> str:
    return f"{git.current_branch()} {git.commit_of('HEAD')}"
