"""See all agents of a site at one moment, and find some by name. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent import state
from mngr.agent.record import Record
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.names import is_id, parse_address, suggest
from mngr.system.tmux import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A program shows a dialog at once or not at all; before, its screen is being drawn.
_DRAWN_SECONDS = 1.0
_QUIET_SECONDS = 3.0
_LINES = 12
_ENDING_SECONDS = 2.0


def listing(site: Site, only: Collection[str] | None = None) -> tuple[list[AgentView], list[MngrError]]:
    """Every agent with its state, or those with these ids: one scan of a directory and one tmux call, however many
    there are. An agent whose record cannot be read is an error; a tmux that does not answer makes states UNKNOWN."""
    if not site.host.is_ours():
        return [], []
    records, corrupt = site.store.records(only)
    if not records:
        return [], [*corrupt]
    terminals = _Terminals(site)
    views = [view for record in records if (view := _view(site, record, terminals)) is not None]
    return views, [*corrupt, *terminals.errors]


def agent(site: Site, agent_id: str) -> AgentView:
    """One agent as it is now."""
    view = _view(site, site.store.read(agent_id), _Terminals(site))
    return view if view is not None else agent(site, agent_id)


def records(site: Site, words: Sequence[str]) -> list[Record]:
    """The records of agents by name, id or address, each once, in the order given. All must exist. Does not look at
    their states."""
    ids = [word for word in words if is_id(word)]
    ours = site.host.is_ours()
    known, corrupt = site.store.records(ids if len(ids) == len(words) else None) if ours else ([], [])
    if ours and len(known) < len(set(ids)) == len(words):
        known, corrupt = site.store.records()  # for an error that knows which agents there are
    by_key = {key: record for record in known for key in (record.name, record.id)}
    chosen: dict[str, Record] = {}
    for word in words:
        address = None if is_id(word) else parse_address(word)
        key, host = (word, None) if address is None else (address.name, address.host)
        if key is None:
            raise UsageError(f"`{word}` does not name an agent", hint="`mngr list` shows the names")
        if key not in by_key or host not in (None, "local"):
            raise _unknown(key, host, [record.name for record in known], corrupt)
        chosen[by_key[key].id] = by_key[key]
    return list(chosen.values())


def explain(found: AgentView) -> list[str]:
    """How the state was decided, a line each."""
    record, status = found.record, found.status
    lines = [f"{record.name} is {status.state}" + (f": {status.reason}" if status.reason else "")]
    lines.append(f"evidence: {status.evidence}")
    lines.append(
        f"kind: `{record.spec.kind}` "
        + ("reports its own turns in its events" if record.spec.reports else "is RUNNING while its process lives")
    )
    if found.pane is not None:
        lines.append(
            f"pane: {found.pane.pane_id} of session `{found.pane.session}`, process {found.pane.pid}, "
            + ("dead" if found.pane.dead else "alive")
        )
    else:
        lines.append(f"pane: none in session `{record.life.session}`")
    return lines


class _Terminals:
    """What tmux shows at one moment: the pane of each agent, or None when it does not answer."""

    def __init__(self, site: Site) -> None:
        self._tmux = site.tmux
        self._asked = 0
        self._others: dict[str, tuple[str, int]] | None = None
        self.panes: dict[str, Pane] | None = None
        self.errors: list[MngrError] = []
        try:
            self.panes = {pane.agent_id: pane for pane in site.tmux.panes()}
        except MngrError as error:
            self.errors.append(error)

    def other_server(self, agent_id: str) -> tuple[str, int] | None:
        """The tmux server in which an agent without a pane runs, if that is not the one that was asked."""
        if self._others is None:
            self._asked = next((pane.server for pane in (self.panes or {}).values()), 0)
            with suppress(MngrError):  # then every server counts as another one
                self._asked = self._asked or self._tmux.server_pid()
            self._others = _other_servers(self._asked)
        if agent_id in self._others and not self._asked:  # it may be a server that is just ending
            from mngr.system.waiting import wait_until

            def ended() -> bool:
                self._others = _other_servers(self._asked)
                return agent_id not in self._others

            wait_until(ended, timeout=_ENDING_SECONDS, every=0.05)
        return self._others.get(agent_id)


def _other_servers(asked: int) -> dict[str, tuple[str, int]]:
    """By agent, what runs in a tmux server that is not the one that was asked."""
    from mngr.system.process_table import tmux_of_agents

    return {agent: place for agent, place in tmux_of_agents().items() if place[1] != asked}


def _view(site: Site, record: Record, terminals: _Terminals) -> AgentView | None:
    """The agent of this record, or of the one that has taken its place; None if it was destroyed meanwhile."""
    view = _decided(site, record, terminals)
    if (
        terminals.panes is None
        or view.pane is not None
        or view.state != state.FAILED
        or view.status.exit_code is not None
    ):
        return view
    # Whoever ends a session writes so into the record first, which may have been after we had read that.
    now = site.store.records([record.id])[0]
    if now == [record]:
        return _decided(site, record, terminals, terminals.other_server(record.id))
    return _view(site, now[0], _Terminals(site)) if now else None


def _decided(
    site: Site, record: Record, terminals: _Terminals, other_server: tuple[str, int] | None = None
) -> AgentView:
    panes, life = terminals.panes, record.life
    pane = panes.get(record.id) if panes is not None else None
    events, trouble = _events(site, record)
    facts = state.Facts(
        pane=pane,
        panes_known=panes is not None,
        tmux_error="; ".join(error.message for error in terminals.errors),
        tmux_hint="; ".join(filter(None, (error.hint for error in terminals.errors))),
        events=events,
        events_error=trouble,
        boot_id=site.host.boot_id() if pane is None else "",
        creator_alive=life.started_at is None
        and life.creator is not None
        and bool(site.host.alive(dict([life.creator]))),
        elsewhere=pane is None and life.stopped_at is None and site.host.is_elsewhere(life.machine, life.boot_id),
        other_server=other_server,
    )
    # One that is made for one task does nothing but work until it ends.
    status = state.decide(record, facts, from_events=record.spec.reports and not record.spec.one_shot)
    if record.spec.driver and status.alive and pane is not None and not record.spec.one_shot:
        status = _as_its_driver_says(site, record, pane, status, facts.events)
    if status.state == state.WAITING and state.awaits_first_message(record, facts.events, time.time()):
        status = status._replace(state=state.RUNNING, reason="its first message is on its way")
    return AgentView(record, status, pane)


def _events(site: Site, record: Record) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Its events since its start, and why they cannot be read: its program may have put something else there."""
    try:
        return site.store.events_since_start(record.id), ""
    except OSError as error:
        return (), f"its events cannot be read: `{error.filename}` is {error.strerror}"


