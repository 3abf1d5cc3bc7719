"""Choose agents to stop or destroy in bulk, by age, idleness and state. Chooses only."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mngr.actions.agent import Agent
from mngr.agents.record import seconds_of


class CleanupFilter(NamedTuple):
    """All that is set must hold. What is not known of an agent (how long it is idle) does not hold."""

    older_than: float | None = None
    idle_for: float | None = None
    states: Collection[str] = ()


def choose(agents: list[Agent], wanted: CleanupFilter, now: float) -> list[Agent]:
    return [agent for agent in agents if _fits(agent, wanted, now)]


def age_seconds(agent: Agent, now: float) -> float:
    """Since its creation."""
    return max(0.0, now - seconds_of(agent.record.created_at))


def idle_seconds(agent: Agent, now: float) -> float | None:
    """Since its last output, or since its end. None when nobody knows."""
    if agent.status.alive:
        return max(0.0, now - agent.pane.active_at) if agent.pane is not None else None
    return max(0.0, now - agent.status.since) if agent.status.since and agent.state != "UNKNOWN" else None


def _fits(agent: Agent, wanted: CleanupFilter, now: float) -> bool:
    if wanted.states and agent.state not in wanted.states:
        return False
    if wanted.older_than is not None and age_seconds(agent, now) < wanted.older_than:
        return False
    if wanted.idle_for is None:
        return True
    idle = idle_seconds(agent, now)
    return idle is not None and idle >= wanted.idle_for
