"""`mngr transcript`: the conversation of an agent."""

from __future__ import annotations

import time
from typing import Annotated, Any, NamedTuple, TypeVar

from mngr.actions import transcript as transcripts
from mngr.actions.agent import Agent
from mngr.actions.transcript import ROLES
from mngr.agents.record import seconds_of
from mngr.cli.amounts import amount
from mngr.cli.app import App
from mngr.cli.output import OPEN
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.errors import UsageError

T = TypeVar("T")

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


def results() -> list[Any]:
    return [list[Annotated[TranscriptEntry, OPEN]]]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.option("--role ...", "only entries of this role", choices=(*ROLES, "tool"))
    add_part(parser, "entries")


def add_part(parser: Parser, what: str) -> None:
    parser.option("--tail N", f"only the last N {what}", type=parse_count)
    parser.option("--head N", f"only the first N {what}", type=parse_count)
    parser.option("--follow, -f", f"keep running and print new {what} as they come")


def run(args: Args, app: App) -> int:
    refuse_head_with(args)
    agent = app.fleet.find(args.agent)
    found = agent.site.run(transcripts.read, agent.id)
    wanted = part(args, [entry for entry in found.entries if _is_wanted(args, entry)])
    show = _EntryPrinter(app)
    if wanted or not args.follow:
        show.entries(wanted)
    if not found.kept:
        app.out.note(_no_transcript(agent, len(found.entries)))
    elif not found.entries:
        app.out.note(f"the transcript of {agent.name} is empty")
    return _follow(args, agent, found.entries, show) if args.follow else 0


def refuse_head_with(args: Args) -> None:
    if args.head is not None and (args.tail is not None or args.follow):
        raise UsageError(f"`--head` and `{'--follow' if args.follow else '--tail'}` cannot be used together")


def part(args: Args, entries: list[T]) -> list[T]:
    """The entries that `--head` or `--tail` selects."""
    if args.head is not None:
        return entries[: args.head]
    return entries if args.tail is None else entries[max(0, len(entries) - args.tail) :]


def _is_wanted(args: Args, entry: dict[str, Any]) -> bool:
    """The role `tool` means both calls and results."""
    role = str(entry["role"])
    return not args.role or role in args.role or (role.startswith("tool_") and "tool" in args.role)


def _no_transcript(agent: Agent, messages: int) -> str:
    kind = f"agents of type `{agent.record.kind}` keep no transcript"
    if messages:
        return f"{kind}; only the messages sent to {agent.name} are shown"
    return f"{kind}, and no message was sent to {agent.name}; `mngr capture {agent.name}` shows its screen"


def _follow(args: Args, agent: Agent, shown: list[dict[str, Any]], show: _EntryPrinter) -> int:
    try:
        for entries in agent.site.run(transcripts.follow, agent.id, shown):
            if wanted := [entry for entry in entries if _is_wanted(args, entry)]:
                show.entries(wanted)
    except KeyboardInterrupt:
        pass
    return 0


class _EntryPrinter:
    """Prints entries, with a line for each new day."""

    def __init__(self, app: App) -> None:
        self._out = app.out
        self._day = ""

    def entries(self, entries: list[dict[str, Any]]) -> None:
        if self._out.human:
            for entry in entries:
                self._entry(entry)
        else:
            self._out.emit_rows(entries, (Column("ROLE", "role"),), known=_KNOWN)
        self._out.flush()

    def _entry(self, entry: dict[str, Any]) -> None:
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
