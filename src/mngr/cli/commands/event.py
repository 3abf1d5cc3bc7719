"""`mngr event`: what happened to an agent, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mngr import waiting
from mngr.cli.app import App
from mngr.cli.commands.transcript import local_time
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = "Print an agent's events: state changes, messages and their delivery, exit codes."
EXAMPLES = (
    ("mngr event fix-login --tail 20", "the last twenty"),
    ("mngr event fix-login --follow --format jsonl", "everything from now on, for a script"),
    ("mngr event fix-login --type message_delivered", "one type only"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N")
    parser.add_argument("--type", action="append", metavar="TYPE", help="only this type (can be repeated)")
    parser.add_argument("--follow", "-f", action="store_true", help="stay, and print new ones as they come")


def run(args: Args, app: App) -> int:
    agent = app.fleet.find(args.agent)
    events = app.fleet.events(agent)
    wanted = [event for event in events if not args.type or event.get("type") in args.type]
    if args.tail is not None:
        wanted = wanted[len(wanted) - args.tail :] if args.tail < len(wanted) else wanted
    _print(app, wanted)
    return _follow(args, app, agent.id, len(events)) if args.follow else 0


def _follow(args: Args, app: App, agent_id: str, seen: int) -> int:
    state_dir = app.fleet.store.state_dir(agent_id)
    try:
        for _ in waiting.changes([state_dir], deadline=waiting.Deadline(None), at_least_every=2.0):
            events = app.fleet.store.events(agent_id)
            _print(app, [event for event in events[seen:] if not args.type or event.get("type") in args.type])
            seen = len(events)
            if agent_id not in app.fleet.host.entries(app.fleet.store.dir):
                return 0
    except KeyboardInterrupt:
        pass
    return 0


def _print(app: App, events: Sequence[Mapping[str, Any]]) -> None:
    if not app.out.human:
        known = (
            "event_id",
            "timestamp",
            "source",
            "type",
            "state",
            "reason",
            "message_id",
            "text",
            "exit_code",
            "signal",
        )
        app.out.emit_rows(events, (Column("TYPE", "type"),), known=known)
    for event in events if app.out.human else ():
        app.out.line(_line(event))
    app.out.flush()


def _line(event: Mapping[str, Any]) -> str:
    """For people: local time, and without what only programs compare."""
    facts = {
        name: value
        for name, value in event.items()
        if name not in ("event_id", "timestamp", "source", "type") and not name.endswith("_sha256")
    }
    details = "  ".join(f"{name}={_short(value)}" for name, value in facts.items() if value not in (None, "", []))
    return f"{' '.join(local_time(str(event.get('timestamp', '')))):19}  {event.get('type', '?')}  {details}".rstrip()


def _short(value: object) -> str:
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= 80 else text[:79] + "…"
