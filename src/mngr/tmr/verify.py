"""From an agent's work to its verdict: what was measured, what a person should look at, and the claim beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mngr.tmr import expectations, flags, rows, work_strength
from mngr.tmr.base import BaseCommit, BaseText
from mngr.tmr.baseline import FAIL, FLAKY, UNKNOWN, BaselineTest
from mngr.tmr.blocks import Blocks
from mngr.tmr.evidence import Measurements, Work, again_at_base, measure, work_of
from mngr.tmr.objects import Objects, PathChange
from mngr.tmr.paths import PathKind
from mngr.tmr.refusals import LINK, refusals
from mngr.tmr.verdict import BLOCKED, FAILED, INTEGRATED, REFUTED, Evidence, Judgement, Verdict, judge, wrong_with
from mngr.tutorial.faithful import Faithful
from mngr.tutorial.faithful import judge as judge_citations
from mngr.tutorial.ran import RecordedRuns, read_every

_TEXT_MAX = 500_000


def verify(base: BaseCommit, *, task: str, slug: str, harvested: Mapping[str, Any]) -> Verdict:
    """The verdict on what was collected of a task."""
    tip, claim = harvested["tip"], harvested["outcome"]
    before = base.before(task)
    done = claim is not None and claim["status"] == "done"

    def judged(seen: Evidence) -> Judgement:
        return judge(task, before, claim, harvested["outcome_problem"], seen)

    if tip is None:
        problem = "; ".join(harvested["problems"]) or "its commits could not be collected"
        return Verdict(*judged(Evidence(0, problem=problem)))
    objects = Objects(base.git)
    changes = objects.changed(base.commit, tip)
    [refused] = refusals(objects, base.commit, [changes], base.paths, base.content)
    files: list[flags.File] = []
    taken = Measurements(Evidence(len(changes), refusals=refused))
    if before.verdict == UNKNOWN and done and not refused:
        before = base.measured_now(task, slug)
    if changes and not refused:
        files = _changed_files(base, objects, changes)
        marks = [*_flags(base, files, task), *_misclaimed(base, claim, changes)]
        marks += _late(objects, _commits(base, tip), harvested.get("outcome_at"))
        taken = _measured(base, objects, task, slug, tip, changes, before, marks)
    elif not changes and done and before.verdict == FAIL:
        before = again_at_base(base, task, slug, before)
    seen = taken.evidence
    found = judged(seen)
    failure = taken.failure or (seen.problem if found.verdict == FAILED else "")
    if failure and found.verdict in (REFUTED, FAILED):
        found = Judgement(FAILED, (failure,))
    else:
        failure = ""
    reasons = found.reasons
    if harvested["uncommitted"] and found.verdict not in INTEGRATED:
        reasons = (*reasons, f"what it did not commit is kept as `{harvested['uncommitted'][:12]}`")
    effect = tuple(dict.fromkeys([*seen.effect, *seen.found])) if seen.product_changed else None
    return Verdict(
        found.verdict,
        reasons,
        flags=seen.flags,
        notes=(*_notes(base, claim, tip), *seen.notes),
        files=tuple(change.path for change in changes),
        marks=seen.marks,
        strength=seen.strength,
        expectations=tuple(expectations.changed(files)),
        new=tuple(sorted(seen.new)),
        changed=tuple(sorted(seen.changed)),
        lost=seen.lost,
        renamed=seen.renamed,
        cases=taken.own if taken.own != (task,) else (),
        repeated=taken.repeated,
        effect=effect,
        repaired=_repaired(taken, before) if effect is None else (),
        stands_alone=taken.stands_alone,
        gate_exit=seen.gate_exit,
        seconds=round(taken.seconds, 3),
        log=taken.directory,
        e2e=_recorded(taken.directory),
        failure=failure,
        blocked=claim["blocked_reason"] if found.verdict == BLOCKED else "",
        flaky=before.verdict == FLAKY,
    )


def _recorded(directory: str) -> str:
    """The directory of what the tests of a measurement recorded; empty if they recorded nothing."""
    place = os.path.join(directory, "e2e")
    return place if directory and os.path.isdir(place) else ""


def _measured(
    base: BaseCommit,
    objects: Objects,
    task: str,
    slug: str,
    tip: str,
    changes: Sequence[PathChange],
    before: BaselineTest,
    marks: Sequence[flags.Flag],
) -> Measurements:
    """Judged with the base's own version of whatever decides how tests are judged. What does not hold that way is
    measured as it is too: a person may accept it."""
    judging = {flag.path for flag in marks if flag.kind in flags.STEERING}
    work = work_of(base, objects, task, slug, tip, changes, judging)
    taken = measure(base, work, before)
    if judging and not taken.failure and _is_wrong(task, before, taken.evidence):
        whole = work_of(base, objects, task, slug, tip, changes, ())
        again = measure(base, whole, before)
        if not _is_wrong(task, before, again.evidence):
            work = whole
            taken = again._replace(evidence=again.evidence._replace(needed=tuple(sorted(judging))))
    evidence = taken.evidence._replace(flags=tuple(marks))
    if not taken.failure and not _is_wrong(task, before, evidence):
        evidence = evidence._replace(**_proof(base, work, taken))
    return taken._replace(evidence=evidence)


def _proof(base: BaseCommit, work: Work, taken: Measurements) -> dict[str, Any]:
    """What its tests notice, whether they can fail, and whether they keep to the tutorial."""
    noticed = work_strength.measure(base, work, taken)
    faithful = _faithful(base, work, taken)
    return {
        "strength": noticed.strength,
        "cannot_fail": noticed.cannot_fail,
        "unspoiled": noticed.unspoiled,
        "shorter": work.tests_changed and work_strength.shorter(base, work),
        "unfaithful": faithful.reasons,
        "notes": faithful.notes,
    }


def _faithful(base: BaseCommit, work: Work, taken: Measurements) -> Faithful:
    """Whether its test still cites its blocks, and ran their commands in the measurement."""
    own = taken.own[0].partition("[")[0] if taken.own else work.task
    before, after = Blocks(base.git, base.commit), Blocks(base.git, work.both)
    place = rows.place(base.tests)
    recorded = [ran for ran in map(read_every, base.recorded) if ran.tests]
    at_base = RecordedRuns((), tuple(test for ran in recorded for test in ran.tests)) if recorded else None
    now = read_every(os.path.join(taken.directory, "e2e"))
    return judge_citations(
        before.test(place + work.task, base.tutorial, at_base), after.test(place + own, base.tutorial, now)
    )


def _is_wrong(task: str, before: BaselineTest, seen: Evidence) -> bool:
    return bool(seen.broken_by or seen.problem or wrong_with(task, before, seen))


def _repaired(taken: Measurements, before: BaselineTest) -> tuple[str, ...]:
    """Tests that did not pass at the base and do now, by a change of tests alone."""
    good = taken.evidence.marks.t1p1 == "passed" and before.verdict not in ("pass", "skipped")
    return taken.own if good else ()


def _changed_files(base: BaseCommit, objects: Objects, changes: Sequence[PathChange]) -> list[flags.File]:
    """Both sides of the changed files, as text; a link has none."""
    sides = [entry.oid for change in changes for entry in (change.old, change.new) if entry and entry.mode != LINK]
    blobs = objects.blobs(sides)
    kind, included = base.paths.kind, base.paths.included

    def text(entry: Any) -> str | None:
        if entry is None or len(blobs.get(entry.oid, b"")) > _TEXT_MAX:
            return None
        return blobs.get(entry.oid, b"").decode(errors="replace")

    return [
        flags.File(
            change.path,
            text(change.old),
            text(change.new),
            implementation=kind(change.path) == PathKind.IMPLEMENTATION,
            build=change.path in included,
        )
        for change in changes
    ]


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
    paths = [change.path for change in changes if base.paths.kind(change.path) == PathKind.IMPLEMENTATION]
    yield from flags.misclaimed(claim["changes"], paths)


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
