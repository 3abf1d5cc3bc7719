"""What a run may use: how many agents at once, how long each, how much money. Values only."""

from __future__ import annotations

from typing import NamedTuple

FINISH, STOP = "finish", "stop"


class RunLimits(NamedTuple):
    """None is no limit. `deadline` is a point in time (seconds since 1970). `when_over` says what becomes of running
    agents when budget or deadline is reached: they `finish`, or they `stop` with their work collected.

    Times for agents count only while somebody looked at them and they did not wait for a rate limit: when the
    orchestrator did nothing for `gap_seconds`, the machine slept, or its process was stopped. An agent whose
    limit names no end waits `limit_seconds`, then twice as long each time. A limit that lasts longer than
    `long_limit_seconds` is taken to be everybody's."""

    max_agents: int = 10
    max_launching: int = 10
    max_collecting: int = 4
    max_checking: int = 2
    first_agents: int = 4
    round_seconds: float = 20.0

    timeout_seconds: float | None = 3600.0
    warn_seconds: float = 300.0
    stall_seconds: float | None = 900.0
    stall_grace_seconds: float = 120.0
    start_seconds: float = 120.0
    gap_seconds: float = 30.0
    rest_seconds: float = 2.0
    settle_seconds: float = 30.0
    lost_seconds: float = 120.0
    vanished_seconds: float = 10.0
    checkpoint_seconds: float = 120.0

    limit_seconds: float = 60.0
    limit_grace_seconds: float = 15.0
    longest_limit_seconds: float = 1800.0
    long_limit_seconds: float = 600.0

    max_attempts: int = 3
    max_restarts: int = 1
    max_nudges: int = 3
    max_returns: int = 2
    max_continues: int = 30
    backoff_seconds: float = 5.0
    longest_backoff_seconds: float = 300.0
    max_collects: int = 4
    max_checks: int = 2
    max_stops: int = 4

    budget_usd: float | None = None
    budget_tokens: int | None = None
    deadline: float | None = None
    when_over: str = FINISH

    breaker_tasks: int = 5
    breaker_share: float = 0.5

    def backoff(self, tries: int) -> float:
        """The pause after this many failures: each is twice as long as the one before it."""
        return float(min(self.backoff_seconds * 2.0 ** max(0, tries - 1), self.longest_backoff_seconds))

    @property
    def warns_before(self) -> float:
        """How long before its time is over an agent is warned."""
        return min(self.warn_seconds, (self.timeout_seconds or 0.0) / 2)
