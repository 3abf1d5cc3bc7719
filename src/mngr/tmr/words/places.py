"""Where the work of each task is: on the branch, set aside, dropped, or nowhere; and whom a task waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.mapreduce.state import SETTLED, RunState, TaskState
from mngr.tmr.judge import verdict
from mngr.tmr.words.summary import row, tasks_of, verdict_of

ON_BRANCH, SET_ASIDE, DROPPED = "on the branch", "set aside", "dropped"
# The groups of tasks as a reader wants them: what needs a person, what is not true, what is done.
NEEDS_YOU, REFUTED, ASIDE, WORKING, QUEUED = "needs you", "refuted", "set aside", "working", "queued"
VERIFIED, DONE, UNCHANGED = "verified", "on the branch", "unchanged"
GROUPS = (NEEDS_YOU, REFUTED, ASIDE, WORKING, QUEUED, VERIFIED, DONE, UNCHANGED)
FOR_A_PERSON = frozenset({verdict.HELD, verdict.UNPROVEN, verdict.BLOCKED})
NOT_TRUE = frozenset({verdict.REFUTED, verdict.REFUSED, verdict.UNCLAIMED, verdict.FAILED})


class WorkPlace(NamedTuple):
    """`word` is empty for work that is nowhere. `commits` are those on the branch that hold some of it; `kept_on` is
    the branch that holds what was set aside, `reason` says why it was."""

    word: str = ""
    commits: tuple[str, ...] = ()
    kept_on: str = ""
    reason: str = ""

    @property
    def in_part(self) -> bool:
        return bool(self.commits and self.reason)


NOWHERE = WorkPlace()


def integration_of(state: RunState) -> Mapping[str, Any]:
    """What integration wrote down at its end; empty before."""
    phase = state.phases.get("integrate")
    return phase.data if phase is not None and phase.ended_at is not None else {}


def places(state: RunState) -> dict[str, WorkPlace]:
    """The place of the work of every task, by slug; those without any are left out."""
    found = integration_of(state)
    made: dict[str, WorkPlace] = {}
    for commit in found.get("commits", ()):
        for slug in commit["slugs"]:
            before = made.get(slug, NOWHERE)
            made[slug] = before._replace(word=ON_BRANCH, commits=(*before.commits, str(commit["id"])))
    dropped = set(found.get("dropped", ()))
    for one in found.get("set_aside", ()):
        for slug in one["slugs"]:
            before = made.get(slug, NOWHERE)
            word = before.word or (DROPPED if slug in dropped else SET_ASIDE)
            made[slug] = WorkPlace(word, before.commits, str(one.get("branch") or ""), str(one["reason"]))
    return made


def expectations(task: TaskState) -> list[Mapping[str, Any]]:
    """The expected values that its work changed."""
    return list(task.verdict.get("expectations") or ())


def is_dangerous(task: TaskState) -> bool:
    """Whether a person should look at the work before it is merged."""
    found = task.verdict
    return bool(found.get("flags") or found.get("expectations") or found.get("verdict") in verdict.TO_LOOK_AT)


def group_of(task: TaskState, place: WorkPlace, accepted: bool = False) -> str:
    """The group of a task. What a person accepted does not need them again."""
    if task.status != SETTLED:
        return QUEUED if task.status == "waiting" else WORKING
    word = verdict_of(task)
    if place.commits and is_dangerous(task) and not accepted:
        return NEEDS_YOU
    if place.word == ON_BRANCH and not place.in_part:
        return DONE
    if word in NOT_TRUE:
        return REFUTED
    if place.word:
        return ASIDE
    if word in FOR_A_PERSON:
        return NEEDS_YOU
    return UNCHANGED if word == verdict.UNCHANGED else QUEUED if word == verdict.NOT_STARTED else VERIFIED


def grouped(state: RunState) -> dict[str, list[TaskState]]:
    """All tasks by group, in the order of `GROUPS`; empty groups are left out."""
    where = places(state)
    accepted = set(integration_of(state).get("accepted", ()))
    found: dict[str, list[TaskState]] = {name: [] for name in GROUPS}
    for task in tasks_of(state):
        found[group_of(task, where.get(task.slug, NOWHERE), task.slug in accepted)].append(task)
    return {name: tasks for name, tasks in found.items() if tasks}


def rows(state: RunState) -> list[dict[str, Any]]:
    """All tasks as JSON: `place` is where the work is, `commit` the last commit on the branch that holds some of it."""
    where = places(state)
    found = [(task, where.get(task.slug, NOWHERE)) for task in tasks_of(state)]
    return [{**row(task), "place": at.word, "commit": at.commits[-1] if at.commits else ""} for task, at in found]
