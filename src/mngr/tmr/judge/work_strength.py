"""What the changed tests of an agent's work notice, against what they noticed before; and which of them cannot fail."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mngr.tmr.judge.evidence import AtTip, Marks, Noticed
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.work import Work
from mngr.tmr.measure import canary, strength
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.measurement import Measurement, Pytest
from mngr.tmr.measure.rows import PASSED, cases, files_of
from mngr.tmr.measure.strength import CANNOT_FAIL, MIXED, NOT_MEASURED, SAME, STRONGER, WEAKER, MeasuredTest, Strength

_LOST_MAX = 40
USERS_MAX = 16  # of the tests that nobody changed themselves


class _Pair(NamedTuple):
    """A test before and after; a function with parameters whose cases differ is one test, with all its cases."""

    before: Sequence[str]
    after: Sequence[str]


def noticed(base: BaseCommit, work: Work, tip: AtTip, marks: Marks, found: Sequence[str]) -> Noticed:
    """What the tests of work that holds so far notice, and which cannot fail. The strength is None where no test was
    changed; `unspoiled` are also those that look at what commands print. A changed test that fails on the old product,
    which is in `found`, has shown that it can fail. Users of a changed helper are changed tests as well."""
    changed = {*tip.cases, *tip.new, *tip.changed, *tip.users[:USERS_MAX]} - set(found)
    touched = sorted(changed) if work.tests_changed else []
    pairs = paired(touched, base.tests)
    known = () if marks.t0p1 == PASSED else base.own(work.task)
    old = [test for pair in pairs for test in pair.before if test not in known]
    before: Mapping[str, MeasuredTest] = {}
    if old and work.old_tests == base.commit:
        before = _at_base(base, old)
    elif old:
        before = tried(base, f"before-{work.slug}", work.old_tests, old)
    after: Mapping[str, MeasuredTest] = strength.in_directory(tip.log)
    if touched and not set(touched) <= set(after):
        after = tried(base, f"after-{work.slug}", work.both, touched)
    if lost := [pair for pair in pairs if _compared(pair, before, after).word in (WEAKER, MIXED)]:
        before, after = _again(base, work, before, after, lost)
    quiet = [test for test in touched if test not in after or not after[test].kills]
    fixed = [*(tip.cases if marks.t0p0 != PASSED else ()), *found]
    elsewhere = [test for test in touched if test not in quiet and after[test].only_reads_output]
    spoiled = _pass_spoiled(base, work, [*quiet, *elsewhere], fixed)
    # Of a test that neither runs a line of the product nor a command that we know, nothing can be said for certain.
    runs = {
        test for test in quiet if test not in after or after[test].commands or any((after[test].lines or {}).values())
    }
    cannot_fail = tuple(test for test in quiet if spoiled.get(test) and test in runs)
    known_spoiled = {test: "passed" if passes else "failed" for test, passes in spoiled.items() if test in after}
    after = {**after, **{test: after[test]._replace(spoiled=word) for test, word in known_spoiled.items()}}
    compared = [_compared(pair, before, after) for pair in pairs]
    unspoiled = [
        test for test in dict.fromkeys([*fixed, *elsewhere, *quiet]) if spoiled.get(test) and test not in cannot_fail
    ]
    if not cannot_fail and marks.t0p0 != PASSED and marks.t1p0 == PASSED:
        unspoiled += _look_at_nothing(base, work, tip.cases)
    return Noticed(joined(compared) if compared else None, cannot_fail, tuple(unspoiled))


def paired(touched: Sequence[str], at_base: Collection[str]) -> list[_Pair]:
    """These tests with what they were at the base; a new one was nothing."""
    functions: dict[str, list[str]] = {}
    for test in touched:
        functions.setdefault(test.partition("[")[0], []).append(test)
    found = []
    for function, now in functions.items():
        then = cases(function, at_base)
        if then and not set(now) <= set(then):
            found.append(_Pair(then, now))
        else:
            found += [_Pair([test] if then else [], [test]) for test in now]
    return found


def _compared(pair: _Pair, before: Mapping[str, MeasuredTest], after: Mapping[str, MeasuredTest]) -> Strength:
    return strength.compare(side(before, pair.before) if pair.before else None, side(after, pair.after))


def side(found: Mapping[str, MeasuredTest], tests: Sequence[str]) -> MeasuredTest:
    """Several cases as one test; one that was not measured is known by its name only."""
    return strength.joined(tests[0], [found.get(test, MeasuredTest(test)) for test in tests])


def tried(
    base: BaseCommit, label: str, commit: str, tests: Sequence[str], only: Sequence[str] = (), repeat: int = 0
) -> Mapping[str, MeasuredTest]:
    wanted = Measurement(f"strength-{label}", commit, [base.strength_step(commit, tests, only=only)], repeat=repeat)
    return strength.in_directory(base.measurer.take(wanted).directory)


def _at_base(base: BaseCommit, tests: Sequence[str]) -> Mapping[str, MeasuredTest]:
    """What tests notice before anybody changed anything: the same for all agents, so that quick ones are measured
    together."""
    found: dict[str, MeasuredTest] = {}
    for group in dict.fromkeys(map(base.measured_together, tests)):
        digest = hashlib.sha256("\n".join(group).encode()).hexdigest()[:6]
        found.update(tried(base, f"base-{digest}", base.commit, group))
    return found


def _again(
    base: BaseCommit,
    work: Work,
    before: Mapping[str, MeasuredTest],
    after: Mapping[str, MeasuredTest],
    lost: Sequence[_Pair],
) -> tuple[Mapping[str, MeasuredTest], Mapping[str, MeasuredTest]]:
    """Both sides with what was noticed before and not after tried once more, before it counts: all of it, where cases
    were compared as one."""
    only: list[str] = []
    if all(len(pair.before) == len(pair.after) == 1 for pair in lost):
        only = list(dict.fromkeys(id for pair in lost for id in _compared(pair, before, after).again))[:_LOST_MAX]
    sides = []
    for side, commit, first in (("before", work.old_tests, before), ("after", work.both, after)):
        tests = [test for pair in lost for test in (pair.before if side == "before" else pair.after)]
        more = tried(base, f"{side}-again-{work.slug}", commit, tests, only, repeat=1)
        sides.append({test: strength.repeated(one, more[test]) if test in more else one for test, one in first.items()})
    return sides[0], sides[1]


def _pass_spoiled(base: BaseCommit, work: Work, quiet: Sequence[str], fixed: Sequence[str]) -> dict[str, bool]:
    """Which of these pass with every function of the product spoiled; none where that cannot be told. Of a fix, nothing
    can be told when none of its files can be spoiled, nor built from."""
    spoiled = canary.spoiled(base.git, work.both, base.paths, importable=True) if quiet or fixed else None
    if spoiled is None:
        return {}
    tests = set(quiet)
    if fixed and work.split.implementation is not None:
        differ = set(base.git.must("diff", "--name-only", "-z", work.both, spoiled).split("\0"))
        if any(path in differ or base.paths.builds(path) for path in work.split.implementation.paths):
            tests |= set(fixed)
    return _passed_at(base, f"spoiled-{work.slug}", spoiled, sorted(tests))


def _look_at_nothing(base: BaseCommit, work: Work, tests: Sequence[str]) -> list[str]:
    """Those of the tests, which did not pass until they were changed, that call functions of the product and pass
    whatever these return."""
    passed = list(tests)
    for returns in (True, False):
        spoiled = canary.spoiled(base.git, work.both, base.paths, importable=True, returns=returns)
        seen = _passed_at(base, f"{'returns' if returns else 'spoiled'}-{work.slug}", spoiled, passed)
        passed = [test for test in passed if seen.get(test) is returns]
    return passed


def _passed_at(base: BaseCommit, label: str, commit: str | None, tests: Sequence[str]) -> dict[str, bool]:
    """Whether each test passes at a commit that may not build; nothing if that could not be measured."""
    if commit is None or not tests:
        return {}
    wanted = Measurement(label, commit, [Pytest("test", tests=tests, paths=files_of(tests))], anyway=True)
    done = base.measurer.take(wanted)
    return {} if done.lost else {test: done.rows.outcome(test) == PASSED for test in tests}


def joined(found: Sequence[Strength]) -> Strength:
    """One answer for all changed tests of the work: the one that a person has to know first. Tests that could not be
    compared are not counted beside those that could."""
    found = [one for one in found if one.word != NOT_MEASURED] or found
    words = [one.word for one in found]
    word = next((word for word in (WEAKER, MIXED, STRONGER, SAME, CANNOT_FAIL) if word in words), NOT_MEASURED)
    return Strength(
        word,
        before=(sum(one.before[0] for one in found), sum(one.before[1] for one in found)),
        after=(sum(one.after[0] for one in found), sum(one.after[1] for one in found)),
        gained=tuple(dict.fromkeys(text for one in found for text in one.gained)),
        lost=tuple(dict.fromkeys(text for one in found for text in one.lost)),
        how=next((one.how for one in found if one.how), ""),
        seconds=sum(one.seconds for one in found),
        why=next((one.why for one in found if one.word == word), ""),
    )


def shorter(base: BaseCommit, work: Work) -> bool:
    """Whether the test files have fewer lines than before."""
    done = base.git.must("diff", "--numstat", base.commit, work.both)
    rows = [line.split("\t") for line in done.splitlines() if line.count("\t") == 2]
    counts = [
        int(added) - int(removed)
        for added, removed, path in rows
        if added.isdigit() and removed.isdigit() and base.paths.kind(path) == PathKind.TEST
    ]
    return bool(counts) and sum(counts) < 0
