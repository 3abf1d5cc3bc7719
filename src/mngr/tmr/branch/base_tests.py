"""The base's own tests on the product that is delivered: a test that work loosened or skipped does not pass by that."""

from __future__ import annotations

from collections.abc import Iterable

from mngr.tmr.branch.objects import NewCommit, Objects, ours
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.measurement import Measurement, Pytest
from mngr.tmr.measure.rows import GOOD, file_of


def not_passing(base: BaseCommit, tip: str) -> tuple[str, ...]:
    """The tests of the base that do not pass with the product at `tip`, as they are at the base, among those that the
    branch touches: the gate has the others. Twice, since once is chance. None when that cannot be measured."""
    objects = Objects(base.git)
    changes = objects.changed(base.commit, tip)
    product = {one.path: one.new for one in changes if base.paths.kind(one.path) == PathKind.IMPLEMENTATION}
    bad = _touched(base, [one.path for one in changes if one.path not in product])
    if not bad:
        return ()
    who = ours(objects.facts([tip])[tip].committed_at)
    [commit] = objects.write([NewCommit(base.commit, product, "The base's tests, the new product\n", who, who)])
    for repeat in (0, 1):
        wanted = Measurement(f"base-tests-{tip[:8]}", commit, [Pytest("test", tests=bad)], repeat=repeat)
        done = base.measurer.take(wanted)
        rows = done.rows
        if done.problem or rows.doubt:
            return ()  # not measured
        bad = [test for test in bad if rows.outcome(test) not in GOOD]
        if not bad:
            break
    return tuple(bad)


def _touched(base: BaseCommit, paths: Iterable[str]) -> list[str]:
    """The tests of these files; all tests when one is no file of tests, since any test may use it."""
    files, changed = {file_of(test) for test in base.tests}, set(paths)
    elsewhere = {path for path in changed - files if base.paths.kind(path) not in (PathKind.DOCS, PathKind.TUTORIAL)}
    there = any(base.git.ok("cat-file", "-e", f"{base.commit}:{path}") for path in elsewhere)
    return [test for test in base.tests if there or file_of(test) in changed]
