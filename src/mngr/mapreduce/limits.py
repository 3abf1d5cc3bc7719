"""What a run may use: how many agents at once, how long each, how much money. Values only."""

from __future__ import annotations

from mngr.records import NamedTuple

FINISH, STOP = "finish", "stop"


class Limits(NamedTuple):
    """None is no limit. `deadline` is a point in time (seconds since 1970). `when_over` says what becomes of running
    agents when budget or deadline is reached: they `finish`, or they `stop` with their work collected."""

    max_agents: int = 10
    max_launching: int = 10
    max_collecting: int = 4
    max_checking: int = 2
    first_agents: int = 4
    round_seconds: float = 20.0

    timeout_seconds: float | None = 3600.0
    warn_seconds: float = 300.0
    stall_seconds: float | None = 900.0
    start_seconds: float = 120.0
    rest_seconds: float = 2.0
    settle_seconds: float = 30.0
    lost_seconds: float = 120.0
    vanished_seconds: float = 10.0
    rate_limit_grace_seconds: float = 120.0

    max_attempts: int = 3
    backoff_seconds: float = 5.0
    longest_backoff_seconds: float = 300.0

    budget_usd: float | None = None
    budget_tokens: int | None = None
    deadline: float | None = None
    when_over: str = FINISH

    breaker_tasks: int = 5
    breaker_share: float = 0.5

    keep_blocked: bool = False
