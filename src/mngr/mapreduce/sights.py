"""See the agents of a run: their states, whether they wrote an outcome, what they used. Changes nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

from mngr.actions import outcome
from mngr.actions import usage as spending
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents.kinds.driver import HOME
from mngr.agents.record import CorruptRecord
from mngr.agents.state import FAILED, STOPPED, UNKNOWN
from mngr.errors import MngrError
from mngr.mapreduce import naming
from mngr.mapreduce.ending import Sight
from mngr.mapreduce.state import Attempt, RunState, Usage
from mngr.records import NamedTuple

_SESSIONS = f"/{HOME}/sessions/"
# What no event tells (a process killed with its terminal) is looked for this often.
_SECONDS_BETWEEN_LOOKS = 5.0
# Some states are known only once they have lasted a while, and no event tells that they have.
_SETTLED_SECONDS = 1.0
# Looking may take this share of the time, so that agents that report without pause do not keep a core busy.
_SHARE_FOR_LOOKING = 0.2


class Looks(NamedTuple):
    """When the agents were looked at last, and whether there was news of one of them then. Without values: never."""

    began_at: float = -math.inf
    ended_at: float = -math.inf
    news: bool = False

    def is_old(self, now: float) -> bool:
        """Whether nothing should be decided any more from what was seen: noting and doing things takes time too."""
        return now >= self.ended_at + _SETTLED_SECONDS

    def due(self, now: float, *, news: bool) -> bool:
        """Whether to look again; `news` is whether an event told something since."""
        since = now - self.began_at
        if since >= _SECONDS_BETWEEN_LOOKS:
            return True
        settled = self.news and now >= self.ended_at + _SETTLED_SECONDS
        return (news or settled) and since >= (self.ended_at - self.began_at) / _SHARE_FOR_LOOKING


def of_run(fleet: Fleet, run: str) -> list[Agent]:
    """Every agent with the label of the run, those of other roles included, oldest first."""
    return [agent for agent in fleet.list().agents if agent.record.labels.get(naming.RUN) == run]


def intended(agents: Iterable[Agent], run: str, role: str) -> dict[str, Agent]:
    """The agents of this role by the name that their attempt gave them. Somebody may have renamed or cloned one: of
    several with the same labels, the oldest is the one that was made for the attempt."""
    found: dict[str, Agent] = {}
    for agent in agents:
        labels = agent.record.labels
        number = labels.get(naming.ATTEMPT, "")
        if labels.get(naming.ROLE) == role and number.isdecimal():
            found.setdefault(naming.agent_name(run, labels.get(naming.TASK, ""), int(number)), agent)
    return found


def look(fleet: Fleet, wanted: Mapping[str, str]) -> dict[str, Sight]:
    """The agents with these ids, by the names given here. One that does not exist is left out; one whose record cannot
    be read is UNKNOWN."""
    listing = fleet.list(only=set(wanted.values()))
    by_id = {agent.id: agent for agent in listing.agents}
    corrupt = [error.message for error in listing.errors if isinstance(error, CorruptRecord)]
    seen = {}
    for name, agent_id in wanted.items():
        if agent_id in by_id:
            seen[name] = sight(fleet, name, by_id[agent_id])
        elif reason := next((message for message in corrupt if agent_id in message), ""):
            seen[name] = Sight(name, agent_id, UNKNOWN, reason)
    return seen


def sight(fleet: Fleet, name: str, agent: Agent) -> Sight:
    record, status, pane = agent.record, agent.status, agent.pane
    vanished = pane is None and status.exit_code is None
    return Sight(
        agent=name,
        agent_id=agent.id,
        state=status.state,
        reason=status.reason,
        since=status.since,
        active_at=pane.active_at if pane is not None else 0.0,
        reports=record.reports,
        outcome=outcome.exists(fleet, agent),
        lost=vanished and (status.state == FAILED or (status.state == STOPPED and record.stopped_at is None)),
        half_made=vanished and record.started_at is None,
    )


def open_attempts(state: RunState) -> Iterable[tuple[str, Attempt]]:
    """Attempts whose agents still matter, each with the id of its task."""
    return ((task.id, a) for task in state.tasks.values() for a in task.attempts if not a.released)


def usage(fleet: Fleet, agent_id: str) -> Usage | None:
    """What the agent used since it was made; None when that cannot be read at the moment. What it wrote to a cache, it
    read and paid for."""
    try:
        found = spending.total(fleet, agent_id)
    except (MngrError, OSError):
        return None
    read = found.input_tokens + found.cache_write_tokens
    return Usage(read, found.output_tokens, found.cache_read_tokens, found.cost_usd or 0.0, found.unpriced)


def changed_ids(paths: Iterable[str]) -> set[str]:
    """The agents to which something happened, of all files that changed; recordings and transcripts say nothing."""
    found = set()
    for path in paths:
        directory, name = os.path.split(path)
        if name in ("events.jsonl", "agent.json"):
            found.add(os.path.basename(directory))
        elif _SESSIONS in path:
            found.add(os.path.basename(path.partition(_SESSIONS)[0]))
    return found
