"""How an attempt ends, judged from what is seen of its agent. Pure: no clock, disk or process."""

from __future__ import annotations

import math

from mngr.agents import state as states
from mngr.agents.limits import span
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.state import Attempt
from mngr.records import NamedTuple

OUTCOME = "outcome"  # it wrote its outcome and rests or has ended
NO_OUTCOME = "no-outcome"  # it rests or has ended, and wrote none, also after it was told to
CRASH = "crash"
BLOCKED = "blocked"
RATE_LIMIT = "rate-limit"
TIMEOUT = "timeout"
STALLED = "stalled"
LAUNCH = "launch"  # it could not be made, or never became ready
HOST_LOST = "host-lost"
STOPPED = "stopped"  # by a person
REASONS = (OUTCOME, NO_OUTCOME, CRASH, BLOCKED, RATE_LIMIT, TIMEOUT, STALLED, LAUNCH, HOST_LOST, STOPPED)
RETRIED = frozenset({LAUNCH, RATE_LIMIT, CRASH, HOST_LOST})

_RATE_LIMIT = "rate limit"
# After this long, an agent that was told to write its outcome and did not even begin a turn never will.
_DEAF_SECONDS = 30.0


class Sight(NamedTuple):
    """One agent as it was seen last. `active_at` is its last output. `lost` says that its end was not its own: the
    machine or its tmux went away. `half_made` says that its creation was interrupted before it ran."""

    agent: str
    agent_id: str
    state: str
    reason: str = ""
    since: float = 0.0
    active_at: float = 0.0
    reports: bool = True
    outcome: bool = False
    lost: bool = False
    half_made: bool = False

    @property
    def alive(self) -> bool:
        return self.state in states.ALIVE or self.state == states.UNKNOWN

    @property
    def rate_limited(self) -> bool:
        return self.state == states.BLOCKED and self.reason.startswith(_RATE_LIMIT)

    @property
    def limited_until(self) -> float:
        """When a rate-limited agent tries again, as it says itself."""
        return self.since + retry_after(self.reason)


class Ending(NamedTuple):
    reason: str
    because: str


class Judgement(NamedTuple):
    """What is due for an attempt now; `again_at` is the earliest moment at which more can be due without an event."""

    ending: Ending | None = None
    warn: bool = False
    nudge: bool = False
    again_at: float = math.inf


