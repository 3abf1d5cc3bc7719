"""The work that blocks: make agents, talk to them, collect, check, stop. Each kind in threads of its own.

Everything is noted in the ledger by the thread that did it. A piece of work stays `busy` until the engine has taken
note of its end, so that it is never decided twice.
"""

from __future__ import annotations

import functools
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from mngr import secrets
from mngr.actions import find
from mngr.actions.site import Site
from mngr.agent.state import UNKNOWN
from mngr.errors import MngrError, NotFoundError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce import attempt_end, observations, orders, policy, task_names
from mngr.mapreduce.host_pool import HostPool
from mngr.mapreduce.ledger import LedgerFact, fact
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.orders import Order
from mngr.mapreduce.recipe import AgentLaunch, Recipe
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import HOST_LOST, Attempt, TaskState
from mngr.system.files import write_atomic
from mngr.system.interrupts import held, others_ended

T = TypeVar("T")
# What an agent is told; how it is told to continue, or to try again, its recipe says.
_TEXTS = {
    attempt_end.WARNING: "Your time for this task ends in {seconds} seconds. "
    "Commit what you have and write the outcome file now.",
    attempt_end.STUCK: "There was no output from you for a long time. If you are stuck, try another way; "
    "if you wait for a command, end it. This task ends soon unless there is output.",
    attempt_end.NUDGE: "There is no outcome file yet. If you are done, or cannot continue, "
    "write the outcome file to the path in $MNGR_OUTCOME_FILE now; otherwise continue.",
}


