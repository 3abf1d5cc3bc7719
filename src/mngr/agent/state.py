"""The one true state of an agent, decided from its record, its pane and its events. Pure: no clock, disk or process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mngr.agent.record import Record, seconds_of
from mngr.named_tuples import NamedTuple
from mngr.system.tmux import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STARTING = "STARTING"
RUNNING = "RUNNING"
WAITING = "WAITING"
BLOCKED = "BLOCKED"
DONE = "DONE"
FAILED = "FAILED"
STOPPED = "STOPPED"
UNKNOWN = "UNKNOWN"
STATES = (STARTING, RUNNING, WAITING, BLOCKED, DONE, FAILED, STOPPED, UNKNOWN)
ALIVE = frozenset({STARTING, RUNNING, WAITING, BLOCKED})
ENDED = frozenset({DONE, FAILED, STOPPED})
_FIRST_MESSAGE_SECONDS = 120.0
_LATEST = 1e11
_LONGEST_REASON, _LONGEST_ID = 1000, 100
NOT_KNOWN = 0.0  # a point in time that nobody saw


class Status(NamedTuple):
    state: str
    reason: str
    since: float
    evidence: str
    exit_code: int | None = None
    signal: int | None = None
    hint: str = ""

    @property
    def alive(self) -> bool:
        return self.state in ALIVE

    @property
    def sound(self) -> bool:
        """Whether it says what can be: for a status that another machine sent."""
        return self.state in STATES and 0 <= self.since < _LATEST


class Facts(NamedTuple):
    """What was seen of one agent at one moment. `panes_known` is False when tmux did not answer, for the reason
    `tmux_error`; `events_error` says why the events could not be read. `elsewhere` says that its process is, or was, on
    another machine with this state directory. `other_server` is a tmux server that its processes are in, and that is
    not the one that was asked: its socket and its process."""

    pane: Pane | None
    panes_known: bool
    events: Sequence[Mapping[str, Any]]
    boot_id: str
    creator_alive: bool
    events_error: str = ""
    tmux_error: str = ""
    tmux_hint: str = ""
    elsewhere: bool = False
    other_server: tuple[str, int] | None = None


def decide(record: Record, facts: Facts, *, from_events: bool) -> Status:
    """`from_events` says that this kind reports its own turns; without, a live process is RUNNING."""
    started = _seconds(record.life.started_at) or _seconds(record.life.created_at) or 0.0
    last_exit = next((event for event in reversed(facts.events) if event.get("type") == "exited"), None)
    alive = facts.pane is not None and not facts.pane.dead and last_exit is None
    if record.life.stopped_at is not None and not alive:  # `stop` writes it down before it ends the process
        return Status(
            STOPPED, record.life.stop_reason, _seconds(record.life.stopped_at) or started, "record: `stopped_at` is set"
        )
    if not facts.panes_known:
        reason = f"tmux did not answer: {facts.tmux_error}" if facts.tmux_error else "tmux did not answer"
        return Status(UNKNOWN, reason, started, "tmux: the query failed", hint=facts.tmux_hint)
    if facts.events_error:
        if alive and facts.pane is not None:
            return Status(RUNNING, facts.events_error, started, _process(facts.pane))
        return Status(UNKNOWN, facts.events_error, started, "events: they could not be read")
    if last_exit is not None:
        at = _seconds(last_exit.get("timestamp")) or started
        code = last_exit.get("exit_code")
        known = code if isinstance(code, int) else None
        return _ended(known, None, at, "events: an `exited` event since its start")
    if facts.pane is not None:
        if not facts.pane.dead:
            return _alive(facts, started, from_events)
        evidence = f"tmux: pane {facts.pane.pane_id} is dead"
        return _ended(facts.pane.exit_code, facts.pane.signal, facts.pane.died_at or started, evidence)
    if facts.elsewhere:
        return _on_another_machine(record, started)
    if record.life.started_at is None and facts.creator_alive:
        return Status(STARTING, "being created", started, "record: not started, its creator is alive")
    if facts.other_server is not None:
        return _in_another_server(*facts.other_server, started)
    if record.life.started_at is None:
        return Status(FAILED, "its creation was interrupted", started, "record: not started, its creator is gone")
    if record.life.boot_id and facts.boot_id and record.life.boot_id != facts.boot_id:
        return Status(STOPPED, "the machine restarted", NOT_KNOWN, "record: another boot id, and no pane")
    return Status(FAILED, "its tmux session is gone", NOT_KNOWN, "tmux: no pane, and events: no `exited`")


def _on_another_machine(record: Record, started: float) -> Status:
    machine = record.life.machine
    return Status(
        UNKNOWN,
        f"it was started on another machine, `{machine}`",
        started,
        f"record: machine `{machine}`, and no pane here",
        hint=f"do this on `{machine}`; if that is gone for good, remove `machines/{machine}` in the state directory",
    )


def _in_another_server(socket: str, pid: int, started: float) -> Status:
    """Its session may be there, and the server's socket is gone, or somewhere else."""
    return Status(
        UNKNOWN,
        f"its processes run in another tmux server, process {pid}, with the socket `{socket}`",
        started,
        f"processes: in the tmux server {pid}; tmux: no pane in the server that was asked",
        hint=f"`kill -USR1 {pid}` makes a socket again that was deleted; `tmux -S {socket} ls` shows what is there",
    )


def _alive(facts: Facts, started: float, from_events: bool) -> Status:
    pane = facts.pane
    assert pane is not None
    process = _process(pane)
    if not from_events:
        return Status(RUNNING, "", started, process)
    for event in reversed(facts.events):
        state = event.get("state")
        if event.get("type") == "state" and state in (RUNNING, WAITING, BLOCKED):
            reason = str(event.get("reason") or "")[:_LONGEST_REASON]
            return Status(
                state,
                reason,
                _seconds(event.get("timestamp")) or started,
                f"events: {str(event.get('event_id', 'a state event'))[:_LONGEST_ID]}; {process}",
            )
    return Status(STARTING, "not ready yet", started, f"events: no state reported since the start; {process}")


def _process(pane: Pane) -> str:
    return f"tmux: process {pane.pid} is alive in pane {pane.pane_id}"


def awaits_first_message(record: Record, events: Sequence[Mapping[str, Any]], now: float) -> bool:
    """Whether the message that it was made with has not reached it yet: it is ready then, but will not stay so. Whoever
    made it may be gone, so this is true for a while only. `events` are those since its start."""
    if not events or not events[0].get("message_follows"):
        return False
    taken = "message_delivered" if record.spec.driver == "screen" else "message_acknowledged"
    started = _seconds(events[0].get("timestamp")) or 0.0
    return now - started < _FIRST_MESSAGE_SECONDS and all(event.get("type") != taken for event in events)


def _ended(exit_code: int | None, signal: int | None, at: float, evidence: str) -> Status:
    """A shell tells the death of its command by signal N as exit code 128 + N; both ways are one here."""
    if signal is None and exit_code is not None and 128 < exit_code <= 128 + 64:
        signal = exit_code - 128
    elif signal is not None:
        exit_code = 128 + signal
    if signal is not None:
        return Status(FAILED, f"killed by {signal_name(signal)}", at, evidence, exit_code, signal)
    if exit_code is None:
        return Status(FAILED, "ended, exit code not known", at, evidence)
    return Status(FAILED if exit_code else DONE, f"exit code {exit_code}" if exit_code else "", at, evidence, exit_code)


def signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _seconds(text: object) -> float | None:
    try:
        return seconds_of(text) if isinstance(text, str) else None
    except ValueError:
        return None
