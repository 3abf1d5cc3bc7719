"""What to do next for a run, from what its ledger says and what is seen of its agents. Pure: no clock, disk or process.

It is asked again after everything that happens, so what could not be done is decided once more, and a new orchestrator
goes on where a killed one stopped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from mngr.agents import state as states
from mngr.mapreduce import breaker, budget, concurrency, ending, naming, retry
from mngr.mapreduce.breaker import Cluster
from mngr.mapreduce.ending import Judgement, Sight
from mngr.mapreduce.limits import STOP, Limits
from mngr.mapreduce.orders import (
    TASK,
    Action,
    Adopt,
    Back,
    Check,
    Collect,
    End,
    Pause,
    Restart,
    Saw,
    Start,
    Stop,
    Tell,
    Wait,
)
from mngr.mapreduce.state import (
    CHECKING,
    COLLECTING,
    HOST_LOST,
    LAUNCHING,
    RUNNING,
    WAITING,
    Attempt,
    RunState,
    TaskState,
)
from mngr.mapreduce.state import SETTLED as STATUS_SETTLED
from mngr.records import NamedTuple

SETTLED, STOPPED, BREAKER, BUDGET, DEADLINE = "settled", "stopped", "breaker", budget.BUDGET, budget.DEADLINE
PAUSED = "paused"  # a person has to see to something that all agents need: a login, credit, a model
# Limits that end within this time of each other are one.
_SAME_SECONDS = 60.0
_NUMBERS = re.compile(r"\d+")


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
    same, since that costs nothing, unless a person wants the run to end, or checking itself is what fails."""

    why: str
    because: str
    stop: bool = False
    checks: bool = True


def decide(state: RunState, tasks: Sequence[str], limits: Limits, view: View) -> Decision:
    """The tasks are the ids of those to be settled, in the order in which they begin."""
    chosen = [task for task in map(state.tasks.__getitem__, tasks) if not task.over]
    actions: list[Action] = []
    tripped = breaker.tripped(state, tasks, limits) if state.trip is None else None
    if tripped is not None:
        actions.append(tripped)
    needs = _needs(chosen, state, limits, view)
    if needs != state.paused:
        actions.append(Pause(needs))
    holding = _holding(state, limits, view, tripped, needs)
    again_at = [limits.deadline if limits.deadline is not None and limits.deadline > view.now else math.inf]
    for task in chosen:
        for attempt in task.attempts:
            found, later = _for_attempt(task, attempt, state, limits, view, holding)
            actions += found
            again_at.append(later)
    begun, later = _begin(state, chosen, limits, view, holding)
    actions += begun
    again_at.append(later)
    if not actions and not view.busy and (over := _over(state, chosen, limits, view, holding)) is not None:
        return Decision((), over=over.why, because=over.because)
    return Decision(actions, min(again_at))


def _judged(attempt: Attempt, sight: Sight, state: RunState, limits: Limits, view: View) -> Judgement:
    return ending.judge(attempt, sight, limits, view.now, gaps=state.gaps, resumed_at=state.resumed_at)


def _needy(task: TaskState, state: RunState, limits: Limits, view: View) -> str:
    """What a person has to see to before the agent of this task can continue."""
    last = task.last
    sight = view.seen.get(last.agent) if last is not None else None
    if last is None or sight is None or task.status != RUNNING or sight.state != states.BLOCKED:
        return ""
    return _judged(last, sight, state, limits, view).needs


def _needs(chosen: Sequence[TaskState], state: RunState, limits: Limits, view: View) -> str:
    """The first that was named stays until nobody needs it any more: many agents meet the same."""
    found = [needs for task in chosen if (needs := _needy(task, state, limits, view))]
    return state.paused if state.paused and found else next(iter(found), "")


def _holding(state: RunState, limits: Limits, view: View, tripped: Cluster | None, needs: str) -> Holding | None:
    if view.stop_asked or state.stopped_at is not None:
        return Holding(STOPPED, "somebody stopped the run", stop=True, checks=False)
    spent = budget.over(state, limits, view.now)
    if spent is not None:
        return Holding(spent.why, spent.because, stop=limits.when_over == STOP)
    trip = tripped or state.trip
    if trip is not None:
        because = f"{len(trip.tasks)} tasks failed alike: {trip.example}"
        return Holding(BREAKER, because, checks=trip.stage != breaker.CHECK)
    return Holding(PAUSED, needs) if needs else None


