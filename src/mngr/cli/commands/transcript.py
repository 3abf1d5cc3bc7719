"""`mngr transcript`: the conversation of an agent."""

from __future__ import annotations

from mngr import waiting
from mngr.actions import transcript as transcripts
from mngr.actions.agent import Agent
from mngr.actions.transcript import ROLES
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.errors import UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

DESCRIPTION = (
    "Print what was said to an agent and what it said and did, oldest first, in one form for all agent types. A type "
    "that keeps no transcript, such as a plain command, has only the messages that were sent to it."
)
EXAMPLES = (
    ("mngr transcript fix-login", "the whole conversation"),
    ("mngr transcript fix-login --role assistant --tail 1", "the last thing it said"),
    ("mngr transcript fix-login --follow", "and what comes from now on"),
    ("mngr transcript fix-login --format jsonl", "a line of JSON for each entry"),
)

_STYLES = {"user": "bold", "assistant": "green", "tool_call": "cyan"}
_KNOWN = ("timestamp", "role", "text", "tool", "input", "exit_code")
# Of the output of a tool a person sees so many lines; the other formats have all.
_LONGEST_RESULT = 20


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument(
        "--role", action="append", choices=(*ROLES, "tool"), help="only entries of this role (can be repeated)"
    )
    parser.add_argument("--tail", type=parse_count, metavar="N", help="only the last N")
    parser.add_argument("--head", type=parse_count, metavar="N", help="only the first N")
    parser.add_argument("--follow", "-f", action="store_true", help="stay, and print new ones as they come")


def run(args: Args, app: App) -> int:
    refuse_head_with(args)
    agent = app.fleet.find(args.agent)
    found = transcripts.read(app.fleet, agent)
    wanted = part(args, [entry for entry in found.entries if _is_wanted(args, entry)])
    show = _Shown(app)
    if wanted or not args.follow:
        show.entries(wanted)
    if not found.kept:
        app.out.note(_no_transcript(agent, len(found.entries)))
    elif not found.entries:
        app.out.note(f"nothing was said by or to {agent.name} yet")
    return _follow(args, app, agent, found.entries, show) if args.follow else 0


def refuse_head_with(args: Args) -> None:
    if args.head is not None and (args.tail is not None or args.follow):
        raise UsageError(f"`--head` and `{'--follow' if args.follow else '--tail'}` cannot be used together")


def part(args: Args, entries: list[T]) -> list[T]:
    """The first or the last of them, as `--head` and `--tail` say."""
    if args.head is not None:
        return entries[: args.head]
    return entries if args.tail is None else entries[max(0, len(entries) - args.tail) :]


def _is_wanted(args: Args, entry: dict[str, Any]) -> bool:
    """The role `tool` is both the calls and the results of tools."""
    role = str(entry["role"])
    return not args.role or role in args.role or (role.startswith("tool_") and "tool" in args.role)


def _no_transcript(agent: Agent, messages: int) -> str:
    kind = f"an agent of type `{agent.record.kind}` keeps no transcript"
    if messages:
        return f"{kind}: these are only the messages that were sent to it"
    return f"{kind}, and no message was sent to {agent.name}; `mngr capture {agent.name}` shows its screen"


def _follow(args: Args, app: App, agent: Agent, shown: list[dict[str, Any]], show: _Shown) -> int:
    """Print each entry once, also one that comes before others: a program may write down late what it said."""
    from collections import Counter

    state_dir = app.fleet.store.state_dir(agent.id)
    seen = Counter(map(_words, shown))
    try:
        for _ in waiting.changes([state_dir], deadline=waiting.Deadline(None), at_least_every=2.0):
            entries = transcripts.read(app.fleet, agent).entries
            left, new = seen.copy(), []
            for entry in entries:
                left[_words(entry)] -= 1
                if left[_words(entry)] < 0 and _is_wanted(args, entry):
                    new.append(entry)
            if new:
                show.entries(new)
            seen |= Counter(map(_words, entries))
            if agent.id not in app.fleet.host.entries(app.fleet.store.dir):
                break
    except KeyboardInterrupt:
        pass
    return 0


def _words(entry: dict[str, Any]) -> tuple[str, ...]:
    """An entry without its time, which another record of the same message has not."""
    return tuple(str(entry.get(name)) for name in ("role", "text", "tool", "input"))


class _Shown:
    """Prints entries; remembers the day of the last one, which is said when it changes."""

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
            self._out.line(f"  ({amount(left_out, 'line')} left out; `--format jsonl` has all)", "dim")
            lines = lines[left_out:]
        for line in lines:
            self._out.line(f"  {line}".rstrip())


def local_time(text: str) -> tuple[str, str]:
    """Day and time of day where the user is; as it is written when it cannot be read."""
    import time

    from mngr.agents.record import seconds_of

    try:
        moment = time.localtime(seconds_of(text))
    except (ValueError, OverflowError, OSError):
        return "", text
    return time.strftime("%Y-%m-%d", moment), time.strftime("%H:%M:%S", moment)


def parse_count(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text!r} is not a number of entries", hint="for example `--tail 20`")
    return int(text)
