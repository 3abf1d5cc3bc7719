"""`mngr transcript`: the conversation of an agent."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from mngr.actions.transcript import ROLES
from mngr.agent.record import seconds_of
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.output import OPEN
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple

T = TypeVar("T")

ONLY_LOOKS = True
DESCRIPTION = (
    "Print what was said to an agent and what it said and did, oldest first, in one form for all agent types. A type "
    "that keeps no transcript, such as a plain command, has only the messages that were sent to it."
)
EXAMPLES = (
    ("mngr transcript fix-login", "the whole conversation"),
    ("mngr transcript fix-login --role assistant --tail 1", "its last reply"),
    ("mngr transcript fix-login --follow", "print new entries as they come"),
    ("mngr transcript fix-login --format jsonl", "one line of JSON per entry"),
)

_STYLES = {"user": "bold", "assistant": "green", "tool_call": "cyan"}
_KNOWN = ("timestamp", "role", "text", "tool", "input", "exit_code")
_LONGEST_RESULT = 20  # lines of a tool's output that a person sees


class TranscriptEntry(NamedTuple):
    timestamp: str
    role: str
    text: str


RESULTS = [list[Annotated[TranscriptEntry, OPEN]]]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.option("--role ...", "only entries of this role", choices=(*ROLES, "tool"))
    add_part(parser, "entries")


def add_part(parser: Parser, what: str) -> None:
    parser.option("--tail N", f"only the last N {what}", type=parse_count)
    parser.option("--head N", f"only the first N {what}", type=parse_count)
    parser.option("--follow, -f", f"keep running and print new {what} as they come")


def run(args: Args, app: App) -> None:
    refuse_head_with(args)
    agent = app.fleet.find(args.agent)
    found = agent.transcript()
    if not found.kept:
        what = f"only the messages sent to {agent.name} are shown"
        if not found.entries:
            what = f"no message was sent to {agent.name}; `mngr capture {agent.name}` shows its screen"
        app.out.note(f"agents of type `{agent.record.spec.kind}` keep no transcript; {what}")
    elif not found.entries:
        app.out.note(f"the transcript of {agent.name} is empty")

    def wanted(entry: Mapping[str, Any]) -> bool:
        """The role `tool` means both calls and results."""
        role = str(entry["role"])
        return not args.role or role in args.role or (role.startswith("tool_") and "tool" in args.role)

    newer = agent.follow_transcript(found.entries) if args.follow else ()
    show(args, filter(wanted, found.entries), (filter(wanted, more) for more in newer), _EntryPrinter(app).print)


def refuse_head_with(args: Args) -> None:
    if args.head is not None and (args.tail is not None or args.follow):
        raise UsageError(f"`--head` and `{'--follow' if args.follow else '--tail'}` cannot be used together")


def show(
    args: Args, entries: Iterable[T], newer: Iterable[Iterable[T]], print_all: Callable[[Sequence[T]], None]
) -> None:
    """Print the entries that `--head` or `--tail` selects, then the newer ones as they come, until Ctrl-C."""
    chosen = list(entries)
    if args.head is not None:
        chosen = chosen[: args.head]
    elif args.tail is not None:
        chosen = chosen[max(0, len(chosen) - args.tail) :]
    if chosen or not args.follow:
        print_all(chosen)
    try:
        for more in newer:
            if found := list(more):
                print_all(found)
    except KeyboardInterrupt:
        pass


class _EntryPrinter:
    """Prints entries, with a line for each new day."""

    def __init__(self, app: App) -> None:
        self._out = app.out
        self._day = ""

    def print(self, entries: Sequence[Mapping[str, Any]]) -> None:
        if not self._out.human:
            self._out.emit_rows(entries, (), known=_KNOWN)
        for entry in entries if self._out.human else ():
            self._entry(entry)
        self._out.flush()

    def _entry(self, entry: Mapping[str, Any]) -> None:
        day, clock = local_time(entry["timestamp"])
        if day != self._day:
            self._out.line(day, "dim")
            self._day = day
        role, code = entry["role"], entry.get("exit_code")
        title = " ".join(filter(None, (clock, role, str(entry.get("tool") or ""))))
        if code is not None:
            title += f" (exit code {code})"
        self._out.line(title, _STYLES.get(role, "red" if code else "dim"))
        parts = [str(entry[name]) for name in ("input", "text") if entry.get(name)]
        lines = "\n".join(parts).rstrip("\n").split("\n") if parts else []
        left_out = len(lines) - _LONGEST_RESULT if role == "tool_result" else 0
        if left_out > 1:
            self._out.line(f"  ({amount(left_out, 'line')} left out; `--format jsonl` prints all)", "dim")
            lines = lines[left_out:]
        for line in lines:
            self._out.line(f"  {line}".rstrip())


def local_time(text: str) -> tuple[str, str]:
    """Local day and time; the text itself if it is not a time."""
    try:
        moment = time.localtime(seconds_of(text))
    except (ValueError, OverflowError, OSError):
        return "", text
    return time.strftime("%Y-%m-%d", moment), time.strftime("%H:%M:%S", moment)


def parse_count(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"invalid number {text!r}", hint="for example `--tail 20`")
    return int(text)
