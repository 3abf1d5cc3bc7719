"""How an attempt ends, judged from what is seen of its agent. Pure: no clock, disk or process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mngr.agent import reasons, retry_time
from mngr.agent import state as states
from mngr.agent.limits import span
from mngr.mapreduce.ledger_fold import waits
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.state import HOST_LOST, Attempt, Interval

OUTCOME = "outcome"  # it wrote its outcome and rests or has ended
NO_OUTCOME = "no-outcome"  # it rests or has ended, and wrote none, also after it was told to
CRASH = "crash"
BLOCKED = "blocked"
RATE_LIMIT = "rate-limit"
TIMEOUT = "timeout"
STALLED = "stalled"
LAUNCH = "launch"  # it could not be made, or never became ready
STOPPED = "stopped"  # by a person
REASONS = (OUTCOME, NO_OUTCOME, CRASH, BLOCKED, RATE_LIMIT, TIMEOUT, STALLED, LAUNCH, HOST_LOST, STOPPED)
RETRIED = frozenset({LAUNCH, RATE_LIMIT, CRASH, HOST_LOST})
# After these, the agent itself is started again, with its conversation.
RESTARTED = frozenset({CRASH, RATE_LIMIT})

# What an agent is told. A warning comes before its time is over, a nudge when it rests without an outcome.
# An outcome that cannot be read is returned.
WARNING, NUDGE, STUCK, CONTINUE, RETURN = "warning", "nudge", "stuck", "continue", "return"
# After this long, an agent that was told something and did not even begin a turn never will.
_DEAF_SECONDS = 60.0
# So long after a resume, for what an earlier orchestrator was about to tell: it may have been killed before it did.
_UNTOLD_SECONDS = 10.0
# What a terminal shows so soon after a message is the message.
_ECHO_SECONDS = 30.0


class Observation(NamedTuple):
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
        return self.state == states.BLOCKED and reasons.is_rate_limit(self.reason)

    @property
    def locked_out(self) -> bool:
        """Whether a person has to see to its account before it can continue."""
        return self.state == states.BLOCKED and reasons.is_account(self.reason)

    @property
    def limited_until(self) -> float | None:
        """When a rate-limited agent can continue, as its reason says, counted from when it was said; None when it does
        not say."""
        return retry_time.until(self.reason, self.since)


class Ending(NamedTuple):
    reason: str
    because: str


class AttemptJudgement(NamedTuple):
    """What is due for an attempt now: to end it, or to tell it something; `needs` is what a person has to see to before
    it can continue. `again_at` is the earliest moment at which more can be due without an event."""

    ending: Ending | None = None
    tell: str = ""
    needs: str = ""
    again_at: float = math.inf


def judge(
    attempt: Attempt,
    observed: Observation,
    limits: RunLimits,
    now: float,
    *,
    gaps: tuple[Interval, ...] = (),
    resumed_at: float = 0.0,
) -> AttemptJudgement:
    """Only for attempts that go on and whose agent was made. `gaps` are intervals in which nobody looked."""
    case = _Case(attempt, observed, limits, now, gaps, resumed_at)
    found = _JUDGES[observed.state](case)
    waiting = observed.state == states.UNKNOWN or observed.rate_limited or observed.locked_out
    if found.ending is not None or observed.state in states.ENDED or waiting:
        return found
    return _within_time(case, found)


def limited_until(attempt: Attempt, observed: Observation, limits: RunLimits) -> float:
    """When a rate-limited agent can continue: as it said first, or, when it does not say, each time later. One that was
    told to continue in vain is given time too."""
    said = observed.limited_until
    if said is None:
        said = observed.since + _patience(attempt, limits)
    if waits(attempt):
        said = max(said, attempt.limited_until)
    if attempt.continued_at is not None and attempt.continued_at >= observed.since:
        said = max(said, attempt.continued_at + _patience(attempt, limits))
    return said


def _patience(attempt: Attempt, limits: RunLimits) -> float:
    return float(min(limits.limit_seconds * 2.0 ** min(attempt.continues, 20), limits.longest_limit_seconds))


def elapsed(since: float, now: float, left_out: tuple[Interval, ...]) -> float:
    """The seconds between two moments without those in these intervals, which may overlap."""
    total, end = max(0.0, now - since), since
    if not left_out:
        return total
    for start, stop in sorted(left_out):
        start, stop = max(start, end), min(stop, now)
        if stop > start:
            total -= stop - start
            end = stop
    return total


class _Case(NamedTuple):
    attempt: Attempt
    observed: Observation
    limits: RunLimits
    now: float
    gaps: tuple[Interval, ...]
    resumed_at: float

    def due(self, since: float, seconds: float, left_out: tuple[Interval, ...] = ()) -> float:
        """When this many seconds will have passed in which somebody looked."""
        return self.now + seconds - elapsed(since, self.now, (*self.gaps, *left_out))

    def ends(self, at: float, reason: str, because: str) -> AttemptJudgement:
        """The attempt is over at this moment, and goes on until then."""
        over = self.now >= at
        return AttemptJudgement(Ending(reason, because)) if over else AttemptJudgement(again_at=at)

    def since(self) -> float:
        """When the ledger first knew this state, for states that do not say it themselves."""
        known = self.attempt.state == self.observed.state and self.attempt.state_at is not None
        return self.attempt.state_at or self.now if known else self.now

    def unheard_until(self, told_at: float | None) -> float:
        """Until when something that was told may still be on its way; 0 when it was answered, or never told."""
        if told_at is None or self.observed.since > told_at:
            return 0.0
        lost_at = self.resumed_at + _UNTOLD_SECONDS if told_at < self.resumed_at else math.inf
        return min(told_at + _DEAF_SECONDS, lost_at)


def _ended(case: _Case) -> AttemptJudgement:
    observed = case.observed
    said = f" ({observed.reason})" if observed.reason else ""
    if observed.outcome:
        return AttemptJudgement(Ending(OUTCOME, f"it wrote its outcome and is {observed.state}{said}"))
    if observed.lost:
        # Somebody who destroys an agent ends its session first: what comes after tells the two apart.
        return case.ends(case.due(case.since(), case.limits.vanished_seconds), CRASH, observed.reason or "it is gone")
    if observed.state == states.FAILED:
        return AttemptJudgement(Ending(CRASH, observed.reason or "it failed"))
    if observed.state == states.STOPPED:
        return AttemptJudgement(Ending(STOPPED, observed.reason or "somebody stopped it"))
    return AttemptJudgement(Ending(NO_OUTCOME, "it exited and wrote no outcome"))


def _waiting(case: _Case) -> AttemptJudgement:
    attempt, observed, now = case.attempt, case.observed, case.now
    if attempt.to_be_told and attempt.told_at is None:
        return AttemptJudgement()  # it waits for what we have to tell it
    if observed.outcome:
        return case.ends(case.unheard_until(attempt.returned_at), OUTCOME, "it wrote its outcome and waits")
    again_at = max(
        observed.since + case.limits.rest_seconds,
        case.unheard_until(attempt.nudged_at),
        case.unheard_until(attempt.continued_at),
        case.unheard_until(attempt.returned_at),
    )
    if now < again_at:
        return AttemptJudgement(again_at=again_at)
    if attempt.restarted_at is not None and (attempt.continued_at or 0.0) < attempt.restarted_at:
        return AttemptJudgement(tell=CONTINUE)
    if attempt.nudges < case.limits.max_nudges:
        return AttemptJudgement(tell=NUDGE)
    times = "once" if attempt.nudges == 1 else f"{attempt.nudges} times"
    return AttemptJudgement(Ending(NO_OUTCOME, f"it waits and wrote no outcome, although it was asked for it {times}"))


def _blocked(case: _Case) -> AttemptJudgement:
    attempt, observed, now = case.attempt, case.observed, case.now
    if observed.outcome:
        return AttemptJudgement(Ending(OUTCOME, f"it wrote its outcome and is blocked ({observed.reason})"))
    if observed.rate_limited:
        return _limited(case)
    if observed.locked_out:
        if observed.since < case.resumed_at and (attempt.continued_at or 0.0) < case.resumed_at:
            return AttemptJudgement(tell=CONTINUE)  # a person resumed the run, so that they saw to it
        unheard = case.unheard_until(attempt.continued_at)
        return AttemptJudgement(again_at=unheard) if now < unheard else AttemptJudgement(needs=observed.reason)
    because = observed.reason or "it is blocked and does not say why"
    return case.ends(observed.since + case.limits.rest_seconds, BLOCKED, because)


def _limited(case: _Case) -> AttemptJudgement:
    attempt, limits = case.attempt, case.limits
    due_at = limited_until(attempt, case.observed, limits) + limits.limit_grace_seconds
    if case.now < due_at:
        return AttemptJudgement(again_at=due_at)
    if attempt.continues < limits.max_continues:
        return AttemptJudgement(tell=CONTINUE)
    because = f"{case.observed.reason}, also after it was told to continue {attempt.continues} times"
    return AttemptJudgement(Ending(RATE_LIMIT, because))


def _running(case: _Case) -> AttemptJudgement:
    attempt, observed, limits, now = case.attempt, case.observed, case.limits, case.now
    last = max(observed.since, observed.active_at)
    again_at = math.inf
    if observed.outcome and not observed.reports:
        settled_at = last + limits.settle_seconds
        if now >= settled_at:
            because = f"it wrote its outcome and was quiet for {span(limits.settle_seconds)}"
            return AttemptJudgement(Ending(OUTCOME, because))
        again_at = settled_at
    if limits.stall_seconds is None:
        return AttemptJudgement(again_at=again_at)
    asked_at = attempt.stirred_at
    if asked_at is None or last > asked_at + _ECHO_SECONDS:
        stalled_at = case.due(last, limits.stall_seconds)
        if now >= stalled_at:
            return AttemptJudgement(tell=STUCK)
        return AttemptJudgement(again_at=min(again_at, stalled_at))
    over_at = case.due(asked_at, min(limits.stall_seconds, limits.stall_grace_seconds))
    because = f"it said nothing for {span(limits.stall_seconds)}, and nothing when it was asked"
    found = case.ends(over_at, STALLED, because)
    return found._replace(again_at=min(again_at, found.again_at))


def _starting(case: _Case) -> AttemptJudgement:
    attempt = case.attempt
    begun_at = max(attempt.started_at or attempt.intended_at, attempt.restarted_at or 0.0)
    seconds = case.limits.start_seconds
    return case.ends(case.due(begun_at, seconds), LAUNCH, f"it was not ready after {span(seconds)}")


def _unknown(case: _Case) -> AttemptJudgement:
    if case.observed.lost:
        return AttemptJudgement(Ending(HOST_LOST, f"its host is gone: {case.observed.reason}"))
    seconds = case.limits.lost_seconds
    unheard = f"`{case.attempt.host}` did not answer" if case.attempt.host else "nothing is known of it"
    because = f"{unheard} for {span(seconds)}: {case.observed.reason}"
    return case.ends(case.due(case.since(), seconds), HOST_LOST, because)


_JUDGES: Mapping[str, Callable[[_Case], AttemptJudgement]] = {
    states.STARTING: _starting,
    states.RUNNING: _running,
    states.WAITING: _waiting,
    states.BLOCKED: _blocked,
    states.UNKNOWN: _unknown,
    **dict.fromkeys(states.ENDED, _ended),
}


def _within_time(case: _Case, found: AttemptJudgement) -> AttemptJudgement:
    """Nobody is ended for its time who was not warned as long before as the limits say."""
    attempt, limits, now = case.attempt, case.limits, case.now
    if limits.timeout_seconds is None or attempt.started_at is None:
        return found
    over_at = case.due(attempt.started_at, limits.timeout_seconds, attempt.paused)
    warns = limits.warns_before
    if warns > 0 and attempt.warned_at is None:
        warn_at = over_at - warns
        if now >= warn_at and case.observed.state != states.STARTING:
            return found._replace(tell=WARNING)
        return found._replace(again_at=min(found.again_at, warn_at))
    if attempt.warned_at is not None:
        over_at = max(over_at, case.due(attempt.warned_at, warns, attempt.paused))
    if now >= over_at:
        return AttemptJudgement(Ending(TIMEOUT, f"it did not finish within {span(limits.timeout_seconds)}"))
    return found._replace(again_at=min(found.again_at, over_at))
