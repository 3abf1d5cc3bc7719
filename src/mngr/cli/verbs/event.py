"""`mngr event`: what happened to an agent, in order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from mngr.cli.app import App
from mngr.cli.output.output import OPEN
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser.parser import Args, Parser, given
from mngr.cli.targets import add_expressions
from mngr.cli.verbs import transcript
from mngr.cli.verbs.transcript import local_time
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple

Wanted = Callable[[Mapping[str, Any]], bool]


ONLY_LOOKS = True
DESCRIPTION = (
    "Print an agent's events: state changes, messages and their delivery, exit codes. On a terminal one readable line "
    "per event, otherwise one line of JSON."
)
EXAMPLES = (
    ("mngr event fix-login --tail 20", "the last 20 events"),
    ("mngr event fix-login --follow", "print new events as they come"),
    ("mngr event fix-login --type message_delivered", "events of one type"),
    ("mngr event fix-login launch", "events from one source"),
    ("mngr event fix-login --include 'type == \"exited\" && exit_code != 0'", "events that match a filter"),
)


class EventFields(NamedTuple):
    """What every event has."""

    event_id: str
    timestamp: str
    source: str
    type: str


_KNOWN = (*EventFields._fields, "state", "reason", "message_id", "text", "exit_code", "signal")
_CONVERSATION = "common_transcript"  # the original's source of what was said


RESULTS = [list[Annotated[EventFields, OPEN]]]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.words("sources", "SOURCE", "only events from these sources")
    parser.option("--source SOURCE ...", "only this source")
    parser.option("--type TYPE ...", "only this type")
    add_expressions(parser, "events")
    transcript.add_part(parser, "events")


def run(args: Args, app: App) -> None:
    transcript.refuse_head_with(args)
    agent = app.fleet.find(args.agent)
    sources = [*args.sources, *args.source]
    if "format" not in given(args) and not is_terminal(app.stdout):
        args.format = "jsonl"
        app.configure(args)
    if any(source.rpartition("/")[2] == _CONVERSATION for source in sources):
        _conversation(args, app, sources)
        return
    newer = agent.follow_events() if args.follow else iter([agent.events()])
    events = next(newer)
    there = sorted({str(event.get("source")) for event in events})
    if missing := [source for source in sources if source not in there]:
        named, known = (", ".join(f"`{name}`" for name in names) for names in (missing, there))
        app.out.note(f"{agent.name} has no events from {named}; it has events from {known}")
    wanted = _wanted(args, sources, events)
    new = (filter(wanted, more) for more in newer)
    transcript.show(args, filter(wanted, events), new, lambda found: _print(app, found))


def _conversation(args: Args, app: App, sources: Sequence[str]) -> None:
    """`event AGENT claude/common_transcript` is what `transcript` prints."""
    if len(sources) > 1 or args.type or args.include or args.exclude:
        raise UsageError(
            f"`{sources[0]}` cannot be combined with other sources or filters",
            hint=f"`mngr transcript {args.agent} --format jsonl`",
        )
    args.role = []
    transcript.run(args, app)


def _wanted(args: Args, sources: Sequence[str], events: Sequence[Mapping[str, Any]]) -> Wanted:
    include, exclude = [], []
    if args.include or args.exclude:
        from mngr.cli import filters

        names = {*_KNOWN, "data", *(name for event in events for name in event)}
        include = [filters.parse_over(text, names, EventFields._fields) for text in args.include]
        exclude = [filters.parse_over(text, names, EventFields._fields) for text in args.exclude]

    def wanted(event: Mapping[str, Any]) -> bool:
        return (
            (not sources or event.get("source") in sources)
            and (not args.type or event.get("type") in args.type)
            and all(matches(event) for matches in include)
            and not any(matches(event) for matches in exclude)
        )

    return wanted


def _print(app: App, events: Sequence[Mapping[str, Any]]) -> None:
    if not app.out.human:
        app.out.emit_rows(events, (), known=_KNOWN)
    for event in events if app.out.human else ():
        app.out.line(_line(event))
    app.out.flush()


def _line(event: Mapping[str, Any]) -> str:
    """For a person: local time, without fields that only programs compare."""
    line = f"{' '.join(local_time(str(event.get('timestamp', '')))):19}  {event.get('type', '?')}"
    for name, value in event.items():
        if name not in EventFields._fields and not name.endswith("_sha256") and value not in (None, "", []):
            text = str(value).replace("\n", "\\n")
            line += f"  {name}={text if len(text) <= 80 else text[:79] + '…'}"
    return line