def _over(
    state: RunState, chosen: Sequence[TaskState], limits: Limits, view: View, holding: Holding | None
) -> Holding | None:
    """What could not be collected or checked does not keep a run from its end: the next resume tries again."""
    if any(_stops_later(attempt) for task in chosen for attempt in task.attempts):
        return None
    open_ones = [task for task in chosen if task.status != STATUS_SETTLED and not _stuck(task, view)]
    if not open_ones:
        return Holding(SETTLED, "every task is settled")
    if holding is None:
        return None
    rests = {WAITING} if holding.checks else {WAITING, CHECKING}
    if all(task.status in rests or _needy(task, state, limits, view) for task in open_ones):
        return holding
    return None


def _stops_later(attempt: Attempt) -> bool:
    return not attempt.released and bool(attempt.release_error) and attempt.release_at != math.inf


def _stuck(task: TaskState, view: View) -> bool:
    last = task.last
    if last is None or task.status not in (COLLECTING, CHECKING):
        return False
    sight = view.seen.get(last.agent)
    return last.given_up or (last.ended == HOST_LOST and sight is not None and sight.state == states.UNKNOWN)


def _for_attempt(
    task: TaskState, attempt: Attempt, state: RunState, limits: Limits, view: View, holding: Holding | None
) -> tuple[list[Action], float]:
    """What is due for one attempt, and when more can be. Of earlier attempts only the agent is left, to be collected if
    it was lost for a while, and stopped."""
    if (task.id, attempt.number) in view.busy:
        return [], math.inf
    sight = view.seen.get(attempt.agent)
    if attempt.goes_on:
        if attempt.started_at is None:
            return _unborn(task, attempt, sight, holding), math.inf
        if attempt.restarting:
            return _reborn(task, attempt, sight, holding), math.inf
        return _working(task, attempt, sight, state, limits, view, holding)
    if attempt.agent_id and attempt.collected is None:
        return _to_collect(task, attempt, sight, view)
    if sight is not None and _to_release(attempt, sight) and not _kept(attempt, limits, holding):
        if view.now < attempt.release_at:
            return [], attempt.release_at
        return [Stop(task.id, attempt.number, sight.agent_id)], math.inf
    if attempt is task.last and task.status == CHECKING and (holding is None or holding.checks):
        check_at = attempt.check_at or 0.0
        return ([Check(task.id, attempt.number)], math.inf) if view.now >= check_at else ([], check_at)
    return [], math.inf


def _to_collect(task: TaskState, attempt: Attempt, sight: Sight | None, view: View) -> tuple[list[Action], float]:
    """Never from one of which nothing is known at the moment."""
    if sight is None:
        return [Collect(task.id, attempt.number, "")], math.inf
    if sight.state == states.UNKNOWN:
        return [], math.inf
    if attempt.ended == HOST_LOST and attempt is task.last:
        return [Back(task.id, attempt.number)], math.inf
    if view.now < attempt.collect_at:
        return [], attempt.collect_at
    return [Collect(task.id, attempt.number, sight.agent_id)], math.inf


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


def _reborn(task: TaskState, attempt: Attempt, sight: Sight | None, holding: Holding | None) -> list[Action]:
    """To be started again; a killed orchestrator may have done it."""
    if sight is None:
        return [End(task.id, attempt.number, ending.STOPPED, "its agent was destroyed")]
    if sight.alive or sight.since > (attempt.restarted_at or 0.0):
        return [Adopt(task.id, attempt.number, sight.agent_id)]
    if holding is not None and holding.stop:
        return [_halted(task, attempt, holding)]
    return [Restart(task.id, attempt.number, fresh=False)]


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
    if _is_news(attempt, sight):
        actions.append(Saw(task.id, number, sight.state, sight.reason, _until(sight)))
    judged = _judged(attempt, sight, state, limits, view)
    if judged.ending is not None:
        again = retry.after(task, judged.ending.reason, limits, now=view.now, quiet_until=state.concurrency.quiet_until)
        actions.append(End(task.id, number, *judged.ending, retry=again.wanted, retry_at=again.at))
    elif holding is not None and holding.stop:
        actions.append(_halted(task, attempt, holding))
    elif attempt.to_be_told and attempt.told_at is None:
        actions.append(Tell(task.id, number, TASK))
    elif judged.tell:
        actions.append(Tell(task.id, number, judged.tell))
    return actions, judged.again_at


