"""Keep work under refs: what an agent holds, for the safety net or a snapshot, and files before they are replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from mngr.agent.record import Record, timestamp
from mngr.system.git import Git
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import files as uncommitted_files
from mngr.workspace.work.entry import SAVED, EntryPlace, SavedEntry
from mngr.workspace.work.measure import UnsavedWork, is_repository, own_repository


def save_agent(
    host: StateDir, record: Record, found: UnsavedWork, reason: str, *, always: bool = False
) -> SavedEntry | None:
    """Keep what `found` names. Nothing to keep gives None, unless it is `always` wanted. The workspace itself is not
    changed."""
    if not (found.any or found.ignored or always):
        return None
    place = saved_entry.reserve(host, SAVED, record.name, record)
    entry = keep_workspace(host, place, record, found, reason=reason)
    saved_entry.write(host, entry)
    return entry


def save_files(host: StateDir, name: str, directory: str, paths: Sequence[str], reason: str) -> SavedEntry:
    """Keep some files of any directory as they are now, before something writes over them."""
    place = saved_entry.reserve(host, SAVED, name, None)
    commit, parent = _keep_plain(place, directory, "", paths, f"Files saved on {reason}\n")
    entry = SavedEntry(
        place.id, name, reason, timestamp(), place.store, place.ref, commit, parent, 0, tuple(paths), (), (), (), None
    )
    saved_entry.write(host, entry)
    return entry


def keep_workspace(
    host: StateDir, place: EntryPlace, record: Record, found: UnsavedWork, *, reason: str, whole: bool = False
) -> SavedEntry:
    """Put what `found` names under refs. The workspace itself is not changed."""
    paths = [*found.changed, *found.ignored]
    message = f"Work of agent {record.name}, {'a snapshot' if whole else f'saved on {reason}'}\n"
    branch = None
    if own_repository(record):
        repo, commit, parent, branch = _keep_repository(host, place, record, found, message, whole)
        ref = f"{place.ref}/work"
    else:
        base = record.workspace.source if record.workspace.repo is None and not whole else ""
        commit, parent = _keep_plain(place, record.workspace.work_dir, base, paths, message)
        repo, ref = place.store, place.ref
    return SavedEntry(
        id=place.id,
        name=record.name,
        reason=reason,
        saved_at=timestamp(),
        repo=repo,
        ref=ref,
        commit=commit,
        parent=parent,
        commits=found.commits,
        changed=found.changed,
        ignored=found.ignored,
        left_out=tuple((item.path, item.megabytes) for item in found.left_out),
        refs=found.refs,
        agent=record,
        branch=branch,
        whole=whole,
        private=tuple(uncommitted_files.private_files(record.workspace.work_dir, paths)),
    )


def _keep_plain(place: EntryPlace, directory: str, source: str, paths: Sequence[str], message: str) -> tuple[str, str]:
    """Plain files go into a repository of our own: first as the source has them, then as they are in the directory.
    Returns both commits, the later one first."""
    saved_entry.make_store(place.store)
    before = Git.of_store(source, git_dir=place.store) if source and os.path.isdir(source) else None
    after = Git.of_store(directory, git_dir=place.store)
    empty = after.must("mktree", input=b"")
    parent = after.commit_tree(
        uncommitted_files.dirty_tree(before, paths) if before else empty, [], f"Before: {message}"
    )
    commit = after.commit_tree(uncommitted_files.dirty_tree(after, paths), [parent], message)
    after.must("update-ref", place.ref, commit)
    return commit, parent


def _keep_repository(
    host: StateDir, place: EntryPlace, record: Record, found: UnsavedWork, message: str, whole: bool
) -> tuple[str, str, str, str | None]:
    git = copy_git.of(host, record)
    branch = git.current_branch()
    parent = git.commit_of("HEAD") or git.commit_tree(git.must("write-tree"), [], "Nothing was committed\n")
    paths = [*found.changed, *found.ignored, *(uncommitted_files.convertible(git) if whole else ())]
    commit = git.commit_tree(uncommitted_files.dirty_tree(git, paths), [parent], message) if paths else parent
    repo = (
        record.workspace.repo
        if record.workspace.repo and is_repository(record.workspace.repo)
        else saved_entry.make_store(place.store)
    )
    refs = [(f"{place.ref}/work", commit), *((f"{place.ref}/{name}", tip) for name, tip in found.refs)]
    git.must("update-ref", "--stdin", input="".join(f"update {ref} {tip}\n" for ref, tip in refs).encode())
    if record.workspace.transfer != WORKTREE or repo != record.workspace.repo:
        try:
            spec, failed = f"+{place.ref}/*:{place.ref}/*", "the agent's work could not be copied to a safe place"
            Git.of_user(repo).fetch(git.directory, spec, own=git.own, doing=failed)
        finally:
            saved_entry.forget_refs(git, place.ref)
    return repo, commit, parent, branch


_MOST_BYTES = 1 << 28


def conversation(host: StateDir, directory: str, record: Record) -> list[str]:
    """The files of an agent's state directory that hold what was said and what happened: ours, and those of its
    program, each by its path there. They may be gone by the time they are read."""
    found = [
        name for name in host.entries(directory) if name.endswith(".jsonl") and _is_plain(os.path.join(directory, name))
    ]
    if record.spec.one_shot:
        from mngr.programs.driver import PROMPT

        found.append(PROMPT)  # its task, which every start does again
    if record.spec.driver:
        from mngr.programs import driver

        parts = driver.find(record.spec.driver).conversation
        found += [path for path in _files_below(directory, driver.HOME) if _is_part(path, driver.HOME, parts)]
    return found


def copy_files(host: StateDir, source: str, target: str, paths: Iterable[str]) -> None:
    """Those that are still there: a program that works tidies up its own. Of a huge file, the end."""
    for path in paths:
        if not _is_plain(os.path.join(source, path)):
            continue
        data = host.read_tail(os.path.join(source, path), _MOST_BYTES)[0]
        host.make_dir(os.path.dirname(os.path.join(target, path)))
        host.write(os.path.join(target, path), data)


def _files_below(directory: str, part: str) -> list[str]:
    """Plain files only: a link leads to what is the user's own."""
    return [
        os.path.relpath(path, directory)
        for root, _, names in os.walk(os.path.join(directory, part))
        for name in names
        if _is_plain(path := os.path.join(root, name))
    ]


def _is_plain(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _is_part(path: str, home: str, parts: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    inside = path.removeprefix(f"{home}/")
    return any(inside.startswith(f"{part}/") or fnmatchcase(inside, part) for part in parts)