class WorkThreads:
    """Threads of one engine. `wake` is set whenever a piece of work has ended."""

    def __init__(
        self, run: Run, recipe: Recipe, fleet: Fleet, limits: RunLimits, role: str, pool: HostPool | None = None
    ) -> None:
        self._pool = pool
        self._fetching: set[str] = set()
        self._turns: dict[str, threading.Lock] = {}  # by agent: its commits are fetched by one thread at a time
        self._run, self._recipe, self._fleet, self._limits, self._role = run, recipe, fleet, limits, role
        self.wake = threading.Event()
        self.busy: set[tuple[str, int]] = set()
        self._ended: deque[tuple[Sequence[tuple[str, int]], Future[None]]] = deque()
        self._to_start: deque[Order] = deque()
        self._jobs: dict[str, tuple[str, Callable[[TaskState, Attempt, Order], None]]] = {
            orders.RESTART: ("tell", self._restart),
            orders.TELL: ("tell", self._tell),
            orders.COLLECT: ("collect", self._collect),
            orders.STOP: ("collect", self._stop),
            orders.CHECK: ("check", self._check),
        }
        self._pools = {
            "start": run.clock.executor("start", 1),
            "tell": run.clock.executor("tell", 8),
            "collect": run.clock.executor("collect", limits.max_collecting),
            "check": run.clock.executor("check", limits.max_checking),
            "checkpoint": run.clock.executor("checkpoint", 2),
        }

    def note_ended(self) -> bool:
        """Take note of the work that has ended; True when there was any. Raises what went wrong beyond a task."""
        any_ended = False
        while self._ended:
            keys, future = self._ended.popleft()
            self.busy.difference_update(keys)
            future.result()
            any_ended = True
        return any_ended

    def close(self, *, abandon: bool) -> None:
        """Wait for what is under way; with `abandon`, end it as a kill would, for a later orchestrator to go on."""
        if not abandon:
            self._pools["checkpoint"].shutdown(cancel_futures=True)
            for pool in self._pools.values():
                pool.shutdown(wait=True)
            return
        with held(), others_ended():
            for pool in self._pools.values():
                pool.shutdown(wait=True, cancel_futures=True)

    def do(self, wanted: Sequence[Order]) -> None:
        """Agents that gather while others are being made are made together."""
        starts = [one for one in wanted if one.do == orders.START]
        self._to_start.extend(starts)
        if starts:
            self._submit("start", [(one.task, one.number) for one in starts], self._start_all)
        for one in wanted:
            if one.do != orders.START:
                pool, job = self._jobs[one.do]
                aside = one.do == orders.TELL and one.what != orders.TASK
                self._submit(pool, [] if aside else [(one.task, one.number)], functools.partial(self._do, job, one))

    def _do(self, job: Callable[[TaskState, Attempt, Order], None], one: Order) -> None:
        job(*self._attempt(one.task, one.number), one)

    def checkpoint(self, task_id: str, number: int) -> None:
        """Bring home what an agent committed so far; what cannot be had is left for the next time."""
        task, attempt = self._attempt(task_id, number)
        if attempt.agent in self._fetching or (self._pool is not None and attempt.host in self._pool.unreached):
            return
        self._fetching.add(attempt.agent)

        def fetch() -> None:
            with self._turns.setdefault(attempt.agent, threading.Lock()):
                if self._attempt(task_id, number)[1].goes_on:  # otherwise it is being collected
                    self._guarded("", task, lambda: self._recipe.checkpoint(task, attempt, self._agent(attempt)))
            self._fetching.discard(attempt.agent)

        self._submit("checkpoint", [], fetch)

    def remove(self, attempt: Attempt, agent_id: str) -> None:
        """Remove an agent that never ran. One whose host does not answer stays, for `mngr gc`."""
        try:
            self._fleet.find(agent_id).destroy(force=True, remove_branch=True)
        except MngrError:
            if not self._unreached(attempt):
                raise

    def site(self, attempt: Attempt) -> Site:
        """Where the agent of an attempt is."""
        return self._pool.site(attempt.host) if self._pool is not None else self._fleet.local

    def _submit(self, pool: str, keys: Sequence[tuple[str, int]], job: Callable[[], None]) -> None:
        self.busy.update(keys)

        def done(future: Future[None]) -> None:
            if not future.cancelled():
                self._ended.append((keys, future))
                self.wake.set()

        with held():  # the pool would not know a thread that was started in the moment of a signal
            self._pools[pool].submit(job).add_done_callback(done)

    def _start_all(self) -> None:
        batch = [self._to_start.popleft() for _ in range(len(self._to_start))]
        attempts = {one: self._intended(one) for one in batch if not (one.fresh and self._run.stop_asked)}
        nowhere = ""
        if self._pool is not None and attempts:
            try:
                hosts = self._pool.assign([attempt.agent for one, attempt in attempts.items() if one.fresh])
                # Those without a host are decided again, as soon as there is room.
                some = {one: attempt for one, attempt in attempts.items() if attempt.agent in hosts or not one.fresh}
                attempts = {one: a._replace(host=hosts.get(a.agent, a.host)) for one, a in some.items()}
            except MngrError as error:
                nowhere = error.message
        launches: dict[Order, tuple[Attempt, AgentLaunch]] = {}
        facts: list[LedgerFact] = []
        for one, attempt in attempts.items():
            task = self._run.state.tasks[one.task]
            launch, why_not = (None, nowhere) if nowhere else self._launch(task, attempt)
            if one.fresh:
                own = {"task": one.task, "number": one.number, "agent": attempt.agent}
                own |= {"to_be_told": launch is not None and launch.message is not None}
                facts.append(fact("attempt", **own, **({"host": attempt.host} if attempt.host else {})))
            if launch is None:
                facts.append(self._not_made(task, attempt, why_not))
            else:
                launches[one] = attempt, launch
        self._run.note_all(facts)
        self._remove_half_made([attempt.agent for one, (attempt, _) in launches.items() if not one.fresh])
        if launches:
            self._make(launches)

    def _intended(self, one: Order) -> Attempt:
        """The attempt to be started. One that a killed orchestrator began stays where it is."""
        task = self._run.state.tasks[one.task]
        if not one.fresh:
            return task.attempts[one.number - 1]
        name = task_names.agent_name(self._run.id, task.slug, one.number)
        return Attempt(one.number, name, self._run.clock.time(), message=task.message)

    def _make(self, launches: Mapping[Order, tuple[Attempt, AgentLaunch]]) -> None:
        options = {attempt.agent: self._creation(one, launch) for one, (attempt, launch) in launches.items()}
        pool, hosts = self._pool, {attempt.agent: attempt.host for attempt, _ in launches.values()}
        made = self._fleet.create_many(options) if pool is None else pool.create_each(hosts, options)
        facts = []
        for (one, (attempt, _)), result in zip(launches.items(), made, strict=True):
            if isinstance(result, MngrError):
                said = result.message + (f": {result.details}" if result.details else "")
                lost = pool is not None and attempt.host in pool.unreached
                reason = HOST_LOST if lost else attempt_end.LAUNCH
                facts.append(self._not_made(self._run.state.tasks[one.task], attempt, said, reason))
            else:
                facts.append(fact("started", task=one.task, number=one.number, agent_id=result.id))
        self._run.note_all(facts)

    def _launch(self, task: TaskState, attempt: Attempt) -> tuple[AgentLaunch | None, str]:
        launch, error = self._guarded(f"launch-{attempt.number}", task, lambda: self._recipe.launch(task, attempt))
        if launch is not None and launch.message is not None and attempt.message:
            launch = launch._replace(message=f"{launch.message}\n\n{attempt.message}")
        return launch, error

    def _creation(self, one: Order, launch: AgentLaunch) -> dict[str, Any]:
        task = self._run.state.tasks[one.task]
        own = {"MNGR_RUN": self._run.id, "MNGR_TASK": task.id, "MNGR_ATTEMPT": str(one.number)}
        labels = {**launch.labels, **task_names.labels(self._run.id, task.slug, one.number, self._role)}
        options = {**launch._asdict(), "env": {**launch.env, **own}, "labels": labels}
        del options["message"]
        return options

    def _not_made(
        self, task: TaskState, attempt: Attempt, because: str, reason: str = attempt_end.LAUNCH, **more: Any
    ) -> LedgerFact:
        """The attempt ends because its agent could not be made or started. An attempt whose intent is being noted
        together with this counts already."""
        if len(task.attempts) < attempt.number:
            task = task._replace(attempts=(*task.attempts, attempt))
        at = policy.retry_at(task, reason, self._limits, now=self._run.clock.time(), quiet_until=0.0)
        return orders.ended(task.id, attempt.number, reason, because, at, **more)

    def _remove_half_made(self, names: Sequence[str]) -> None:
        """What a killed orchestrator left of agents that never ran."""
        if not names:
            return
        found = observations.intended(observations.of_run(self._fleet, self._run.id), self._run.id, self._role)
        for name in names:
            if name in found and observations.observe(name, found[name]).half_made:
                found[name].destroy(force=True, remove_branch=True)

    def _restart(self, task: TaskState, attempt: Attempt, wanted: Order) -> None:
        """Start the same agent again. What it said of its task before is put aside when it is asked for more."""

        def again() -> None:
            agent = self._agent(attempt)
            if attempt.message:
                aside = 'mv -f "$MNGR_OUTCOME_FILE" "$MNGR_OUTCOME_FILE.before"'
                agent.exec(f'[ ! -e "$MNGR_OUTCOME_FILE" ] || {aside}', timeout=60)
            agent.start()

        _, error = self._guarded("", task, again)
        if not error:
            self._run.note("started", task=task.id, number=attempt.number, agent_id=attempt.agent_id)
            return
        because = f"it could not be started again: {error}"
        self._run.note_all([self._not_made(task, attempt, because, restartable=False)])

    def _tell(self, task: TaskState, attempt: Attempt, wanted: Order) -> None:
        if wanted.what == orders.TASK:
            self._tell_task(task, attempt)
            return
        text = self._words(wanted, task, attempt)
        continues = wanted.what == attempt_end.CONTINUE
        _, error = self._guarded("", task, lambda: self._agent(attempt).message(text, start=continues))
        if error:
            said = f"`{attempt.agent}` could not be told: {error}"
            self._run.note("decision", task=task.id, number=attempt.number, what=said, because=wanted.what)

    def _words(self, wanted: Order, task: TaskState, attempt: Attempt) -> str:
        if wanted.what == attempt_end.CONTINUE:
            first = attempt.restarted_at is not None and attempt.continues == 1
            return attempt.message if attempt.message and first else self._recipe.continuation(task, attempt)
        if wanted.what == attempt_end.RETURN:
            return self._recipe.correction(wanted.because)
        return _TEXTS[wanted.what].format(seconds=max(1, round(self._limits.warns_before)))

    def unreadable(self, task: TaskState, attempt: Attempt) -> str:
        """What is wrong with the outcome; empty when nothing is, or that cannot be told."""
        return self._guarded("", task, lambda: self._recipe.unreadable(task, attempt, self._agent(attempt)))[0] or ""

    def _tell_task(self, task: TaskState, attempt: Attempt) -> None:
        """Once, or never: when a killed orchestrator may have told it half, the attempt is over."""
        launch, error = self._launch(task, attempt)
        told, unseen = self._guarded("", task, lambda: observations.told(self.site(attempt), attempt.agent_id))
        if launch is not None and launch.message is not None and told is None and not unseen:
            text = launch.message
            _, error = self._guarded("", task, lambda: self._agent(attempt).message(text))
            if error and self._unreached(attempt):
                return
            told = not error or self._past_telling(attempt)
        error = error or unseen
        if told:
            more = {"error": error} if error else {}
            self._run.note("told", task=task.id, number=attempt.number, **more)
            return
        if self._unreached(attempt):
            return
        because = f"it could not be told its task: {error or 'the run was killed while it was being told'}"
        self._run.note_all([self._not_made(task, attempt, because)])

    def _past_telling(self, attempt: Attempt) -> bool:
        """Whether an agent that did not take its task is to be judged by what it does: it has it in its terminal, or
        has ended, or was done before it could be told."""
        if observations.told(self.site(attempt), attempt.agent_id):
            return True
        wanted = {attempt.agent: (attempt.agent_id, attempt.host)}
        seen = observations.look(self._fleet, wanted, self._pool).values()
        return any(not observed.alive or observed.outcome for observed in seen)

    def _collect(self, task: TaskState, attempt: Attempt, wanted: Order) -> None:
        data: Mapping[str, Any] | None = None
        error = "its agent is gone"
        if wanted.agent_id:
            with self._turns.setdefault(attempt.agent, threading.Lock()):
                data, error = self._guarded(
                    f"collect-{attempt.number}",
                    task,
                    lambda: self._recipe.collect(task, attempt, self._agent(attempt)),
                )
        own = {"task": task.id, "number": attempt.number, "error": error}
        if wanted.agent_id and error and self._unreached(attempt):
            return
        if wanted.agent_id and error:
            again_at = self._again_at(attempt.collect_tries + 1, self._limits.max_collects)
            self._run.note("uncollected", **own, again_at=again_at)
        else:
            self._run.note("collected", **own, data=dict(data or {}))

    def _check(self, task: TaskState, attempt: Attempt, wanted: Order) -> None:
        collected = attempt.collected or {}
        data, error = self._guarded(
            f"check-{attempt.number}", task, lambda: self._recipe.check(task, attempt, collected)
        )
        more: dict[str, Any] = {}
        if error or (data or {}).get("failure"):
            more["again_at"] = self._again_at(attempt.check_tries + 1, self._limits.max_checks)
        self._run.note("verdict", task=task.id, number=attempt.number, data=dict(data or {}), error=error, **more)

    def _stop(self, task: TaskState, attempt: Attempt, wanted: Order) -> None:
        stopped, error = self._guarded("", task, lambda: self._agent(attempt).stop())
        if stopped is not None and stopped.outlived:
            error = f"these processes are still there: {', '.join(map(str, stopped.outlived))}"
        own = {"task": task.id, "number": attempt.number}
        if error and self._unreached(attempt):
            return
        if error:
            again_at = self._again_at(attempt.release_tries + 1, self._limits.max_stops)
            self._run.note("unreleased", **own, error=error, again_at=again_at)
            return
        # An answer that was under way when the attempt ended is paid too.
        used = observations.usage(self.site(attempt), attempt.agent_id)
        more = [fact("usage", **own, **used._asdict())] if used is not None and used != attempt.usage else []
        self._run.note_all([*more, fact("released", **own)])

    def _unreached(self, attempt: Attempt) -> bool:
        """Whether the host of an attempt does not answer: then nothing is noted, and it is done when it answers."""
        if self._pool is not None:
            return bool(attempt.host) and not self._pool.answers(attempt.host)
        return any(agent.state == UNKNOWN for agent in self._fleet.list(only=[attempt.agent_id]).agents)

    def _again_at(self, tries: int, most: int) -> float | None:
        """When to try again what failed so often; None is not before the next resume."""
        return self._run.clock.time() + self._limits.backoff(tries) if tries < most else None

    def _attempt(self, task_id: str, number: int) -> tuple[TaskState, Attempt]:
        task = self._run.state.tasks[task_id]
        return task, task.attempts[number - 1]

    def _agent(self, attempt: Attempt) -> Agent:
        """As it is now. Found by its id, since a name would be looked for among all agents."""
        site = self.site(attempt)
        views, errors = site.run(find.listing, [attempt.agent_id])
        for error in errors if not views else ():
            raise error
        if not views:
            raise NotFoundError(f"`{attempt.agent}` was destroyed in the meantime")
        return Agent(site, views[0].record, views[0])

    def _guarded(self, what: str, task: TaskState, call: Callable[[], T]) -> tuple[T | None, str]:
        """The result, or why there is none. Of an error that nobody foresaw the traceback is kept with the task."""
        try:
            return call(), ""
        except MngrError as error:
            return None, error.message + (f": {error.details}" if error.details else "")
        except Exception as error:  # noqa: BLE001 (a recipe may be a stranger's code; its failure is one task's)
            if what:
                path = os.path.join(self._run.task_dir(task.slug), f"error-{what}.txt")
                shown = secrets.mask(traceback.format_exc(), self._run.secrets)
                write_atomic(path, shown.encode("utf-8", "backslashreplace"))
            return None, f"{type(error).__name__}: {error}"
