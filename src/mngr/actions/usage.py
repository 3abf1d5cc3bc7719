"""What agents used, in tokens and money: of existing agents from their programs' records, of destroyed ones from the
usage log."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from mngr.actions import usage_log
from mngr.actions.prices import Prices
from mngr.actions.site import Site
from mngr.actions.usage_log import UsageLine, UsageLog
from mngr.agents.kinds import driver
from mngr.agents.kinds.driver import ModelUsage
from mngr.agents.record import Record, seconds_of
from mngr.config import Settings
from mngr.errors import MngrError
from mngr.interrupts import held

AGENT, PROJECT, DAY, MODEL, TYPE = "agent", "project", "day", "model", "type"
BY = (AGENT, PROJECT, DAY, MODEL, TYPE)
GONE = "destroyed agents"


class Totals(NamedTuple):
    """`cost_usd` is what is known of the cost: None when there were answers and the price of none is known. `unpriced`
    is how many answers have none. `input_tokens` are those that were neither read from nor written to a cache."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens

    def plus(self, other: Totals) -> Totals:
        answers, unpriced = self.answers + other.answers, self.unpriced + other.unpriced
        known = (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Totals(
            answers,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            None if unpriced == answers > 0 else known,
            unpriced,
        )


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


def of(site: Site, record: Record, booked: UsageLog | None = None) -> list[ModelUsage]:
    """Every answer of a model that is in its program's record and not in the books yet. What a clone or a restored
    agent brought along was another's, or is in the books."""
    known = driver.of(record)
    if known is None:
        return []
    found = known.usage(site.place(record))
    booked = usage_log.read(site.host) if booked is None else booked
    return new(found, seconds_of(record.created_at), booked.until.get(record.id, 0.0))


def new(found: Sequence[ModelUsage], made: float, booked_until: float) -> list[ModelUsage]:
    """Answers since the agent was made that are not in the books. One without a time counts as one of the first."""
    moments = [_moment(spent.timestamp, made) for spent in found]
    return [spent for spent, at in zip(found, moments, strict=True) if at >= made and at > booked_until]


class CollectedUsage(NamedTuple):
    """What a site knows of its agents' usage, without prices: they are known where the user's settings are. `answers`
    are those of each agent that are not in the usage log, `lines` those that are."""

    answers: list[tuple[Record, list[ModelUsage]]]
    lines: list[UsageLine]
    errors: list[MngrError]


def collected(site: Site, ids: Sequence[str] | None = None) -> CollectedUsage:
    """The usage of these agents, or of all that there are and were."""
    records, errors = site.store.records(ids) if site.host.is_ours() else ([], [])
    found = CollectedUsage([], [], [*errors])
    booked = usage_log.read(site.host)
    for record in records:
        try:
            found.answers.append((record, of(site, record, booked)))
        except (MngrError, OSError, ImportError) as error:
            hint = error.hint if isinstance(error, MngrError) else "`mngr doctor` checks this machine"
            found.errors.append(MngrError(f"what `{record.name}` used cannot be read: {error}", hint=hint))
            found.answers.append((record, []))
    # Read again, since an agent may have been destroyed and written down in the meantime.
    missing = ids is not None and len(records) < len(ids)
    lines = (usage_log.read(site.host) if missing else booked).lines
    found.lines.extend(line for line in lines if ids is None or line.agent_id in ids)
    return found


def total(site: Site, agent_id: str) -> Totals:
    """All that one agent used since it was made, also of one that is gone. Raises when its record cannot be read.
    Runs on the caller's machine."""
    return priced(site.run(collected, [agent_id]), site.settings)


def priced(found: CollectedUsage, settings: Settings) -> Totals:
    """The sum of what was collected, with the prices of these settings. Raises what could not be read."""
    if found.errors:
        raise found.errors[0]
    prices = Prices(settings)
    answers = (counted(answer, prices) for _, some in found.answers for answer in some)
    return summed((*(_totals(_priced(line, prices)) for line in found.lines), *answers))


def report(
    parts: Sequence[CollectedUsage], settings: Settings, *, by: str = AGENT, since: float | None = None, named: bool
) -> UsageReport:
    """The usage of some sites in one table. `since` is a point in time; of what is in the usage log, whole days count.
    With `named` every agent has a row, also one that used nothing."""
    prices = Prices(settings)
    first = day_of(since) if since is not None else ""
    lines: list[UsageLine] = []
    records = [record for part in parts for record, _ in part.answers]
    names = {record.id: record.name for record in records}
    for part in parts:
        for line in part.lines:
            if line.day >= first:
                lines.append(_priced(line, prices)._replace(agent=names.get(line.agent_id, line.agent)))
        for record, answers in part.answers:
            lines += daily(record, answers, prices, since)
    rows = grouped(lines, by, names)
    if by == AGENT and named:
        there = {row.id for row in rows}
        rows += [Row(record.name, record.id, Totals()) for record in records if record.id not in there]
    return UsageReport(rows, summed(row.totals for row in rows), [error for part in parts for error in part.errors])


def daily(record: Record, spent: Iterable[ModelUsage], prices: Prices, since: float | None = None) -> list[UsageLine]:
    """Answers of one agent, by day and model; those with and those without a price apart."""
    made = seconds_of(record.created_at)
    found: dict[tuple[str, str, bool], Totals] = {}
    for answer in spent:
        at = _moment(answer.timestamp, made)
        if since is None or at >= since:
            totals = counted(answer, prices)
            key = (day_of(at), answer.model, totals.cost_usd is None)
            found[key] = found.get(key, Totals()).plus(totals)
    return [
        UsageLine(record.id, record.name, record.project, record.kind, day, model, *totals[:6])
        for (day, model, _), totals in sorted(found.items())
    ]


def settle(site: Site, record: Record) -> None:
    """Put into the usage log of the caller's machine what the agent used since that was last done, before its program's
    record goes. Twice is safe. Never in the way of what is to be done: usage that cannot be read or written is lost."""
    try:
        if driver.of(record) is None:
            return
        answers = [answer for _, some in site.run(collected, [record.id]).answers for answer in some]
        if answers:
            with held():  # all or nothing
                usage_log.add(site.near.host, daily(record, answers, Prices(site.settings)))
    except Exception:  # noqa: BLE001 (whatever a program wrote, and on a full disk too, an agent can be destroyed)
        return


def grouped(lines: Iterable[UsageLine], by: str, known: Collection[str]) -> list[Row]:
    """What cost most comes first; days come in order. All agents that are not `known` are gone, and one row."""
    found: dict[tuple[str, str | None], Totals] = {}
    for line in lines:
        key: tuple[str, str | None] = (getattr(line, by), None)
        if by == AGENT:
            key = (line.agent, line.agent_id) if line.agent_id in known else (GONE, None)
        found[key] = found.get(key, Totals()).plus(_totals(line))
    rows = [Row(name, agent_id, totals) for (name, agent_id), totals in found.items()]
    if by == DAY:
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=_by_cost)


