"""An agent's net change, split into its implementation part and the rest. What must not get on the branch is named."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from mngr.tmr.objects import PathChange
from mngr.tmr.paths import PathKind, Paths

LINK, SUBMODULE = "120000", "160000"


class ChangePart(NamedTuple):
    """Changes that stay together, as differences from the commit `base`."""

    base: str
    changes: tuple[PathChange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)

    @property
    def id(self) -> str:
        """The same for the same change of the same base: paths, modes and contents, whoever made it and when."""
        lines = sorted(f"{change.path}\0{change.old}\0{change.new}" for change in self.changes)
        return sha256("\0\0".join([self.base, *lines]).encode(errors="surrogateescape")).hexdigest()


class WorkSplit(NamedTuple):
    """The two parts; one with no changes is None."""

    implementation: ChangePart | None
    rest: ChangePart | None


def split(base: str, changes: Iterable[PathChange], paths: Paths) -> WorkSplit:
    implementation: list[PathChange] = []
    rest: list[PathChange] = []
    for change in sorted(changes, key=lambda change: change.path):
        (implementation if paths.kind(change.path) == PathKind.IMPLEMENTATION else rest).append(change)
    return WorkSplit(
        ChangePart(base, tuple(implementation)) if implementation else None,
        ChangePart(base, tuple(rest)) if rest else None,
    )


def new_files(changes: Iterable[PathChange]) -> set[str]:
    """The blobs that a change brings: what `content.problems` looks at."""
    return {change.new.oid for change in changes if change.new and change.new.mode != SUBMODULE}


def links(changes: Iterable[PathChange]) -> tuple[str, ...]:
    """The blobs that hold the targets of new symbolic links: what `refusals` wants to know."""
    return tuple(change.new.oid for change in changes if change.new and change.new.mode == LINK)


def refusals(
    changes: Iterable[PathChange], targets: Mapping[str, bytes], paths: Paths, problems: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Why this change must not get on a branch that people check out; empty when it may. `problems` are those of
    `content.problems`."""
    found = []
    changes = tuple(changes)
    for change in changes:
        if not _plain(change.path):
            found.append(f"`{change.path}` is a path that git must not check out")
        if change.new and change.new.mode == LINK:
            target = targets.get(change.new.oid, b"/").decode(errors="surrogateescape")
            if _leaves(change.path, target):
                found.append(f"`{change.path}` is a symbolic link out of the repository, to `{target[:200]}`")
        elif change.new and change.new.mode == SUBMODULE:
            found.append(f"`{change.path}` is another repository (a submodule), whose content is not part of this one")
        elif change.new and problems and change.new.oid in problems:
            found.append(f"`{change.path}` {problems[change.new.oid]}")
    found += [f"`{path}` is read-only" for path in paths.touched_read_only(change.path for change in changes)]
    return tuple(found)


def _plain(path: str) -> bool:
    names = path.split("/")
    return not any(name in ("", ".", "..") or name.casefold() in (".git", "git~1") for name in names)


def _leaves(path: str, target: str) -> bool:
    """Whether a link points out of the repository, or into git's own directory."""
    names = target.split("/")
    climbs_late = (
        ".." in names[next((at for at, name in enumerate(names) if name not in ("..", ".", "")), len(names)) :]
    )
    if target.startswith("/") or "\0" in target or climbs_late:  # `link/..` is wherever that link leads
        return True
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return reached.split("/")[0] in ("..", "") or ".git" in reached.casefold().split("/")
