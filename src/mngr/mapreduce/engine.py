"""The engine: does for a run what `decide` says, with real agents. One loop that wakes on events, and threads for work
that blocks."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence

from mngr import waiting
from mngr.actions.fleet import Fleet
from mngr.agents import state as states
from mngr.files import make_private_dir
from mngr.mapreduce import budget, decide, ending, naming, orders, sights
from mngr.mapreduce.breaker import Cluster
from mngr.mapreduce.concurrency import Change
from mngr.mapreduce.decide import Decision, View
from mngr.mapreduce.ending import Sight
from mngr.mapreduce.ledger import Fact, fact
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.orders import Action
from mngr.mapreduce.recipe import Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, RunState
from mngr.mapreduce.work import Work
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mngr.mapreduce.ledger import Entry

# Events wake the loop; this is how finely it gathers them, and how soon it sees that a point in time has come.
_STEP = 0.05
_TICK = 0.25
_SECONDS_BETWEEN_USAGE = 5.0
_SECONDS_BETWEEN_USAGE_WITH_BUDGET = 2.0
_SHARE_FOR_USAGE = 0.1  # of the time, at most


# Why an engine came to an end.
ALL_SETTLED, STOPPED, BREAKER, PAUSED = decide.SETTLED, decide.STOPPED, decide.BREAKER, decide.PAUSED
BUDGET, DEADLINE = decide.BUDGET, decide.DEADLINE


class Gone(NamedTuple):
    """How far it went: `why` is one of the words above, `because` the same for a person."""

    why: str
    because: str
    state: RunState


class Engine:
    """Works on a run whose lock the caller holds. `tell` hears every entry of the ledger, in the thread that wrote
    it."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        fleet: Fleet,
        limits: Limits = Limits(),  # noqa: B008 (a value that never changes)
        *,
        tell: Callable[[Entry], None] = lambda entry: None,
        role: str = naming.MAP,
    ) -> None:
        self.run, self.recipe, self.fleet, self.limits = run, recipe, fleet, limits
        self._tell, self._role = tell, role

    def go(self, tasks: Sequence[Task]) -> Gone:
        """Work until every one of these tasks is settled, or the run must pause. Agents of an earlier orchestrator are
        adopted. An interrupt leaves agents running, for the next one. May be called again, also with other tasks."""
        with self.run.heard_by(self._tell):
            known = self.run.state.tasks
            new = [task for task in tasks if task.id not in known]
            self.run.note_all([fact("task", task=t.id, slug=t.slug, data=dict(t.data)) for t in new])
            return self._go([task.id for task in tasks])

    def stop(self, tasks: Sequence[str] | None = None) -> Gone:
        """Collect from every agent that still works on one of these tasks, by default any of the run, and stop it.
        Nothing new is begun. Twice is safe."""
        self.run.ask_to_stop()
        with self.run.heard_by(self._tell):
            return self._go(list(self.run.state.tasks) if tasks is None else tasks)

    def collect_again(self, tasks: Sequence[str]) -> None:
        """Collect and check the last attempt of these tasks once more, after somebody worked on in its agent. What was
        collected of one that is gone stays."""
        with self.run.heard_by(self._tell):
            work = Work(self.run, self.recipe, self.fleet, self.limits, self._role)
            done = False
            try:
                there = {agent.id for agent in sights.of_run(self.fleet, self.run.id)}
                again = [(task, last) for task in tasks if (last := self.run.state.tasks[task].last) is not None]
                for task, last in again:
                    if last.agent_id in there and last.ended:
                        work.collect(orders.Collect(task, last.number, last.agent_id))
                done = True
            finally:
                work.close(abandon=not done)
            work.settle()
            self._go(tasks)

    def _go(self, tasks: Sequence[str]) -> Gone:
        work = Work(self.run, self.recipe, self.fleet, self.limits, self._role)
        over: Decision | None = None
        try:
            over = _Loop(self, work, tasks).to_the_end()
        finally:
            work.close(abandon=over is None)
        work.settle()
        return Gone(over.over, over.because, self.run.state)


