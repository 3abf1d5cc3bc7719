"""What agents used, in tokens and money: of existing agents from their programs' records, of destroyed ones from the
books, a file with a line for each agent, day and model that is only added to."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.actions.prices import Prices
from mngr.actions.site import Site
from mngr.agent.record import Record, seconds_of, timestamp
from mngr.errors import MngrError
from mngr.programs import driver
from mngr.programs.driver import ModelUsage
from mngr.settings.layers import Settings
from mngr.system.files import content, read_lines
from mngr.system.interrupts import held
from mngr.system.state_dir import StateDir

AGENT, PROJECT, DAY, MODEL, TYPE = "agent", "project", "day", "model", "type"
BY = (AGENT, PROJECT, DAY, MODEL, TYPE)
GONE = "destroyed agents"
_BOOKS = "usage.jsonl"


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
        return sum(self[1:5])

    def plus(self, other: Totals) -> Totals:
        counts = [one + two for one, two in zip(self[:5], other[:5], strict=True)]
        unpriced = self.unpriced + other.unpriced
        known = (self.cost_usd or 0.0) + (other.cost_usd or 0.0)
        return Totals(*counts)._replace(cost_usd=None if unpriced == counts[0] > 0 else known, unpriced=unpriced)


class UsageLine(NamedTuple):
    """Some answers of one agent, all of one day and one model; of all or of none the price is known. `cost_usd` is what
    was known when it was written, None when no price was. Answers up to `until` are in the books, also those that the
    record of the agent's program still holds."""

    agent_id: str
    agent: str = ""
    project: str = ""
    type: str = ""
    day: str = ""
    model: str = ""
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    until: str = ""

    @property
    def totals(self) -> Totals:
        return Totals(*self[6:12], self.answers if self.cost_usd is None else 0)


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


class CollectedUsage(NamedTuple):
    """What a site knows of its agents' usage, without prices: they are known where the user's settings are. `answers`
    are those of each agent that are not in the books, `lines` those that are."""

    answers: list[tuple[Record, list[ModelUsage]]]
    lines: list[UsageLine]
    errors: list[MngrError]


def collected(site: Site, ids: Sequence[str] | None = None) -> CollectedUsage:
    """The usage of these agents, or of all that there are and were."""
    records, errors = site.store.records(ids) if site.host.is_ours() else ([], [])
    found = CollectedUsage([], [], [*errors])
    books = read_books(site.host)
    until = booked_until(books)
    for record in records:
        try:
            known = driver.of(record)
            answers = known.usage(site.place(record)) if known is not None else []
            found.answers.append((record, new(answers, seconds_of(record.life.created_at), until.get(record.id, 0.0))))
        except (MngrError, OSError, ImportError) as error:
            hint = error.hint if isinstance(error, MngrError) else "`mngr doctor` checks this machine"
            found.errors.append(MngrError(f"what `{record.name}` used cannot be read: {error}", hint=hint))
            found.answers.append((record, []))
    if ids is not None and len(records) < len(ids):
        books = read_books(site.host)  # an agent may have been destroyed and written down in the meantime
    found.lines.extend(line for line in books if line.answers and (ids is None or line.agent_id in ids))
    return found


def new(found: Sequence[ModelUsage], made: float, booked_until: float) -> list[ModelUsage]:
    """Answers since the agent was made that are not in the books: what a clone or a restored agent brought along was
    another's, or is in the books. One without a time counts as one of the first."""
    moments = [_moment(spent.timestamp, made) for spent in found]
    return [spent for spent, at in zip(found, moments, strict=True) if at >= made and at > booked_until]


def total(site: Site, agent_id: str) -> Totals:
    """All that one agent used since it was made, also of one that is gone. Raises when its record cannot be read.
    Runs on the caller's machine."""
    return priced(site.run(collected, [agent_id]), site.settings)


def priced(found: CollectedUsage, settings: Settings) -> Totals:
    """The sum of what was collected, with the prices of these settings. Raises what could not be read."""
    if found.errors:
        raise found.errors[0]
    return summed(line.totals for line in _all_lines(found, Prices(settings)))


