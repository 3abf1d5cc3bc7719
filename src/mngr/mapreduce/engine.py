"""The engine: does for a run what `decide` says, with real agents. One loop that wakes on events, and threads for work
that blocks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any, NamedTuple

from mngr.actions import wait
from mngr.agent import state as states
from mngr.fleet.fleet import Fleet
from mngr.mapreduce import attempt_end, decide, observations, orders, policy, task_names
from mngr.mapreduce.attempt_end import Observation
from mngr.mapreduce.decide import NextActions, View
from mngr.mapreduce.host_pool import HostPool
from mngr.mapreduce.host_watch import HostWatch
from mngr.mapreduce.ledger import LedgerFact, fact
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.orders import Action, Order
from mngr.mapreduce.recipe import Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, RunState
from mngr.mapreduce.work_threads import WorkThreads
from mngr.system.files import make_private_dir

_SECONDS_BETWEEN_USAGE = 5.0
_SECONDS_BETWEEN_USAGE_WITH_BUDGET = 2.0
_SHARE_FOR_USAGE = 0.1  # of the time, at most
_NEVER = 1e9  # in seconds


class EngineResult(NamedTuple):
    """How far it went: `why` is a word of `decide`, such as `SETTLED`, `because` the same for a person."""

    why: str
    because: str
    state: RunState


class Engine:
    """Works on a run whose lock the caller holds."""

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        fleet: Fleet,
        limits: RunLimits = RunLimits(),  # noqa: B008 (a value that never changes)
        *,
        role: str = task_names.MAP,
        pool: HostPool | None = None,
    ) -> None:
        """With a pool, new agents are made on its hosts."""
        self.run, self.recipe, self.fleet, self.limits, self.pool = run, recipe, fleet, limits, pool
        self._role = role

    def go(self, tasks: Sequence[Task]) -> EngineResult:
        """Work until every one of these tasks is settled, or the run must pause. Agents of an earlier orchestrator are
        adopted. An interrupt leaves agents running, for the next one. May be called again, also with other tasks."""
        known = self.run.state.tasks
        new = [task for task in tasks if task.id not in known]
        self.run.note_all([fact("task", task=t.id, slug=t.slug, data=dict(t.data)) for t in new])
        return self._go([task.id for task in tasks])

    def stop(self, tasks: Sequence[str] | None = None) -> EngineResult:
        """Collect from every agent that still works on one of these tasks, by default any of the run, and stop it.
        Nothing new is begun. Twice is safe."""
        self.run.ask_to_stop()
        return self._go(list(self.run.state.tasks) if tasks is None else tasks)

    def collect_again(self, tasks: Sequence[str]) -> None:
        """Collect and check the last attempt of these tasks once more, after somebody worked on in its agent. What was
        collected of one that is gone stays."""
        work = self._work()
        done = False
        try:
            there = {agent.id for agent in observations.of_run(self.fleet, self.run.id)}
            again = [(task, last) for task in tasks if (last := self.run.state.tasks[task].last) is not None]
            for task, last in again:
                if last.agent_id in there and last.ended:
                    work.do([Order(orders.COLLECT, task, last.number, last.agent_id)])
            done = True
        finally:
            work.close(abandon=not done)
        work.note_ended()
        self._go(tasks)

    def _work(self) -> WorkThreads:
        return WorkThreads(self.run, self.recipe, self.fleet, self.limits, self._role, self.pool)

    def _go(self, tasks: Sequence[str]) -> EngineResult:
        work = self._work()
        over: NextActions | None = None
        try:
            with closing(HostWatch(self.pool, work.wake)) if self.pool is not None else nullcontext() as watch:
                over = _Loop(self, work, tasks, watch).to_the_end()
        finally:
            work.close(abandon=over is None)
        work.note_ended()
        return EngineResult(over.over, over.because, self.run.state)


class _Loop:
    def __init__(self, engine: Engine, work: WorkThreads, tasks: Sequence[str], watch: HostWatch | None) -> None:
        self._run, self._fleet, self._limits = engine.run, engine.fleet, engine.limits
        self._pool, self._watch = engine.pool, watch
        self._role, self._clock = engine._role, engine.run.clock
        self._checkpoint_at = self._clock.monotonic() + engine.limits.checkpoint_seconds
        self._work, self._tasks = work, frozenset(tasks)
        self._adoptable: dict[str, str] = {}
        self._seen: dict[str, Observation] = {}
        self._looks = observations.Looks()
        self._again_at, self._waits_for_turn = 0.0, False
        self._changed: set[str] = set()
        self._usage_due: dict[str, float] = {}
        self._limited = self._limits.budget_usd is not None or self._limits.budget_tokens is not None
        self._awake_at = self._clock.time()

    def to_the_end(self) -> NextActions:
        self._fleet.local.host.prepare()
        make_private_dir(self._run.control)
        paths = [os.path.join(self._fleet.local.host.dir, "agents"), self._run.control]
        wakes = self._clock.wakes(paths, self._work.wake)
        found = observations.intended(observations.of_run(self._fleet, self._run.id), self._run.id, self._role)
        self._adoptable = {name: agent.id for name, agent in found.items()}
        self._awake_at = self._clock.time()
        for paths_changed in wakes:
            self._note_gap()
            self._changed |= wait.changed_ids(paths_changed) | self._far_news()
            ended = self._work.note_ended()
            if not self._spent() and not self._due(ended, bool(paths_changed)):
                continue
            decision = self._turn()
            if decision.over:
                return decision
            self._again_at = decision.again_at
        raise AssertionError("there is no deadline")

    def _far_news(self) -> set[str]:
        """The agents of other machines to which something happened; now and then, what they committed is fetched."""
        if self._watch is None:
            return set()
        self._watch.follow()
        if self._clock.monotonic() >= self._checkpoint_at:
            self._checkpoint_at = self._clock.monotonic() + self._limits.checkpoint_seconds
            for task, attempt in observations.open_attempts(self._run.state):
                if attempt.host and attempt.agent_id and attempt.goes_on:
                    self._work.checkpoint(task, attempt.number)
        return self._watch.news()

    def _allowed(self) -> RunLimits:
        """The limits, with no more agents than the hosts have room for. While no host answers at all, this machine may
        be the one that is cut off, and no host counts as lost for its silence."""
        if self._pool is None:
            return self._limits
        limits = self._limits._replace(max_agents=min(self._limits.max_agents, self._pool.room))
        return limits._replace(lost_seconds=_NEVER) if self._pool.cut_off else limits

    def _note_gap(self) -> bool:
        """Whether nobody looked for long until now: then what was seen before is old."""
        before, self._awake_at = self._awake_at, self._clock.time()
        if self._awake_at - before <= self._limits.gap_seconds:
            return False
        self._run.note("gap", since=before)
        self._looks = observations.Looks()
        return True

    def _due(self, ended: bool, changed: bool) -> bool:
        if changed and self._run.stop_asked:
            return True
        self._waits_for_turn |= ended or self._clock.time() >= self._again_at
        mine = self._changed & {observed.agent_id for observed in self._seen.values()}
        return self._looks.due(self._clock.monotonic(), news=bool(mine), work=self._waits_for_turn)

    def _turn(self) -> NextActions:
        """Look, and do all that is due."""
        self._waits_for_turn = False
        self._look()
        while True:
            while self._note_gap() or self._looks.is_old(self._clock.monotonic()):
                self._look()
            stop_asked = self._run.stop_asked
            if stop_asked and self._run.state.stopped_at is None:
                self._run.note("stop")
            view = View(self._clock.time(), self._seen, frozenset(self._work.busy), stop_asked)
            decision = decide.decide(self._run.state, self._tasks, self._allowed(), view)
            if not decision.actions:
                return decision
            self._do(decision.actions)

    def _look(self) -> None:
        begun = self._clock.monotonic()
        wanted = {}
        for _, attempt in observations.open_attempts(self._run.state):
            agent_id = attempt.agent_id or self._adoptable.get(attempt.agent)
            if agent_id:
                wanted[attempt.agent] = agent_id, attempt.host
        self._seen = observations.look(self._fleet, wanted, self._pool) if wanted else {}
        changed, self._changed = self._changed, set()
        self._note_usage(changed)
        self._looks = observations.Looks(begun, self._clock.monotonic(), news=bool(changed))

    def _spent(self) -> bool:
        """Whether agents have spent more, and the budget is reached. One turn can spend more than the whole budget, and
        no event says so: the usage of all agents at work is read."""
        return (
            self._limited
            and self._note_usage(None)
            and policy.spent(self._run.state, self._limits, self._clock.time()) is not None
        )

    def _note_usage(self, changed: set[str] | None) -> bool:
        """Note what these agents used, or all that are at work; whether that was more than before."""
        now = self._clock.monotonic()
        going = [each for each in observations.open_attempts(self._run.state) if each[1].goes_on and each[1].agent_id]
        facts = []
        for task, attempt in going:
            if now >= self._usage_due.get(attempt.agent_id, 0.0) and (changed is None or attempt.agent_id in changed):
                facts += self._usage(task, attempt, among=len(going))
        self._run.note_all(facts)
        return bool(facts)

    def _usage(self, task: str, attempt: Attempt, *, among: int = 1) -> list[LedgerFact]:
        began = self._clock.monotonic()
        used = observations.usage(self._work.site(attempt), attempt.agent_id, self._pool)
        ended = self._clock.monotonic()
        least = _SECONDS_BETWEEN_USAGE_WITH_BUDGET if self._limited else _SECONDS_BETWEEN_USAGE
        self._usage_due[attempt.agent_id] = ended + max(least, (ended - began) * among / _SHARE_FOR_USAGE)
        if used is None or used == attempt.usage:
            return []
        return [fact("usage", task=task, number=attempt.number, **used._asdict())]

    def _do(self, actions: Sequence[Action]) -> None:
        """Note everything that is to be noted, and then do the rest."""
        facts: list[LedgerFact] = []
        rest: list[Order] = []
        for action in actions:
            match action:
                case LedgerFact("ended", end):
                    if problem := self._unreadable(end):
                        own = {"task": end["task"], "number": end["number"]}
                        facts.append(fact("returned", **own, problem=problem))
                        rest.append(Order(orders.TELL, **own, what=attempt_end.RETURN, because=problem))
                    else:
                        facts += [*self._before_end(end), action]
                case LedgerFact():
                    facts.append(action)
                case Order(do=orders.ADOPT, task=task, number=number, agent_id=agent_id):
                    self._fleet.find(agent_id).adopt()
                    facts.append(fact("started", task=task, number=number, agent_id=agent_id, adopted=True))
                case Order(do=do, task=task, number=number):
                    if do == orders.RESTART and action.fresh:
                        facts.append(fact("restarted", task=task, number=number, counts=action.counts))
                    if action.what in orders.NOTED:
                        facts.append(fact(orders.NOTED[action.what], task=task, number=number))
                    rest.append(action)
        self._run.note_all(facts)
        self._work.do(rest)

    def _unreadable(self, end: Mapping[str, Any]) -> str:
        """What is wrong with the outcome of an agent that rests and can be told so: not once the budget is spent."""
        task = self._run.state.tasks[end["task"]]
        attempt = task.attempts[end["number"] - 1]
        observed = self._seen.get(attempt.agent)
        can_be_told = observed is not None and observed.state == states.WAITING
        if end["reason"] != attempt_end.OUTCOME or not can_be_told or attempt.returns >= self._limits.max_returns:
            return ""
        self._run.note_all(self._usage(task.id, attempt))
        if policy.spent(self._run.state, self._limits, self._clock.time()):
            return ""
        return self._work.unreadable(task, attempt)

    def _before_end(self, end: Mapping[str, Any]) -> list[LedgerFact]:
        attempt = self._run.state.tasks[end["task"]].attempts[end["number"] - 1]
        observed = self._seen.get(attempt.agent)
        if observed is not None and observed.half_made:
            self._work.remove(attempt, observed.agent_id)
        return self._usage(end["task"], attempt) if attempt.agent_id else []
