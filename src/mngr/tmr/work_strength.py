"""What the changed tests of an agent's work notice, against what they noticed before; and which of them cannot fail."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.records import NamedTuple
from mngr.tmr import canary, strength, strength_rows
from mngr.tmr.base import BaseCommit, files_of
from mngr.tmr.evidence import Measurements, Work, outcome_of
from mngr.tmr.measurement import Measurement, Pytest, StrengthStep
from mngr.tmr.paths import Kind
from mngr.tmr.rows import PASSED
from mngr.tmr.strength import CANNOT_FAIL, MIXED, NOT_MEASURED, SAME, STRONGER, WEAKER, Strength
from mngr.tmr.strength_rows import Measured

# Products in these have to be built again for every mutant.
_BUILT = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".go", ".java", ".kt", ".swift", ".zig", ".hs", ".ml")
_LOST_MAX = 40


class Noticed(NamedTuple):
    """`strength` is None where no test was changed. `cannot_fail` are tests that pass whatever the product does."""

    strength: Strength | None = None
    cannot_fail: tuple[str, ...] = ()


def measure(base: BaseCommit, work: Work, taken: Measurements) -> Noticed:
    """Only for work that holds so far. A test that fails on the old product has shown that it can fail."""
    seen = taken.evidence
    if not work.tests_changed:
        return Noticed()
    touched = sorted({*taken.own, *seen.new, *seen.changed} - set(seen.found))
    if not touched:
        return Noticed()
    old = [test for test in touched if test in base.tests]
    before: Mapping[str, Measured] = {}
    if old and seen.marks.t0p1 == PASSED:
        before = _tried(base, work, "before", work.old_tests, old)
    after = _tried(base, work, "after", work.both, touched)
    if lost := _lost(before, after, old):
        before, after = _again(base, work, before, after, old, lost)
    quiet = [test for test in touched if test not in after or not after[test].kills]
    spoiled = _pass_spoiled(base, work, quiet)
    own = {test for test in taken.own if test in touched}
    found = {
        test: strength.compare(
            before.get(test) if test in base.tests else None, after.get(test), spoiled_passes=spoiled.get(test)
        )
        for test in touched
    }
    known = {test: one for test, one in found.items() if test in own or test in seen.changed or test in seen.new}
    return Noticed(_joined(known), tuple(test for test in quiet if spoiled.get(test)))


def _tried(
    base: BaseCommit, work: Work, side: str, commit: str, tests: Sequence[str], only: Sequence[str] = ()
) -> Mapping[str, Measured]:
    step = StrengthStep(
        "strength",
        tests=tests,
        paths=files_of(tests),
        product=_product(base, commit),
        mutants=base.mutants,
        builds=has_to_be_built(_product(base, commit)),
        only=only,
    )
    wanted = Measurement(f"strength-{side}-{work.slug}", commit, [step], repeat=1 if only else 0)
    done = base.measurer.take(wanted)
    if done.lost:
        base.measurer.forget(wanted)
    try:
        with open(os.path.join(done.directory, f"{step.name}.noticed"), "rb") as file:
            return strength_rows.read(file.read())
    except FileNotFoundError:
        return {}


def has_to_be_built(product: Sequence[str]) -> bool:
    return any(path.endswith(_BUILT) for path in product)


def _product(base: BaseCommit, commit: str) -> list[str]:
    names = base.git.must("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    return [name for name in names if name and base.paths.kind(name) == Kind.IMPLEMENTATION]


def _lost(before: Mapping[str, Measured], after: Mapping[str, Measured], tests: Sequence[str]) -> list[str]:
    """What was noticed before and not after, by id: tried once more before it counts."""
    found: list[str] = []
    for test in tests:
        compared = strength.compare(before.get(test), after.get(test)) if before.get(test) else None
        if compared is not None and compared.word in (WEAKER, MIXED):
            found += [*compared.again[0], *compared.again[1]]
    return list(dict.fromkeys(found))[:_LOST_MAX]


def _again(
    base: BaseCommit,
    work: Work,
    before: Mapping[str, Measured],
    after: Mapping[str, Measured],
    tests: Sequence[str],
    only: Sequence[str],
) -> tuple[Mapping[str, Measured], Mapping[str, Measured]]:
    sides = []
    for side, commit, first in (("before", work.old_tests, before), ("after", work.both, after)):
        more = _tried(base, work, f"{side}-again", commit, tests, only)
        sides.append(
            {test: strength_rows.repeated(one, more[test]) if test in more else one for test, one in first.items()}
        )
    return sides[0], sides[1]


def _pass_spoiled(base: BaseCommit, work: Work, tests: Sequence[str]) -> dict[str, bool]:
    """Which of these pass with every function of the product spoiled; none where that cannot be told."""
    spoiled = canary.spoiled(base.git, work.both, base.paths, importable=True) if tests else None
    if spoiled is None:
        return {}
    wanted = Measurement(
        f"spoiled-{work.slug}", spoiled, [Pytest("test", tests=tests, paths=files_of(tests))], anyway=True
    )
    done = base.measurer.take(wanted)
    if done.lost:
        base.measurer.forget(wanted)
        return {}
    return {test: outcome_of(done, test) == PASSED for test in tests}


def _joined(found: Mapping[str, Strength]) -> Strength:
    """One answer for all changed tests of the work: the one that a person has to know first."""
    words = [one.word for one in found.values()]
    word = next((word for word in (WEAKER, MIXED, STRONGER, SAME, CANNOT_FAIL) if word in words), NOT_MEASURED)
    listed = list(found.values())
    return Strength(
        word,
        before=(sum(one.before[0] for one in listed), sum(one.before[1] for one in listed)),
        after=(sum(one.after[0] for one in listed), sum(one.after[1] for one in listed)),
        gained=tuple(dict.fromkeys(text for one in listed for text in one.gained)),
        lost=tuple(dict.fromkeys(text for one in listed for text in one.lost)),
        how=next((one.how for one in listed if one.how), ""),
        seconds=sum(one.seconds for one in listed),
        why=next((one.why for one in listed if one.word == word), ""),
    )


def shorter(base: BaseCommit, work: Work) -> bool:
    """Whether the test files have fewer lines than before."""
    done = base.git.must("diff", "--numstat", base.commit, work.both)
    rows = [line.split("\t") for line in done.splitlines() if line.count("\t") == 2]
    counts = [
        int(added) - int(removed)
        for added, removed, path in rows
        if added.isdigit() and removed.isdigit() and base.paths.kind(path) == Kind.TEST
    ]
    return bool(counts) and sum(counts) < 0