def report(
    parts: Sequence[CollectedUsage], settings: Settings, *, by: str = AGENT, since: float | None = None, named: bool
) -> UsageReport:
    """The usage of some sites in one table. `since` is a point in time; of what is in the books, whole days count.
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
    """What is in the books, where a price of the user's may have come to be known since, and what is not."""
    first = day_of(since) if since is not None else ""
    for line in found.lines:
        if line.day >= first:
            own = prices.own(line.model) if line.cost_usd is None else None
            yield line._replace(cost_usd=own.cost(ModelUsage("", line.model, *line[7:11]))) if own else line
    for record, answers in found.answers:
        yield from daily(record, answers, prices, since)


def daily(record: Record, spent: Iterable[ModelUsage], prices: Prices, since: float | None = None) -> list[UsageLine]:
    """Answers of one agent, by day and model; those with and those without a price apart."""
    made = seconds_of(record.life.created_at)
    found: dict[tuple[str, str, bool], Totals] = {}
    for answer in spent:
        at = _moment(answer.timestamp, made)
        if since is None or at >= since:
            cost = prices.cost(answer)
            tokens = answer.input_tokens, answer.output_tokens, answer.cache_read_tokens, answer.cache_write_tokens
            key = (day_of(at), answer.model, cost is None)
            found[key] = found.get(key, Totals()).plus(Totals(1, *tokens, cost, int(cost is None)))
    return [
        UsageLine(record.id, record.name, record.spec.project, record.spec.kind, day, model, *totals[:6])
        for (day, model, _), totals in sorted(found.items())
    ]


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


def settle(site: Site, record: Record) -> None:
    """Put into the books of the caller's machine what the agent used since that was last done, before its program's
    record goes. Twice is safe. Never in the way of what is to be done: usage that cannot be read or written is lost."""
    try:
        if driver.of(record) is None:
            return
        answers = [answer for _, some in site.run(collected, [record.id]).answers for answer in some]
        with held():  # all or nothing
            for line in daily(record, answers, Prices(site.settings)) if answers else ():
                _write(site.near.host, line._asdict())
    except Exception:  # noqa: BLE001 (whatever a program wrote, and on a full disk too, an agent can be destroyed)
        return


def start_page(host: StateDir, agent_id: str) -> None:
    """From now on this agent's answers are its own: what its program's record holds already is counted elsewhere."""
    _write(host, {"agent_id": agent_id})


def _write(host: StateDir, line: Mapping[str, Any]) -> None:
    host.append(os.path.join(host.dir, _BOOKS), {**line, "until": timestamp()})


def read_books(host: StateDir) -> list[UsageLine]:
    """All lines. One that is torn or makes no sense is passed over."""
    return parse_books(content(os.path.join(host.dir, _BOOKS)))


def parse_books(data: bytes) -> list[UsageLine]:
    return [line for value in read_lines(data) if (line := _line(value)) is not None]


def booked_until(lines: Iterable[UsageLine]) -> dict[str, float]:
    """Up to when each agent is in the books, by its id."""
    until: dict[str, float] = {}
    for line in lines:
        until[line.agent_id] = max(until.get(line.agent_id, 0.0), _moment(line.until, 0.0))
    return until


def _line(value: dict[str, Any]) -> UsageLine | None:
    texts = {name: str(value.get(name) or "") for name in (*UsageLine._fields[1:6], "until")}
    counts = {name: value.get(name, 0) for name in UsageLine._fields[6:11]}
    agent_id, cost = value.get("agent_id"), value.get("cost_usd")
    sound = isinstance(agent_id, str) and all(isinstance(count, int) and count >= 0 for count in counts.values())
    if not sound or not (cost is None or (isinstance(cost, int | float) and 0 <= cost < 1e12)):
        return None
    facts: dict[str, Any] = {"agent_id": agent_id, **texts, **counts, "cost_usd": cost}
    return UsageLine(**facts)


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
