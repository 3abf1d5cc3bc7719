"""Wait until agents are in a state. Driven by their events; tmux is asked now and then for what no event tells."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.state import BLOCKED, DONE, ENDED, FAILED, STOPPED, WAITING
from mngr.errors import MngrError, TimedOut
from mngr.programs.driver import HOME
from mngr.system import waiting

# Without a state that is asked for: until it stops working, for whatever reason.
RESTING = frozenset({WAITING, BLOCKED, DONE, FAILED, STOPPED})
_SECONDS_BETWEEN_LOOKS = 2.0
# The state of a program with a driver can change without an event.
_SECONDS_WITH_DRIVER = 0.5
# How often a watched site says that it is there, and how finely changes are gathered for another machine.
_BEAT_SECONDS = 10.0
_STEP_SECONDS = 0.1
_SESSIONS = f"/{HOME}/sessions/"  # where programs keep their own word on it


def until(
    site: Site, ids: Sequence[str], states: Collection[str], *, any_of: bool, timeout: float | None
) -> list[AgentView]:
    """Return the agents once all (or any) of them are in one of the states. Raises TimedOut, or MngrError as soon as
    one has ended in another state and so will never get there."""
    deadline = waiting.Deadline(timeout)
    recent = waiting.Deadline(0)
    agents: list[AgentView] = []
    driven = any(record.spec.driver for record in site.store.records(ids)[0])
    every = _SECONDS_WITH_DRIVER if driven else _SECONDS_BETWEEN_LOOKS
    for changed in waiting.changes(
        [site.store.state_dir(agent_id) for agent_id in ids], deadline=deadline, at_least_every=every
    ):
        if changed and not recent.passed and not changed_ids(changed):
            continue
        recent = waiting.Deadline(every)
        agents = _look(site, ids, {agent.id: agent.name for agent in agents})
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


def watch(site: Site) -> Iterator[tuple[list[AgentView], list[MngrError]]]:
    """The listing now, and again after every change, for ever."""
    site.host.prepare()
    paths = [os.path.join(site.host.dir, "agents")]
    for _ in waiting.changes(paths, deadline=waiting.Deadline(None), at_least_every=_SECONDS_BETWEEN_LOOKS):
        yield find.listing(site)


def changed_agents(site: Site) -> Iterator[list[str]]:
    """The ids of agents to which something happened, after every change, for ever; an empty list now and then says
    that the site is there."""
    site.host.prepare()
    paths = [os.path.join(site.host.dir, "agents")]
    beats = waiting.changes(paths, deadline=waiting.Deadline(None), at_least_every=_BEAT_SECONDS, step=_STEP_SECONDS)
    for paths_changed in beats:
        found = changed_ids(paths_changed)
        if found or not paths_changed:
            yield sorted(found)


def changed_ids(paths: Iterable[str]) -> set[str]:
    """The agents whose state may be another, of all files that changed; recordings and transcripts say nothing."""
    found = set()
    for path in paths:
        directory, name = os.path.split(path)
        if name in ("events.jsonl", "agent.json"):
            found.add(os.path.basename(directory))
        elif _SESSIONS in path:
            found.add(os.path.basename(path.partition(_SESSIONS)[0]))
    return found


def _look(site: Site, ids: Sequence[str], names: Mapping[str, str]) -> list[AgentView]:
    agents, errors = find.listing(site, ids)
    found = {agent.id: agent for agent in agents}
    gone = [agent_id for agent_id in ids if agent_id not in found]
    if gone:
        for error in errors:
            raise error
        named = ", ".join(f"`{names.get(agent_id, agent_id)}`" for agent_id in gone)
        raise MngrError(f"{named} {'was' if len(gone) == 1 else 'were'} destroyed meanwhile")
    return [found[agent_id] for agent_id in ids]
