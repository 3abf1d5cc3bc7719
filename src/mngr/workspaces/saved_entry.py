"""Work kept under refs, with an entry that says whose it was: what the safety net and snapshots have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mngr import files, process
from mngr.agents import record as records
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.hosts.host import Host
from mngr.process import checked
from mngr.tools.git import Git
from mngr.workspaces import uncommitted_files
from mngr.workspaces.plan import WORKTREE
from mngr.workspaces.unsaved_work import UnsavedWork, has_repository, own_repository

SAVED, SNAPSHOTS = "saved", "snapshots"  # the directories of the two kinds of entries


class SavedEntry(NamedTuple):
    """One kept piece of work. `commit` holds the uncommitted files on top of `parent`; they are the same commit when
    there were none. `repo` is where the refs are: the source repository, or our own store for plain files. A `whole`
    one holds every file and ref of the workspace, so that what is not in it was not there; `private` are files that
    only their owner may read."""

    id: str
    name: str
    reason: str
    saved_at: str
    repo: str
    ref: str
    commit: str
    parent: str
    commits: int
    changed: tuple[str, ...]
    ignored: tuple[str, ...]
    left_out: tuple[tuple[str, float], ...]
    refs: tuple[tuple[str, str], ...]
    agent: Record | None
    branch: str | None = None
    whole: bool = False
    private: tuple[str, ...] = ()

    @property
    def room(self) -> str:
        """Whether it is saved work or a snapshot: the id of a snapshot is `AGENT/NAME`."""
        return SNAPSHOTS if "/" in self.id else SAVED

    @property
    def plain_files(self) -> bool:
        """Whether it holds files only, without a history of their own."""
        return not self.ref.endswith("/work")

    @property
    def refs_below(self) -> str:
        """Where all of its refs are."""
        return self.ref.removesuffix("/work")


class EntryPlace(NamedTuple):
    """Where new work goes: the entry's id, its refs, and the repository for what belongs to no other."""

    id: str
    ref: str
    store: str


def directory(host: Host, entry: SavedEntry) -> str:
    return os.path.join(host.dir, entry.room, entry.id)


def agent_dir(host: Host, entry: SavedEntry) -> str:
    """Where the conversation, the variables and the events of its agent are."""
    return os.path.join(directory(host, entry), "agent")


def check_kept(entry: SavedEntry) -> None:
    """Raise when what the entry holds cannot be reached any more; before anything is replaced."""
    if not os.path.isdir(entry.repo) or Git(entry.repo).commit_of(entry.commit) is None:
        raise MngrError(
            f"`{entry.id}` cannot be read: its commits are not in `{entry.repo}`",
            hint="if the repository was moved, move it back for the time",
        )


def drop(host: Host, entry: SavedEntry) -> None:
    """Forget an entry for good: its refs, and all that is kept beside them. Twice is safe."""
    if os.path.isdir(entry.repo):
        forget_refs(Git(entry.repo), entry.refs_below)
    host.remove(directory(host, entry))
    if entry.room == SNAPSHOTS:
        try:
            os.rmdir(os.path.dirname(directory(host, entry)))
        except OSError:
            pass  # its agent has others


def free_ref(record: Record, wanted: str) -> str:
    """This ref, or one with a number after it: an agent of the same name in another state directory may keep its work
    in the same repository."""
    if record.repo is None or not has_repository(record.repo):
        return wanted
    parent, _, name = wanted.rpartition("/")
    refs = Git(record.repo).must("for-each-ref", "--format=%(refname)", f"{parent}/").split("\n")
    taken = {ref.removeprefix(f"{parent}/").partition("/")[0] for ref in refs}
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return f"{parent}/{next(name for name in names if name not in taken)}"


def keep_workspace(
    place: EntryPlace, record: Record, found: UnsavedWork, *, reason: str, at: str, whole: bool = False
) -> SavedEntry:
    """Put what `found` names under refs. The workspace itself is not changed."""
    paths = [*found.changed, *found.ignored]
    message = f"Work of agent {record.name}, {'a snapshot' if whole else f'saved on {reason}'}\n"
    branch = None
    if own_repository(record):
        repo, commit, parent, branch = _keep_repository(place, record, found, message, whole)
        ref = f"{place.ref}/work"
    else:
        base = record.source if record.repo is None and not whole else ""
        commit, parent = keep_plain(place, record.work_dir, base, paths, message)
        repo, ref = place.store, place.ref
    return SavedEntry(
        id=place.id,
        name=record.name,
        reason=reason,
        saved_at=at,
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
        private=tuple(uncommitted_files.private_files(record.work_dir, paths)),
    )


