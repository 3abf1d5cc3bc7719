"""What a ledger says about its run, as values; `fold` makes them out of its entries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mngr.mapreduce.task_table import table

# Where a task is.
WAITING = "waiting"  # for its first attempt, or for its next one
LAUNCHING = "launching"  # the intent is written; the agent may exist or not
RUNNING = "running"
COLLECTING = "collecting"  # the attempt has ended; what it made is not here yet
CHECKING = "checking"
SETTLED = "settled"
HOST_LOST = "host-lost"  # of all reasons, the one after which the agent may come back
STATUSES = (WAITING, LAUNCHING, RUNNING, COLLECTING, CHECKING, SETTLED)


class AttemptUsage(NamedTuple):
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


Interval = tuple[float, float]


class Attempt(NamedTuple):
    """One agent's try at a task. `ended` is the reason (see `attempt_end`), empty while it goes on; `because` is the
    same in words. `released` says that its agent was stopped. What did not happen yet is None.

    An agent that ended early may be started again: that is the same attempt, `restarted_at` that moment, `restarting`
    holds until its process is there, `restarts` counts those that count as tries. `restartable` is False once it
    cannot, or must not, be started again. `paused` are the intervals that do not count as its working time.
    `earlier` is what was collected before it was started again. `host` is where the agent is: empty is this machine.

    What failed and is tried again has a `..._tries` and a `..._at`: 0 is now, infinity is not before the next resume.
    """

    number: int
    agent: str
    intended_at: float
    to_be_told: bool = False
    message: str = ""
    agent_id: str = ""
    started_at: float | None = None
    told_at: float | None = None
    state: str = ""
    state_reason: str = ""
    state_at: float | None = None
    limited_until: float = 0.0
    warned_at: float | None = None
    stirred_at: float | None = None
    nudged_at: float | None = None
    nudges: int = 0
    continued_at: float | None = None
    continues: int = 0
    returned_at: float | None = None
    returns: int = 0
    restarted_at: float | None = None
    restarting: bool = False
    restarts: int = 0
    restartable: bool = True
    paused: tuple[Interval, ...] = ()
    ended: str = ""
    because: str = ""
    ended_at: float | None = None
    retry: bool = False
    retry_at: float = 0.0
    collected: Mapping[str, Any] | None = None
    earlier: Mapping[str, Any] | None = None
    collect_error: str = ""
    collect_tries: int = 0
    collect_at: float = 0.0
    verdict: Mapping[str, Any] | None = None
    check_error: str = ""
    checked_at: float | None = None
    check_tries: int = 0
    check_at: float | None = None
    released: bool = False
    release_error: str = ""
    release_tries: int = 0
    release_at: float = 0.0
    usage: AttemptUsage = AttemptUsage()
    host: str = ""

    @property
    def goes_on(self) -> bool:
        return not self.ended

    @property
    def given_up(self) -> bool:
        """Collecting or checking failed too often: the next resume tries again."""
        if self.collected is None:
            return self.collect_at == math.inf
        return self.check_at == math.inf


class TaskState(NamedTuple):
    """`tries_from` counts the attempts before a person asked for more: those do not count against the limit. `message`
    is what that person has to say to the next attempt."""

    id: str
    slug: str
    data: Mapping[str, Any]
    attempts: tuple[Attempt, ...] = ()
    tries_from: int = 0
    message: str = ""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def verdict(self) -> Mapping[str, Any]:
        """That of its last attempt; empty without one."""
        return (self.last.verdict if self.last else None) or {}

    @property
    def claim(self) -> Mapping[str, Any]:
        """The outcome that was collected of its last attempt; empty without one."""
        return ((self.last.collected if self.last else None) or {}).get("outcome") or {}

    @property
    def status(self) -> str:
        last = self.last
        if last is None or self.tries_from == len(self.attempts):
            return WAITING
        if last.goes_on:
            return LAUNCHING if last.started_at is None or last.restarting else RUNNING
        if last.agent_id and last.collected is None and not (last.ended == HOST_LOST and last.retry):
            return COLLECTING
        if last.retry:
            return WAITING
        if last.agent_id and (last.verdict is None or last.check_at is not None):
            return CHECKING
        return SETTLED

    @property
    def over(self) -> bool:
        """Settled, with no agent left to be stopped."""
        return self.status == SETTLED and all(attempt.released or not attempt.agent_id for attempt in self.attempts)

    @property
    def tries(self) -> int:
        """Attempts that count against the limit."""
        counted = self.attempts[self.tries_from :]
        return len(counted) + sum(attempt.restarts for attempt in counted)

    @property
    def retry_at(self) -> float:
        """Before this moment no further attempt begins."""
        last = self.last
        return last.retry_at if last is not None and last.retry and self.tries else 0.0

    @property
    def usage(self) -> AttemptUsage:
        return _total([attempt.usage for attempt in self.attempts])


class Phase(NamedTuple):
    """`data` is what its end wrote down, `asked` what its beginning did; `ended_at` is None while it is not over."""

    began_at: float
    ended_at: float | None = None
    data: Mapping[str, Any] = {}
    asked: Mapping[str, Any] = {}


class Cluster(NamedTuple):
    """Tasks that failed in the same way at the same stage; `example` is the failure of one of them."""

    stage: str
    signature: str
    example: str
    tasks: tuple[str, ...]


class Concurrency(NamedTuple):
    """How many agents may run at once; 0 before the run has a limit. During `slow_start`, until the first rate limit,
    the limit doubles instead of growing by one. Nothing is launched before `quiet_until`. `clean` counts attempts that
    ended with an outcome since the last change."""

    limit: int
    changed_at: float = 0.0
    slow_start: bool = True
    quiet_until: float = 0.0
    clean: int = 0


class RunHost(NamedTuple):
    """Another machine of a run. `because` says why it is lost or does not answer, `since` when `state` began."""

    provider: str
    state: str
    since: float
    because: str = ""


class RunState(NamedTuple):
    """`facts` is what the run was begun with, `prepared` a snapshot of its first host. `trip` is the open breaker.
    `resumed_at` is when the present orchestrator took over, 0 for the first. `finished` is the last summary; going on
    after it clears it. Commands and decisions are read from the ledger itself. `gaps` are intervals in which nobody
    looked at the agents. `paused` is what a person has to see to before any agent can continue; until `waits_until` all
    agents wait for a limit that is over then."""

    facts: Mapping[str, Any] = {}
    began_at: float = 0.0
    resumed_at: float = 0.0
    phases: Mapping[str, Phase] = {}
    hosts: Mapping[str, RunHost] = {}
    prepared: str = ""
    tasks: Mapping[str, TaskState] = {}
    concurrency: Concurrency = Concurrency(0)
    trip: Cluster | None = None
    gaps: tuple[Interval, ...] = ()
    paused: str = ""
    waits_until: float = 0.0
    waits_because: str = ""
    stopped_at: float | None = None
    finished: Mapping[str, Any] | None = None
    last_at: float = 0.0

    @property
    def usage(self) -> AttemptUsage:
        return _total([part.computed(_used) for part in table(self.tasks).parts])

    def counts(self) -> dict[str, int]:
        """How many tasks are where, every status named."""
        found = dict.fromkeys(STATUSES, 0)
        for part in table(self.tasks).parts:
            for status, count in part.computed(_counted).items():
                found[status] += count
        return found


def _used(tasks: Sequence[TaskState]) -> AttemptUsage:
    return _total([task.usage for task in tasks])


def _counted(tasks: Sequence[TaskState]) -> Counter[str]:
    return Counter(task.status for task in tasks)


def _total(parts: Sequence[AttemptUsage]) -> AttemptUsage:
    return AttemptUsage(*map(sum, zip(*parts, strict=True)))
