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
LISTS = ("prepared.read", "prepared.made")  # of files
_QUICK = "it takes less"  # than it costs to keep
_PLAIN = ("100644", "100755")
_OF_GIT = (".gitattributes", ".gitmodules")
# While `prepare` is watched, the dates of access are no change for git, which would read all files to be sure.
_WATCHED = """\
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.trustctime GIT_CONFIG_VALUE_0=false GIT_TRACE="$watched/git"
"""


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

    def __init__(self, places: Places, path: str) -> None:
        self._places, self.path = places, path
        self.files: PreparedFiles | None = None

    def given(self, commit: str) -> PreparedFiles | None:
        """What can be put into a copy of this commit here."""
        return self.files if self.files is not None and self.files.fits(self._places.git, commit) else None

    def keeps(self, commit: str) -> bool:
        """Whether what is made in a copy of this commit is to be kept: the first of the base."""
        return self.files is None and commit == self._places.base

    def is_behind(self, commit: str) -> bool:
        """Whether the base should be prepared here first, as it was elsewhere, for a copy of this commit."""
        return self.files is None and commit != self._places.base and self._places.known_for(commit) is not None

    def learn(self, directory: str) -> str:
        """Take what a measurement of the base has left in its directory. Says why nothing can be kept, once."""
        self.files = read(directory, self._places.base)
        lines = files.content(os.path.join(directory, "prepared.not")).decode(errors="replace").splitlines()
        return self._places.give_up(lines[0]) if lines else ""


class Places:
    """As many as there are measurements at a time; thread-safe. After somebody gave up, there is none."""

    def __init__(self, git: Git, base: str, room: str, count: int) -> None:
        self.git, self.base = git, base
        name = f"measuring-{os.urandom(4).hex()}"
        self._all = tuple(Place(self, os.path.join(room, f"{name}-{number + 1}")) for number in range(count))
        self._free, self._changed, self._why_not = list(self._all), threading.Condition(), ""

    @contextmanager
    def one(self) -> Iterator[Place | None]:
        """A free place, one with prepared files first; none if that is of no use."""
        if self._why_not:
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

    def known_for(self, commit: str) -> PreparedFiles | None:
        """What some place has for a copy of this commit."""
        found = () if self._why_not else (place.given(commit) for place in self._all)
        return next((one for one in found if one is not None), None)

    def give_up(self, why: str) -> str:
        """Keep nothing any more. What somebody should know of it: nothing more than once."""
        with self._changed:
            told, self._why_not = self._why_not, why
        return "" if told or why.startswith(_QUICK) else why


def remove_archives(jobs: str) -> None:
    """Remove what was kept by the measurements whose directories are here."""
    for name in os.listdir(jobs) if os.path.isdir(jobs) else ():
        tree_removal.remove_tree(os.path.join(jobs, name, ARCHIVE))


def read(directory: str, commit: str) -> PreparedFiles | None:
    digest, _, stamp = files.content(os.path.join(directory, "prepared.is")).decode(errors="replace").partition(" ")
    archive = os.path.join(directory, ARCHIVE)
    if not stamp or not os.path.isfile(archive):
        return None
    inputs = None
    if os.path.exists(os.path.join(directory, "prepared.sees")):
        lists = (files.content(os.path.join(directory, name)) for name in LISTS)
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