def keep_plain(place: EntryPlace, directory: str, source: str, paths: Sequence[str], message: str) -> tuple[str, str]:
    """Plain files go into a repository of our own: first as the source has them, then as they are in the directory.
    Returns both commits, the later one first."""
    make_store(place.store)
    before = Git(source, git_dir=place.store) if source and os.path.isdir(source) else None
    after = Git(directory, git_dir=place.store)
    empty = after.must("mktree", input=b"")
    parent = after.commit_tree(
        uncommitted_files.dirty_tree(before, paths) if before else empty, [], f"Before: {message}"
    )
    commit = after.commit_tree(uncommitted_files.dirty_tree(after, paths), [parent], message)
    after.must("update-ref", place.ref, commit)
    return commit, parent


def _keep_repository(
    place: EntryPlace, record: Record, found: UnsavedWork, message: str, whole: bool
) -> tuple[str, str, str, str | None]:
    git = Git(record.work_dir)
    branch = git.current_branch()
    parent = git.commit_of("HEAD") or git.commit_tree(git.must("write-tree"), [], "Nothing was committed\n")
    paths = [*found.changed, *found.ignored, *(uncommitted_files.convertible(git) if whole else ())]
    commit = git.commit_tree(uncommitted_files.dirty_tree(git, paths), [parent], message) if paths else parent
    repo = record.repo if record.repo and has_repository(record.repo) else make_store(place.store)
    refs = [(f"{place.ref}/work", commit), *((f"{place.ref}/{name}", tip) for name, tip in found.refs)]
    git.must("update-ref", "--stdin", input="".join(f"update {ref} {tip}\n" for ref, tip in refs).encode())
    if record.transfer != WORKTREE or repo != record.repo:
        try:
            spec, failed = f"+{place.ref}/*:{place.ref}/*", "the agent's work could not be copied to a safe place"
            Git(repo).fetch(git.directory, spec, doing=failed)
        finally:
            forget_refs(git, place.ref)
    return repo, commit, parent, branch


def forget_refs(git: Git, below: str) -> None:
    refs = git.run("for-each-ref", "--format=%(refname)", below).text.split("\n")
    lines = "".join(f"delete {ref}\n" for ref in refs if ref)
    if lines:
        git.run("update-ref", "--stdin", input=lines.encode())


def make_store(path: str) -> str:
    """A repository of ours, for what belongs to no other. Twice is safe."""
    if not os.path.isdir(os.path.join(path, "objects")):
        checked(
            process.run(["git", "init", "-q", "--bare", path], timeout=60), "a store for kept files could not be made"
        )
    return path


def write(host: Host, entry: SavedEntry) -> None:
    value = {**entry._asdict(), "agent": json.loads(records.dump(entry.agent)) if entry.agent else None}
    host.write(os.path.join(directory(host, entry), "entry.json"), files.json_bytes(value, indent=1), durable=True)


def read(host: Host, directory: str) -> SavedEntry | None:
    """None for one that is being written at this moment."""
    path = os.path.join(directory, "entry.json")
    try:
        value: dict[str, Any] = json.loads(host.read(path).decode("utf-8", "surrogateescape"))
        records.seconds_of(value["saved_at"])
        agent = records.parse(json.dumps(value["agent"]).encode(), path) if value["agent"] else None
        pairs = {key: tuple(tuple(item) for item in value[key]) for key in ("left_out", "refs")}
        lists = {key: tuple(value.get(key, ())) for key in ("changed", "ignored", "private")}
        fields = {
            key: value[key] for key in SavedEntry._fields if key in value or key not in SavedEntry._field_defaults
        }
        return SavedEntry(**fields | pairs | lists | {"agent": agent})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise MngrError(
            f"`{path}` cannot be read: {error}", hint="the work itself is safe under its ref; repair or move the file"
        ) from None


def survey(host: Host, directory: str, ids: Iterable[str]) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """The entries with these ids, oldest first, and by their ids the errors of those that cannot be read."""
    found: list[SavedEntry] = []
    broken: dict[str, MngrError] = {}
    for entry_id in ids:
        try:
            if entry := read(host, os.path.join(directory, entry_id)):
                found.append(entry)
        except MngrError as error:
            broken[entry_id] = error
    return sorted(found, key=lambda entry: entry.saved_at), broken
