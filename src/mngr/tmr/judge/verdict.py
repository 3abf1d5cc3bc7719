"""What is true of an agent's work, from what was measured; its claim is only held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import plain, typed
from mngr.tmr.branch.unit import BEHAVIOUR, EXPECTATION, FIX, UNCONTROVERSIAL
from mngr.tmr.judge.flags import HOLDING, Flag
from mngr.tmr.measure import baseline
from mngr.tmr.measure import strength as strengths
from mngr.tmr.measure.rows import GOOD, PASSED
from mngr.tmr.measure.strength import Strength

FIXED = "fixed"  # its test failed, and the base's own version of it passes with the new product
FIXED_TOGETHER = "fixed together"  # its test failed, and passes when product and test are both changed
# Nothing failed at the base; a new or changed test fails on the old product: somebody must want what the new one does.
NEW_BEHAVIOUR = "new behaviour"
EXPECTATION_CHANGED = "expectation changed"  # its test failed, and passes on the old product once the test is changed
STRONGER = "stronger"  # its test notices more than before
SAME = "same"  # its test notices the same as before, in less text
IMPROVED = "improved"  # passes before and after; what its tests notice was not measured, or no test was changed
UNCHANGED = "unchanged"  # no changes, and none were needed
UNPROVEN = "unproven"  # the product is changed, and no test shows why: for a person to accept
HELD = "held"  # measured as good, but a person must accept something about it first
BLOCKED = "blocked"  # the agent says that it cannot continue
REFUTED = "refuted"  # what it claims is not what was measured
REFUSED = "refused"  # a change that must not get on a branch, whatever its tests do
UNCLAIMED = "unclaimed"  # no outcome that could be held against anything; work, if any, is kept
FAILED = "failed"  # the work could not be collected or measured
NOT_STARTED = "not started"
VERDICTS = (
    *(FIXED, FIXED_TOGETHER, NEW_BEHAVIOUR, EXPECTATION_CHANGED, STRONGER, SAME, IMPROVED, UNCHANGED),
    *(HELD, UNPROVEN, BLOCKED, REFUTED, REFUSED, UNCLAIMED, FAILED, NOT_STARTED),
)
FIXES = frozenset({FIXED, FIXED_TOGETHER})
# A person looks at these before the branch is merged.
TO_LOOK_AT = frozenset({NEW_BEHAVIOUR, EXPECTATION_CHANGED, FIXED_TOGETHER})
INTEGRATED = FIXES | TO_LOOK_AT | {STRONGER, SAME, IMPROVED}
# On the branch once a person accepts it.
ACCEPTABLE = frozenset({HELD, UNPROVEN})
# Verdicts of the baseline on a test that an agent may be said to have fixed.
DID_NOT_PASS = (baseline.FAIL, baseline.BROKEN, baseline.FLAKY)


class Marks(NamedTuple):
    """What the task's test did: T is the tests and P the product, 0 the base and 1 the agent's commit. Empty is not
    measured."""

    t0p0: str = ""
    t0p1: str = ""
    t1p0: str = ""
    t1p1: str = ""


class ChangedExpectation(NamedTuple):
    """An expected value that the work changed."""

    path: str
    line: int
    before: str
    after: str


class Verdict(NamedTuple):
    """What was measured of an agent's work, and the verdict that follows from it, which is empty until then.

    `new` and `changed` are tests that the base has not, or otherwise, and `outcomes` all outcomes of these; `lost` are
    tests of the base that are gone, `renamed` those that are there under another name, `cases` what its own test is
    called now; `broken` are files that cannot be collected any more, `worse` other tests that passed at the base and do
    not now, with what they do; `found` are new or changed tests that fail on the old product; `repeated` is what failed
    and was run again.
    `effect` are the tests that failed at the base and pass with the product as changed, None without such a change;
    `repaired` the same for work on tests alone; `stands_alone` is whether its tests pass without its change of the
    product. `cannot_fail` are tests that pass whatever the product does; `unspoiled` those said to be fixed that pass
    with a spoiled product too. `needed` are files by which tests are judged and without whose change the test does not
    pass.
    `log` is the directory of the measurement, `e2e` that of what its tests recorded. `broken_by` says how the work
    breaks its own test run, `problem` why the measurement did not come to its end, `failure` what is wrong with this
    machine, or that checking itself failed; `blocked` what the agent says that it lacks, `flaky` that its test both
    passed and failed at the base; `second_opinion` is what another agent's variant of the test said of it."""

    verdict: str = ""
    reasons: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tests_changed: bool = False
    product_changed: bool = False
    marks: Marks = Marks()
    strength: Strength | None = None
    shorter: bool = False
    expectations: tuple[ChangedExpectation, ...] = ()
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outcomes: Mapping[str, tuple[str, ...]] = {}
    lost: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    worse: Mapping[str, str] = {}
    found: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    effect: tuple[str, ...] | None = None
    repaired: tuple[str, ...] = ()
    stands_alone: bool | None = None
    cannot_fail: tuple[str, ...] = ()
    unspoiled: tuple[str, ...] = ()
    unfaithful: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    gate_exit: int | None = None
    seconds: float = 0.0
    log: str = ""
    e2e: str = ""
    broken_by: str = ""
    problem: str = ""
    failure: str = ""
    blocked: str = ""
    flaky: bool = False
    second_opinion: str = ""

    @property
    def to_look_at(self) -> bool:
        """Whether a person looks at it before the branch is merged, whatever is flagged: where the test changed what it
        wants, or made itself steady."""
        return self.verdict in TO_LOOK_AT or self._steadied

    @property
    def _steadied(self) -> bool:
        """Its test passes every time now, and only the test was changed: perhaps it looks away now."""
        return self.verdict == FIXED and self.flaky and not self.product_changed

    @property
    def place(self) -> str:
        """Where on the branch its work goes."""
        if self.verdict == EXPECTATION_CHANGED or self._steadied:
            return EXPECTATION
        if self.verdict == NEW_BEHAVIOUR:
            return BEHAVIOUR
        return FIX if self.effect is not None else UNCONTROVERSIAL

    def as_json(self) -> dict[str, Any]:
        """For the ledger."""
        strength = self.strength.as_json() if self.strength else None
        return {**plain(self), "strength": strength, "after": self.marks.t1p1}


