"""`mngr event`: what happened to an agent, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mngr import waiting
from mngr.actions.agent import Agent
from mngr.cli.app import App
from mngr.cli.commands import transcript
from mngr.cli.commands.transcript import local_time, parse_count
from mngr.cli.parser import Args, Parser, given
from mngr.cli.table import Column
from mngr.cli.terminal import is_terminal
from mngr.errors import UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    Wanted = Callable[[Mapping[str, Any]], bool]


DESCRIPTION = (
    "Print an agent's events: state changes, messages and their delivery, exit codes. On a terminal a line for people, "
    "otherwise a line of JSON for each event."
)
EXAMPLES = (
    ("mngr event fix-login --tail 20", "the last twenty"),
    ("mngr event fix-login --follow", "everything from now on"),
    ("mngr event fix-login --type message_delivered", "one type only"),
    ("mngr event fix-login launch", "one source only"),
    ("mngr event fix-login --include 'type == \"exited\" && exit_code != 0'", "a filter"),
)
_TEXT = ("event_id", "timestamp", "source", "type")
_KNOWN = (*_TEXT, "state", "reason", "message_id", "text", "exit_code", "signal")
_CONVERSATION = "common_transcript"  # the original's source of what was said


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="only events of these sources")
    parser.add_argument("--source", action="append", metavar="SOURCE", help="only this source (can be repeated)")
    parser.add_argument("--type", action="append", metavar="TYPE", help="only this type (can be repeated)")
    parser.add_argument(
        "--include",
        action="append",
        metavar="EXPR",
        help="events that match the filter (can be repeated: all must match)",
    )
    parser.add_argument(
        "--exclude", action="append", metavar="EXPR", help="not the events that match the filter (can be repeated)"
    )
    parser.add_argument("--tail", type=parse_count, metavar="N", help="only the last N")
    parser.add_argument("--head", type=parse_count, metavar="N", help="only the first N")
    parser.add_argument("--follow", "-f", action="store_true", help="stay, and print new ones as they come")


def run(args: Args, app: App) -> int:
    transcript.refuse_head_with(args)
    agent = app.fleet.find(args.agent)
    sources = [*args.sources, *args.source]
    if "format" not in given(args) and not is_terminal(app.stdout):
        args.format = "jsonl"
        app.configure(args)
    if any(source.rpartition("/")[2] == _CONVERSATION for source in sources):
        return _conversation(args, app, sources)
    events = app.fleet.events(agent)
    wanted = _wanted(args, sources, events)
    _print(app, transcript.part(args, [event for event in events if wanted(event)]))
    _name_sources(app, agent, sources, events)
    return _follow(app, agent.id, len(events), wanted) if args.follow else 0


def _conversation(args: Args, app: App, sources: Sequence[str]) -> int:
    """`event AGENT claude/common_transcript` is what `transcript` prints."""
    if len(sources) > 1 or args.type or args.include or args.exclude:
        raise UsageError(
            "the conversation is printed alone and without filters",
            hint=f"`mngr transcript {args.agent} --format jsonl`",
        )
    args.role = []
    return transcript.run(args, app)


def _wanted(args: Args, sources: Sequence[str], events: Sequence[Mapping[str, Any]]) -> Wanted:
    include, exclude = [], []
    if args.include or args.exclude:
        from mngr.actions import filters

        names = {*_KNOWN, "data", *(name for event in events for name in event)}
        include = [filters.parse_over(text, names, _TEXT) for text in args.include]
        exclude = [filters.parse_over(text, names, _TEXT) for text in args.exclude]

    def wanted(event: Mapping[str, Any]) -> bool:
        return (
            (not sources or event.get("source") in sources)
            and (not args.type or event.get("type") in args.type)
            and all(matches(event) for matches in include)
            and not any(matches(event) for matches in exclude)
        )

    return wanted


def _name_sources(app: App, agent: Agent, sources: Sequence[str], events: Sequence[Mapping[str, Any]]) -> None:
    """Say which sources there are when one that was named has no events."""
    there = sorted({str(event.get("source")) for event in events})
    if missing := [source for source in sources if source not in there]:
        named, known = (", ".join(f"`{name}`" for name in names) for names in (missing, there))
        app.out.note(f"no events of {agent.name} from {named}; there are events from {known}")


def _follow(app: App, agent_id: str, seen: int, wanted: Wanted) -> int:
    state_dir = app.fleet.store.state_dir(agent_id)
    try:
        for _ in waiting.changes([state_dir], deadline=waiting.Deadline(None), at_least_every=2.0):
            events = app.fleet.store.events(agent_id)
            _print(app, [event for event in events[seen:] if wanted(event)])
            seen = len(events)
            if agent_id not in app.fleet.host.entries(app.fleet.store.dir):
                return 0
    except KeyboardInterrupt:
        pass
    return 0


def _print(app: App, events: Sequence[Mapping[str, Any]]) -> None:
    if not app.out.human:
        app.out.emit_rows(events, (Column("TYPE", "type"),), known=_KNOWN)
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
