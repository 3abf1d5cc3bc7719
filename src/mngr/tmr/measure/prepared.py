"""What `[tmr] prepare` made in a copy of the base, for further copies at the same path: see
docs/design/031-measuring-once.md. Only files of the base were run for it, and it fits a commit only if that leaves all
that `prepare` reads as it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from mngr.system import files, tree_removal
from mngr.system.git import Git
from mngr.system.process import quote
from mngr.tmr.branch.objects import Objects

ARCHIVE = "prepared.tar"
_PLAIN = ("100644", "100755")
_OF_GIT = (".gitattributes", ".gitmodules")
# While `prepare` is watched, the dates of access are no change for git, which would read all files to be sure.
_WATCHED = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.trustctime GIT_CONFIG_VALUE_0=false\n"


class PreparedFiles(NamedTuple):
    """An archive of what was made at a commit of the base, whose `digest` was taken before any test ran there. `inputs`
    are the files of the code that were read or written; None if that cannot be told."""

    commit: str
    archive: str
    digest: str
    stamp: str
    inputs: frozenset[str] | None

    def fits(self, git: Git, commit: str) -> bool:
        """Whether `prepare` would make the same at another commit."""
        changed = _changed(git, self.commit, commit)
        return not changed or (self.inputs is not None and _unread(git, self.commit, changed, self.inputs))


class Place:
    """Where one copy after another is made, since what `prepare` makes often names its own path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: PreparedFiles | None = None


class Places:
    """As many as there are measurements at a time; thread-safe. `why_not` says why nothing is kept in any of them."""

    def __init__(self, git: Git, base: str, room: str, count: int) -> None:
        self._git, self.base, self.why_not = git, base, ""
        name = f"measuring-{os.urandom(4).hex()}"
        self._free = [Place(os.path.join(room, f"{name}-{number + 1}")) for number in range(count)]
        self._all = tuple(self._free)
        self._changed = threading.Condition()

    @contextmanager
    def one(self) -> Iterator[Place | None]:
        """A free place, one with prepared files first; none if that is of no use."""
        if self.why_not:
            yield None
            return
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            place = min(self._free, key=lambda one: one.files is None)
            self._free.remove(place)
        try:
            # What could not be removed is in the way: that copy is made elsewhere, and prepared by itself.
            yield None if os.path.lexists(place.path) else place
        finally:
            with self._changed:
                self._free.append(place)
                self._changed.notify()

    def fitting(self, place: Place, commit: str) -> PreparedFiles | None:
        """What can be put into a copy of this commit at this place."""
        return place.files if place.files is not None and place.files.fits(self._git, commit) else None

    def worth_preparing(self, place: Place, commit: str) -> bool:
        """Whether the base should be prepared at this place first, as it was at others, for a copy of this commit."""
        known = next((other.files for other in self._all if other.files is not None), None)
        return place.files is None and commit != self.base and known is not None and known.fits(self._git, commit)

    def learn(self, place: Place, directory: str) -> None:
        """Take what a measurement of the base has left in its directory."""
        place.files = read(directory, self.base)
        if place.files is None:
            lines = files.content(os.path.join(directory, "prepared.not")).decode(errors="replace").splitlines()
            self.why_not = next(iter(lines), "")

    def forget(self) -> None:
        """Remove all archives."""
        for place in self._all:
            if place.files is not None:
                tree_removal.remove_tree(place.files.archive)
                place.files = None


def read(directory: str, commit: str) -> PreparedFiles | None:
    digest, _, stamp = files.content(os.path.join(directory, "prepared.is")).decode(errors="replace").partition(" ")
    archive = os.path.join(directory, ARCHIVE)
    if not stamp or not os.path.isfile(archive):
        return None
    inputs = None
    if files.content(os.path.join(directory, "prepared.sees")):
        lists = (files.content(os.path.join(directory, name)) for name in ("prepared.read", "prepared.made"))
        paths = (path for data in lists for path in data.decode("utf-8", "surrogateescape").split("\0"))
        inputs = frozenset(path.removeprefix("./") for path in paths if path)
    return PreparedFiles(commit, archive, digest, stamp.strip(), inputs)


def step(command: str, *, must: bool, given: PreparedFiles | None, keeps: bool) -> str:
    """Shell that prepares a copy: by what is given, or by the command; what that makes is kept if that is asked for."""
    run = f"run() {{\n{_WATCHED if keeps else ''}{command}\n}}\n"
    otherwise = "exit 0" if must else ":"
    if keeps:
        return f"{run}watch_prepare\nif step prepare; then keep_prepared; else {otherwise}; fi\n"
    text = f"step prepare || {otherwise}\n"
    return run + (f"use_prepared {quote(given.digest)} {quote(given.stamp)} || {text}" if given is not None else text)


class _Change(NamedTuple):
    path: str
    status: str
    modes: frozenset[str]


@lru_cache(maxsize=4096)
def _changed(git: Git, base: str, commit: str) -> tuple[_Change, ...]:
    done = git.must("diff-tree", "-r", "-z", "--raw", "--no-renames", base, commit, doing="a commit is not here")
    fields = done.split("\0")
    found = []
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        before, after, _, _, status = facts.removeprefix(":").split(" ")
        found.append(_Change(path, status, frozenset({before, after} - {"000000"})))
    return tuple(found)


def _unread(git: Git, base: str, changed: tuple[_Change, ...], inputs: frozenset[str]) -> bool:
    """Whether `prepare` could not notice any of these changes: it read none of these files, and those that came or went
    are test files beside others, none of which it read. All else that comes or goes may be looked for by its name."""
    come_and_go = [change for change in changed if change.status != "M"]
    for change in changed:
        same_kind = len(change.modes) == 1 and not change.modes.isdisjoint(_PLAIN)
        if change.path in inputs or not same_kind or os.path.basename(change.path) in _OF_GIT:
            return False
    if not come_and_go:
        return True
    tests = [path for path in Objects(git).files(base) if _is_test(path)]
    for change in come_and_go:
        beside = [path for path in tests if os.path.dirname(path) == os.path.dirname(change.path)]
        if not _is_test(change.path) or not beside or not inputs.isdisjoint(beside):
            return False
    return True


def _is_test(path: str) -> bool:
    name = os.path.basename(path)
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))
