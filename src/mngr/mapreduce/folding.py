"""The state of a run as a fold over the entries of its ledger. Pure: the same entries give the same state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from mngr.agents.reasons import is_account, is_rate_limit
from mngr.agents.record import seconds_of
from mngr.agents.state import BLOCKED
from mngr.mapreduce import concurrency
from mngr.mapreduce.concurrency import Concurrency
from mngr.mapreduce.state import (
    SETTLED,
    WAITING,
    Attempt,
    Interval,
    Phase,
    RunState,
    TaskState,
    Trip,
    Usage,
)
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    Entry = Mapping[str, Any]


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """The state after these entries; unknown types are passed over, and so are entries about a task or an attempt that
    is not there."""
    state = RunState() if state is None else state
    tasks = dict(state.tasks)
    at = state.last_at
    for entry in entries:
        before, at = at, _at(entry) or at
        if entry.get("type") == "resumed":
            state = _resumed(state, tasks, before, at)
        else:
            state = _apply(state, tasks, entry, at)
    return state._replace(tasks=tasks, last_at=at)


def apply(state: RunState, entry: Entry) -> RunState:
    """The state after one more entry."""
    return fold((entry,), state)


def _apply(state: RunState, tasks: dict[str, TaskState], entry: Entry, at: float) -> RunState:
    """Change the tasks in place, and return the state with everything else as it is after the entry."""
    kind = str(entry.get("type"))
    if kind == "override" and "workers" in entry:
        _let_go(tasks)
    if kind in _OF_RUN:
        return _OF_RUN[kind](state, entry, at)
    name = str(entry.get("task"))
    if kind == "task" and name not in tasks:
        tasks[name] = TaskState(name, str(entry.get("slug")), _mapping(entry.get("data")))
    task = tasks.get(name)
    if task is None:
        return state
    if kind == "attempt" and entry.get("number") == len(task.attempts) + 1:
        to_be_told = bool(entry.get("to_be_told"))
        attempt = Attempt(len(task.attempts) + 1, str(entry.get("agent")), at, to_be_told, task.message)
        tasks[name] = task._replace(attempts=(*task.attempts, attempt), message="")
    elif kind == "retry" and task.status in (SETTLED, WAITING):
        tasks[name] = task._replace(tries_from=len(task.attempts), message=str(entry.get("message") or ""))
        return state._replace(finished=None)
    elif kind == "restarted":
        tasks[name] = _restarted(task, entry, at)
    elif kind in _OF_ATTEMPT:
        return _with_attempt(state, tasks, task, entry, at)
    return state


def _run(state: RunState, entry: Entry, at: float) -> RunState:
    facts = {key: value for key, value in entry.items() if key not in ("at", "type")}
    return state._replace(facts=facts, began_at=at)


def _resumed(state: RunState, tasks: dict[str, TaskState], before: float, at: float) -> RunState:
    """Nobody looked since the last entry, and what was given up is tried again."""
    for name, task in tasks.items():
        if any(one.collect_tries or one.check_at is not None or one.release_tries for one in task.attempts):
            tasks[name] = task._replace(attempts=tuple(map(_tried_again, task.attempts)))
    gaps = (*state.gaps, (before, at)) if 0 < before < at else state.gaps
    return state._replace(
        resumed_at=at, trip=None, stopped_at=None, finished=None, gaps=gaps, paused="", waits_until=0.0
    )


def _tried_again(attempt: Attempt) -> Attempt:
    return attempt._replace(
        collect_tries=0,
        collect_at=0.0,
        check_tries=0,
        check_at=None if attempt.check_at is None else 0.0,
        release_tries=0,
        release_at=0.0,
    )


def _let_go(tasks: dict[str, TaskState]) -> None:
    """Agents are made otherwise from now on: those that have ended are not started again."""
    for name, task in tasks.items():
        done = tuple(one._replace(restartable=one.goes_on and one.restartable) for one in task.attempts)
        tasks[name] = task._replace(attempts=done)


def _override(state: RunState, entry: Entry, at: float) -> RunState:
    """What a person changed: each value takes the place of the one that the run was begun with."""
    facts = dict(state.facts)
    for name, value in entry.items():
        if name not in ("at", "type"):
            facts[name] = {**_mapping(facts.get(name)), **value} if isinstance(value, dict) else value
    return state._replace(facts=facts)


def _gap(state: RunState, entry: Entry, at: float) -> RunState:
    since = float(entry.get("since") or at)
    return state._replace(gaps=(*state.gaps, (since, at))) if since < at else state


def _paused(state: RunState, entry: Entry, at: float) -> RunState:
    return state._replace(paused=str(entry.get("because") or ""))


def _waits(state: RunState, entry: Entry, at: float) -> RunState:
    return state._replace(waits_until=float(entry.get("until") or 0.0), waits_because=str(entry.get("because") or ""))


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
    "override": _override,
    "gap": _gap,
    "paused": _paused,
    "waits": _waits,
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


def _restarted(task: TaskState, entry: Entry, at: float) -> TaskState:
    """The last attempt goes on with the agent that it had."""
    last = task.last
    if last is None or entry.get("number") != last.number or last.goes_on:
        return task
    asked = task.tries_from == len(task.attempts)
    again = last._replace(
        message=task.message,
        state="",
        state_at=None,
        stirred_at=None,
        continues=0,
        restarted_at=at,
        restarting=True,
        restarts=0 if asked else last.restarts + int(bool(entry.get("counts"))),
        paused=_with(last.paused, last.ended_at, at),
        ended="",
        because="",
        ended_at=None,
        retry=False,
        retry_at=0.0,
        collected=None,
        earlier=last.collected or last.earlier,
        verdict=None,
        check_error="",
        released=False,
    )
    return task._replace(attempts=(*task.attempts[:-1], again), tries_from=task.tries_from - int(asked), message="")


def _started(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(started_at=attempt.started_at or at, agent_id=str(entry.get("agent_id")), restarting=False)


def _told(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(told_at=at)


def _state(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    paused = _with(attempt.paused, attempt.state_at, at) if waits(attempt) else attempt.paused
    return attempt._replace(
        state=str(entry.get("state")),
        state_reason=str(entry.get("reason") or ""),
        state_at=at,
        limited_until=float(entry.get("until") or 0.0),
        paused=paused,
    )


def waits(attempt: Attempt) -> bool:
    """Whether what was seen last is an agent that waits for its limit, or for a person to see to its account."""
    return attempt.state == BLOCKED and (is_rate_limit(attempt.state_reason) or is_account(attempt.state_reason))


def _with(intervals: tuple[Interval, ...], since: float | None, until: float) -> tuple[Interval, ...]:
    if since is None or since >= until:
        return intervals
    if intervals and intervals[-1][1] >= since:
        return (*intervals[:-1], (intervals[-1][0], until))
    return (*intervals, (since, until))


def _warned(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(warned_at=at)


def _stirred(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(stirred_at=at)


def _nudged(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(nudged_at=at, nudges=attempt.nudges + 1)


def _continued(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(continued_at=at, continues=attempt.continues + 1)


def _returned(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(returned_at=at, returns=attempt.returns + 1)


def _ended(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    if attempt.ended:
        return attempt
    return attempt._replace(
        ended=str(entry.get("reason")),
        because=str(entry.get("because") or ""),
        ended_at=at,
        restarting=False,
        restartable=attempt.restartable and entry.get("restartable") is not False,
        retry=bool(entry.get("retry")),
        retry_at=float(entry.get("retry_at") or 0.0),
    )


def _back(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    """It was called lost, and is there again."""
    if not attempt.ended:
        return attempt
    paused = _with(attempt.paused, attempt.ended_at, at)
    return attempt._replace(ended="", because="", ended_at=None, retry=False, retry_at=0.0, paused=paused)


def _collected(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    """Of an agent that is gone, what was collected before stays."""
    data = _mapping(entry.get("data")) or attempt.earlier or {}
    error = str(entry.get("error") or "")
    return attempt._replace(
        collected=data, collect_error=error, collect_at=0.0, verdict=None, check_error="", check_tries=0, check_at=None
    )


def _uncollected(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(
        collect_error=str(entry.get("error") or ""),
        collect_tries=attempt.collect_tries + 1,
        collect_at=_later(entry),
    )


def _verdict(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    """One with `again_at` is shown, and measured once more."""
    return attempt._replace(
        verdict=_mapping(entry.get("data")),
        check_error=str(entry.get("error") or ""),
        checked_at=at,
        check_tries=attempt.check_tries + 1,
        check_at=_later(entry) if "again_at" in entry else None,
    )


def _released(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(released=True, release_error="")


def _unreleased(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(
        release_error=str(entry.get("error") or ""),
        release_tries=attempt.release_tries + 1,
        release_at=_later(entry),
    )


def _later(entry: Entry) -> float:
    """When something is tried again; null is not before the next resume."""
    at = entry.get("again_at")
    return float(at) if isinstance(at, int | float) else math.inf


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
    "stirred": _stirred,
    "nudged": _nudged,
    "continued": _continued,
    "returned": _returned,
    "ended": _ended,
    "back": _back,
    "collected": _collected,
    "uncollected": _uncollected,
    "verdict": _verdict,
    "released": _released,
    "unreleased": _unreleased,
    "usage": _usage,
}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _at(entry: Entry) -> float:
    try:
        return seconds_of(str(entry.get("at")))
    except ValueError:
        return 0.0
