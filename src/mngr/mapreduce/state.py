"""What a ledger says about its run: a fold over its entries. Pure: the same entries give the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mngr.agents.record import seconds_of
from mngr.mapreduce import concurrency
from mngr.mapreduce.concurrency import Concurrency
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    Entry = Mapping[str, Any]

# Where a task is.
WAITING = "waiting"  # for its first attempt, or for its next one
LAUNCHING = "launching"  # the intent is written; the agent may exist or not
RUNNING = "running"
COLLECTING = "collecting"  # the attempt has ended; what it made is not here yet
CHECKING = "checking"
SETTLED = "settled"
STATUSES = (WAITING, LAUNCHING, RUNNING, COLLECTING, CHECKING, SETTLED)


class Usage(NamedTuple):
    """`unpriced` is how many answers of models have no known price: they are not in `cost_usd`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """What a budget of tokens counts: read and written, without what came from a cache."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cost_usd + other.cost_usd,
            self.unpriced + other.unpriced,
        )


class Attempt(NamedTuple):
    """One agent's try at a task. `ended` is the reason (see `mngr.mapreduce.ending`), empty while it goes on; `because`
    is the same in words. `released` says that its agent was stopped and is nobody's business any more. What did not
    happen yet is None."""

    number: int
    agent: str
    intended_at: float
    to_be_told: bool = False
    agent_id: str = ""
    started_at: float | None = None
    told_at: float | None = None
    state: str = ""
    state_reason: str = ""
    state_at: float | None = None
    warned_at: float | None = None
    nudged_at: float | None = None
    ended: str = ""
    because: str = ""
    ended_at: float | None = None
    retry: bool = False
    retry_at: float = 0.0
    collected: Mapping[str, Any] | None = None
    collect_error: str = ""
    verdict: Mapping[str, Any] | None = None
    check_error: str = ""
    released: bool = False
    usage: Usage = Usage()

    @property
    def goes_on(self) -> bool:
        return not self.ended


class TaskState(NamedTuple):
    """`tries_from` counts the attempts before a person asked for more: those do not count against the limit."""

    id: str
    slug: str
    data: Mapping[str, Any]
    attempts: tuple[Attempt, ...] = ()
    tries_from: int = 0

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def status(self) -> str:
        last = self.last
        if last is None or self.tries_from == len(self.attempts):
            return WAITING
        if last.goes_on:
            return RUNNING if last.started_at is not None else LAUNCHING
        if last.agent_id and last.collected is None:
            return COLLECTING
        if last.retry:
            return WAITING
        if last.agent_id and last.verdict is None:
            return CHECKING
        return SETTLED

    @property
    def over(self) -> bool:
        """Settled, with no agent left to be stopped."""
        return self.status == SETTLED and all(attempt.released or not attempt.agent_id for attempt in self.attempts)

    @property
    def tries(self) -> int:
        """Attempts that count against the limit."""
        return len(self.attempts) - self.tries_from

    @property
    def retry_at(self) -> float:
        """Before this moment no further attempt begins."""
        last = self.last
        return last.retry_at if last is not None and last.retry and self.tries else 0.0

    @property
    def usage(self) -> Usage:
        total = Usage()
        for attempt in self.attempts:
            total = total.plus(attempt.usage)
        return total


class Phase(NamedTuple):
    """`data` is what its end wrote down, `asked` what its beginning did; `ended_at` is None while it is not over."""

    began_at: float
    ended_at: float | None = None
    data: Mapping[str, Any] = {}
    asked: Mapping[str, Any] = {}


class Trip(NamedTuple):
    """The circuit breaker opened: these tasks failed in the same way; `example` is how one of them put it."""

    stage: str
    signature: str
    example: str
    tasks: tuple[str, ...]
    at: float


class RunState(NamedTuple):
    """`facts` is what the run was begun with. `trip` is the open breaker. `resumed_at` is when the present orchestrator
    took over, 0 for the first. `finished` is the last summary; going on after it clears it. Commands and decisions are
    read from the ledger itself."""

    facts: Mapping[str, Any] = {}
    began_at: float = 0.0
    resumed_at: float = 0.0
    phases: Mapping[str, Phase] = {}
    tasks: Mapping[str, TaskState] = {}
    concurrency: Concurrency = concurrency.NONE
    trip: Trip | None = None
    stopped_at: float | None = None
    finished: Mapping[str, Any] | None = None
    last_at: float = 0.0

    @property
    def usage(self) -> Usage:
        total = Usage()
        for task in self.tasks.values():
            total = total.plus(task.usage)
        return total

    def counts(self) -> dict[str, int]:
        """How many tasks are where, every status named."""
        found = dict.fromkeys(STATUSES, 0)
        for task in self.tasks.values():
            found[task.status] += 1
        return found


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """The state after these entries; unknown types are passed over, and so are entries about a task or an attempt that
    is not there."""
    state = RunState() if state is None else state
    tasks = dict(state.tasks)
    at = state.last_at
    for entry in entries:
        at = _at(entry) or at
        state = _apply(state, tasks, entry, at)
    return state._replace(tasks=tasks, last_at=at)


def apply(state: RunState, entry: Entry) -> RunState:
    """The state after one more entry."""
    return fold((entry,), state)


def _apply(state: RunState, tasks: dict[str, TaskState], entry: Entry, at: float) -> RunState:
    """Change the tasks in place, and return the state with everything else as it is after the entry."""
    kind = str(entry.get("type"))
    if kind in _OF_RUN:
        return _OF_RUN[kind](state, entry, at)
    name = str(entry.get("task"))
    if kind == "task" and name not in tasks:
        tasks[name] = TaskState(name, str(entry.get("slug")), _mapping(entry.get("data")))
    task = tasks.get(name)
    if task is None:
        return state
    if kind == "attempt" and entry.get("number") == len(task.attempts) + 1:
        attempt = Attempt(len(task.attempts) + 1, str(entry.get("agent")), at, bool(entry.get("to_be_told")))
        tasks[name] = task._replace(attempts=(*task.attempts, attempt))
    elif kind == "retry" and task.status in (SETTLED, WAITING):
        tasks[name] = task._replace(tries_from=len(task.attempts))
        return state._replace(finished=None)
    elif kind in _OF_ATTEMPT:
        return _with_attempt(state, tasks, task, entry, at)
    return state


def _run(state: RunState, entry: Entry, at: float) -> RunState:
    facts = {key: value for key, value in entry.items() if key not in ("at", "type")}
    return state._replace(facts=facts, began_at=at)


def _resumed(state: RunState, entry: Entry, at: float) -> RunState:
    return state._replace(resumed_at=at, trip=None, stopped_at=None, finished=None)


def _phase(state: RunState, entry: Entry, at: float) -> RunState:
    name = str(entry.get("name"))
    if entry.get("status") == "began":
        phase = Phase(at, asked=_mapping(entry.get("data")))
    else:
        phase = state.phases.get(name, Phase(at))._replace(ended_at=at, data=_mapping(entry.get("data")))
    return state._replace(phases={**state.phases, name: phase})


def _concurrency(state: RunState, entry: Entry, at: float) -> RunState:
    changed = Concurrency(
        limit=int(entry.get("limit") or 1),
        changed_at=at,
        slow_start=bool(entry.get("slow_start")),
        quiet_until=float(entry.get("quiet_until") or 0.0),
    )
    return state._replace(concurrency=changed)


def _breaker(state: RunState, entry: Entry, at: float) -> RunState:
    stage, signature, example = (str(entry.get(name) or "") for name in ("stage", "signature", "example"))
    return state._replace(trip=Trip(stage, signature, example, tuple(map(str, entry.get("tasks") or ())), at))


def _stop(state: RunState, entry: Entry, at: float) -> RunState:
    return state._replace(stopped_at=at)


def _finished(state: RunState, entry: Entry, at: float) -> RunState:
    return state._replace(finished={key: value for key, value in entry.items() if key != "type"})


_OF_RUN: Mapping[str, Callable[[RunState, Entry, float], RunState]] = {
    "run": _run,
    "resumed": _resumed,
    "phase": _phase,
    "concurrency": _concurrency,
    "breaker": _breaker,
    "stop": _stop,
    "finished": _finished,
}


def _with_attempt(state: RunState, tasks: dict[str, TaskState], task: TaskState, entry: Entry, at: float) -> RunState:
    number = entry.get("number")
    if not isinstance(number, int) or not 1 <= number <= len(task.attempts):
        return state
    before = task.attempts[number - 1]
    after = _OF_ATTEMPT[str(entry["type"])](before, entry, at)
    tasks[task.id] = task._replace(attempts=(*task.attempts[: number - 1], after, *task.attempts[number:]))
    if after.ended == "outcome" and not before.ended:
        return state._replace(concurrency=concurrency.with_clean_end(state.concurrency))
    return state


def _started(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(started_at=attempt.started_at or at, agent_id=str(entry.get("agent_id")))


def _told(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(told_at=at)


def _state(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(state=str(entry.get("state")), state_reason=str(entry.get("reason") or ""), state_at=at)


def _warned(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(warned_at=at)


def _nudged(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(nudged_at=at)


def _ended(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    if attempt.ended:
        return attempt
    return attempt._replace(
        ended=str(entry.get("reason")),
        because=str(entry.get("because") or ""),
        ended_at=at,
        retry=bool(entry.get("retry")),
        retry_at=float(entry.get("retry_at") or 0.0),
    )


def _collected(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    error = str(entry.get("error") or "")
    return attempt._replace(collected=_mapping(entry.get("data")), collect_error=error, verdict=None, check_error="")


def _verdict(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(verdict=_mapping(entry.get("data")), check_error=str(entry.get("error") or ""))


def _released(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(released=True)


def _usage(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    """Totals of the attempt so far: a later entry replaces an earlier one."""
    total = Usage(
        int(entry.get("input_tokens") or 0),
        int(entry.get("output_tokens") or 0),
        int(entry.get("cache_read_tokens") or 0),
        float(entry.get("cost_usd") or 0.0),
        int(entry.get("unpriced") or 0),
    )
    return attempt._replace(usage=total)


_OF_ATTEMPT: Mapping[str, Callable[[Attempt, Entry, float], Attempt]] = {
    "started": _started,
    "told": _told,
    "state": _state,
    "warned": _warned,
    "nudged": _nudged,
    "ended": _ended,
    "collected": _collected,
    "verdict": _verdict,
    "released": _released,
    "usage": _usage,
}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _at(entry: Entry) -> float:
    try:
        return seconds_of(str(entry.get("at")))
    except ValueError:
        return 0.0
