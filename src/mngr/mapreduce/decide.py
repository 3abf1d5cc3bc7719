"""What to do next for a run, from what its ledger says and what is seen of its agents. Pure: no clock, disk or process.

It is asked again after everything that happens, so what could not be done is decided once more, and a new orchestrator
goes on where a killed one stopped.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from mngr.agents import state as states
from mngr.mapreduce import breaker, budget, concurrency, ending, naming, retry
from mngr.mapreduce.breaker import Cluster
from mngr.mapreduce.concurrency import Change
from mngr.mapreduce.ending import Sight
from mngr.mapreduce.limits import STOP, Limits
from mngr.mapreduce.state import CHECKING, COLLECTING, LAUNCHING, RUNNING, WAITING, Attempt, RunState, TaskState
from mngr.records import NamedTuple

SETTLED, STOPPED, BREAKER, BUDGET, DEADLINE = "settled", "stopped", "breaker", budget.BUDGET, budget.DEADLINE


class Start(NamedTuple):
    """Make the agent. `fresh` attempts have no intent in the ledger yet; of others a half-made agent may be there."""

    task: str
    number: int
    agent: str
    fresh: bool


class Adopt(NamedTuple):
    """Note that the agent of this attempt was made."""

    task: str
    number: int
    agent_id: str


class Saw(NamedTuple):
    """Note the state in which the agent is now."""

    task: str
    number: int
    state: str
    reason: str


class Tell(NamedTuple):
    """Send a message: `what` is `task`, `warning` or `nudge`."""

    task: str
    number: int
    what: str


class End(NamedTuple):
    task: str
    number: int
    reason: str
    because: str
    retry: bool = False
    retry_at: float = 0.0


class Collect(NamedTuple):
    """`agent_id` is empty when there is no such agent any more."""

    task: str
    number: int
    agent_id: str


class Check(NamedTuple):
    task: str
    number: int


class Stop(NamedTuple):
    """Stop an agent from which everything was collected."""

    task: str
    number: int
    agent_id: str


Action = Start | Adopt | Saw | Tell | End | Collect | Check | Stop | Change | Cluster
TASK, WARNING, NUDGE = "task", "warning", "nudge"


class View(NamedTuple):
    """What is known beside the ledger. `seen` are the agents of attempts that are not released, by the name that their
    attempt gave them; one that is missing does not exist. `busy` is the work under way, as (task, number)."""

    now: float
    seen: Mapping[str, Sight]
    busy: Collection[tuple[str, int]] = frozenset()
    stop_asked: bool = False


class Decision(NamedTuple):
    """What to do now; when to ask again if nothing happens; why it is over, once nothing is left to do."""

    actions: Sequence[Action]
    again_at: float = math.inf
    over: str = ""
    because: str = ""


class Holding(NamedTuple):
    """Why nothing more is begun; with `stop`, agents that work are stopped too. What was collected is checked all the
    same, since that costs nothing, unless a person wants the run to end."""

    why: str
    because: str
    stop: bool = False

    @property
    def checks(self) -> bool:
        return self.why != STOPPED


def decide(state: RunState, tasks: Sequence[str], limits: Limits, view: View) -> Decision:
    """The tasks are the ids of those to be settled, in the order in which they begin."""
    chosen = [task for task in map(state.tasks.__getitem__, tasks) if not task.over]
    actions: list[Action] = []
    tripped = breaker.tripped(state, tasks, limits) if state.trip is None else None
    if tripped is not None:
        actions.append(tripped)
    holding = _holding(state, limits, view, tripped)
    again_at = [limits.deadline if limits.deadline is not None and limits.deadline > view.now else math.inf]
    for task in chosen:
        for attempt in task.attempts:
            found, later = _for_attempt(task, attempt, state, limits, view, holding)
            actions += found
            again_at.append(later)
    begun, later = _begin(state, chosen, limits, view, holding)
    actions += begun
    again_at.append(later)
    if not actions and not view.busy and (over := _over(chosen, holding)) is not None:
        return Decision((), over=over.why, because=over.because)
    return Decision(actions, min(again_at))


def _holding(state: RunState, limits: Limits, view: View, tripped: Cluster | None) -> Holding | None:
    if view.stop_asked or state.stopped_at is not None:
        return Holding(STOPPED, "somebody stopped the run", stop=True)
    spent = budget.over(state, limits, view.now)
    if spent is not None:
        return Holding(spent.why, spent.because, stop=limits.when_over == STOP)
    if tripped is not None:
        return Holding(BREAKER, f"{len(tripped.tasks)} tasks failed alike: {tripped.example}")
    if state.trip is not None:
        return Holding(BREAKER, f"{len(state.trip.tasks)} tasks failed alike: {state.trip.example}")
    return None


def _over(chosen: Sequence[TaskState], holding: Holding | None) -> Holding | None:
    open_ones = {task.status for task in chosen} & {WAITING, LAUNCHING, RUNNING, COLLECTING, CHECKING}
    if not open_ones:
        return Holding(SETTLED, "every task is settled")
    if holding is not None and open_ones <= ({WAITING} if holding.checks else {WAITING, CHECKING}):
        return holding
    return None


def _for_attempt(
    task: TaskState, attempt: Attempt, state: RunState, limits: Limits, view: View, holding: Holding | None
) -> tuple[list[Action], float]:
    """What is due for one attempt, and when more can be. Of earlier attempts only the agent is left, to be stopped."""
    if (task.id, attempt.number) in view.busy:
        return [], math.inf
    sight = view.seen.get(attempt.agent)
    if attempt.goes_on:
        if attempt.started_at is None:
            return _unborn(task, attempt, sight, holding), math.inf
        return _working(task, attempt, sight, state, limits, view, holding)
    if attempt.agent_id and attempt.collected is None:
        return [Collect(task.id, attempt.number, sight.agent_id if sight is not None else "")], math.inf
    if sight is not None and _to_release(attempt, sight) and not _kept(attempt, limits, holding):
        return [Stop(task.id, attempt.number, sight.agent_id)], math.inf
    if attempt is task.last and task.status == CHECKING and (holding is None or holding.checks):
        return [Check(task.id, attempt.number)], math.inf
    return [], math.inf


def _to_release(attempt: Attempt, sight: Sight) -> bool:
    """Also what has ended is stopped once: something that it started may live on. Never on an unknown state."""
    return bool(attempt.agent_id) and not attempt.released and sight.state != states.UNKNOWN


def _kept(attempt: Attempt, limits: Limits, holding: Holding | None) -> bool:
    """A blocked agent may be kept for a person to talk to."""
    return attempt.ended == ending.BLOCKED and limits.keep_blocked and not (holding is not None and holding.stop)


def _unborn(task: TaskState, attempt: Attempt, sight: Sight | None, holding: Holding | None) -> list[Action]:
    """An intent of a killed orchestrator: adopt what it made, or make it now."""
    if sight is not None and not sight.half_made:
        return [Adopt(task.id, attempt.number, sight.agent_id)]
    if holding is not None and holding.stop:
        return [_halted(task, attempt, holding)]
    return [Start(task.id, attempt.number, attempt.agent, fresh=False)]


def _working(
    task: TaskState,
    attempt: Attempt,
    sight: Sight | None,
    state: RunState,
    limits: Limits,
    view: View,
    holding: Holding | None,
) -> tuple[list[Action], float]:
    number = attempt.number
    if sight is None:
        return [End(task.id, number, ending.STOPPED, "its agent was destroyed")], math.inf
    actions: list[Action] = []
    if (sight.state, sight.reason) != (attempt.state, attempt.state_reason):
        actions.append(Saw(task.id, number, sight.state, sight.reason))
    judged = ending.judge(attempt, sight, limits, view.now)
    if judged.ending is not None:
        again = retry.after(task, judged.ending.reason, limits, now=view.now, quiet_until=state.concurrency.quiet_until)
        actions.append(End(task.id, number, *judged.ending, retry=again.wanted, retry_at=again.at))
    elif holding is not None and holding.stop:
        actions.append(_halted(task, attempt, holding))
    elif attempt.to_be_told and attempt.told_at is None:
        actions.append(Tell(task.id, number, TASK))
    elif judged.warn:
        actions.append(Tell(task.id, number, WARNING))
    elif judged.nudge:
        actions.append(Tell(task.id, number, NUDGE))
    return actions, judged.again_at


def _halted(task: TaskState, attempt: Attempt, holding: Holding) -> End:
    """Ended by the run and not by anybody's doubt in it: when the run goes on, so does the task."""
    return End(task.id, attempt.number, ending.STOPPED, holding.because, retry=True)


