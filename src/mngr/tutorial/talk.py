"""A talk with one agent: it is told what is missing, works, and is told again, until nothing is missing.

What is missing is measured here after every turn. What the agent says about it is not asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from mngr.actions import outcome
from mngr.agent import retry_time
from mngr.agent.reasons import is_rate_limit
from mngr.agent.state import BLOCKED, ENDED, WAITING
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system import waiting

PASSED, OUT_OF_ROUNDS, OUT_OF_TIME, AGENT_ENDED = "passed", "out of rounds", "out of time", "agent ended"
AGENT_BLOCKED = "agent blocked"
BLOCKED_SECONDS = 120.0
_SECONDS_BETWEEN_LOOKS = 2.0
# A program that tries again by itself is given the time to.
_AFTER_LIMIT_SECONDS = 5.0


class Turn(NamedTuple):
    """One turn of the agent: the state it was in at the end, and how much was missing then."""

    number: int
    state: str
    missing: int


class Talked(NamedTuple):
    agent: Agent
    turns: tuple[Turn, ...]
    end: str

    @property
    def ok(self) -> bool:
        return self.end == PASSED


def hold(
    fleet: Fleet,
    agent: Agent,
    prompt: str,
    look: Callable[[Agent], tuple[int, str]],
    *,
    rounds: int,
    timeout: float,
    tell: Callable[[str], None],
    blocked_seconds: float = BLOCKED_SECONDS,
) -> Talked:
    """Send the agent the prompt, and repeat until nothing is missing: `look` returns how much is, and what the agent is
    told about it. Ends also after this many rounds or seconds, or when the agent is blocked for `blocked_seconds` and
    nobody helps it. The agent stays, with all its work, after an error or Ctrl-C too."""
    deadline = waiting.Deadline(timeout)
    tell(f"`{agent.name}` is working; `mngr connect {agent.name}` shows it")
    turns: list[Turn] = []
    message = prompt
    while True:
        _say(fleet, agent, message)
        agent, over = _turn(fleet, agent, deadline, blocked_seconds, tell)
        missing, message = look(agent)
        turns.append(Turn(len(turns) + 1, agent.state, missing))
        end = _end(agent, missing, over, len(turns) >= rounds)
        if end:
            return Talked(agent, tuple(turns), end)
        tell(f"round {len(turns)} of {rounds}: {missing} missing; `{agent.name}` is told")


def _end(agent: Agent, missing: int, over: bool, last: bool) -> str:
    if not missing:
        return PASSED
    if agent.state in ENDED:
        return AGENT_ENDED
    if not over:
        return AGENT_BLOCKED if agent.state == BLOCKED else OUT_OF_TIME
    return OUT_OF_ROUNDS if last else ""


def _say(fleet: Fleet, agent: Agent, message: str) -> None:
    """An outcome of an earlier turn goes first, so that the next one is seen."""
    outcome.remove(fleet.local, agent.id)
    agent.message(message)


def _turn(
    fleet: Fleet, agent: Agent, deadline: waiting.Deadline, blocked_seconds: float, tell: Callable[[str], None]
) -> tuple[Agent, bool]:
    """Wait for the end of its turn, and tell whether it came. An agent that reports its states rests then: it has taken
    the message before. Every agent may say so by writing its outcome file. One that is blocked is waited for a while,
    since a person may help it; after a rate limit it is told to go on when the time has come."""
    reason, patience = "", deadline
    for _ in waiting.changes(
        [fleet.local.store.state_dir(agent.id)], deadline=deadline, at_least_every=_SECONDS_BETWEEN_LOOKS
    ):
        agent = agent.now()
        if agent.state in (WAITING, *ENDED) or outcome.exists(fleet.local, agent.id):
            return agent, True
        if agent.state != BLOCKED:
            reason = ""
            continue
        over = retry_time.until(agent.status.reason, agent.status.since) if is_rate_limit(agent.status.reason) else None
        if over is not None and time.time() > over + _AFTER_LIMIT_SECONDS:
            return agent, True
        if agent.status.reason != reason:
            reason = agent.status.reason
            patience = deadline if over is not None else waiting.Deadline(blocked_seconds)
            tell(f"`{agent.name}` is blocked ({reason}): `mngr connect {agent.name}` to help it")
        if patience.passed:
            return agent, False
    return agent, False