def _as_its_driver_says(
    site: Site, record: Record, pane: Pane, status: state.Status, events: Sequence[Mapping[str, Any]]
) -> state.Status:
    """What its events say, corrected by its driver and by what it shows when it does not get ready. Where that is not
    possible, the evidence says why: what is wrong with one agent must not keep the others from being seen."""
    import re

    from mngr.programs import driver

    try:
        known = driver.find(record.spec.driver)
        place = site.place(record, pane)
        seen = known.look(place, status, events)
    except Exception as error:  # noqa: BLE001 (whatever the program wrote, or when it ended at this moment)
        return status._replace(evidence=f"what its program says itself cannot be read: {error}; {status.evidence}")
    age = time.time() - seen.since
    if seen.state != state.STARTING or age < _DRAWN_SECONDS:
        return seen
    try:
        screen = driver.plain(place.screen())
    except MngrError:
        return seen  # it ended at this moment
    line = driver.joined(screen)
    for pattern, reason in known.dialogs:
        if re.search(pattern, screen) or re.search(pattern, line):
            return seen._replace(state=state.BLOCKED, reason=reason, evidence=f"screen: it shows `{pattern}`")
    if age < known.ready_seconds or time.time() - pane.active_at < _QUIET_SECONDS:
        return seen
    shown = [line.strip() for line in screen.split("\n") if line.strip(" │─╭╮╰╯|+-")]
    reason = "not ready, and shows: " + " / ".join(shown[-_LINES:]) if shown else "not ready, and shows nothing"
    return seen._replace(state=state.BLOCKED, reason=reason[:1000], evidence="screen: nothing that its driver knows")


def _unknown(name: str, host: str | None, names: list[str], errors: Sequence[MngrError]) -> MngrError:
    if errors:
        return NotFoundError(
            f"no agent named `{name}` could be read",
            details="\n".join(error.message for error in errors),
            hint="repair what is named above, or `mngr list` to see the rest",
        )
    if name in names:
        return NotFoundError(f"no agent named `{name}` on `{host}`", hint=f"`{name}@local` is an agent on this machine")
    hint = suggest(name, names, "name") if names else "`mngr create NAME` makes one"
    if names:
        hint += f"; `mngr list` shows all {len(names)}" if hint else f"`mngr list` shows all {len(names)}"
    return NotFoundError(f"no agent named `{name}` on `{host or 'local'}`", hint=hint)