def from_json(value: Mapping[str, Any]) -> Verdict:
    """The inverse of `Verdict.as_json`, also for what older versions wrote."""
    marks, strength = value.get("marks"), value.get("strength")
    return typed(Verdict, value)._replace(
        flags=tuple(typed(Flag, flag) for flag in value.get("flags", ())),
        marks=typed(Marks, marks) if marks is not None else Marks(t1p1=value.get("after") or ""),
        strength=typed(Strength, strength) if strength else None,
        expectations=tuple(typed(ChangedExpectation, one) for one in value.get("expectations", ())),
    )


Judged = tuple[str, tuple[str, ...]]  # the word, and why


def judge(
    task: str, before: baseline.BaselineTest, claim: Mapping[str, Any] | None, claim_problem: str, seen: Verdict
) -> Judged:
    """The verdict and why, in words."""
    if seen.refusals:
        return REFUSED, seen.refusals
    if claim is None:
        return UNCLAIMED, (claim_problem,)
    if claim["status"] == "blocked":
        needs = f"; it needs: {claim['blocked_needs']}" if claim["blocked_needs"] else ""
        return BLOCKED, (claim["blocked_reason"] + needs,)
    if seen.broken_by:
        return REFUTED, (seen.broken_by,)
    if seen.problem:
        return FAILED, (seen.problem,)
    if not seen.files:
        return _without_changes(before, claim)
    if wrong := wrong_with(task, before, seen):
        return REFUTED, wrong
    word, why = _by_measurement(before, seen)
    reason = why if word == HELD else f"{why}; {_sizes(seen)}"
    held = _held(seen)
    return (HELD, (*held, reason)) if held else (word, (reason,))


def _by_measurement(before: baseline.BaselineTest, seen: Verdict) -> tuple[str, str]:
    was, marks = _was(before), seen.marks
    enabled = before.verdict == baseline.SKIPPED and marks.t1p1 == PASSED
    if before.verdict in DID_NOT_PASS or enabled:
        if marks.t0p1 == PASSED:
            proof = "as it is at the base, also with the changed product" if seen.tests_changed else "now"
            return FIXED, f"its test {was} before and passes {proof}"
        if before.verdict == baseline.FLAKY and not seen.product_changed:
            return FIXED, "its test was flaky before and passes every time now"
        if marks.t1p0 == PASSED and seen.product_changed:
            told = "its changed test passes without the change of the product, which no test needs"
            return HELD, f"expectation changed: {told}"
        if marks.t1p0 == PASSED:
            return EXPECTATION_CHANGED, f"its test {was} before; only the test was changed"
        return FIXED_TOGETHER, f"its test {was} before; product and test were both changed"
    if not seen.product_changed:
        return _by_strength(was, seen)
    if seen.effect:
        tests = ", ".join(f"`{test}`" for test in seen.effect[:3])
        return FIXED, f"its test {was} before; {tests} failed before and passes now"
    if seen.found:
        tests = ", ".join(f"`{test}`" for test in seen.found)
        return NEW_BEHAVIOUR, f"no test failed before; {tests} fails on the old product and passes on the new one"
    return UNPROVEN, f"its test {was} before, and no test shows a need for this change"


