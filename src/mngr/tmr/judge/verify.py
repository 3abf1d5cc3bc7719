"""From an agent's work to its verdict: what was measured, what a person should look at, and the claim beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mngr.tmr.blocks import Blocks
from mngr.tmr.branch.objects import Objects, PathChange
from mngr.tmr.judge import expectations, flags, work_strength
from mngr.tmr.judge.evidence import Work, again_at_base, measure, work_of
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.refusals import refusals
from mngr.tmr.judge.verdict import BLOCKED, FAILED, FIXED_TOGETHER, INTEGRATED, REFUTED, Verdict, judge, wrong_with
from mngr.tmr.measure.base import BaseCommit, BaseText
from mngr.tmr.measure.baseline import FAIL, FLAKY, UNKNOWN, BaselineTest
from mngr.tutorial.faithful import Faithful
from mngr.tutorial.faithful import judge as judge_citations
from mngr.tutorial.ran import RecordedRuns, read_every


def verify(base: BaseCommit, *, task: str, slug: str, harvested: Mapping[str, Any]) -> Verdict:
    """The verdict on what was collected of a task."""
    tip, claim = harvested["tip"], harvested["outcome"]
    before = base.before(task)
    done = claim is not None and claim["status"] == "done"
    seen = Verdict(problem="; ".join(harvested["problems"]) or "its commits could not be collected")
    if tip is not None:
        objects = Objects(base.git)
        changes = objects.changed(base.commit, tip)
        [refused] = refusals(objects, base.commit, [changes], base.paths, base.content)
        seen = Verdict(files=tuple(change.path for change in changes), refusals=refused)
        if before.verdict == UNKNOWN and done and not refused:
            before = base.measured_now(task, slug)
        if changes and not refused:
            files = flags.files_of(
                objects, changes, product=lambda path: _is_product(base, path), included=base.paths.included
            )
            found = [*_flags(base, files, task), *_misclaimed(base, claim, changes)]
            found += _late(objects, _commits(base, tip), harvested.get("outcome_at"))
            seen = _measured(base, objects, task, slug, tip, changes, before, found)
            seen = seen._replace(expectations=tuple(expectations.changed(files)))
        elif not changes and done and before.verdict == FAIL:
            before = again_at_base(base, task, slug, before)
        seen = seen._replace(notes=(*_notes(base, claim, tip), *seen.notes))
    word, reasons = judge(task, before, claim, harvested["outcome_problem"], seen)
    failure = seen.failure or (seen.problem if word == FAILED else "")
    if failure and word in (REFUTED, FAILED):
        word, reasons = FAILED, (failure,)
    else:
        failure = ""
    if tip is not None and harvested["uncommitted"] and word not in INTEGRATED:
        missing = base.git.run("log", "-1", "--format=%b", harvested["uncommitted"]).text.strip()
        kept = f"what it did not commit is kept as `{harvested['uncommitted'][:12]}`"
        reasons = (*reasons, f"{kept}, {missing}: see `mngr saved list`" if missing else kept)
    repaired = seen.marks.t1p1 == "passed" and before.verdict not in ("pass", "skipped") and not seen.product_changed
    recorded = os.path.join(seen.log, "e2e")
    return seen._replace(
        verdict=word,
        reasons=reasons,
        effect=_effect(word, seen) if seen.product_changed else None,
        repaired=seen.cases if repaired else (),
        e2e=recorded if seen.log and os.path.isdir(recorded) else "",
        failure=failure,
        blocked=claim["blocked_reason"] if word == BLOCKED else "",
        flaky=before.verdict == FLAKY,
    )


def _effect(word: str, seen: Verdict) -> tuple[str, ...]:
    """The tests that failed at the base and pass with the changed product; with both changed, its own as it is now."""
    own = [test for test in seen.found if word == FIXED_TOGETHER and test in seen.cases]
    return tuple(dict.fromkeys([*(seen.effect or ()), *own]))


def _measured(
    base: BaseCommit,
    objects: Objects,
    task: str,
    slug: str,
    tip: str,
    changes: Sequence[PathChange],
    before: BaselineTest,
    found: Sequence[flags.Flag],
) -> Verdict:
    """Judged with the base's own version of whatever decides how tests are judged. What does not hold that way is
    measured as it is too: a person may accept it. Then what its tests notice, whether they can fail, and whether they
    keep to the tutorial."""
    judging = {flag.path for flag in found if flag.kind in flags.STEERING}
    work = work_of(base, objects, task, slug, tip, changes, judging)
    seen = measure(base, work, before)
    if judging and not seen.failure and _is_wrong(task, before, seen):
        whole = work_of(base, objects, task, slug, tip, changes, ())
        again = measure(base, whole, before)
        if not _is_wrong(task, before, again):
            work, seen = whole, again._replace(needed=tuple(sorted(judging)))
    seen = seen._replace(flags=tuple(found))
    if seen.failure or _is_wrong(task, before, seen):
        return seen
    faithful = _faithful(base, work, seen)
    return work_strength.measured(base, work, seen)._replace(
        shorter=work.tests_changed and work_strength.shorter(base, work),
        unfaithful=faithful.reasons,
        notes=faithful.notes,
    )


def _faithful(base: BaseCommit, work: Work, seen: Verdict) -> Faithful:
    """Whether its test still cites its blocks, and ran their commands in the measurement."""
    own = seen.cases[0].partition("[")[0] if seen.cases else work.task
    before, after = Blocks(base.git, base.commit), Blocks(base.git, work.both)
    recorded = [ran for each in base.recorded if (ran := read_every(each, base.place)).tests]
    at_base = RecordedRuns((), tuple(test for ran in recorded for test in ran.tests)) if recorded else None
    now = read_every(os.path.join(seen.log, "e2e"), base.place)
    return judge_citations(before.test(work.task, base.tutorial, at_base), after.test(own, base.tutorial, now))


def _is_wrong(task: str, before: BaselineTest, seen: Verdict) -> bool:
    return bool(seen.broken_by or seen.problem or wrong_with(task, before, seen))


def _flags(base: BaseCommit, changed: Sequence[flags.File], task: str) -> list[flags.Flag]:
    given = base.measurer.environment
    there = BaseText(base.git, base.commit, base.paths, task.partition("::")[0])
    commands = (given.prepare, given.test_command, base.gate_command)
    return flags.find(changed, test=task, commands=commands, test_file=there.test_source(), where=there.where)


def _misclaimed(
    base: BaseCommit, claim: Mapping[str, Any] | None, changes: Sequence[PathChange]
) -> Iterator[flags.Flag]:
    """Without a claim there is nothing to hold against its work."""
    if claim is None:
        return
    paths = [change.path for change in changes if _is_product(base, change.path)]
    yield from flags.misclaimed(claim["changes"], paths)


def _is_product(base: BaseCommit, path: str) -> bool:
    return base.paths.kind(path) == PathKind.IMPLEMENTATION


def _notes(base: BaseCommit, claim: Mapping[str, Any] | None, tip: str) -> list[str]:
    """What is odd about the claim, and says nothing about the work: a misspelt value, the id of an amended commit."""
    if claim is None:
        return []
    claimed = [change["commit"] for change in claim["changes"] if change["commit"]]
    commits = _commits(base, tip) if claimed else []
    strange = [one for one in claimed if not any(commit.startswith(one) for commit in commits)]
    return [*claim.get("notes", ()), *(f"claimed commit `{one[:12]}` is not among its commits" for one in strange)]


def _commits(base: BaseCommit, tip: str) -> list[str]:
    return base.git.must("rev-list", tip, f"^{base.commit}", doing="git could not list its commits").split()


def _late(objects: Objects, commits: Sequence[str], outcome_at: float | None) -> Iterator[flags.Flag]:
    """Commits after the outcome file: they are measured and used like the others, but its claim does not know them."""
    if outcome_at is None:
        return
    facts = objects.facts(commits)
    late = [commit for commit in commits if commit in facts and facts[commit].committed_at > int(outcome_at)]
    if late:
        text = f"{len(late)} of {len(commits)} commits are later than its outcome file, the last {late[0][:12]}"
        yield flags.Flag("late", "", text)
