"""The rules of a run: when its budget is spent, whether a task is tried again, how many agents run at once, and when so
many tasks failed in the same way that the run pauses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mngr.mapreduce import attempt_end
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.state import HOST_LOST, Attempt, AttemptUsage, Cluster, Concurrency, RunState, TaskState
from mngr.mapreduce.task_table import table
from mngr.signature import signature

BUDGET, DEADLINE = "budget", "deadline"
# The stages at which the circuit breaker groups failures.
LAUNCH, WORK, COLLECT, CHECK = "launch", "work", "collect", "check"
# Agents that meet the same rate limit do so within moments of each other: one episode, one cut.
EPISODE_SECONDS = 30.0
_SHARE_OF_BEGUN = 0.05
# Rate limits have an answer of their own, and what a person stopped did not fail.
_HARMLESS = frozenset({"", attempt_end.OUTCOME, attempt_end.RATE_LIMIT, attempt_end.STOPPED})


def spent(state: RunState, limits: RunLimits, now: float) -> tuple[str, str] | None:
    """`BUDGET` or `DEADLINE` and the reason, once the run has used what it may use."""
    limited = limits.budget_usd is not None or limits.budget_tokens is not None
    used = state.usage if limited else AttemptUsage()
    if limits.budget_usd is not None and used.cost_usd >= limits.budget_usd:
        return BUDGET, f"${used.cost_usd:.2f} of ${limits.budget_usd:.2f} are spent"
    if limits.budget_usd is not None and used.unpriced:
        unpriced = f"{used.unpriced} answers have no known price, so the limit of ${limits.budget_usd:.2f}"
        return BUDGET, f"{unpriced} cannot be enforced: set `[prices]`, or limit tokens"
    if limits.budget_tokens is not None and used.tokens >= limits.budget_tokens:
        return BUDGET, f"{used.tokens} of {limits.budget_tokens} tokens are used"
    if limits.deadline is not None and now >= limits.deadline:
        return DEADLINE, "the deadline has passed"
    return None


def retry_at(task: TaskState, reason: str, limits: RunLimits, *, now: float, quiet_until: float) -> float | None:
    """When the task gets another attempt after one that ended for this reason; None when it gets none. Each attempt
    waits twice as long as the one before it; after a rate limit, at least until the quiet time is over."""
    if reason not in attempt_end.RETRIED or task.tries >= limits.max_attempts:
        return None
    return max(now + limits.backoff(task.tries), quiet_until if reason == attempt_end.RATE_LIMIT else 0.0)


class ConcurrencyChange(NamedTuple):
    to: Concurrency
    because: str


def concurrency_change(
    present: Concurrency, limits: RunLimits, *, now: float, running: int, wanted: int, limited_until: float
) -> ConcurrencyChange | None:
    """The change that is due now, if any: a few agents at first, more while all goes well, half at a rate limit.
    `running` agents hold a place, `wanted` tasks wait for one; `limited_until` is the latest moment at which an agent
    that is rate-limited now will try again, 0 when none is."""
    most = max(1, limits.max_agents)
    if present.limit == 0:
        first = min(most, max(1, limits.first_agents))
        return _changed(present, Concurrency(first, now), "the run begins with a few")
    if limited_until:
        if limited_until <= max(now, present.quiet_until):
            return None  # the limit is over, or was answered already
        because = f"an agent is rate-limited for {limited_until - now:.0f} s"
        if now < present.quiet_until:  # the same episode, which takes longer
            return _changed(present, Concurrency(present.limit, now, False, limited_until), because)
        half, quiet_until = max(1, present.limit // 2), max(limited_until, now + EPISODE_SECONDS)
        return _changed(present, Concurrency(half, now, False, quiet_until), because)
    if present.limit > most:
        return _changed(present, present._replace(limit=most, changed_at=now, clean=0), f"at most {most} are allowed")
    if present.limit == most or not wanted or now < present.quiet_until:
        return None
    clean = present.clean >= present.limit
    if not clean and (running < present.limit or now - present.changed_at < limits.round_seconds):
        return None
    bigger = min(most, present.limit * 2 if present.slow_start else present.limit + max(1, present.limit // 10))
    done = f"{present.clean} attempts ended with an outcome" if clean else ""
    because = f"{done or f'{running} agents ran for {limits.round_seconds:g} s'} and none was rate-limited"
    return _changed(present, present._replace(limit=bigger, changed_at=now, clean=0), because)


def _changed(before: Concurrency, to: Concurrency, because: str) -> ConcurrencyChange:
    step = "" if to.limit == before.limit else f"{before.limit or 'none'} to {to.limit}: "
    return ConcurrencyChange(to, step + because)


def clusters(state: RunState, tasks: Iterable[str]) -> list[Cluster]:
    """Failures since the present orchestrator began, biggest cluster first."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for ends in _ends(state, tasks):
        for stage, word, task, text in ends.failures:
            found.setdefault((stage, word), []).append((task, text))
    made = [
        Cluster(stage, word, members[0][1], tuple(task for task, _ in members))
        for (stage, word), members in found.items()
    ]
    return sorted(made, key=lambda one: (-len(one.tasks), one.stage, one.signature))


