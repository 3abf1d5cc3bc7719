"""A run as its readers see it: each task with what its agent claims, what was measured, and where its work is.

Made once from the state of a ledger. Beyond it nobody reads these records by the names of their keys. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import typed
from mngr.mapreduce.state import SETTLED, WAITING, RunState, TaskState
from mngr.tmr.branch import integrated
from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.judge import verdict
from mngr.tmr.judge.evidence import Evidence
from mngr.tmr.judge.verdict import Verdict
from mngr.tmr.measure.rows import GOOD
from mngr.tmr.outcome import ClaimedChange, Escalation, Outcome

ON_BRANCH, SET_ASIDE, DROPPED = "on the branch", "set aside", "dropped"


class WorkPlace(NamedTuple):
    """`word` is empty for work that is nowhere. `commits` are those on the branch that hold some of it; `kept_on` is
    the branch that holds what was set aside, `reason` says why it was, `clashes` where it met other work."""

    word: str = ""
    commits: tuple[str, ...] = ()
    kept_on: str = ""
    reason: str = ""
    clashes: tuple[str, ...] = ()

    @property
    def in_part(self) -> bool:
        return bool(self.commits and self.reason)


class TaskView(NamedTuple):
    """A task of a test. `verdict` and `claim` are those of its last attempt; `claimed` is whether there is a claim.
    `accepted` is whether a person took responsibility for its work, `overruled` why, although it is refuted."""

    task: TaskState
    verdict: Verdict = Verdict()
    claim: Outcome = Outcome("")
    place: WorkPlace = WorkPlace()
    accepted: bool = False
    overruled: str = ""

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def slug(self) -> str:
        return self.task.slug

    @property
    def word(self) -> str:
        return verdict_of(self.task)

    @property
    def evidence(self) -> Evidence:
        return self.verdict.evidence

    @property
    def flags(self) -> tuple[str, ...]:
        """What to look at, in words."""
        overruled = [f"refuted, and accepted by a person: {self.overruled}"] if self.overruled else []
        return (*overruled, *(flag.text for flag in self.evidence.change.flags))

    @property
    def breaks(self) -> frozenset[str]:
        """The tests that were measured to be worse with its work: what a person who overrules that answers for."""
        found = self.evidence.tip
        own = () if self.evidence.marks.t1p1 in GOOD else (self.id, *found.cases)
        bad = [test for test, outcomes in found.outcomes.items() if not GOOD.issuperset(outcomes)]
        return frozenset((*found.worse, *self.evidence.deleted, *found.broken, *bad, *own))

    @property
    def why(self) -> str:
        """The reason of its verdict, or of the state of its agent, in one line."""
        last = self.task.last
        if last is None:
            return ""
        if not last.verdict:
            again = "; will be tried again" if self.task.status == WAITING else ""
            return (last.collect_error or last.check_error or last.because or last.state_reason) + again
        reasons = self.verdict.decision.reasons or (last.because,)
        if self.overruled:
            reasons = (f"accepted by a person: {self.overruled}", *reasons)
        if self.word == verdict.UNCLAIMED and last.ended not in ("", "outcome"):
            reasons = (last.because, *reasons)
        return "; ".join(reasons)

    @property
    def tip(self) -> str:
        """The commit that was collected of it; empty without one."""
        return str(((self.task.last.collected if self.task.last else None) or {}).get("tip") or "")


class RunView(NamedTuple):
    """`integrated` is None before the end of an integration; `tasks` are those of the tests, without the
    integrator's."""

    state: RunState
    tasks: tuple[TaskView, ...] = ()
    integrated: Integrated | None = None

    @property
    def id(self) -> str:
        return str(self.state.facts.get("run") or "")

    @property
    def branch(self) -> Integrated:
        """What integration made; nothing before it."""
        return self.integrated or Integrated()

    def task(self, slug: str) -> TaskView | None:
        return next((one for one in self.tasks if one.slug == slug), None)


def view(state: RunState) -> RunView:
    """The run of a ledger's state."""
    branch = integrated_of(state)
    where = _places(branch) if branch else {}
    accepted, overruled = (set(branch.accepted), branch.overruled) if branch else (set(), {})
    tasks = [
        TaskView(
            task,
            measured(task),
            claimed(task),
            where.get(task.slug, WorkPlace()),
            task.slug in accepted,
            overruled.get(task.slug, ""),
        )
        for task in tasks_of(state)
    ]
    return RunView(state, tuple(tasks), branch)


def tasks_of(state: RunState) -> list[TaskState]:
    """Those of the tests, without the integrator's."""
    return [task for task in state.tasks.values() if "role" not in task.data]


def verdict_of(task: TaskState) -> str:
    """In one word, also for a task that never came to a verdict."""
    last = task.last
    if last is None:
        return verdict.NOT_STARTED
    if not last.verdict:
        return verdict.FAILED if task.status == SETTLED or last.given_up else task.status
    return str(last.verdict["verdict"])


def measured(task: TaskState) -> Verdict:
    """What was measured of its last attempt; an empty one without any."""
    return verdict.from_json(task.verdict) if task.verdict else Verdict()


def claimed(task: TaskState) -> Outcome:
    """What its last agent claims, with an empty status when it claims nothing."""
    return claim_from_json(task.claim) if task.claim else Outcome("")


def claim_from_json(value: Mapping[str, Any]) -> Outcome:
    return typed(Outcome, {"status": "", **value})._replace(
        changes=tuple(typed(ClaimedChange, one) for one in value.get("changes", ())),
        escalations=tuple(typed(Escalation, one) for one in value.get("escalations", ())),
    )


def integrated_of(state: RunState) -> Integrated | None:
    """What integration wrote down at its end; None before."""
    phase = state.phases.get("integrate")
    return integrated.from_json(phase.data) if phase is not None and phase.ended_at is not None else None


def _places(branch: Integrated) -> dict[str, WorkPlace]:
    """The place of the work of every task, by slug; those without any are left out."""
    made: dict[str, WorkPlace] = {}
    for commit in branch.commits:
        for slug in commit.slugs:
            before = made.get(slug, WorkPlace())
            made[slug] = before._replace(word=ON_BRANCH, commits=(*before.commits, commit.id))
    for one in branch.set_aside:
        for slug in one.slugs:
            before = made.get(slug, WorkPlace())
            word = before.word or (DROPPED if slug in branch.dropped else SET_ASIDE)
            made[slug] = WorkPlace(word, before.commits, one.branch, one.reason, one.paths)
    return made
