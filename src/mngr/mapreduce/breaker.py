"""The circuit breaker: when many tasks fail in the same way, more agents would only cost money. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mngr.mapreduce import ending
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.state import Attempt, RunState, TaskState
from mngr.records import NamedTuple

LAUNCH, WORK, COLLECT, CHECK = "launch", "work", "collect", "check"
# Rate limits have an answer of their own, and what a person stopped did not fail.
_HARMLESS = frozenset({"", ending.OUTCOME, ending.RATE_LIMIT, ending.STOPPED})
_VARIABLE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\S*/\S*|\b[0-9a-f]{7,}\b|\d+(\.\d+)?")
_LONGEST = 200


class Cluster(NamedTuple):
    """Tasks whose last attempt failed alike; `example` is how one of them put it."""

    stage: str
    signature: str
    example: str
    tasks: tuple[str, ...]


def signature(text: str) -> str:
    """A failure's text without what differs from task to task: names, paths, numbers."""
    return " ".join(_VARIABLE.sub("…", text.lower()).split())[:_LONGEST]


def clusters(state: RunState, tasks: Iterable[str]) -> list[Cluster]:
    """Failures since the present orchestrator began, biggest cluster first."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for task in _known(state, tasks):
        for stage, text in _failures(task, state.resumed_at):
            found.setdefault((stage, signature(text)), []).append((task.id, text))
    made = [
        Cluster(stage, word, members[0][1], tuple(task for task, _ in members))
        for (stage, word), members in found.items()
    ]
    return sorted(made, key=lambda one: (-len(one.tasks), one.stage, one.signature))


def tripped(state: RunState, tasks: Iterable[str], limits: Limits) -> Cluster | None:
    """The cluster that is big enough to stop for: so many tasks, and such a share of all that came to an end."""
    names = list(tasks)
    ends = sum(1 for task in _known(state, names) if _recent(task, state.resumed_at) is not None)
    for cluster in clusters(state, names):
        count = len(cluster.tasks)
        if limits.breaker_tasks > 0 and count >= limits.breaker_tasks and count >= limits.breaker_share * ends:
            return cluster
    return None


def _known(state: RunState, tasks: Iterable[str]) -> Iterator[TaskState]:
    return (state.tasks[task] for task in tasks if task in state.tasks)


def _recent(task: TaskState, since: float) -> Attempt | None:
    """Its last attempt that ended, unless all that happened to it was before, or a person asked for another one after
    it."""
    for attempt in reversed(task.attempts[task.tries_from :]):
        if attempt.ended:
            last_at = max(attempt.ended_at or 0.0, attempt.checked_at or 0.0)
            return attempt if last_at >= since or attempt.collect_tries else None
    return None


def _failures(task: TaskState, since: float) -> Iterator[tuple[str, str]]:
    attempt = _recent(task, since)
    if attempt is None:
        return
    if attempt.ended not in _HARMLESS and (attempt.ended_at or 0.0) >= since:
        yield (LAUNCH if attempt.ended == ending.LAUNCH else WORK), f"{attempt.ended}: {attempt.because}"
    if attempt.collect_error:
        yield COLLECT, attempt.collect_error
    found = attempt.verdict or {}
    failure = attempt.check_error or str(found.get("failure") or "")
    if failure and (attempt.checked_at or since) >= since:
        yield CHECK, failure
    if found.get("blocked") and attempt.ended != ending.BLOCKED:
        yield WORK, f"{ending.BLOCKED}: {found['blocked']}"
