"""Wait until agents are in a state. Driven by their events; tmux is asked now and then for what no event tells."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from mngr import waiting
from mngr.actions import find
from mngr.actions.agent import Agent, Listing
from mngr.actions.fleet import Fleet
from mngr.agents.kinds.driver import HOME
from mngr.agents.state import BLOCKED, DONE, ENDED, FAILED, STOPPED, WAITING
from mngr.errors import MngrError, TimedOut

# Without a wish: until it stops working, for whatever reason.
RESTING = frozenset({WAITING, BLOCKED, DONE, FAILED, STOPPED})
_SECONDS_BETWEEN_LOOKS = 2.0
# What a program with a driver shows or leaves unsaid is no event.
_SECONDS_WITH_DRIVER = 0.5
# Of all files of an agent, those that say what state it is in.
_TELLING = ("/events.jsonl", "/agent.json")
_SESSIONS = f"/{HOME}/sessions/"  # where programs keep their own word on it


def until(
    fleet: Fleet, ids: Sequence[str], states: Collection[str], *, any_of: bool, timeout: float | None
) -> list[Agent]:
    """Return the agents once all (or any) of them are in one of the states. Raises TimedOut, or MngrError as soon as
    one has ended in another state and so will never get there."""
    deadline = waiting.Deadline(timeout)
    recent = waiting.Deadline(0)
    agents: list[Agent] = []
    driven = any(record.driver for record in fleet.store.records(ids)[0])
    every = _SECONDS_WITH_DRIVER if driven else _SECONDS_BETWEEN_LOOKS
    for changed in waiting.changes(
        [fleet.store.state_dir(agent_id) for agent_id in ids], deadline=deadline, at_least_every=every
    ):
        if changed and not recent.passed and not any(map(_tells, changed)):
            continue
        recent = waiting.Deadline(every)
        agents = _look(fleet, ids, {agent.id: agent.name for agent in agents})
        there = [agent for agent in agents if agent.state in states]
        if len(there) == len(agents) or (any_of and there):
            return there if any_of else agents
        never = [agent for agent in agents if agent.state in ENDED and agent.state not in states]
        if never and (not any_of or len(never) == len(agents)):
            what = "; ".join(
                f"`{agent.name}` is {agent.state}" + (f" ({agent.status.reason})" if agent.status.reason else "")
                for agent in never
            )
            raise MngrError(f"{what}, and will not become {' or '.join(sorted(states))} by itself")
    waited = ", ".join(f"`{agent.name}` is {agent.state}" for agent in agents if agent.state not in states)
    raise TimedOut(f"after {timeout:g} s {waited}")


def watch(fleet: Fleet) -> Iterator[Listing]:
    """The listing now, and again after every change, for ever."""
    fleet.host.prepare()
    paths = [os.path.join(fleet.host.dir, "agents")]
    for _ in waiting.changes(paths, deadline=waiting.Deadline(None), at_least_every=_SECONDS_BETWEEN_LOOKS):
        yield find.listing(fleet)


def _tells(path: str) -> bool:
    return path.endswith(_TELLING) or _SESSIONS in path


def _look(fleet: Fleet, ids: Sequence[str], names: Mapping[str, str]) -> list[Agent]:
    found = {agent.id: agent for agent in find.listing(fleet, ids).agents}
    gone = [agent_id for agent_id in ids if agent_id not in found]
    if gone:
        named = ", ".join(f"`{names.get(agent_id, agent_id)}`" for agent_id in gone)
        raise MngrError(f"{named} {'was' if len(gone) == 1 else 'were'} destroyed meanwhile")
    return [found[agent_id] for agent_id in ids]