def _begin(
    state: RunState, chosen: Sequence[TaskState], limits: Limits, view: View, holding: Holding | None
) -> tuple[list[Action], float]:
    """Change the number of places, and give free ones to tasks that wait."""
    if holding is not None:
        return [], math.inf
    present = state.concurrency
    coming = {task.id for task in chosen if (task.id, len(task.attempts) + 1) in view.busy}
    waiting = [task for task in chosen if task.status == WAITING and task.id not in coming]
    ready = [task for task in waiting if task.retry_at <= view.now]
    places = len(_places(chosen, limits, view, holding) | coming)
    limited_until = max((max(s.limited_until, view.now) for s in view.seen.values() if s.rate_limited), default=0.0)
    change = concurrency.change(
        present, limits, now=view.now, running=places, wanted=len(waiting), limited_until=limited_until
    )
    actions: list[Action] = [] if change is None else [change]
    present = change.to if change is not None else present
    again_at = [task.retry_at for task in waiting if task.retry_at > view.now]
    if waiting and view.now < present.quiet_until:
        return actions, min((*again_at, present.quiet_until))
    if waiting and present.limit < limits.max_agents and places >= present.limit:
        again_at.append(present.changed_at + limits.round_seconds)
    launching = sum(1 for task in chosen if task.status == LAUNCHING) + len(coming)
    free = min(present.limit - places, limits.max_launching - launching)
    run = str(state.facts.get("run") or "run")
    for task in ready[: max(0, free)]:
        number = len(task.attempts) + 1
        actions.append(Start(task.id, number, naming.agent_name(run, task.slug, number), fresh=True))
    return actions, min(again_at, default=math.inf)


def _places(chosen: Sequence[TaskState], limits: Limits, view: View, holding: Holding | None) -> set[str]:
    """The agents that hold a place: those of attempts that go on, and those that still live after theirs."""
    held = set()
    for task in chosen:
        for attempt in task.attempts:
            sight = view.seen.get(attempt.agent)
            lives = sight is not None and sight.alive and not attempt.released
            if attempt.goes_on or (lives and not _kept(attempt, limits, holding)):
                held.add(attempt.agent)
    return held
