"""What follows from the evidence of an agent's work; its claim is only held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.tmr.judge.evidence import Evidence
from mngr.tmr.judge.flags import HOLDING
from mngr.tmr.judge.verdict import (
    BLOCKED,
    EXPECTATION_CHANGED,
    FAILED,
    FIXED,
    FIXED_TOGETHER,
    HELD,
    IMPROVED,
    NEW_BEHAVIOUR,
    REFUSED,
    REFUTED,
    SAME,
    STRONGER,
    UNCHANGED,
    UNCLAIMED,
    UNPROVEN,
    Decision,
    place_of,
)
from mngr.tmr.measure import baseline
from mngr.tmr.measure import strength as strengths
from mngr.tmr.measure.baseline import DID_NOT_PASS, BaselineTest
from mngr.tmr.measure.generality import ONLY_THIS
from mngr.tmr.measure.rows import GOOD, PASSED

_Word = tuple[str, tuple[str, ...]]  # the word, and why


class Claim(NamedTuple):
    """What an agent says of its work. `problem` is why nothing can be read of it, `changes` whether it says that it
    changed something, `blocked` what it lacks."""

    status: str = ""
    problem: str = ""
    changes: bool = False
    blocked: str = ""


def claim_of(outcome: Mapping[str, Any] | None, problem: str) -> Claim:
    """The claim of an outcome file."""
    if outcome is None:
        return Claim(problem=problem)
    needs = f"; it needs: {outcome['blocked_needs']}" if outcome["blocked_needs"] else ""
    blocked = outcome["blocked_reason"] + needs if outcome["status"] == "blocked" else ""
    return Claim(outcome["status"], "", bool(outcome["changes"]), blocked)


def decide(found: Evidence, claim: Claim) -> Decision:
    """The word, why, where on the branch the work goes, and what it promises."""
    word, reasons = _judged(found, claim)
    failure = found.trouble.failure or (found.trouble.problem if word == FAILED else "")
    if failure and word in (REFUTED, FAILED):
        word, reasons = FAILED, (failure,)
    return Decision(word, reasons, place_of(word, found), _promises(word, found))


def _judged(found: Evidence, claim: Claim) -> _Word:
    if found.change.refusals:
        return REFUSED, found.change.refusals
    if not claim.status:
        return UNCLAIMED, (claim.problem,)
    if claim.status == "blocked":
        return BLOCKED, (claim.blocked,)
    if found.trouble.broken_by:
        return REFUTED, (found.trouble.broken_by,)
    if found.trouble.problem:
        return FAILED, (found.trouble.problem,)
    if not found.change.files:
        return _without_changes(found.was, claim)
    if wrong := wrong_with(found):
        return REFUTED, wrong
    word, why = _by_measurement(found)
    reason = why if word == HELD else f"{why}; {_sizes(found)}"
    held = _held(found, word)
    return (HELD, (*held, reason)) if held else (word, (reason,))


def _promises(word: str, found: Evidence) -> tuple[str, ...]:
    """The tests that failed at the base and pass with the changed product; with both changed, its own as it is now. Of
    work on tests alone its own, if it did not pass before."""
    own = found.tip.cases
    if found.change.product_changed:
        together = [test for test in found.halves.found if word == FIXED_TOGETHER and test in own]
        return tuple(dict.fromkeys([*found.halves.effect, *together]))
    repaired = found.marks.t1p1 == PASSED and found.was.verdict not in (baseline.PASS, baseline.SKIPPED)
    return own if repaired else ()


def _by_measurement(found: Evidence) -> tuple[str, str]:
    was, marks, change = _was(found.was), found.marks, found.change
    enabled = found.was.verdict == baseline.SKIPPED and marks.t1p1 == PASSED
    if found.was.verdict in DID_NOT_PASS or enabled:
        if marks.t0p1 == PASSED:
            proof = "as it is at the base, also with the changed product" if change.tests_changed else "now"
            return FIXED, f"its test {was} before and passes {proof}"
        if found.was.verdict == baseline.FLAKY and not change.product_changed:
            return FIXED, "its test was flaky before and passes every time now"
        if marks.t1p0 == PASSED and change.product_changed:
            told = "its changed test passes without the change of the product, which no test needs"
            return HELD, f"expectation changed: {told}"
        if marks.t1p0 == PASSED:
            return EXPECTATION_CHANGED, f"its test {was} before; only the test was changed"
        return FIXED_TOGETHER, f"its test {was} before; product and test were both changed"
    if not change.product_changed:
        return _by_strength(was, found)
    if found.halves.effect:
        tests = ", ".join(f"`{test}`" for test in found.halves.effect[:3])
        return FIXED, f"its test {was} before; {tests} failed before and passes now"
    if found.halves.found:
        tests = ", ".join(f"`{test}`" for test in found.halves.found)
        return NEW_BEHAVIOUR, f"no test failed before; {tests} fails on the old product and passes on the new one"
    return UNPROVEN, f"its test {was} before, and no test shows a need for this change"


def _by_strength(was: str, found: Evidence) -> tuple[str, str]:
    """Its test passes before and after, and the product is as it was."""
    seen = found.noticed.strength
    none = seen is None or seen.word in (strengths.NOT_MEASURED, strengths.CANNOT_FAIL)
    if seen is None or none or not found.change.tests_changed:
        return IMPROVED, f"its test {was} before and after"
    counts = f"notices {seen.after[0]} of {seen.after[1]} changes, {seen.before[0]} of {seen.before[1]} before"
    if seen.word == strengths.WEAKER:
        return HELD, f"its test may be weaker, as far as so few changes tell: {counts}; {_examples(seen.lost)}"
    if seen.word == strengths.MIXED:
        return HELD, f"its test is stronger in some ways and weaker in others: {counts}; {_unnoticed(seen)}"
    if seen.word == strengths.STRONGER:
        return STRONGER, counts
    if seen.few:
        return IMPROVED, f"its test {was} before and after; too few changes could be tried to compare: {counts}"
    if found.change.shorter:
        return SAME, f"{counts}, and its test is shorter"
    return HELD, f"no difference seen with {seen.after[1]} changes, and its test is not shorter"


def _held(found: Evidence, word: str) -> tuple[str, ...]:
    """What a person must accept before the work goes on the branch."""
    change, noticed = found.change, found.noticed
    needed = [f"its test passes only with its own `{path}`" for path in change.needed]
    needed += [
        f"`{test}` as it is at the base passed before and is {now} now"
        for test, now in found.halves.as_before.items()
        if word != NEW_BEHAVIOUR or test not in found.halves.found  # which says so itself
    ]
    needed += [f"`{test}` is gone, and whether others notice as much could not be measured" for test in noticed.unsure]
    needed += [f"`{test}` passes with a spoiled product too" for test in noticed.unspoiled]
    needed += [*found.beyond.depends, *found.beyond.touched]
    needed += [found.beyond.only] if found.beyond.general == ONLY_THIS else []
    return (*needed, *(flag.text for flag in change.flags if flag.kind in HOLDING and flag.path not in change.needed))


def _without_changes(was: BaselineTest, claim: Claim) -> _Word:
    if claim.changes:
        return REFUTED, ("it claims changes, and nothing was committed",)
    if was.verdict in (baseline.FAIL, baseline.BROKEN):
        return REFUTED, (f"its test {_was(was)} at the base, and nothing was committed",)
    if was.verdict == baseline.UNKNOWN:
        return FAILED, ("its test could not be run at the base, and nothing was committed",)
    return UNCHANGED, (f"its test {_was(was)} at the base, and no change was needed",)


def _was(before: BaselineTest) -> str:
    """What a test did before, after the words `its test`."""
    words = {
        baseline.PASS: "passed",
        baseline.FAIL: "failed",
        baseline.SKIPPED: "was skipped",
        baseline.BROKEN: "could not be collected",
    }
    return words.get(before.verdict, f"was {before.verdict}")


def wrong_with(found: Evidence) -> tuple[str, ...]:
    """Why the claim does not hold, in words; empty when it does."""
    task, tip, gone = found.task, found.tip, found.deleted
    wrong = []
    if task in gone:
        wrong.append("its test is deleted")
    elif not _passes(found.was, found.marks.t1p1) and task not in tip.broken:
        wrong.append(f"its test is {found.marks.t1p1} in a clean checkout")
    wrong += [f"`{test}` is deleted" for test in gone if test != task]
    wrong += [f"`{file}` can no longer be collected" for file in tip.broken]
    wrong += [f"`{test}` passed before and is {now} now" for test, now in tip.worse.items() if test not in tip.lost]
    for test, outcomes in tip.outcomes.items():
        bad = [outcome for outcome in outcomes if outcome not in GOOD | {"skipped"}]
        if test != task and test not in tip.worse and bad:
            often = "" if len(bad) == len(outcomes) else f" in {len(bad)} of {len(outcomes)} runs"
            wrong.append(f"the {'new' if test in tip.new else 'changed'} test `{test}` is {bad[0]}{often}")
    if tip.gate_exit:
        wrong.append(f"the gate command fails (exit code {tip.gate_exit})")
    wrong += [f"`{test}` cannot fail: it passes whatever the product does" for test in found.noticed.cannot_fail]
    seen = found.noticed.strength
    if seen is not None and seen.word == strengths.WEAKER and not seen.few:
        counts = f"{seen.after[0]} of {seen.after[1]} changes, {seen.before[0]} before"
        wrong.append(f"its test is weaker: it notices {counts}; {_unnoticed(seen)}")
    return (*wrong, *found.noticed.unfaithful)


def _unnoticed(seen: strengths.Strength) -> str:
    return f"now unnoticed: {_examples(seen.lost)}"


def _examples(texts: tuple[str, ...]) -> str:
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def _passes(before: BaselineTest, after: str) -> bool:
    """A failure that is expected only since this work is a failure; a test that was skipped may stay so."""
    if after == PASSED:
        return True
    return (after in GOOD and after in before.runs) or (before.verdict, after) == (baseline.SKIPPED, "skipped")


def _sizes(found: Evidence) -> str:
    files, new = len(found.change.files), len(found.tip.new)
    parts = [f"{files} file{'s' * (files != 1)} changed"]
    if new:
        parts.append(f"{new} new test{'s' * (new != 1)}")
    return ", ".join(parts)
