"""What to do next for a run, from what its ledger says and what is seen of its agents. Pure: no clock, disk or process.

The engine asks again after everything that happens, so what could not be done is decided once more, and a new
orchestrator continues where a killed one stopped.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from mngr.agent import state as states
from mngr.mapreduce import attempt_end, orders, policy
from mngr.mapreduce.attempt_end import AttemptJudgement, Observation
from mngr.mapreduce.ledger import LedgerFact, fact
from mngr.mapreduce.limits import STOP, RunLimits
from mngr.mapreduce.orders import Action, Order
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
from mngr.mapreduce.task_table import table

SETTLED, STOPPED, BREAKER, BUDGET, DEADLINE = "settled", "stopped", "breaker", policy.BUDGET, policy.DEADLINE
PAUSED = "paused"  # a person has to see to something that all agents need: a login, credit, a model
# Limits that end within this time of each other are one.
_SAME_SECONDS = 60.0
_NUMBERS = re.compile(r"\d+")


class View(NamedTuple):
    """What is known beside the ledger. `seen` are the agents of attempts that are not released, by the name that their
    attempt gave them; one that is missing does not exist. `busy` is the work under way, as (task, number)."""

    now: float
    seen: Mapping[str, Observation]
    busy: Collection[tuple[str, int]] = frozenset()
    stop_asked: bool = False


class NextActions(NamedTuple):
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


def decide(state: RunState, tasks: Collection[str], limits: RunLimits, view: View) -> NextActions:
    """The tasks are the ids of those to be settled; they begin in the order of the ledger."""
    return _Decider(state, frozenset(tasks), limits, view).run()


Due = tuple[list[Action], float]  # what is due, and when more can be
_NOTHING: Due = ([], math.inf)


class _Decider:
    """`tasks` are those that have begun and are not over; `fresh` are those that have not begun."""

    def __init__(self, state: RunState, tasks: frozenset[str], limits: RunLimits, view: View) -> None:
        self.state, self.limits, self.view = state, limits, view
        parts = [part.computed(_unfinished, tasks) for part in table(state.tasks).parts]
        self.tasks = [task for begun, _ in parts for task in begun]
        self.fresh = [fresh for _, fresh in parts if fresh]
        self.tripped = policy.tripped(state, tasks, limits) if state.trip is None else None

    def run(self) -> NextActions:
        actions: list[Action] = []
        if self.tripped is not None:
            actions.append(fact("breaker", **self.tripped._asdict()))
        if self.needs != self.state.paused:
            actions.append(fact("paused", because=self.needs))
        deadline = self.limits.deadline
        again_at = [deadline if deadline is not None and deadline > self.view.now else math.inf]
        dues = [self.for_attempt(task, attempt) for task in self.tasks for attempt in task.attempts]
        for found, later in (*dues, self.begin()):
            actions += found
            again_at.append(later)
        if not actions and not self.view.busy and (over := self.over()) is not None:
            return NextActions((), over=over.why, because=over.because)
        return NextActions(actions, min(again_at))

    def observed(self, attempt: Attempt | None) -> Observation | None:
        return self.view.seen.get(attempt.agent) if attempt is not None else None

    def judged(self, attempt: Attempt, observed: Observation) -> AttemptJudgement:
        gaps, resumed_at = self.state.gaps, self.state.resumed_at
        return attempt_end.judge(attempt, observed, self.limits, self.view.now, gaps=gaps, resumed_at=resumed_at)

    def needs_of(self, task: TaskState) -> str:
        """What a person has to see to before the agent of this task can continue."""
        last, observed = task.last, self.observed(task.last)
        if last is None or observed is None or observed.state != states.BLOCKED or task.status != RUNNING:
            return ""
        return self.judged(last, observed).needs

    @cached_property
    def needs(self) -> str:
        """The first that was named stays until no agent needs it any more: many agents meet the same."""
        found = [needs for task in self.tasks if (needs := self.needs_of(task))]
        return self.state.paused if self.state.paused and found else next(iter(found), "")

    @cached_property
    def holding(self) -> Holding | None:
        if self.view.stop_asked or self.state.stopped_at is not None:
            return Holding(STOPPED, "somebody stopped the run", stop=True, checks=False)
        if spent := policy.spent(self.state, self.limits, self.view.now):
            return Holding(*spent, stop=self.limits.when_over == STOP)
        if trip := self.tripped or self.state.trip:
            because = f"{len(trip.tasks)} tasks failed in the same way: {trip.example}"
            return Holding(BREAKER, because, checks=trip.stage != policy.CHECK)
        return Holding(PAUSED, self.needs) if self.needs else None

    def over(self) -> Holding | None:
        """What could not be collected or checked does not keep a run from its end: the next resume tries again."""
        attempts = [attempt for task in self.tasks for attempt in task.attempts]
        if any(not one.released and one.release_error and one.release_at != math.inf for one in attempts):
            return None
        unsettled = [task for task in self.tasks if task.status != STATUS_SETTLED and not self.is_stuck(task)]
        if not unsettled and not self.fresh:
            return Holding(SETTLED, "every task is settled")
        if self.holding is None:
            return None
        rests = {WAITING} if self.holding.checks else {WAITING, CHECKING}
        return self.holding if all(task.status in rests or self.needs_of(task) for task in unsettled) else None

    def is_stuck(self, task: TaskState) -> bool:
        last, observed = task.last, self.observed(task.last)
        if last is None or task.status not in (COLLECTING, CHECKING):
            return False
        return last.given_up or (last.ended == HOST_LOST and observed is not None and observed.state == states.UNKNOWN)

    def for_attempt(self, task: TaskState, attempt: Attempt) -> Due:
        """Of earlier attempts only the agent is left, to be collected if it was lost for a while, and stopped."""
        if (task.id, attempt.number) in self.view.busy:
            return _NOTHING
        observed = self.observed(attempt)
        if attempt.goes_on:
            if attempt.started_at is None or attempt.restarting:
                return [self.launch(task, attempt, observed)], math.inf
            return self.working(task, attempt, observed)
        if attempt.agent_id and attempt.collected is None:
            return self.collect(task, attempt, observed)
        # Also what has ended is stopped once: something that it started may live on. Never on an unknown state.
        if attempt.agent_id and not attempt.released and observed is not None and observed.state != states.UNKNOWN:
            stop = Order(orders.STOP, task.id, attempt.number, observed.agent_id)
            return ([stop], math.inf) if self.view.now >= attempt.release_at else ([], attempt.release_at)
        if attempt is task.last and task.status == CHECKING and (self.holding is None or self.holding.checks):
            check, check_at = Order(orders.CHECK, task.id, attempt.number), attempt.check_at or 0.0
            return ([check], math.inf) if self.view.now >= check_at else ([], check_at)
        return _NOTHING

    def collect(self, task: TaskState, attempt: Attempt, observed: Observation | None) -> Due:
        """Never from an agent of which nothing is known at the moment."""
        if observed is None:
            return [Order(orders.COLLECT, task.id, attempt.number)], math.inf
        if observed.state == states.UNKNOWN:
            return self.out_of_reach(task, attempt, observed)
        if attempt.ended == HOST_LOST and attempt is task.last:
            return [fact("back", task=task.id, number=attempt.number)], math.inf
        if attempt.host and attempt.state == states.UNKNOWN:
            own = {"task": task.id, "number": attempt.number}
            return [fact("state", **own, state=observed.state, reason=observed.reason)], math.inf
        if self.view.now < attempt.collect_at:
            return [], attempt.collect_at
        return [Order(orders.COLLECT, task.id, attempt.number, observed.agent_id)], math.inf

    def out_of_reach(self, task: TaskState, attempt: Attempt, observed: Observation) -> Due:
        """An attempt has ended, and its work is on a host that does not answer. When the host is lost, so is that."""
        if not attempt.host or attempt is not task.last or attempt.ended == HOST_LOST:
            return _NOTHING
        own = {"task": task.id, "number": attempt.number}
        if attempt.state != states.UNKNOWN:
            return [fact("state", **own, state=observed.state, reason=observed.reason)], math.inf
        judged = self.judged(attempt, observed)
        if judged.ending is None:
            return [], judged.again_at
        at = policy.retry_at(task, HOST_LOST, self.limits, now=self.view.now, quiet_until=0.0)
        return [fact("lost", **own, because=judged.ending.because, retry=at is not None, retry_at=at or 0.0)], math.inf

    def launch(self, task: TaskState, attempt: Attempt, observed: Observation | None) -> Action:
        """The start or restart that a killed orchestrator intended: adopt the agent if it did that, else do it now."""
        number, again = attempt.number, attempt.restarting
        if again and observed is None:
            return orders.ended(task.id, number, attempt_end.STOPPED, "its agent was destroyed")
        if observed is not None:
            runs = observed.alive or observed.since > (attempt.restarted_at or 0.0) if again else not observed.half_made
            if runs:
                return Order(orders.ADOPT, task.id, number, observed.agent_id)
        if self.holding is not None and self.holding.stop:
            return self.halted(task, attempt, self.holding)
        return Order(orders.RESTART if again else orders.START, task.id, number)

    def working(self, task: TaskState, attempt: Attempt, observed: Observation | None) -> Due:
        number = attempt.number
        if observed is None:
            return [orders.ended(task.id, number, attempt_end.STOPPED, "its agent was destroyed")], math.inf
        actions: list[Action] = []
        if _is_news(attempt, observed):
            until = _limited_until(observed)
            more = {"until": until} if until else {}
            actions.append(
                fact("state", task=task.id, number=number, state=observed.state, reason=observed.reason, **more)
            )
        judged = self.judged(attempt, observed)
        if judged.ending is not None:
            quiet_until = self.state.concurrency.quiet_until
            at = policy.retry_at(task, judged.ending.reason, self.limits, now=self.view.now, quiet_until=quiet_until)
            actions.append(orders.ended(task.id, number, *judged.ending, at))
        elif self.holding is not None and self.holding.stop:
            actions.append(self.halted(task, attempt, self.holding))
        elif attempt.to_be_told and attempt.told_at is None and observed.state != states.UNKNOWN:
            actions.append(Order(orders.TELL, task.id, number, what=orders.TASK))
        elif judged.tell:
            actions.append(Order(orders.TELL, task.id, number, what=judged.tell))
        return actions, judged.again_at

    def halted(self, task: TaskState, attempt: Attempt, holding: Holding) -> LedgerFact:
        """Ended by the run, for no fault of the agent: when the run continues, so does the task."""
        return orders.ended(task.id, attempt.number, attempt_end.STOPPED, holding.because, 0.0)

    def begin(self) -> Due:
        """Change the number of places, and give free ones to tasks that wait."""
        if self.holding is not None:
            return _NOTHING
        present, limits, now = self.state.concurrency, self.limits, self.view.now
        coming = self.coming()
        statuses = [task.status for task in self.tasks]
        begun = zip(self.tasks, statuses, strict=True)
        waiting = [task for task, status in begun if status == WAITING and task.id not in coming]
        fresh = (task for part in self.fresh for task in part if task.id not in coming)
        waiting += itertools.islice(fresh, max(1, limits.max_launching))
        ready = [task for task in waiting if task.retry_at <= now and not self.is_leaving(task)]
        places = len(self.places() | coming)
        actions, limited_until = self.waits()
        change = policy.concurrency_change(
            present, limits, now=now, running=places, wanted=len(waiting), limited_until=limited_until
        )
        if change is not None:
            present = change.to
            facts = {"limit": present.limit, "slow_start": present.slow_start, "quiet_until": present.quiet_until}
            actions.append(fact("concurrency", **facts, because=change.because))
        again_at = [task.retry_at for task in waiting if task.retry_at > now]
        if waiting and now < present.quiet_until:
            return actions, min((*again_at, present.quiet_until))
        if waiting and present.limit < limits.max_agents and places >= present.limit:
            again_at.append(present.changed_at + limits.round_seconds)
        launching = statuses.count(LAUNCHING) + len(coming)
        free = min(present.limit - places, limits.max_launching - launching)
        for task in ready[: max(0, free)]:
            last, count = task.last, len(task.attempts)
            if last is not None and self.is_restarted(task):
                counts = last.ended != attempt_end.STOPPED
                actions.append(Order(orders.RESTART, task.id, count, last.agent_id, fresh=True, counts=counts))
            else:
                actions.append(Order(orders.START, task.id, count + 1, fresh=True))
        return actions, min(again_at, default=math.inf)

    def coming(self) -> set[str]:
        """The tasks whose next attempt is about to be noted."""
        known = self.state.tasks
        return {task for task, number in self.view.busy if task in known and number == len(known[task].attempts) + 1}

    def waits(self) -> Due:
        """Until when agents are rate-limited, 0 when none is; a long limit is noted as everybody's. An agent that was
        told to continue may be about to."""
        found = [
            (attempt_end.limited_until(last, observed, self.limits), observed.reason)
            for task in self.tasks
            if (last := task.last) is not None
            and last.goes_on
            and (observed := self.observed(last)) is not None
            and observed.rate_limited
            and (last.continued_at or 0.0) < observed.since
        ]
        until, because = max(found, default=(0.0, ""))
        long = until - self.view.now > self.limits.long_limit_seconds
        if long and until > self.state.waits_until + _SAME_SECONDS:
            return [fact("waits", until=until, because=because)], until
        return [], until

    def is_restarted(self, task: TaskState) -> bool:
        """Whether the same agent gets the next try: the run stopped it, it crashed for the first time, or a person has
        something to say to it."""
        last = task.last
        if last is None or not last.agent_id or not last.restartable or last.release_at == math.inf:
            return False
        if task.message:
            return True
        if task.tries_from == len(task.attempts):
            return False
        crashed = last.ended in attempt_end.RESTARTED and last.restarts < self.limits.max_restarts
        return last.ended == attempt_end.STOPPED or crashed

    def is_leaving(self, task: TaskState) -> bool:
        """Whether the agent to be started again is not stopped yet."""
        last = task.last
        return self.observed(last) is not None and last is not None and not last.released and self.is_restarted(task)

    def places(self) -> set[str]:
        """The agents that hold a place: those of attempts that go on, and those that still live after theirs."""
        held = set()
        for attempt in (attempt for task in self.tasks for attempt in task.attempts):
            observed = self.observed(attempt)
            lives = observed is not None and observed.alive and not attempt.released
            if attempt.goes_on or (lives and attempt.ended != HOST_LOST):
                held.add(attempt.agent)
        return held


def _unfinished(
    tasks: Sequence[TaskState], wanted: frozenset[str]
) -> tuple[tuple[TaskState, ...], tuple[TaskState, ...]]:
    """Of those wanted, the tasks that have begun and are not over, and those that have not begun."""
    mine = [task for task in tasks if task.id in wanted]
    return tuple(t for t in mine if t.attempts and not t.over), tuple(t for t in mine if not t.attempts)


def _is_news(attempt: Attempt, observed: Observation) -> bool:
    """Whether the ledger should know. A reason that counts down is the same one all the time."""
    if observed.state != attempt.state:
        return True
    if not observed.rate_limited:
        return observed.reason != attempt.state_reason
    same = _NUMBERS.sub("", observed.reason) == _NUMBERS.sub("", attempt.state_reason)
    return not same or _limited_until(observed) > attempt.limited_until + _SAME_SECONDS


def _limited_until(observed: Observation) -> float:
    return (observed.limited_until or 0.0) if observed.rate_limited else 0.0
