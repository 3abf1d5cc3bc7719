"""The state of a run as a fold over the entries of its ledger. Pure: the same entries give the same state."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, cast

from mngr.agent.reasons import is_account, is_rate_limit
from mngr.agent.record import seconds_of
from mngr.agent.state import BLOCKED
from mngr.json_values import table
from mngr.mapreduce import state as states
from mngr.mapreduce.state import (
    Attempt,
    AttemptUsage,
    Cluster,
    Concurrency,
    Interval,
    Phase,
    RunHost,
    RunState,
    TaskState,
)
from mngr.mapreduce.task_table import table as task_table

Entry = Mapping[str, Any]


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """The state after these entries; unknown types are passed over, and so are entries about a task or an attempt that
    is not there."""
    state = RunState() if state is None else state
    before_all = task_table(state.tasks)
    changed: dict[str, TaskState] = {}
    tasks = ChainMap(changed, cast("dict[str, TaskState]", before_all))  # only the first of the two is written to
    at = state.last_at
    for entry in entries:
        before, at = at, _at(entry) or at
        if "task" in entry:
            state = _of_task(state, tasks, entry, at)
        else:
            state = _of_run(state, tasks, entry, before, at)
    return state._replace(tasks=before_all.having(changed), last_at=at)


def _of_run(state: RunState, tasks: MutableMapping[str, TaskState], entry: Entry, before: float, at: float) -> RunState:
    """Change the tasks in place, and return the state with everything else as it is after the entry."""
    facts = {key: value for key, value in entry.items() if key not in ("at", "type")}
    because = str(entry.get("because") or "")
    match entry.get("type"):
        case "run":
            return state._replace(facts=facts, began_at=at)
        case "resumed":
            return _resumed(state, tasks, before, at)
        case "override":
            return _overridden(state, tasks, facts)
        case "gap":
            return state._replace(gaps=_with(state.gaps, float(entry.get("since") or at), at))
        case "paused":
            return state._replace(paused=because)
        case "waits":
            return state._replace(waits_until=float(entry.get("until") or 0.0), waits_because=because)
        case "phase":
            name, data = str(entry.get("name")), table(entry.get("data"))
            phase = Phase(at, asked=data)
            if entry.get("status") != "began":
                phase = state.phases.get(name, Phase(at))._replace(ended_at=at, data=data)
            return state._replace(phases={**state.phases, name: phase})
        case "host":
            host = RunHost(str(entry.get("provider") or ""), str(entry.get("state") or ""), at, because)
            return state._replace(hosts={**state.hosts, str(entry.get("name")): host})
        case "host_snapshot":
            return state._replace(prepared=str(entry.get("snapshot") or ""))
        case "concurrency":
            limit, quiet_until = int(entry.get("limit") or 1), float(entry.get("quiet_until") or 0.0)
            return state._replace(concurrency=Concurrency(limit, at, bool(entry.get("slow_start")), quiet_until))
        case "breaker":
            stage, signature, example = (str(entry.get(name) or "") for name in ("stage", "signature", "example"))
            return state._replace(trip=Cluster(stage, signature, example, tuple(map(str, entry.get("tasks") or ()))))
        case "stop":
            return state._replace(stopped_at=at)
        case "finished":
            return state._replace(finished={"at": entry.get("at"), **facts})
    return state


def _resumed(state: RunState, tasks: MutableMapping[str, TaskState], before: float, at: float) -> RunState:
    """Nobody looked since the last entry, and what was given up is tried again."""
    for name, task in tasks.items():
        if any(one.collect_tries or one.check_at is not None or one.release_tries for one in task.attempts):
            tasks[name] = task._replace(attempts=tuple(map(_tried_again, task.attempts)))
    gaps = (*state.gaps, (before, at)) if 0 < before < at else state.gaps
    return state._replace(
        resumed_at=at, trip=None, stopped_at=None, finished=None, gaps=gaps, paused="", waits_until=0.0
    )


def _tried_again(attempt: Attempt) -> Attempt:
    check_at = None if attempt.check_at is None else 0.0
    return attempt._replace(
        collect_tries=0, collect_at=0.0, check_tries=0, check_at=check_at, release_tries=0, release_at=0.0
    )


def _overridden(state: RunState, tasks: MutableMapping[str, TaskState], changed: Entry) -> RunState:
    """What a person changed: each value takes the place of the one that the run was begun with. Where agents are made
    otherwise from now on, those that have ended are not started again."""
    if "workers" in changed:
        for name, task in tasks.items():
            done = tuple(one._replace(restartable=one.goes_on and one.restartable) for one in task.attempts)
            tasks[name] = task._replace(attempts=done)
    facts = dict(state.facts)
    for name, value in changed.items():
        facts[name] = {**table(facts.get(name)), **value} if isinstance(value, dict) else value
    return state._replace(facts=facts)


def _of_task(state: RunState, tasks: MutableMapping[str, TaskState], entry: Entry, at: float) -> RunState:
    """The same for an entry about one task."""
    kind, name, number = entry.get("type"), str(entry.get("task")), entry.get("number")
    if kind == "task" and name not in tasks:
        tasks[name] = TaskState(name, str(entry.get("slug")), table(entry.get("data")))
    task = tasks.get(name)
    if task is None:
        return state
    if kind == "attempt" and number == len(task.attempts) + 1:
        host = str(entry.get("host") or "")
        attempt = Attempt(number, str(entry.get("agent")), at, bool(entry.get("to_be_told")), task.message, host=host)
        tasks[name] = task._replace(attempts=(*task.attempts, attempt), message="")
    elif kind == "retry" and task.status in (states.SETTLED, states.WAITING):
        tasks[name] = task._replace(tries_from=len(task.attempts), message=str(entry.get("message") or ""))
        return state._replace(finished=None)
    elif kind == "restarted":
        tasks[name] = _restarted(task, entry, at)
    elif isinstance(number, int) and 1 <= number <= len(task.attempts):
        before = task.attempts[number - 1]
        after = _of_attempt(before, entry, at)
        tasks[name] = task._replace(attempts=(*task.attempts[: number - 1], after, *task.attempts[number:]))
        if after.ended == "outcome" and not before.ended:
            return state._replace(concurrency=state.concurrency._replace(clean=state.concurrency.clean + 1))
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
        collected=None,
        earlier=last.collected or last.earlier,
        verdict=None,
        check_error="",
        released=False,
        **_GOES_ON,
    )
    return task._replace(attempts=(*task.attempts[:-1], again), tries_from=task.tries_from - int(asked), message="")


_GOES_ON: Mapping[str, Any] = {"ended": "", "because": "", "ended_at": None, "retry": False, "retry_at": 0.0}


def _of_attempt(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    error = str(entry.get("error") or "")
    match entry.get("type"):
        case "started":
            first = attempt.started_at or at
            return attempt._replace(started_at=first, agent_id=str(entry.get("agent_id")), restarting=False)
        case "told":
            return attempt._replace(told_at=at)
        case "state":
            return _seen(attempt, entry, at)
        case "warned":
            return attempt._replace(warned_at=at)
        case "stirred":
            return attempt._replace(stirred_at=at)
        case "nudged":
            return attempt._replace(nudged_at=at, nudges=attempt.nudges + 1)
        case "continued":
            return attempt._replace(continued_at=at, continues=attempt.continues + 1)
        case "returned":
            return attempt._replace(returned_at=at, returns=attempt.returns + 1)
        case "ended" if not attempt.ended:
            return _ended(attempt, entry, at)
        case "lost" if attempt.ended and attempt.collected is None:  # its host, with work that is not home
            return _ended(attempt, {**entry, "reason": states.HOST_LOST}, at)
        case "back" if attempt.ended:  # it was called lost, and is there again
            return attempt._replace(paused=_with(attempt.paused, attempt.ended_at, at), **_GOES_ON)
        case "collected":  # of an agent that is gone, what was collected before stays
            data = table(entry.get("data")) or attempt.earlier or {}
            unchecked: Mapping[str, Any] = {"verdict": None, "check_error": "", "check_tries": 0, "check_at": None}
            return attempt._replace(collected=data, collect_error=error, collect_at=0.0, **unchecked)
        case "uncollected":
            tries = attempt.collect_tries + 1
            return attempt._replace(collect_error=error, collect_tries=tries, collect_at=_later(entry))
        case "verdict":  # one with `again_at` is shown, and measured once more
            tries, again_at = attempt.check_tries + 1, _later(entry) if "again_at" in entry else None
            found = attempt._replace(verdict=table(entry.get("data")), check_error=error, checked_at=at)
            return found._replace(check_tries=tries, check_at=again_at)
        case "released":
            return attempt._replace(released=True, release_error="")
        case "unreleased":
            tries = attempt.release_tries + 1
            return attempt._replace(release_error=error, release_tries=tries, release_at=_later(entry))
        case "usage":  # totals of the attempt so far
            return attempt._replace(usage=AttemptUsage(*(entry.get(name) or 0 for name in AttemptUsage._fields)))
    return attempt


def _ended(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(
        ended=str(entry.get("reason")),
        because=str(entry.get("because") or ""),
        ended_at=at,
        restarting=False,
        restartable=attempt.restartable and entry.get("restartable") is not False,
        retry=bool(entry.get("retry")),
        retry_at=float(entry.get("retry_at") or 0.0),
    )


def _seen(attempt: Attempt, entry: Entry, at: float) -> Attempt:
    return attempt._replace(
        state=str(entry.get("state")),
        state_reason=str(entry.get("reason") or ""),
        state_at=at,
        limited_until=float(entry.get("until") or 0.0),
        paused=_with(attempt.paused, attempt.state_at, at) if waits(attempt) else attempt.paused,
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


def _later(entry: Entry) -> float:
    """When something is tried again; null is not before the next resume."""
    at = entry.get("again_at")
    return float(at) if isinstance(at, int | float) else math.inf


def _at(entry: Entry) -> float:
    try:
        return seconds_of(str(entry.get("at")))
    except ValueError:
        return 0.0