def _by_strength(was: str, seen: Verdict) -> tuple[str, str]:
    """Its test passes before and after, and the product is as it was."""
    found = seen.strength
    if found is None or found.word in (strengths.NOT_MEASURED, strengths.CANNOT_FAIL) or not seen.tests_changed:
        return IMPROVED, f"its test {was} before and after"
    counts = f"notices {found.after[0]} of {found.after[1]} changes, {found.before[0]} of {found.before[1]} before"
    if found.word == strengths.WEAKER:
        return HELD, f"its test may be weaker, as far as so few changes tell: {counts}; {_examples(found.lost)}"
    if found.word == strengths.MIXED:
        examples = f"now unnoticed: {_examples(found.lost)}"
        return HELD, f"its test is stronger in some ways and weaker in others: {counts}; {examples}"
    if found.word == strengths.STRONGER:
        return STRONGER, counts
    if found.few:
        return IMPROVED, f"its test {was} before and after; too few changes could be tried to compare: {counts}"
    if seen.shorter:
        return SAME, f"{counts}, and its test is shorter"
    return HELD, f"no difference seen with {found.after[1]} changes, and its test is not shorter"


def _held(seen: Verdict) -> tuple[str, ...]:
    """What a person must accept before the work goes on the branch."""
    needed = [f"its test passes only with its own `{path}`" for path in seen.needed]
    needed += [f"`{test}` passes with a spoiled product too" for test in seen.unspoiled]
    return (*needed, *(flag.text for flag in seen.flags if flag.kind in HOLDING and flag.path not in seen.needed))


def _without_changes(before: baseline.BaselineTest, claim: Mapping[str, Any]) -> Judged:
    if claim["changes"]:
        return REFUTED, ("it claims changes, and nothing was committed",)
    if before.verdict in (baseline.FAIL, baseline.BROKEN):
        return REFUTED, (f"its test {_was(before)} at the base, and nothing was committed",)
    if before.verdict == baseline.UNKNOWN:
        return FAILED, ("its test could not be run at the base, and nothing was committed",)
    return UNCHANGED, (f"its test {_was(before)} at the base, and no change was needed",)


def _was(before: baseline.BaselineTest) -> str:
    """What a test did before, after the words `its test`."""
    words = {
        baseline.PASS: "passed",
        baseline.FAIL: "failed",
        baseline.SKIPPED: "was skipped",
        baseline.BROKEN: "could not be collected",
    }
    return words.get(before.verdict, f"was {before.verdict}")


def wrong_with(task: str, before: baseline.BaselineTest, seen: Verdict) -> tuple[str, ...]:
    """Why the claim does not hold, in words; empty when it does."""
    wrong = []
    after = seen.marks.t1p1
    if task in seen.lost:
        wrong.append("its test is deleted")
    elif not _passes(before, after) and task not in seen.broken:
        wrong.append(f"its test is {after} in a clean checkout")
    wrong += [f"`{test}` is deleted" for test in seen.lost if test != task]
    wrong += [f"`{file}` can no longer be collected" for file in seen.broken]
    wrong += [f"`{test}` passed before and is {now} now" for test, now in seen.worse.items() if test not in seen.lost]
    for test, outcomes in seen.outcomes.items():
        bad = [outcome for outcome in outcomes if outcome not in GOOD | {"skipped"}]
        if test != task and test not in seen.worse and bad:
            often = "" if len(bad) == len(outcomes) else f" in {len(bad)} of {len(outcomes)} runs"
            wrong.append(f"the {'new' if test in seen.new else 'changed'} test `{test}` is {bad[0]}{often}")
    if seen.gate_exit:
        wrong.append(f"the gate command fails (exit code {seen.gate_exit})")
    wrong += [f"`{test}` cannot fail: it passes whatever the product does" for test in seen.cannot_fail]
    if seen.strength is not None and seen.strength.word == strengths.WEAKER and not seen.strength.few:
        counts = f"{seen.strength.after[0]} of {seen.strength.after[1]} changes, {seen.strength.before[0]} before"
        wrong.append(f"its test is weaker: it notices {counts}; now unnoticed: {_examples(seen.strength.lost)}")
    return (*wrong, *seen.unfaithful)


def _examples(texts: tuple[str, ...]) -> str:
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def _passes(before: baseline.BaselineTest, after: str) -> bool:
    """A failure that is expected only since this work is a failure; a test that was skipped may stay so."""
    if after == PASSED:
        return True
    return (after in GOOD and after in before.runs) or (before.verdict, after) == (baseline.SKIPPED, "skipped")


def _sizes(seen: Verdict) -> str:
    parts = [f"{len(seen.files)} file{'s' * (len(seen.files) != 1)} changed"]
    if seen.new:
        parts.append(f"{len(seen.new)} new test{'s' * (len(seen.new) != 1)}")
    return ", ".join(parts)
