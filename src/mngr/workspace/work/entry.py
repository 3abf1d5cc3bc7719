"""Work kept under refs, with an entry that says whose it was: the store of saved work and of snapshots."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress

from mngr.agent import record as records
from mngr.agent.record import Record, seconds_of, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import check_name
from mngr.system import files, process, trash
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import MIRROR, RSYNC
from mngr.workspace.work.git_files import is_repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SAVED, SNAPSHOTS = "saved", "snapshots"  # the directories of the two kinds of entries
_ENTRY, _UNFINISHED = "entry.json", "unfinished.json"
_IN_TRASH = "entry-"  # all but entries and state directories have a dot in their names there
_DAY = 86400


class SavedEntry(NamedTuple):
    """One kept piece of work. `commit` holds the uncommitted files on top of `parent`; they are the same commit when
    there were none. `repo` is where the refs are: the source repository, or our own store for plain files. A `whole`
    one holds every file and ref of the workspace, so that what is not in it was not there; `private` are files that
    only their owner may read. `claims`, a line each, are what another machine says that its agent runs and may do,
    where this one did not give it that: nobody has accepted them yet.

    `archives` are repositories inside the work dir, each by its path with the blob of its archive, `modules` git
    directories of submodules that are not checked out. `staged` is a tree with what was in the index, `state` one with
    what git keeps of an operation that is not finished. `commit` holds all of these, as its other parents."""

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
    claims: tuple[str, ...] = ()
    archives: tuple[tuple[str, str], ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    staged: str = ""
    state: str = ""
    left_behind: int = 0

    @property
    def room(self) -> str:
        """Whether it is saved work or a snapshot: the id of a snapshot is `AGENT/NAME`."""
        return SNAPSHOTS if "/" in self.id else SAVED

    @property
    def label(self) -> str:
        """The name that the user gave a snapshot."""
        return self.id.partition("/")[2]

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


def reserve(
    host: StateDir, room: str, name: str, record: Record | None, wanted: str = "", *, for_others: bool = False
) -> EntryPlace:
    """An id, taken by making its directory, and refs that are free in the repository of this agent. Saved work gets the
    first free `NAME-N`, a snapshot the `wanted` name, below that of its agent. Until `write` it is unfinished, and
    `gc` removes it after the end of this process; one that is `for_others`, after a day."""
    if room == SNAPSHOTS:
        check_name(wanted, "snapshot name")
        host.make_dir(os.path.join(host.dir, room, name))
    number = 1
    while True:
        entry_id = f"{name}/{wanted}" if room == SNAPSHOTS else f"{name}-{number}"
        directory = os.path.join(host.dir, room, entry_id)
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            if room == SNAPSHOTS:
                raise MngrError(
                    f"`{name}` has a snapshot called `{wanted}` already",
                    hint=f"choose another name, or remove that one: `mngr snapshot destroy {entry_id}`",
                ) from None
            number += 1
            continue
        try:
            ref = _free_ref(record, f"refs/mngr/{room}/{name}/{wanted or number}")
            store = os.path.join(host.dir, room, "files.git")
            mark = {
                "ref": ref,
                "repos": [store, *filter(None, [record.workspace.repo] if record else [])],
                "copy": record.workspace.work_dir if record and record.workspace.transfer in (MIRROR, RSYNC) else "",
                "maker": None if for_others else host.myself(),
                "made_at": timestamp(),
                **host.here(),
            }
            host.write(os.path.join(directory, _UNFINISHED), files.json_bytes(mark))
        except BaseException:
            with held():
                host.remove(directory)
            raise
        return EntryPlace(entry_id, ref, store)


def _free_ref(record: Record | None, wanted: str) -> str:
    """This ref, or one with a number after it: an agent of the same name in another state directory may keep its work
    in the same repository."""
    if record is None or record.workspace.repo is None or not is_repository(record.workspace.repo):
        return wanted
    parent, _, name = wanted.rpartition("/")
    refs = Git.of_user(record.workspace.repo).must("for-each-ref", "--format=%(refname)", f"{parent}/").split("\n")
    return f"{parent}/{free_name(name, [ref.removeprefix(f'{parent}/').partition('/')[0] for ref in refs])}"


def free_name(wanted: str, taken: Collection[str]) -> str:
    """This name, or with a number after it, that is not taken."""
    names = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def directory(host: StateDir, entry: SavedEntry) -> str:
    return os.path.join(host.dir, entry.room, entry.id)


def agent_dir(host: StateDir, entry: SavedEntry) -> str:
    """Where the conversation, the variables and the events of its agent are."""
    return os.path.join(directory(host, entry), "agent")


def check_kept(entry: SavedEntry) -> None:
    """Raise when what the entry holds cannot be reached any more; before anything is replaced."""
    if not os.path.isdir(entry.repo) or Git.of_user(entry.repo).commit_of(entry.commit) is None:
        raise MngrError(
            f"`{entry.id}` cannot be read: its commits are not in `{entry.repo}`",
            hint="if the repository was moved: move it back, restore, then move it again",
        )


def drop(host: StateDir, entry: SavedEntry) -> None:
    """Forget an entry for good. Twice is safe."""
    discard(host, directory(host, entry))


def discard(host: StateDir, path: str) -> None:
    """Remove the directory of an entry, which is gone at once, then its refs and all that is kept beside them."""
    name = f"{_IN_TRASH}{os.urandom(8).hex()}"
    trash.set_aside(host.dir, path, name)
    if os.path.basename(os.path.dirname(os.path.dirname(path))) == SNAPSHOTS:
        try:
            os.rmdir(os.path.dirname(path))
        except OSError:
            pass  # its agent has others
    finish_drop(host, name)


def finish_drop(host: StateDir, name: str) -> None:
    """Remove the refs of an entry that is in the trash under this name, and then what is kept beside them. Twice is
    safe; for anything else in the trash this does nothing but delete it."""
    path = trash.place(host.dir, name)
    if not name.startswith(_IN_TRASH) or "." in name:  # a work dir, whose files an agent wrote
        trash.delete(host.dir, name)
        return
    if mark := _mark(host, path):
        gits = [Git.of_user(repo) for repo in mark["repos"] if os.path.isdir(repo)]
        if is_repository(mark["copy"]):  # its refs are there until they are fetched
            gits.append(copy_git.at(host, mark["copy"], mark["repos"][-1], shared=False))
        for git in gits:
            forget_refs(git, mark["ref"])
    with suppress(MngrError):
        if (entry := read(host, path)) and os.path.isdir(entry.repo):
            forget_refs(Git.of_user(entry.repo), entry.refs_below)
    trash.delete(host.dir, name)


def _mark(host: StateDir, path: str) -> dict[str, Any] | None:
    """What `reserve` wrote into the directory of an entry that is not finished."""
    try:
        mark = json.loads(host.read(os.path.join(path, _UNFINISHED)))
        ours = mark["ref"].startswith("refs/mngr/") and seconds_of(mark["made_at"]) and mark["repos"][0]
        return mark if ours and isinstance(mark["copy"], str) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def unfinished(host: StateDir, room: str) -> list[str]:
    """The directories of entries that nobody will finish: whoever made them has ended. Of what is made for or on
    another machine that is not known, so it is a day old."""
    found = []
    for path in _directories(host, room):
        if os.path.exists(os.path.join(path, _ENTRY)):
            continue
        mark = _mark(host, path)
        if mark is None:
            over = not host.entries(path)
        elif mark["maker"] is None or host.is_elsewhere(str(mark.get("machine")), str(mark.get("boot_id"))):
            over = time.time() - seconds_of(mark["made_at"]) > _DAY
        else:
            over = not host.alive(dict([mark["maker"]]))
        if over:
            found.append(path)
    return found


def _directories(host: StateDir, room: str) -> list[str]:
    top = os.path.join(host.dir, room)
    paths = [os.path.join(top, name) for name in sorted(host.entries(top)) if not name.endswith(".git")]
    if room == SNAPSHOTS:
        paths = [os.path.join(path, name) for path in paths for name in sorted(host.entries(path))]
    return [path for path in paths if os.path.isdir(path)]


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


def write(host: StateDir, entry: SavedEntry) -> None:
    value = {**entry._asdict(), "agent": json.loads(records.dump(entry.agent)) if entry.agent else None}
    host.write(os.path.join(directory(host, entry), _ENTRY), files.json_bytes(value, indent=1), durable=True)
    host.remove(os.path.join(directory(host, entry), _UNFINISHED))


def read(host: StateDir, directory: str) -> SavedEntry | None:
    """None for one that is being written at this moment."""
    path = os.path.join(directory, _ENTRY)
    try:
        value: dict[str, Any] = json.loads(host.read(path).decode("utf-8", "surrogateescape"))
        records.seconds_of(value["saved_at"])
        agent = records.parse(json.dumps(value["agent"]).encode(), path) if value["agent"] else None
        pairs = {key: tuple(tuple(item) for item in value.get(key, ())) for key in _PAIRS}
        if "archives" not in value:
            pairs["archives"] = _old_archives(value)
        lists = {key: tuple(value.get(key, ())) for key in ("changed", "ignored", "private", "claims")}
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


_PAIRS = ("left_out", "refs", "archives", "modules")


def _old_archives(value: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Earlier versions kept a repository as an archive among the files, in its place, under this name."""
    git, ending = Git.of_user(value["repo"]), ".mngr-nested-repository.tar"
    names = dict.fromkeys(path.rstrip("/") for path in [*value["changed"], *value["ignored"]])
    blobs = ((name, git.run("rev-parse", "-q", "--verify", f"{value['commit']}:{name}{ending}")) for name in names)
    return tuple((name, blob.text) for name, blob in blobs if blob.ok)


def survey(host: StateDir, room: str) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """The entries of a room, oldest first, and by their ids the errors of those that cannot be read."""
    found: list[SavedEntry] = []
    broken: dict[str, MngrError] = {}
    for path in _directories(host, room):
        try:
            if entry := read(host, path):
                found.append(entry)
        except MngrError as error:
            broken[os.path.relpath(path, os.path.join(host.dir, room))] = error
    return sorted(found, key=lambda entry: entry.saved_at), broken


def entries(host: StateDir, room: str) -> list[SavedEntry]:
    """All of a room, oldest first. Raises when one cannot be read."""
    found, broken = survey(host, room) if host.is_ours() else ([], {})
    for error in broken.values():
        raise error
    return found
