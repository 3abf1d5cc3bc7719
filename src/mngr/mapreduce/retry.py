"""Whether a task gets another attempt, and when: by the class of the reason, never by hope. Pure."""

from __future__ import annotations

from mngr.mapreduce.ending import RATE_LIMIT, RETRIED
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.state import TaskState
from mngr.records import NamedTuple


class Retry(NamedTuple):
    wanted: bool
    at: float = 0.0


def after(task: TaskState, reason: str, limits: Limits, *, now: float, quiet_until: float) -> Retry:
    """Each further attempt waits twice as long as the one before it; after a rate limit, at least until the quiet
    time is over."""
    if reason not in RETRIED or task.tries >= limits.max_attempts:
        return Retry(False)
    return Retry(True, max(now + limits.backoff(task.tries), quiet_until if reason == RATE_LIMIT else 0.0))
