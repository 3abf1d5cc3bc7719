"""What agents used, in tokens and money, by the prices of the caller's settings: as a sum, or as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mngr.actions.prices import Prices
from mngr.actions.site import Site
from mngr.actions.usage import CollectedUsage, Totals, UsageLine, collected, daily, day_of, write_usage
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.programs import driver
from mngr.programs.driver import ModelUsage
from mngr.settings.layers import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGENT, PROJECT, DAY, MODEL, TYPE = "agent", "project", "day", "model", "type"
BY = (AGENT, PROJECT, DAY, MODEL, TYPE)
GONE = "destroyed agents"


class Row(NamedTuple):
    """`id` is that of the agent, in a table by agents."""

    name: str
    id: str | None
    totals: Totals

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "id": self.id, **as_json(self.totals)}


class UsageReport(NamedTuple):
    """`errors` are of agents whose usage could not be read."""

    rows: list[Row]
    total: Totals
    errors: list[MngrError]


def total(site: Site, agent_id: str) -> Totals:
    """All that one agent used since it was made, also of one that is gone. Raises when its record cannot be read."""
    return priced(site.run(collected, [agent_id]), site.settings)


def priced(found: CollectedUsage, settings: Settings) -> Totals:
    """The sum of what was collected, with the prices of these settings. Raises what could not be read."""
    if found.errors:
        raise found.errors[0]
    return summed(line.totals for line in _all_lines(found, Prices(settings)))


def report(
    parts: Sequence[CollectedUsage], settings: Settings, *, by: str = AGENT, since: float | None = None, named: bool
) -> UsageReport:
    """The usage of some sites in one table. `since` is a point in time; of the usage ledger, whole days count.
    With `named` every agent has a row, also one that used nothing."""
    prices = Prices(settings)
    names = {record.id: record.name for part in parts for record, _ in part.answers}
    lines = [line for part in parts for line in _all_lines(part, prices, since)]
    rows = grouped((line._replace(agent=names.get(line.agent_id, line.agent)) for line in lines), by, names)
    if by == AGENT and named:
        there = {row.id for row in rows}
        rows += [Row(name, agent_id, Totals()) for agent_id, name in names.items() if agent_id not in there]
    return UsageReport(rows, summed(row.totals for row in rows), [error for part in parts for error in part.errors])


def _all_lines(found: CollectedUsage, prices: Prices, since: float | None = None) -> Iterable[UsageLine]:
    """What is in the usage ledger, where a price of the user's may have come to be known since, and what is not."""
    first = day_of(since) if since is not None else ""
    for line in found.lines:
        if line.day >= first:
            own = prices.own(line.model) if line.cost_usd is None else None
            yield line._replace(cost_usd=own.cost(ModelUsage("", line.model, *line[7:11]))) if own else line
    for record, answers in found.answers:
        yield from daily(record, answers, prices, since)


def grouped(lines: Iterable[UsageLine], by: str, known: Collection[str]) -> list[Row]:
    """What cost most comes first; days come in order. All agents that are not `known` are gone, and one row."""
    found: dict[tuple[str, str | None], Totals] = {}
    for line in lines:
        key: tuple[str, str | None] = (getattr(line, by), None)
        if by == AGENT:
            key = (line.agent, line.agent_id) if line.agent_id in known else (GONE, None)
        found[key] = found.get(key, Totals()).plus(line.totals)
    rows = [Row(name, agent_id, totals) for (name, agent_id), totals in found.items()]
    if by == DAY:
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=lambda row: (row.name == GONE, -(row.totals.cost_usd or 0.0), -row.totals.tokens, row.name))


def summed(totals: Iterable[Totals]) -> Totals:
    result = Totals()
    for item in totals:
        result = result.plus(item)
    return result


def as_json(totals: Totals) -> dict[str, Any]:
    """Money is rounded to a millionth of a dollar, below which floats are not exact."""
    cost = totals.cost_usd
    return {**totals._asdict(), "cost_usd": None if cost is None else round(cost, 6)}


def record_usage(site: Site, record: Record) -> None:
    """Put what an agent of any machine used into the usage ledger of the caller's machine, which knows the prices.
    Twice is safe. Never raises: usage that cannot be read or written is lost."""
    try:
        if driver.of(record) is not None:
            write_usage(site.local, record, site.run(collected, [record.id]))
    except Exception:  # noqa: BLE001 (whatever a program wrote, and on a full disk too, an agent can be destroyed)
        return
