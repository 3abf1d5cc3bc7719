"""`mngr usage`: tokens and money."""

import time
from collections.abc import Sequence
from typing import Any

from mngr.actions.usage import Totals
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import parse_duration
from mngr.cli.output.output import Problem
from mngr.cli.output.table import Column
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import TimedOut, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import waiting
from mngr.transfer import usage
from mngr.transfer.usage import BY, UsageReport

ONLY_LOOKS = True
DESCRIPTION = (
    "Show how many tokens agents used and what they cost: as reported by the agents, otherwise by the price of the "
    "model, which your settings can change (`mngr help settings`). Usage without a known price is counted separately, "
    "never as 0. INPUT excludes cached tokens. A clone counts from its creation on. Destroyed agents share one row, "
    "which is left out when agents are named; the other tables include them."
)
EXAMPLES = (
    ("mngr usage", "all agents with usage, highest cost first"),
    ("mngr usage fix-login reviewer", "two agents"),
    ("mngr usage --by model --since 7d", "per model, in the last seven days"),
    ("mngr usage --by day", "per day"),
    ("mngr usage wait --until 'cost_usd > 20' --timeout 8h", "wait until more than $20 is spent"),
    ("mngr usage --by project --format '{name}\\t{cost_usd}'", "for a script"),
)

_KNOWN = ("name", "id", *Totals._fields)
_CENT = 0.01


class RowName(NamedTuple):
    """What a row of usage is about. `id` is null for a row that is not one agent."""

    name: str
    id: str | None


RESULTS = [{"by": str, "usage": [(RowName, Totals)], "total": Totals, "errors": [Problem]}]


def add_arguments(parser: Parser) -> None:
    parser.words("agents", "AGENT", "name, id or address; `-` reads them from stdin")
    parser.option("--by", "what a row stands for (default: agent)", choices=BY, default=usage.AGENT, safe=True)
    parser.option("--since TIME", "only usage since then: `7d` or `12h` ago, or `2026-05-31`", type=parse_since)
    parser.option("--until EXPR ...", "wait until the total matches, then print it (can be repeated: all must match)")
    parser.option("--timeout TIME", "stop waiting after this time (exit code 4)", type=parse_duration)


def run(args: Args, app: App) -> None:
    if args.agents[:1] == ["wait"] and args.until:
        args.agents = args.agents[1:]
    if args.timeout is not None and not args.until:
        hint = "`mngr usage wait --until 'cost_usd > 20' --timeout 8h`"
        raise UsageError("`--timeout` requires `--until`", hint=hint)
    names = app.names(args.agents)
    agents = app.fleet.find_many(names) if args.agents else None
    report = _awaited(args, app, agents) if args.until else app.fleet.usage(agents, by=args.by, since=args.since)
    rows, total = [row.as_json() for row in report.rows], usage.as_json(report.total)
    app.out.warn_of(report.errors)
    if not app.out.human:
        errors = [error.as_json() for error in report.errors]
        envelope = {"by": args.by, "usage": rows, "total": total, "errors": errors}
        app.out.emit_rows(rows, (), envelope=envelope, known=_KNOWN)
        return
    shown = [*rows, {"name": "total", "id": "", **total}] if rows else []
    app.out.emit_rows(shown, columns(shown, args.by), empty="No usage")
    if report.total.unpriced:
        answers = amount(report.total.unpriced, "answer")
        app.out.note(f"{answers} by models without a known price; `mngr help settings` explains how to set one")


def _awaited(args: Args, app: App, agents: Sequence[Agent] | None) -> UsageReport:
    """The first report whose total matches all of `--until`. Raises TimedOut."""
    from mngr.cli import filters

    tests = [filters.parse_over(text, (*Totals._fields, "cost")) for text in args.until]
    app.fleet.local.host.prepare()
    total = usage.as_json(Totals())
    for _ in waiting.changes(
        [app.fleet.local.store.dir], deadline=waiting.Deadline(args.timeout), at_least_every=2.0, step=0.1
    ):
        report = app.fleet.usage(agents, by=args.by, since=args.since)
        total = usage.as_json(report.total)
        if all(matches({**total, "cost": {"total_cost_usd": total["cost_usd"]}}) for matches in tests):
            return report
    seen = ", ".join(f"{name} {value}" for name, value in total.items())
    raise TimedOut(f"the total did not match within {args.timeout:g} s: {seen}")


def columns(rows: list[dict[str, Any]], by: str) -> list[Column]:
    """Costs have four decimal places if one of them is below a cent."""
    places = 4 if any(0 < (row["cost_usd"] or 0) < _CENT for row in rows) else 2

    def cost(row: Any) -> str:
        return "unknown" if row["cost_usd"] is None else f"${row['cost_usd']:,.{places}f}"

    def count(field: str) -> Column:
        title = field.removesuffix("_tokens").replace("_", " ").upper()
        return Column(title, field, right=True, show=lambda row: f"{row[field]:,}")

    found = [
        Column(by.upper(), "name", flexible=True, show=lambda row: row["name"] or "unknown"),
        *map(count, ("answers", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")),
        Column("COST", "cost_usd", right=True, show=cost),
    ]
    return [*found, count("unpriced")] if any(row["unpriced"] for row in rows) else found


def parse_since(text: str) -> float:
    """A point in time: a duration before now, a day or a local time."""
    if text[:4].isdecimal() and text[4:5] == "-":
        from datetime import datetime

        try:
            return datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            raise UsageError(f"invalid day or time {text!r}", hint="for example `2026-05-31` or `7d`") from None
    return time.time() - parse_duration(text)
