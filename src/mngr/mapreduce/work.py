"""The work that blocks: make agents, talk to them, collect, check, stop. Each kind in threads of its own.

Everything is noted in the ledger by the thread that did it. A piece of work stays `busy` until the engine has taken
note of its end, so that it is never decided twice.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.errors import MngrError, NotFoundError
from mngr.files import write_atomic
from mngr.interrupts import held, others_ended
from mngr.mapreduce import ending, naming, orders, retry, sights
from mngr.mapreduce.ledger import Fact, fact
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.recipe import Launch, Recipe
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


class Work:
    """Threads of one engine. `wake` is set whenever a piece of work has ended."""

    def __init__(self, run: Run, recipe: Recipe, fleet: Fleet, limits: Limits, role: str) -> None:
        self._run, self._recipe, self._fleet, self._limits, self._role = run, recipe, fleet, limits, role
        self.wake = threading.Event()
        self.busy: set[tuple[str, int]] = set()
        self._ended: deque[tuple[Sequence[tuple[str, int]], Future[None]]] = deque()
        self._to_start: deque[orders.Start] = deque()
        self._halted = False
        self._pools = {
            "start": ThreadPoolExecutor(1),
            "tell": ThreadPoolExecutor(8),
            "collect": ThreadPoolExecutor(max(1, limits.max_collecting)),
            "check": ThreadPoolExecutor(max(1, limits.max_checking)),
        }

    def settle(self) -> bool:
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
            for pool in self._pools.values():
                pool.shutdown(wait=True)
            return
        with held(), others_ended():
            for pool in self._pools.values():
                pool.shutdown(wait=True, cancel_futures=True)

    def halt(self) -> None:
        """Begin nothing that waits for its turn to be made."""
        self._halted = True

    def start(self, wanted: Sequence[orders.Start]) -> None:
        """Make agents; those that gather while others are being made are made together."""
        self._to_start.extend(wanted)
        keys = [(one.task, one.number) for one in wanted]
        self._submit("start", keys, self._start_all)

    def restart(self, wanted: orders.Restart) -> None:
        self._submit("tell", [(wanted.task, wanted.number)], lambda: self._restart(wanted))

    def tell(self, wanted: orders.Tell, problem: str = "") -> None:
        keys = [(wanted.task, wanted.number)] if wanted.what == orders.TASK else []
        self._submit("tell", keys, lambda: self._tell(wanted, problem))

    def collect(self, wanted: orders.Collect) -> None:
        self._submit("collect", [(wanted.task, wanted.number)], lambda: self._collect(wanted))

    def stop(self, wanted: orders.Stop) -> None:
        self._submit("collect", [(wanted.task, wanted.number)], lambda: self._stop(wanted))

    def check(self, wanted: orders.Check) -> None:
        self._submit("check", [(wanted.task, wanted.number)], lambda: self._check(wanted))

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
        if self._halted:
            batch = [one for one in batch if not one.fresh]
        launches: dict[str, tuple[orders.Start, Launch]] = {}
        intents: list[Fact] = []
        for one in batch:
            task, attempt = self._before(one)
            launch, error = self._launch(task, attempt)
            told = launch is not None and launch.message is not None
            if one.fresh:
                intents.append(fact("attempt", task=one.task, number=one.number, agent=one.agent, to_be_told=told))
            if launch is None:
                intents.append(self._not_made(task, one, error))
            else:
                launches[one.agent] = (one, launch)
        self._run.note_all(intents)
        self._remove_half_made([one.agent for one, _ in launches.values() if not one.fresh])
        if launches:
            self._make(launches)

    def _make(self, launches: Mapping[str, tuple[orders.Start, Launch]]) -> None:
        wishes = {name: self._wish(one, launch) for name, (one, launch) in launches.items()}
        made = self._fleet.create_each(wishes)
        facts = []
        for (one, _), result in zip(launches.values(), made, strict=True):
            if isinstance(result, MngrError):
                said = result.message + (f": {result.details}" if result.details else "")
                facts.append(self._not_made(self._run.state.tasks[one.task], one, said))
            else:
                facts.append(fact("started", task=one.task, number=one.number, agent_id=result.id))
        self._run.note_all(facts)

    def _before(self, one: orders.Start) -> tuple[TaskState, Attempt]:
        task = self._run.state.tasks[one.task]
        new = Attempt(one.number, one.agent, time.time(), message=task.message)
        return task, new if one.fresh else task.attempts[one.number - 1]

    def _launch(self, task: TaskState, attempt: Attempt) -> tuple[Launch | None, str]:
        launch, error = self._guarded(f"launch-{attempt.number}", task, lambda: self._recipe.launch(task, attempt))
        if launch is not None and launch.message is not None and attempt.message:
            launch = launch._replace(message=f"{launch.message}\n\n{attempt.message}")
        return launch, error

    def _wish(self, one: orders.Start, launch: Launch) -> dict[str, Any]:
        task = self._run.state.tasks[one.task]
        own = {"MNGR_RUN": self._run.id, "MNGR_TASK": task.id, "MNGR_ATTEMPT": str(one.number)}
        wish = launch._asdict()
        del wish["message"]
        wish["env"] = {**launch.env, **own}
        wish["labels"] = {**launch.labels, **naming.labels(self._run.id, task.slug, one.number, self._role)}
        return wish

    def _not_made(self, task: TaskState, one: orders.Start, because: str) -> Fact:
        # An attempt whose intent is being noted together with this counts already.
        tried = (
            task
            if len(task.attempts) >= one.number
            else task._replace(attempts=(*task.attempts, Attempt(one.number, one.agent, 0.0)))
        )
        quiet_until = self._run.state.concurrency.quiet_until
        again = retry.after(tried, ending.LAUNCH, self._limits, now=time.time(), quiet_until=quiet_until)
        return fact(
            "ended",
            task=one.task,
            number=one.number,
            reason=ending.LAUNCH,
            because=because,
            retry=again.wanted,
            retry_at=again.at,
        )

    def _remove_half_made(self, names: Sequence[str]) -> None:
        """What a killed orchestrator left of agents that never ran."""
        if not names:
            return
        found = sights.intended(sights.of_run(self._fleet, self._run.id), self._run.id, self._role)
        for name in names:
            if name in found and sights.sight(self._fleet, name, found[name]).half_made:
                self._fleet.destroy(found[name], force=True, remove_branch=True)

    def _restart(self, wanted: orders.Restart) -> None:
        """Start the same agent again. What it said of its task before is put aside when it is asked for more."""
        task, attempt = self._attempt(wanted.task, wanted.number)

        def again() -> None:
            agent = self._agent(attempt)
            if attempt.message:
                aside = 'mv -f "$MNGR_OUTCOME_FILE" "$MNGR_OUTCOME_FILE.before"'
                self._fleet.exec(agent, f'[ ! -e "$MNGR_OUTCOME_FILE" ] || {aside}', timeout=60)
            self._fleet.start(agent)

        _, error = self._guarded("", task, again)
        if not error:
            self._run.note("started", task=task.id, number=attempt.number, agent_id=attempt.agent_id)
            return
        because = f"it could not be started again: {error}"
        again_at = retry.after(task, ending.LAUNCH, self._limits, now=time.time(), quiet_until=0.0)
        self._run.note(
            "ended",
            task=task.id,
            number=attempt.number,
            reason=ending.LAUNCH,
            because=because,
            retry=again_at.wanted,
            retry_at=again_at.at,
            restartable=False,
        )

    def _tell(self, wanted: orders.Tell, problem: str) -> None:
        task, attempt = self._attempt(wanted.task, wanted.number)
        if wanted.what == orders.TASK:
            self._tell_task(task, attempt)
            return
        text = self._words(wanted.what, task, attempt, problem)
        continues = wanted.what == ending.CONTINUE
        _, error = self._guarded("", task, lambda: self._fleet.message(self._agent(attempt), text, start=continues))
        if error:
            said = f"`{attempt.agent}` could not be told: {error}"
            self._run.note("decision", task=task.id, number=attempt.number, what=said, because=wanted.what)

    def _words(self, what: str, task: TaskState, attempt: Attempt, problem: str) -> str:
        recipe = self._recipe
        match what:
            case ending.WARNING:
                return recipe.warning(task, attempt, self._limits.warns_before)
            case ending.STUCK:
                return recipe.stuck(task, attempt)
            case ending.RETURN:
                return recipe.returned(task, attempt, problem)
            case ending.CONTINUE:
                first = attempt.restarted_at is not None and attempt.continues == 1
                return attempt.message if attempt.message and first else recipe.continuation(task, attempt)
            case _:
                return recipe.nudge(task, attempt)

    def unreadable(self, task: TaskState, attempt: Attempt) -> str:
        """What is wrong with the outcome; empty when nothing is, or that cannot be told."""
        return self._guarded("", task, lambda: self._recipe.unreadable(task, attempt, self._agent(attempt)))[0] or ""

    def _tell_task(self, task: TaskState, attempt: Attempt) -> None:
        """Once, or never: when a killed orchestrator may have told it half, the attempt is over."""
        launch, error = self._launch(task, attempt)
        told = _told(self._fleet, attempt.agent_id)
        if launch is not None and launch.message is not None and told is None:
            text = launch.message
            _, error = self._guarded("", task, lambda: self._fleet.message(self._agent(attempt), text))
            told = not error or self._past_telling(attempt)
        if told:
            more = {"error": error} if error else {}
            self._run.note("told", task=task.id, number=attempt.number, **more)
            return
        because = f"it could not be told its task: {error or 'the run was killed while it was being told'}"
        start = orders.Start(task.id, attempt.number, attempt.agent, fresh=False)
        self._run.note_all([self._not_made(task, start, because)])

    def _past_telling(self, attempt: Attempt) -> bool:
        """Whether an agent that did not take its task is to be judged by what it does: it has it in its terminal, or
        has ended, or was done before it could be told."""
        if _told(self._fleet, attempt.agent_id):
            return True
        agents = self._fleet.list(only=[attempt.agent_id]).agents
        seen = [sights.sight(self._fleet, attempt.agent, agent) for agent in agents]
        return any(not sight.alive or sight.outcome for sight in seen)

    def _collect(self, wanted: orders.Collect) -> None:
        task, attempt = self._attempt(wanted.task, wanted.number)
        data: Mapping[str, Any] | None = None
        error = "its agent is gone"
        if wanted.agent_id:
            data, error = self._guarded(
                f"collect-{attempt.number}",
                task,
                lambda: self._recipe.collect(task, attempt, self._agent(attempt)),
            )
        own = {"task": task.id, "number": attempt.number, "error": error}
        if wanted.agent_id and error:
            again_at = self._again_at(attempt.collect_tries + 1, self._limits.max_collects)
            self._run.note("uncollected", **own, again_at=again_at)
        else:
            self._run.note("collected", **own, data=dict(data or {}))

    def _check(self, wanted: orders.Check) -> None:
        task, attempt = self._attempt(wanted.task, wanted.number)
        collected = attempt.collected or {}
        data, error = self._guarded(
            f"check-{attempt.number}", task, lambda: self._recipe.check(task, attempt, collected)
        )
        more: dict[str, Any] = {}
        if error or (data or {}).get("failure"):
            more["again_at"] = self._again_at(attempt.check_tries + 1, self._limits.max_checks)
        self._run.note("verdict", task=task.id, number=attempt.number, data=dict(data or {}), error=error, **more)

    def _stop(self, wanted: orders.Stop) -> None:
        task, attempt = self._attempt(wanted.task, wanted.number)
        stopped, error = self._guarded("", task, lambda: self._fleet.stop(self._agent(attempt)))
        if stopped is not None and stopped.outlived:
            error = f"these processes are still there: {', '.join(map(str, stopped.outlived))}"
        own = {"task": task.id, "number": attempt.number}
        if error:
            again_at = self._again_at(attempt.release_tries + 1, self._limits.max_stops)
            self._run.note("unreleased", **own, error=error, again_at=again_at)
            return
        # An answer that was under way when the attempt ended is paid too.
        used = sights.usage(self._fleet, attempt.agent_id)
        more = [fact("usage", **own, **used._asdict())] if used is not None and used != attempt.usage else []
        self._run.note_all([*more, fact("released", **own)])

    def _again_at(self, tries: int, most: int) -> float | None:
        """When to try again what failed so often; None is not before the next resume."""
        return time.time() + self._limits.backoff(tries) if tries < most else None

    def _attempt(self, task_id: str, number: int) -> tuple[TaskState, Attempt]:
        task = self._run.state.tasks[task_id]
        return task, task.attempts[number - 1]

    def _agent(self, attempt: Attempt) -> Agent:
        """As it is now. Found by its id, since a name would be looked for among all agents."""
        listing = self._fleet.list(only=[attempt.agent_id])
        for error in listing.errors if not listing.agents else ():
            raise error
        if not listing.agents:
            raise NotFoundError(f"`{attempt.agent}` was destroyed in the meantime")
        return listing.agents[0]

    def _guarded(self, what: str, task: TaskState, call: Callable[[], T]) -> tuple[T | None, str]:
        """The result, or why there is none. Of an error that nobody foresaw the traceback is kept with the task."""
        try:
            return call(), ""
        except MngrError as error:
            return None, error.message + (f": {error.details}" if error.details else "")
        except Exception as error:  # noqa: BLE001 (a recipe may be a stranger's code; its failure is one task's)
            if what:
                path = os.path.join(self._run.task_dir(task.slug), f"error-{what}.txt")
                write_atomic(path, traceback.format_exc().encode("utf-8", "backslashreplace"))
            return None, f"{type(error).__name__}: {error}"


def _told(fleet: Fleet, agent_id: str) -> bool | None:
    """Whether the agent got a message: None when nobody tried, False when that is not known."""
    types = [event.get("type") for event in fleet.store.events(agent_id)]
    if "message_queued" not in types:
        return None
    return any(word in types for word in ("prompt", "message_delivered"))