class _Loop:
    def __init__(self, engine: Engine, work: Work, tasks: Sequence[str]) -> None:
        self._run, self._fleet, self._limits = engine.run, engine.fleet, engine.limits
        self._role = engine._role
        self._work, self._tasks = work, tasks
        self._adoptable: dict[str, str] = {}
        self._seen: dict[str, Sight] = {}
        self._looks = sights.Looks()
        self._again_at = 0.0
        self._changed: set[str] = set()
        self._usage_due: dict[str, float] = {}
        self._limited = self._limits.budget_usd is not None or self._limits.budget_tokens is not None
        self._awake_at = time.time()

    def to_the_end(self) -> Decision:
        self._fleet.host.prepare()
        make_private_dir(self._run.control)
        paths = [os.path.join(self._fleet.host.dir, "agents"), self._run.control]
        wake = self._work.wake
        wakes = waiting.changes(paths, deadline=waiting.Deadline(None), at_least_every=_TICK, wake=wake, step=_STEP)
        found = sights.intended(sights.of_run(self._fleet, self._run.id), self._run.id, self._role)
        self._adoptable = {name: agent.id for name, agent in found.items()}
        self._awake_at = time.time()
        for paths_changed in wakes:
            self._note_gap()
            self._changed |= sights.changed_ids(paths_changed)
            ended = self._work.settle()
            if not self._spent() and not self._due(ended, bool(paths_changed)):
                continue
            decision = self._turn()
            if decision.over:
                return decision
            self._again_at = decision.again_at
        raise AssertionError("there is no deadline")

    def _note_gap(self) -> bool:
        """Whether nobody looked for long until now: then what was seen before is old."""
        before, self._awake_at = self._awake_at, time.time()
        if self._awake_at - before <= self._limits.gap_seconds:
            return False
        self._run.note("gap", since=before)
        self._looks = sights.Looks()
        return True

    def _due(self, ended: bool, changed: bool) -> bool:
        if ended or time.time() >= self._again_at or (changed and self._run.stop_asked):
            return True
        mine = self._changed & {sight.agent_id for sight in self._seen.values()}
        return self._looks.due(time.monotonic(), news=bool(mine))

    def _turn(self) -> Decision:
        """Look, and do all that is due."""
        self._look()
        while True:
            while self._note_gap() or self._looks.is_old(time.monotonic()):
                self._look()
            stop_asked = self._run.stop_asked
            if stop_asked and self._run.state.stopped_at is None:
                self._work.halt()
                self._run.note("stop")
            view = View(time.time(), self._seen, frozenset(self._work.busy), stop_asked)
            decision = decide.decide(self._run.state, self._tasks, self._limits, view)
            if not decision.actions:
                return decision
            self._do(decision.actions)

    def _look(self) -> None:
        begun = time.monotonic()
        wanted = {}
        for _, attempt in sights.open_attempts(self._run.state):
            agent_id = attempt.agent_id or self._adoptable.get(attempt.agent)
            if agent_id:
                wanted[attempt.agent] = agent_id
        self._seen = sights.look(self._fleet, wanted) if wanted else {}
        changed, self._changed = self._changed, set()
        self._note_usage(changed)
        self._looks = sights.Looks(begun, time.monotonic(), news=bool(changed))

    def _spent(self) -> bool:
        """Whether agents have spent more, and the budget is reached. One turn can spend more than the whole budget, and
        no event says so: the usage of all agents at work is read."""
        return (
            self._limited
            and self._note_usage(None)
            and budget.over(self._run.state, self._limits, time.time()) is not None
        )

    def _note_usage(self, changed: set[str] | None) -> bool:
        """Note what these agents used, or all that are at work; whether that was more than before."""
        now = time.monotonic()
        going = [each for each in sights.open_attempts(self._run.state) if each[1].goes_on and each[1].agent_id]
        facts = []
        for task, attempt in going:
            if now >= self._usage_due.get(attempt.agent_id, 0.0) and (changed is None or attempt.agent_id in changed):
                facts += self._usage(task, attempt, among=len(going))
        self._run.note_all(facts)
        return bool(facts)

    def _usage(self, task: str, attempt: Attempt, *, among: int = 1) -> list[Fact]:
        began = time.monotonic()
        used = sights.usage(self._fleet, attempt.agent_id)
        ended = time.monotonic()
        least = _SECONDS_BETWEEN_USAGE_WITH_BUDGET if self._limited else _SECONDS_BETWEEN_USAGE
        self._usage_due[attempt.agent_id] = ended + max(least, (ended - began) * among / _SHARE_FOR_USAGE)
        if used is None or used == attempt.usage:
            return []
        return [fact("usage", task=task, number=attempt.number, **used._asdict())]

    def _do(self, actions: Sequence[Action]) -> None:
        facts: list[Fact] = []
        starts: list[orders.Start] = []
        after: list[Callable[[], None]] = []
        for action in actions:
            match action:
                case orders.Start():
                    starts.append(action)
                case orders.Collect():
                    self._work.collect(action)
                case orders.Stop():
                    self._work.stop(action)
                case orders.Check():
                    self._work.check(action)
                case orders.Restart(task=task, number=number, fresh=fresh, counts=counts):
                    facts += [fact("restarted", task=task, number=number, counts=counts)] if fresh else []
                    after.append(functools.partial(self._work.restart, action))
                case orders.Tell(what=what):
                    facts += (
                        [fact(orders.NOTED[what], task=action.task, number=action.number)]
                        if what in orders.NOTED
                        else []
                    )
                    after.append(functools.partial(self._work.tell, action))
                case orders.End(reason=ending.OUTCOME) if problem := self._unreadable(action):
                    returned = orders.Tell(action.task, action.number, ending.RETURN)
                    facts.append(fact("returned", task=action.task, number=action.number, problem=problem))
                    after.append(functools.partial(self._work.tell, returned, problem))
                case _:
                    facts += self._facts(action)
        self._run.note_all(facts)
        if starts:
            self._work.start(starts)
        for deed in after:
            deed()

    def _unreadable(self, action: orders.End) -> str:
        """What is wrong with the outcome of an agent that rests and can be told so."""
        task = self._run.state.tasks[action.task]
        attempt = task.attempts[action.number - 1]
        sight = self._seen.get(attempt.agent)
        if sight is None or sight.state != states.WAITING or attempt.returns >= self._limits.max_returns:
            return ""
        return self._work.unreadable(task, attempt)

    def _facts(self, action: Action) -> list[Fact]:
        match action:
            case orders.Adopt(task=task, number=number, agent_id=agent_id):
                self._fleet.adopt(agent_id)
                return [fact("started", task=task, number=number, agent_id=agent_id, adopted=True)]
            case orders.Saw(task=task, number=number, state=state, reason=reason, until=until):
                more = {"until": until} if until else {}
                return [fact("state", task=task, number=number, state=state, reason=reason, **more)]
            case orders.Back(task=task, number=number):
                return [fact("back", task=task, number=number)]
            case orders.Pause(because=because):
                return [fact("paused", because=because)]
            case orders.Wait(until=until, because=because):
                return [fact("waits", until=until, because=because)]
            case orders.End():
                attempt = self._run.state.tasks[action.task].attempts[action.number - 1]
                used = self._usage(action.task, attempt) if attempt.agent_id else []
                sight = self._seen.get(attempt.agent)
                if sight is not None and sight.half_made:
                    self._fleet.destroy(sight.agent_id, force=True, remove_branch=True)
                return [*used, Fact("ended", action._asdict())]
            case Change(to=to, because=because):
                return [
                    fact(
                        "concurrency",
                        limit=to.limit,
                        slow_start=to.slow_start,
                        quiet_until=to.quiet_until,
                        because=because,
                    )
                ]
            case Cluster(stage=stage, signature=signature, example=example, tasks=tasks):
                return [fact("breaker", stage=stage, signature=signature, example=example, tasks=list(tasks))]
            case _:
                raise AssertionError(action)