def _by_cost(row: Row) -> tuple[bool, float, int, str]:
    return row.name == GONE, -(row.totals.cost_usd or 0.0), -row.totals.tokens, row.name


def counted(spent: ModelUsage, prices: Prices) -> Totals:
    cost = prices.cost(spent)
    tokens = (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens)
    return Totals(1, *tokens, cost, int(cost is None))


def summed(totals: Iterable[Totals]) -> Totals:
    result = Totals()
    for item in totals:
        result = result.plus(item)
    return result


def as_json(totals: Totals) -> dict[str, Any]:
    """Money is rounded to a millionth of a dollar, below which floats are not exact."""
    cost = totals.cost_usd
    return {**totals._asdict(), "cost_usd": None if cost is None else round(cost, 6)}


def day_of(at: float) -> str:
    """The day where the user is."""
    try:
        return time.strftime("%Y-%m-%d", time.localtime(at))
    except (OverflowError, OSError, ValueError):
        return ""


def _moment(text: str, unknown: float) -> float:
    try:
        return seconds_of(text)
    except ValueError:
        return unknown


def _priced(line: UsageLine, prices: Prices) -> UsageLine:
    """A price may have come to be known since. Those of the settings have no steps, so that they hold for a sum too."""
    if line.cost_usd is not None:
        return line
    return line._replace(cost_usd=prices.own_cost(ModelUsage("", line.model, *line.tokens)))


def _totals(line: UsageLine) -> Totals:
    return Totals(line.answers, *line.tokens, line.cost_usd, line.answers if line.cost_usd is None else 0)
