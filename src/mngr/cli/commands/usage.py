"""`mngr usage`: tokens and money."""

from __future__ import annotations

import time

from mngr import waiting
from mngr.actions import find, usage
from mngr.actions.agent import Agent
from mngr.actions.usage import BY, Report
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.errors import TimedOut, UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = (
    "Show how many tokens agents used and what that cost: as their programs say themselves, else by the price of the "
    "model, which your settings can change (`mngr help settings`). A model without a known price is told as such, "
    "never as 0. INPUT is without what was read from or written to a cache. A clone counts from its creation on. "
    "Destroyed agents have no rows of their own any more; without names, one row holds what they used, and the other "
    "tables count it with the rest."
)
EXAMPLES = (
    ("mngr usage", "every agent that used anything, the dearest first"),
    ("mngr usage fix-login reviewer", "only these"),
    ("mngr usage --by model --since 7d", "which models, in the last seven days"),
    ("mngr usage --by day", "day by day"),
    ("mngr usage wait --until 'cost_usd > 20' --timeout 8h", "return when more than $20 is spent"),
    ("mngr usage --by project --format '{name}\\t{cost_usd}'", "for a script"),
)

_KNOWN = ("name", "id", *usage.Totals._fields)
_NOT_KNOWN = "not known"
_CENT = 0.01


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="only these: name, id or address; `-` reads them from stdin"
    )
    parser.add_argument("--by", choices=BY, default=usage.AGENT, help="what a row is (default: agent)")
    parser.add_argument(
        "--since", type=parse_since, metavar="TIME", help="only what was used since: `7d` or `12h` ago, or `2026-05-31`"
    )

    parser.add_argument(
        "--until",
        action="append",
        metavar="EXPR",
        help="wait until the total matches, then print it (can be repeated: all must match)",
    )
    parser.add_argument(
        "--timeout", type=parse_duration, metavar="TIME", help="wait no longer than this for `--until`, exit code 4"
    )


def run(args: Args, app: App) -> int:
    if args.agents[:1] == ["wait"] and args.until:
        args.agents = args.agents[1:]
    if args.timeout is not None and not args.until:
        raise UsageError("`--timeout` is for `--until`", hint="`mngr usage wait --until 'cost_usd > 20' --timeout 8h`")
    names = [word for name in args.agents for word in (app.read_stdin().split() if name == "-" else [name])]
    agents = find.many(app.fleet, names) if names else None if not args.agents else []
    report = (
        _awaited(args, app, agents) if args.until else usage.report(app.fleet, agents, by=args.by, since=args.since)
    )
    if app.out.human:
        for error in report.errors:
            app.out.warn(error.message + (f"\n  hint: {error.hint}" if error.hint else ""))
        _print(args, app, report)
        return 0
    rows = [row.as_json() for row in report.rows]
    errors = [{"error": error.message, "hint": error.hint} for error in report.errors]
    envelope = {"by": args.by, "usage": rows, "total": usage.as_json(report.total), "errors": errors}
    app.out.emit_rows(rows, (), envelope=envelope, known=_KNOWN)
    return 0


def _awaited(args: Args, app: App, agents: list[Agent] | None) -> Report:
    """The first report whose total matches all of `--until`. Raises TimedOut."""
    from mngr.actions import filters

    tests = [filters.parse_over(text, (*usage.Totals._fields, "cost")) for text in args.until]
    app.fleet.host.prepare()
    total = usage.as_json(usage.Totals())
    for _ in waiting.changes(
        [app.fleet.store.dir], deadline=waiting.Deadline(args.timeout), at_least_every=2.0, step=0.1
    ):
        report = usage.report(app.fleet, agents, by=args.by, since=args.since)
        total = usage.as_json(report.total)
        if all(matches({**total, "cost": {"total_cost_usd": total["cost_usd"]}}) for matches in tests):
            return report
    seen = ", ".join(f"{name} {value}" for name, value in total.items())
    raise TimedOut(f"after {args.timeout:g} s the total does not match: {seen}")


def _print(args: Args, app: App, report: Report) -> None:
    rows = [row.as_json() for row in report.rows]
    if rows:
        rows.append({"name": "total", "id": "", **usage.as_json(report.total), "sum": True})
    app.out.emit_rows(rows, columns(rows, args.by), empty="Nothing was used")
    if report.total.unpriced:
        priceless = amount(report.total.unpriced, "answer")
        app.out.note(f"{priceless} of models without a known price: `mngr help settings` says how to give one")


def columns(rows: list[dict[str, Any]], by: str) -> list[Column]:
    """Money has as many places as the smallest amount needs, so that it lines up."""
    places = 4 if any(0 < (row["cost_usd"] or 0) < _CENT for row in rows) else 2

    def cost(row: Any) -> str:
        return _NOT_KNOWN if row["cost_usd"] is None else f"${row['cost_usd']:,.{places}f}"

    found = [
        Column(by.upper(), "name", flexible=True, show=lambda row: row["name"] or "not named", style=_style),
        *(Column(title, field, right=True, show=_count(field)) for title, field in _COUNTS),
        Column("COST", "cost_usd", right=True, show=cost, style=_style),
    ]
    if any(row["unpriced"] for row in rows):
        found.append(Column("UNPRICED", "unpriced", right=True, show=_count("unpriced"), style=lambda row: "yellow"))
    return found


_COUNTS = (
    ("ANSWERS", "answers"),
    ("INPUT", "input_tokens"),
    ("CACHE READ", "cache_read_tokens"),
    ("CACHE WRITE", "cache_write_tokens"),
    ("OUTPUT", "output_tokens"),
)


def _count(field: str) -> Any:
    return lambda row: f"{row[field]:,}"


def _style(row: Any) -> str:
    return "bold" if row.get("sum") else ""


def parse_since(text: str) -> float:
    """A point in time: so long ago, or a day, or a moment of a day, where the user is."""
    if text[:4].isdecimal() and text[4:5] == "-":
        from datetime import datetime

        try:
            return datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            raise UsageError(f"{text!r} is not a day or a time", hint="for example `2026-05-31` or `7d`") from None
    return time.time() - parse_duration(text)
