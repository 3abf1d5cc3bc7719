"""An agent's work on one task, and the commits at which it is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mngr.tmr.branch import unit
from mngr.tmr.branch.objects import NewCommit, Objects, PathChange, TreeEntry, ours
from mngr.tmr.judge import doctests
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.rows import NO_BODY


class Work(NamedTuple):
    """Its net change, without the files by which tests are judged, which are taken from the base, and the commits that
    measurements are taken at. `both` is the work as it is; `old_tests` has the base's tests on its product,
    `old_product` its tests on the base's product; each is the same as another where nothing of the other half was
    changed. `users` are tests of the base that run a helper or fixture of tests that is changed."""

    task: str
    slug: str
    changes: tuple[PathChange, ...]
    split: unit.WorkSplit
    both: str
    old_tests: str
    old_product: str
    users: tuple[str, ...] = ()

    @property
    def tests_changed(self) -> bool:
        return self.old_tests != self.both

    def touched(self, base: BaseCommit) -> list[str]:
        """The tests of the base that it may have changed: those in its files, and the users of its helpers."""
        paths = {change.path for change in self.changes}
        return [test for test, found in base.tests.items() if found.file in paths or test in self.users]


def work_of(
    base: BaseCommit,
    objects: Objects,
    task: str,
    slug: str,
    tip: str,
    changes: Sequence[PathChange],
    judging: Iterable[str],
    users: Sequence[str] = (),
) -> Work:
    """The work with its commits, built from the two halves of its change. Files in `judging` stay as at the base."""
    left_out = set(judging)
    kept = tuple(change for change in changes if change.path not in left_out)
    split = unit.split(base.commit, kept, base.paths)
    both = tip if len(kept) == len(changes) else _commit(objects, base, kept, f"{slug} as it is judged")
    in_tests = split.rest is not None and any(
        base.paths.kind(change.path) != PathKind.DOCS for change in split.rest.changes
    )
    mixed = _mixed(base, objects, kept)
    in_tests = in_tests or bool(mixed)
    old_tests = old_product = both
    if split.implementation is None:
        old_tests = base.commit if in_tests else both
    elif in_tests:
        old = [mixed.get(change.path, (change,))[0] for change in split.implementation.changes]
        new = [*(split.rest.changes if split.rest else ()), *(code for _, code in mixed.values())]
        old_tests = _commit(objects, base, old, f"{slug} with the tests of the base")
        old_product = _commit(objects, base, new, f"{slug} without its product")
    else:
        old_product = base.commit
    return Work(task, slug, tuple(changes), split, both, old_tests, old_product, tuple(users))


def _mixed(
    base: BaseCommit, objects: Objects, changes: Iterable[PathChange]
) -> dict[str, tuple[PathChange, PathChange]]:
    """Changed modules with doctests that are changed too: as they are but for these, and with nothing else changed."""
    tested = {test.file for test in base.tests.values() if test.body == NO_BODY and test.file.endswith(".py")}
    found = {}
    for change in changes:
        if change.path in tested and change.old and change.new:
            blobs = objects.blobs([change.old.oid, change.new.oid])
            old, new = (blobs[one.oid].decode("utf-8", "surrogateescape") for one in (change.old, change.new))
            code, docs = doctests.with_docs_of(new, old), doctests.with_docs_of(old, new)
            if code != new:
                sides = (_holding(objects, change.new, code), _holding(objects, change.old, docs))
                found[change.path] = (change._replace(new=sides[0]), change._replace(new=sides[1]))
    return found


def _holding(objects: Objects, entry: TreeEntry, text: str) -> TreeEntry:
    return entry._replace(oid=objects.new_blob(text.encode("utf-8", "surrogateescape"), like=entry.oid))


def _commit(objects: Objects, base: BaseCommit, changes: Iterable[PathChange], message: str) -> str:
    files = {change.path: change.new for change in changes}
    return objects.write([NewCommit(base.commit, files, f"{message}\n", ours(), ours())])[0]