def tripped(state: RunState, tasks: Iterable[str], limits: RunLimits) -> Cluster | None:
    """The cluster that opens the circuit breaker: enough tasks, enough of all that came to an end, and more than the
    first few of a thousand that began together, since what fails ends soon."""
    if limits.breaker_tasks <= 0:
        return None
    names = frozenset(tasks)
    parts = _ends(state, names)
    ends, begun = sum(part.total for part in parts), sum(part.begun for part in parts)
    for cluster in clusters(state, names):
        count = len(cluster.tasks)
        if count >= max(limits.breaker_tasks, limits.breaker_share * ends, _SHARE_OF_BEGUN * begun):
            return cluster
    return None


class _Ends(NamedTuple):
    """How many of some tasks began and came to an end, and their failures: stage, signature, task and text of each."""

    begun: int
    total: int
    failures: tuple[tuple[str, str, str, str], ...]


def _ends(state: RunState, tasks: Iterable[str]) -> list[_Ends]:
    names = frozenset(tasks)
    return [part.computed(_ends_of, names, state.resumed_at) for part in table(state.tasks).parts]


def _ends_of(tasks: Sequence[TaskState], names: frozenset[str], since: float) -> _Ends:
    ended = [task for task in tasks if task.id in names and _recent(task, since) is not None]
    failed = ((task, stage, text) for task in ended for stage, text in _failures(task, since))
    begun = sum(bool(task.attempts) for task in tasks if task.id in names)
    return _Ends(
        begun, len(ended), tuple((stage, signature(text, any_name=True), task.id, text) for task, stage, text in failed)
    )


def _recent(task: TaskState, since: float) -> Attempt | None:
    """The last attempt that ended since then, unless a person asked for another one after it."""
    for attempt in reversed(task.attempts[task.tries_from :]):
        if attempt.ended:
            last_at = max(attempt.ended_at or 0.0, attempt.checked_at or 0.0)
            return attempt if last_at >= since or attempt.collect_tries else None
    return None


def _failures(task: TaskState, since: float) -> Iterator[tuple[str, str]]:
    attempt = _recent(task, since)
    if attempt is None:
        return
    lost = attempt.ended == HOST_LOST and attempt.host  # one machine, not the task: it is retried elsewhere
    if attempt.ended not in _HARMLESS and not lost and (attempt.ended_at or 0.0) >= since:
        yield (LAUNCH if attempt.ended == attempt_end.LAUNCH else WORK), f"{attempt.ended}: {attempt.because}"
    if attempt.collect_error:
        yield COLLECT, attempt.collect_error
    found = attempt.verdict or {}
    failure = attempt.check_error or str(found.get("failure") or "")
    if failure and (attempt.checked_at or since) >= since:
        yield CHECK, failure
    if found.get("blocked") and attempt.ended != attempt_end.BLOCKED:
        yield WORK, f"{attempt_end.BLOCKED}: {found['blocked']}"
