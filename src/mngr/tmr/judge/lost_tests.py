"""Tests of the base that are gone: a duplicate that was removed, a test that was split or merged with others, or one
that is deleted. Those that are left tell which, by what they notice and by the values that they hold."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge.changed_file import functions, parsed
from mngr.tmr.judge.evidence import AtTip, Marks
from mngr.tmr.judge.work import Work
from mngr.tmr.judge.work_strength import USERS_MAX, side, tried
from mngr.tmr.measure import strength
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import PASS
from mngr.tmr.measure.rows import PASSED
from mngr.tmr.measure.strength import NOT_MEASURED


def in_other_form(base: BaseCommit, work: Work, tip: AtTip, marks: Marks) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of the lost tests are not missed, since those that are left notice all that they noticed and have all their
    values; and of which that cannot be told, though something is there in their place."""
    touched = {one.path for one in work.changes}
    passing = [test for test in base.tests if base.before(test).verdict == PASS and test not in tip.lost]
    left = [test for test in passing if base.tests[test].file in touched]
    heirs = sorted({*tip.cases, *tip.new, *tip.changed, *left[:USERS_MAX]} - set(tip.lost))
    own = {test: base.own(test) for test in tip.lost}
    held = {test for test in own if base.before(test).verdict == PASS or (test == work.task and marks.t0p1 == PASSED)}
    old = [case for test in sorted(held) for case in own[test]]
    if not heirs or not old:
        return (), tip.lost if tip.new or tip.changed else ()
    before = tried(base, f"lost-{work.slug}", work.old_tests, old)
    after = tried(base, f"heirs-{work.slug}", work.both, heirs)
    whole = side(after, [test for test in heirs if test in after]) if after else None
    values = _values_at(base, work.both, touched)
    kept, unsure = [], []
    for test in tip.lost:
        seen = strength.compare(side(before, own[test]), whole) if test in held else None
        if seen is None or seen.word == NOT_MEASURED or (not seen.lost and not _of(base, own[test]) <= values):
            unsure.append(test)
        elif not seen.lost:
            kept.append(test)
    return tuple(kept), tuple(unsure)


def _values_at(base: BaseCommit, commit: str, paths: Iterable[str]) -> Counter[str]:
    """The constants in these files of Python, each as often as it is there."""
    objects = Objects(base.git)
    there = objects.files(commit)
    blobs = objects.blobs(there[path].oid for path in paths if path in there and path.endswith(".py"))
    return sum((values(parsed(data.decode(errors="replace"))) for data in blobs.values()), Counter())


def _of(base: BaseCommit, tests: Sequence[str]) -> Counter[str]:
    """The constants of tests of the base; those of a function with parameters, with all of its cases."""
    found: Counter[str] = Counter()
    known = [base.tests[test] for test in tests if test in base.tests]
    for function, file in {(one.function or one.id, one.file) for one in known}:
        source = base.git.run("show", f"{base.commit}:{file}").stdout.decode(errors="replace")
        name = function.partition("::")[2].replace("::", ".").partition("[")[0]
        found |= values(functions(source).get(name))
    return found


def values(node: ast.AST | None) -> Counter[str]:
    """The constants of a piece of source, without texts that stand alone."""
    alone = {id(one.value) for one in ast.walk(node) if isinstance(one, ast.Expr)} if node else set()
    parts = ast.walk(node) if node else ()
    return Counter(repr(one.value) for one in parts if isinstance(one, ast.Constant) and id(one) not in alone)