def judge(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    """Only for attempts that go on and whose agent was made."""
    found = _JUDGES[sight.state](attempt, sight, limits, now)
    if found.ending is not None or sight.state in states.ENDED:
        return found
    return _within_time(attempt, sight, limits, now, found)


def retry_after(reason: str) -> float:
    """The seconds in `rate limit: retry in 30 s`; 0 when it does not say."""
    for word in reason.removeprefix(_RATE_LIMIT).replace("s ", " ").split():
        try:
            return max(0.0, float(word.rstrip("s,;.")))
        except ValueError:
            continue
    return 0.0


def _ended(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    said = f" ({sight.reason})" if sight.reason else ""
    if sight.outcome:
        return Judgement(Ending(OUTCOME, f"it wrote its outcome and is {sight.state}{said}"))
    if sight.lost:
        # Somebody who destroys an agent ends its session first: what comes after tells the two apart.
        over_at = _since(attempt, sight, now) + limits.vanished_seconds
        ending = Ending(HOST_LOST, sight.reason or "it is gone") if now >= over_at else None
        return Judgement(ending, again_at=over_at)
    if sight.state == states.FAILED:
        return Judgement(Ending(CRASH, sight.reason or "it failed"))
    if sight.state == states.STOPPED:
        return Judgement(Ending(STOPPED, sight.reason or "somebody stopped it"))
    return Judgement(Ending(NO_OUTCOME, "it exited and wrote no outcome"))


def _waiting(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    if attempt.to_be_told and attempt.told_at is None:
        return Judgement()  # it waits for what we have to tell it
    if sight.outcome:
        return Judgement(Ending(OUTCOME, "it wrote its outcome and waits"))
    rested_at = sight.since + limits.rest_seconds
    if now < rested_at:
        return Judgement(again_at=rested_at)
    if attempt.nudged_at is None:
        return Judgement(nudge=True)
    deaf_at = attempt.nudged_at + _DEAF_SECONDS
    if sight.since <= attempt.nudged_at and now < deaf_at:
        return Judgement(again_at=deaf_at)
    return Judgement(Ending(NO_OUTCOME, "it waits and wrote no outcome, also after it was asked for it"))


def _blocked(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    if sight.outcome:
        return Judgement(Ending(OUTCOME, f"it wrote its outcome and is blocked ({sight.reason})"))
    if sight.rate_limited:
        over_at = sight.limited_until + limits.rate_limit_grace_seconds
        ending = Ending(RATE_LIMIT, f"{sight.reason}, and it did not go on in time") if now >= over_at else None
        return Judgement(ending, again_at=over_at)
    rested_at = sight.since + limits.rest_seconds
    if now < rested_at:
        return Judgement(again_at=rested_at)
    return Judgement(Ending(BLOCKED, sight.reason or "it is blocked and does not say why"))


def _running(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    last = max(sight.since, sight.active_at)
    again_at = math.inf
    if sight.outcome and not sight.reports:
        settled_at = last + limits.settle_seconds
        if now >= settled_at:
            because = f"it wrote its outcome and was quiet for {span(limits.settle_seconds)}"
            return Judgement(Ending(OUTCOME, because))
        again_at = settled_at
    if limits.stall_seconds is None:
        return Judgement(again_at=again_at)
    stalled_at = last + limits.stall_seconds
    if now >= stalled_at:
        return Judgement(Ending(STALLED, f"it runs, and said nothing for {span(limits.stall_seconds)}"))
    return Judgement(again_at=min(again_at, stalled_at))


def _starting(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    over_at = (attempt.started_at or attempt.intended_at) + limits.start_seconds
    ending = Ending(LAUNCH, f"it was not ready after {span(limits.start_seconds)}") if now >= over_at else None
    return Judgement(ending, again_at=over_at)


def _unknown(attempt: Attempt, sight: Sight, limits: Limits, now: float) -> Judgement:
    over_at = _since(attempt, sight, now) + limits.lost_seconds
    because = f"nothing is known of it for {span(limits.lost_seconds)}: {sight.reason}"
    return Judgement(Ending(HOST_LOST, because) if now >= over_at else None, again_at=over_at)


def _since(attempt: Attempt, sight: Sight, now: float) -> float:
    """When the ledger first knew this state, for states that do not say it themselves."""
    return attempt.state_at if attempt.state == sight.state and attempt.state_at is not None else now


_JUDGES = {
    states.STARTING: _starting,
    states.RUNNING: _running,
    states.WAITING: _waiting,
    states.BLOCKED: _blocked,
    states.UNKNOWN: _unknown,
    **dict.fromkeys(states.ENDED, _ended),
}


def _within_time(attempt: Attempt, sight: Sight, limits: Limits, now: float, found: Judgement) -> Judgement:
    if limits.timeout_seconds is None or attempt.started_at is None:
        return found
    over_at = attempt.started_at + limits.timeout_seconds
    if now >= over_at:
        return Judgement(Ending(TIMEOUT, f"it did not finish within {span(limits.timeout_seconds)}"))
    warn_at = over_at - limits.warn_seconds
    if limits.warn_seconds <= 0 or warn_at <= attempt.started_at or attempt.warned_at is not None:
        return found._replace(again_at=min(found.again_at, over_at))
    if now >= warn_at and sight.state in (states.RUNNING, states.WAITING, states.BLOCKED):
        return found._replace(warn=True, again_at=min(found.again_at, over_at))
    return found._replace(again_at=min(found.again_at, warn_at if now < warn_at else over_at))