def _is_news(attempt: Attempt, sight: Sight) -> bool:
    """Whether the ledger should know. A reason that counts down is the same one all the time."""
    if sight.state != attempt.state:
        return True
    if not sight.rate_limited:
        return sight.reason != attempt.state_reason
    same = _NUMBERS.sub("", sight.reason) == _NUMBERS.sub("", attempt.state_reason)
    return not same or _until(sight) > attempt.limited_until + _SAME_SECONDS


def _until(sight: Sight) -> float:
    return (sight.limited_until or 0.0) if sight.rate_limited else 0.0


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
    ready = [task for task in waiting if task.retry_at <= view.now and not _is_leaving(task, limits, view)]
    places = len(_places(chosen, limits, view, holding) | coming)
    actions, limited_until = _waits(state, chosen, limits, view)
    change = concurrency.change(
        present, limits, now=view.now, running=places, wanted=len(waiting), limited_until=limited_until
    )
    if change is not None:
        actions.append(change)
        present = change.to
    again_at = [task.retry_at for task in waiting if task.retry_at > view.now]
    if waiting and view.now < present.quiet_until:
        return actions, min((*again_at, present.quiet_until))
    if waiting and present.limit < limits.max_agents and places >= present.limit:
        again_at.append(present.changed_at + limits.round_seconds)
    launching = sum(1 for task in chosen if task.status == LAUNCHING) + len(coming)
    free = min(present.limit - places, limits.max_launching - launching)
    run = str(state.facts.get("run") or "run")
    for task in ready[: max(0, free)]:
        last = task.last
        if last is not None and _is_restarted(task, limits):
            actions.append(Restart(task.id, last.number, fresh=True, counts=last.ended != ending.STOPPED))
        else:
            number = len(task.attempts) + 1
            actions.append(Start(task.id, number, naming.agent_name(run, task.slug, number), fresh=True))
    return actions, min(again_at, default=math.inf)


def _waits(state: RunState, chosen: Sequence[TaskState], limits: Limits, view: View) -> tuple[list[Action], float]:
    """Until when agents are rate-limited, 0 when none is; one that takes long is noted as everybody's. An agent
    that was told to continue may be about to."""
    found = [
        (ending.limited_until(last, sight, limits), sight.reason)
        for task in chosen
        if (last := task.last) is not None
        and last.goes_on
        and (sight := view.seen.get(last.agent)) is not None
        and sight.rate_limited
        and (last.continued_at or 0.0) < sight.since
    ]
    until, because = max(found, default=(0.0, ""))
    long = until - view.now > limits.long_limit_seconds and until > state.waits_until + _SAME_SECONDS
    return [Wait(until, because)] if long else [], until


def _is_restarted(task: TaskState, limits: Limits) -> bool:
    """Whether the next try is the same agent's: it was stopped by the run, it crashed for the first time, or a person
    has something to say to it."""
    last = task.last
    if last is None or not last.agent_id or not last.restartable or last.release_at == math.inf:
        return False
    if task.message:
        return True
    if task.tries_from == len(task.attempts):
        return False
    return last.ended == ending.STOPPED or (last.ended in ending.RESTARTED and last.restarts < limits.max_restarts)


def _is_leaving(task: TaskState, limits: Limits, view: View) -> bool:
    """Whether the agent to be started again is not stopped yet."""
    last = task.last
    sight = view.seen.get(last.agent) if last is not None else None
    return last is not None and sight is not None and not last.released and _is_restarted(task, limits)


def _places(chosen: Sequence[TaskState], limits: Limits, view: View, holding: Holding | None) -> set[str]:
    """The agents that hold a place: those of attempts that go on, and those that still live after theirs."""
    held = set()
    for task in chosen:
        for attempt in task.attempts:
            sight = view.seen.get(attempt.agent)
            lives = sight is not None and sight.alive and not attempt.released
            if attempt.goes_on or (lives and attempt.ended != HOST_LOST and not _kept(attempt, limits, holding)):
                held.add(attempt.agent)
    return held
