"""How many agents may run at once: a few at first, more while all goes well, half at a rate limit. Pure."""

from __future__ import annotations

from mngr.mapreduce.limits import Limits
from mngr.records import NamedTuple


class Concurrency(NamedTuple):
    """`limit` is 0 before the run has one. `slow_start` holds until the first rate limit: then it doubles instead of
    growing by one. Nothing is launched before `quiet_until`. `clean` counts attempts that ended with an outcome since
    the last change."""

    limit: int
    changed_at: float = 0.0
    slow_start: bool = True
    quiet_until: float = 0.0
    clean: int = 0


class Change(NamedTuple):
    to: Concurrency
    because: str


NONE = Concurrency(0)
# Agents that meet the same rate limit do so within moments of each other: one episode, one cut.
EPISODE_SECONDS = 30.0


def with_clean_end(now: Concurrency) -> Concurrency:
    return now._replace(clean=now.clean + 1)


def change(
    at_present: Concurrency, limits: Limits, *, now: float, running: int, wanted: int, limited_until: float
) -> Change | None:
    """What changes now, if anything. `running` agents hold a place, `wanted` tasks wait for one; `limited_until` is the
    latest moment at which an agent that is rate-limited now will try again, 0 when none is."""
    most = max(1, limits.max_agents)
    if at_present.limit == 0:
        return _to(at_present, min(most, max(1, limits.first_agents)), now, True, 0.0, "the run begins with a few")
    if limited_until:
        if limited_until <= max(now, at_present.quiet_until):
            return None  # it is over, or was answered already
        because = f"an agent is rate-limited for {limited_until - now:.0f} s"
        if now < at_present.quiet_until:  # the same episode, which takes longer
            return _to(at_present, at_present.limit, now, False, limited_until, because)
        half = max(1, at_present.limit // 2)
        return _to(at_present, half, now, False, max(limited_until, now + EPISODE_SECONDS), because)
    if at_present.limit > most:
        return _to(at_present, most, now, at_present.slow_start, at_present.quiet_until, f"at most {most} are allowed")
    if at_present.limit == most or not wanted or now < at_present.quiet_until:
        return None
    full_round = running >= at_present.limit and now - at_present.changed_at >= limits.round_seconds
    if at_present.clean < at_present.limit and not full_round:
        return None
    bigger = min(most, at_present.limit * 2 if at_present.slow_start else at_present.limit + 1)
    because = (
        f"{at_present.clean} attempts ended with an outcome and none was rate-limited"
        if at_present.clean >= at_present.limit
        else f"{running} agents ran for {limits.round_seconds:g} s and none was rate-limited"
    )
    return _to(at_present, bigger, now, at_present.slow_start, at_present.quiet_until, because)


def _to(before: Concurrency, limit: int, now: float, slow_start: bool, quiet_until: float, because: str) -> Change:
    changed = Concurrency(limit, now, slow_start, quiet_until)
    return Change(changed, because if limit == before.limit else f"{before.limit or 'none'} to {limit}: {because}")
