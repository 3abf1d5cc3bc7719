"""A talk with one agent: it is told what is missing, works, and is told again, until nothing is missing.

What is missing is measured here after every turn. What the agent says about it is not asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mngr import waiting
from mngr.actions.agent import Agent
from mngr.actions.create import extra_paths
from mngr.agents import launch, retry_time
from mngr.agents.reasons import is_rate_limit
from mngr.agents.state import BLOCKED, ENDED, WAITING
from mngr.fleet.fleet import Fleet

PASSED, OUT_OF_ROUNDS, OUT_OF_TIME, AGENT_ENDED = "passed", "out of rounds", "out of time", "agent ended"
AGENT_BLOCKED = "agent blocked"
BLOCKED_SECONDS = 120.0
_SECONDS_BETWEEN_LOOKS = 2.0
# A program that tries again by itself is given the time to.
_AFTER_LIMIT_SECONDS = 5.0


class AgentRequest(NamedTuple):
    """The agent to create, in the words of `Fleet.create`."""

    name: str
    type: str | None = None
    args: tuple[str, ...] = ()
    source: str = "."
    transfer: str | None = None
    unclean: str | None = None
    labels: Mapping[str, str] = {}
    uploads: tuple[tuple[str, str], ...] = ()
    permissions: str = ""
    allowed_commands: tuple[str, ...] = ()


class TurnVerdict(NamedTuple):
    """How much is missing, and what the agent is told about it."""

    missing: int
    message: str = ""


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
    wish: AgentRequest,
    prompt: str,
    verdict: Callable[[Agent], TurnVerdict],
    *,
    rounds: int,
    timeout: float,
    blocked_seconds: float = BLOCKED_SECONDS,
    tell: Callable[[str], None] = lambda text: None,
) -> Talked:
    """Create the agent, send it the prompt, and repeat until nothing is missing. Ends also after this many rounds or
    seconds, or when the agent is blocked for `blocked_seconds` and nobody helps it. The agent stays, with all its work,
    after an error or Ctrl-C too."""
    deadline = waiting.Deadline(timeout)
    agent = fleet.create(**wish._asdict(), extra_paths=extra_paths(fleet.local.settings))
    tell(f"`{agent.name}` is working; `mngr connect {agent.name}` shows it")
    turns: list[Turn] = []
    message = prompt
    while True:
        _say(fleet, agent, message)
        agent, over = _turn(fleet, agent, deadline, blocked_seconds, tell)
        found = verdict(agent)
        turns.append(Turn(len(turns) + 1, agent.state, found.missing))
        end = _end(agent, found, over, len(turns) >= rounds)
        if end:
            return Talked(agent, tuple(turns), end)
        tell(f"round {len(turns)} of {rounds}: {found.missing} missing; `{agent.name}` is told")
        message = found.message


def _end(agent: Agent, found: TurnVerdict, over: bool, last: bool) -> str:
    if not found.missing:
        return PASSED
    if agent.state in ENDED:
        return AGENT_ENDED
    if not over:
        return AGENT_BLOCKED if agent.state == BLOCKED else OUT_OF_TIME
    return OUT_OF_ROUNDS if last else ""


def _outcome_path(fleet: Fleet, agent: Agent) -> str:
    return os.path.join(launch.task_dir(agent.record, fleet.local.store.state_dir(agent.id)), "outcome.json")


def _say(fleet: Fleet, agent: Agent, message: str) -> None:
    """An outcome of an earlier turn goes first, so that the next one is seen."""
    outcome = _outcome_path(fleet, agent)
    if os.path.lexists(outcome):
        fleet.local.host.remove(outcome)
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
        if agent.state in (WAITING, *ENDED) or os.path.exists(_outcome_path(fleet, agent)):
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
