"""An agent's net change, split into its implementation part and the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from mngr.tmr.objects import PathChange
from mngr.tmr.paths import PathKind, Paths


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
