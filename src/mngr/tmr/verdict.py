"""What is true of an agent's work, from what was measured; its claim is only held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.records import NamedTuple
from mngr.tmr import baseline
from mngr.tmr.rows import GOOD, PASSED

FIXED = "fixed"  # did not pass before, passes now
IMPROVED = "improved"  # passed before and after, with changes
UNCHANGED = "unchanged"  # no changes, and none were needed
HELD = "held"  # holds as measured, but changes what measuring means: for a person to accept
BLOCKED = "blocked"  # the agent says that it cannot go on
REFUTED = "refuted"  # what it claims is not what was measured
REFUSED = "refused"  # a change that must not get on a branch, whatever its tests do
UNCLAIMED = "unclaimed"  # no outcome that could be held against anything; work, if any, is kept
FAILED = "failed"  # the work could not be had or measured
NOT_STARTED = "not started"
VERDICTS = (FIXED, IMPROVED, UNCHANGED, HELD, BLOCKED, REFUTED, REFUSED, UNCLAIMED, FAILED, NOT_STARTED)
INTEGRATED = frozenset({FIXED, IMPROVED})


class Evidence(NamedTuple):
    """What was measured at the agent's commit. `after` is the outcome of its own test there; `new` and `changed` are
    tests that the base has not, or otherwise, with all their outcomes; `lost` are tests of the base that are gone,
    `renamed` those that are there under another name;
    `steering` are changed files that decide how tests, also those of others, are judged."""

    changed_files: int
    after: str = ""
    new: Mapping[str, tuple[str, ...]] = {}
    changed: Mapping[str, tuple[str, ...]] = {}
    lost: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    gate_exit: int | None = None
    refusals: tuple[str, ...] = ()
    steering: tuple[str, ...] = ()
    problem: str = ""


class Verdict(NamedTuple):
    verdict: str
    reasons: tuple[str, ...]


def judge(
    task: str, before: baseline.Measured, claim: Mapping[str, Any] | None, claim_problem: str, seen: Evidence
) -> Verdict:
    """The verdict and why, in words."""
    if seen.refusals:
        return Verdict(REFUSED, seen.refusals)
    if claim is None:
        return Verdict(UNCLAIMED, (claim_problem,))
    if claim["status"] == "blocked":
        needs = f"; it needs: {claim['blocked_needs']}" if claim["blocked_needs"] else ""
        return Verdict(BLOCKED, (claim["blocked_reason"] + needs,))
    if seen.problem:
        return Verdict(FAILED, (seen.problem,))
    if not seen.changed_files:
        return _without_changes(before, claim)
    wrong = _wrong(task, before, seen)
    if wrong:
        return Verdict(REFUTED, wrong)
    if seen.steering:
        files = ", ".join(f"`{path}`" for path in seen.steering)
        return Verdict(HELD, (f"it changes {files}, by which all tests are judged: a person must accept that",))
    if before.verdict == baseline.PASS or _skipped(before, seen):
        return Verdict(IMPROVED, (f"{_was(before)} before and after; {_sizes(seen)}",))
    return Verdict(FIXED, (f"{_was(before)} before, {seen.after or 'passed'} now; {_sizes(seen)}",))


def _without_changes(before: baseline.Measured, claim: Mapping[str, Any]) -> Verdict:
    if claim["changes"]:
        return Verdict(REFUTED, ("it claims changes, and nothing was committed",))
    if before.verdict in (baseline.FAIL, baseline.BROKEN):
        return Verdict(REFUTED, (f"its test does not pass ({_was(before)} at the base), and nothing was committed",))
    if before.verdict == baseline.UNKNOWN:
        return Verdict(FAILED, ("its test could not be run at the base, and nothing was committed",))
    return Verdict(UNCHANGED, (f"{_was(before)} at the base, and no change was needed",))


def _was(before: baseline.Measured) -> str:
    """In words that go with those for one run of a test."""
    if before.timed_out:
        return "timed out"
    return {baseline.PASS: "passed", baseline.FAIL: "failed"}.get(before.verdict, before.verdict)


def _wrong(task: str, before: baseline.Measured, seen: Evidence) -> tuple[str, ...]:
    wrong = []
    if task in seen.lost:
        wrong.append("its test is deleted")
    elif not _passes(before, seen) and not _skipped(before, seen) and task not in seen.broken:
        wrong.append(f"its test is {seen.after} in a clean checkout")
    wrong += [f"`{test}` is deleted" for test in seen.lost if test != task]
    wrong += [f"`{file}` can no longer be collected" for file in seen.broken]
    for what, tests in (("new", seen.new), ("changed", seen.changed)):
        for test, outcomes in tests.items():
            bad = [outcome for outcome in outcomes if outcome not in GOOD | {"skipped"}]
            if test != task and bad:
                often = "" if len(bad) == len(outcomes) else f" in {len(bad)} of {len(outcomes)} runs"
                wrong.append(f"the {what} test `{test}` is {bad[0]}{often}")
    if seen.gate_exit:
        wrong.append(f"the gate command fails (exit code {seen.gate_exit})")
    return tuple(wrong)


def _passes(before: baseline.Measured, seen: Evidence) -> bool:
    """A failure that is expected only since this work is a failure."""
    return seen.after in GOOD and (seen.after == PASSED or seen.after in before.runs)


def _skipped(before: baseline.Measured, seen: Evidence) -> bool:
    return (before.verdict, seen.after) == (baseline.SKIPPED, "skipped")


def _sizes(seen: Evidence) -> str:
    parts = [f"{seen.changed_files} file{'s' * (seen.changed_files != 1)} changed"]
    if seen.new:
        parts.append(f"{len(seen.new)} new test{'s' * (len(seen.new) != 1)}")
    return ", ".join(parts)
