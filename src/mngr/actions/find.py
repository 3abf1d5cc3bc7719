"""See all agents of the fleet at one moment, and pick some by name. Changes nothing."""

import time
from collections.abc import Collection, Sequence

from mngr.actions.agent import Agent, Listing
from mngr.actions.fleet import Fleet
from mngr.agents import state
from mngr.agents.record import Record
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.names import is_id, parse_address, suggest
from mngr.tools.tmux import Pane


def listing(fleet: Fleet, only: Collection[str] | None = None) -> Listing:
    """Every agent with its state, or those with these ids: one scan of a directory and one tmux call, however many
    there are. An agent whose record cannot be read is an error in the listing; a tmux that does not answer makes
    states UNKNOWN."""
    if not fleet.host.is_ours():
        return Listing([], [])
    records, corrupt = fleet.store.records(only)
    panes, trouble = _panes(fleet) if records else ({}, [])
    agents = [agent for record in records if (agent := _seen(fleet, record, panes)) is not None]
    return Listing(agents, [*corrupt, *trouble])


def agent(fleet: Fleet, agent_id: str) -> Agent:
    """One agent as it is now."""
    found = _seen(fleet, fleet.store.read(agent_id), _panes(fleet)[0])
    return found if found is not None else agent(fleet, agent_id)


def one(fleet: Fleet, word: str) -> Agent:
    """The agent with this name, id, or address."""
    return many(fleet, [word])[0]


def many(fleet: Fleet, words: Sequence[str]) -> list[Agent]:
    """Agents by name, id or address, each once, in the order given. All must exist."""
    ids = [word for word in words if is_id(word)]
    found = listing(fleet, ids if len(ids) == len(words) else None)
    if len(found.agents) < len(set(ids)) == len(words):
        found = listing(fleet)  # for an error that knows who is there
    by_key = {key: agent for agent in found.agents for key in (agent.name, agent.id)}
    chosen: dict[str, Agent] = {}
    for word in words:
        key = word if is_id(word) else parse_address(word).name
        host = None if is_id(word) else parse_address(word).host
        if key is None:
            raise UsageError(f"`{word}` names no agent", hint="`mngr list` shows the names")
        if key not in by_key or host not in (None, "local"):
            raise _unknown(key, host, found)
        chosen[by_key[key].id] = by_key[key]
    return list(chosen.values())


def explain(found: Agent) -> list[str]:
    """How the state was decided, a line each."""
    record, status = found.record, found.status
    lines = [f"{record.name} is {status.state}" + (f": {status.reason}" if status.reason else "")]
    lines.append(f"evidence: {status.evidence}")
    lines.append(
        f"kind: `{record.kind}` "
        + ("reports its own turns in its events" if record.reports else "is RUNNING while its process lives")
    )
    if found.pane is not None:
        lines.append(
            f"pane: {found.pane.pane_id} of session `{found.pane.session}`, process {found.pane.pid}, "
            + ("dead" if found.pane.dead else "alive")
        )
    else:
        lines.append(f"pane: none in session `{record.session}`")
    return lines


def _seen(fleet: Fleet, record: Record, panes: "dict[str, Pane] | None") -> Agent | None:
    """The agent of this record, or of the one that has taken its place; None if it was destroyed meanwhile."""
    found = _decided(fleet, record, panes)
    if panes is None or found.pane is not None or found.state != state.FAILED or found.status.exit_code is not None:
        return found
    # Whoever ends a session writes so into the record first, which may have been after we had read that.
    now = fleet.store.records([record.id])[0]
    if now == [record]:
        return found
    return _seen(fleet, now[0], _panes(fleet)[0]) if now else None


def _decided(fleet: Fleet, record: Record, panes: "dict[str, Pane] | None") -> Agent:
    pane = panes.get(record.id) if panes is not None else None
    facts = state.Facts(
        pane=pane,
        panes_known=panes is not None,
        events=fleet.store.events_since_start(record.id),
        boot_id=fleet.host.boot_id() if pane is None else "",
        creator_alive=record.started_at is None
        and record.creator is not None
        and bool(fleet.host.alive(dict([record.creator]))),
    )
    # One that is made for one task does nothing but work until it ends.
    status = state.decide(record, facts, from_events=record.reports and not record.one_shot)
    if record.driver and status.alive and pane is not None and not record.one_shot:
        from mngr.actions import driven

        status = driven.look(fleet, record, pane, status, facts.events)
    if status.state == state.WAITING and state.awaits_first_message(record, facts.events, time.time()):
        status = status._replace(state=state.RUNNING, reason="its first message is on its way")
    return Agent(record, status, pane)


def _panes(fleet: Fleet) -> "tuple[dict[str, Pane] | None, list[MngrError]]":
    try:
        return {pane.agent_id: pane for pane in fleet.tmux.panes()}, []
    except MngrError as error:
        return None, [error]


def _unknown(name: str, host: str | None, found: Listing) -> MngrError:
    names = [agent.name for agent in found.agents]
    if found.errors:
        return NotFoundError(
            f"no agent named `{name}` could be read",
            details="\n".join(error.message for error in found.errors),
            hint="repair what is named above, or `mngr list` to see the rest",
        )
    if name in names:
        return NotFoundError(f"no agent named `{name}` on `{host}`", hint=f"`{name}@local` is an agent on this machine")
    hint = suggest(name, names, "name") if names else "`mngr create NAME` makes one"
    if names:
        hint += f"; `mngr list` shows all {len(names)}" if hint else f"`mngr list` shows all {len(names)}"
    return NotFoundError(f"no agent named `{name}` on `{host or 'local'}`", hint=hint)
