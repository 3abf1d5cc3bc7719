"""What agents used: tokens and money, of those that are there and, from the books, of those that are gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.actions import books
from mngr.actions.agent import Agent
from mngr.actions.books import Books, Line
from mngr.actions.fleet import Fleet
from mngr.actions.prices import Prices
from mngr.agents.kinds import driver
from mngr.agents.kinds.driver import Spent
from mngr.agents.record import Record, seconds_of
from mngr.errors import MngrError, NotFoundError
from mngr.interrupts import held
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

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


class Used(NamedTuple):
    """Some answers of one agent, all of one day and one model. `gone` says that the agent was destroyed."""

    agent_id: str
    agent: str
    project: str
    type: str
    day: str
    model: str
    totals: Totals
    gone: bool = False


class Row(NamedTuple):
    """`id` is that of the agent, in a table by agents."""

    name: str
    id: str | None
    totals: Totals

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "id": self.id, **as_json(self.totals)}


class Report(NamedTuple):
    """`errors` are of agents whose usage could not be read."""

    rows: list[Row]
    total: Totals
    errors: list[MngrError]


def of(fleet: Fleet, agent: Agent | Record, booked: Books | None = None) -> list[Spent]:
    """Every answer of a model that is in its program's record and not in the books yet. What a clone or a restored
    agent brought along was another's, or is in the books."""
    record = agent.record if isinstance(agent, Agent) else agent
    known = driver.of(record)
    if known is None:
        return []
    found = known.usage(fleet.place(record))
    booked = books.read(fleet.host) if booked is None else booked
    return new(found, seconds_of(record.created_at), booked.until.get(record.id, 0.0))


def new(found: Sequence[Spent], made: float, booked_until: float) -> list[Spent]:
    """Answers since the agent was made that are not in the books. One without a time counts as one of the first."""
    moments = [_moment(spent.timestamp, made) for spent in found]
    return [spent for spent, at in zip(found, moments, strict=True) if at >= made and at > booked_until]


def total(fleet: Fleet, agent_id: str) -> Totals:
    """All that one agent used since it was made, also of one that is gone. Raises when its record cannot be read."""
    prices = Prices(fleet.settings)
    booked = books.read(fleet.host)
    try:
        live = of(fleet, fleet.store.read(agent_id), booked)
    except NotFoundError:
        live, booked = [], books.read(fleet.host)
    known = [_booked(line, prices).totals for line in booked.lines if line.agent_id == agent_id]
    return summed((*known, *(counted(spent, prices) for spent in live)))


def report(
    fleet: Fleet, agents: Sequence[Agent] | None = None, *, by: str = AGENT, since: float | None = None
) -> Report:
    """What these agents used, or all that there are and were. `since` is a point in time; of what is in the books,
    whole days count."""
    used, errors = collect(fleet, agents, since)
    rows = grouped(used, by)
    if by == AGENT and agents is not None:
        there = {row.id for row in rows}
        rows += [Row(agent.name, agent.id, Totals()) for agent in agents if agent.id not in there]
    return Report(rows, summed(row.totals for row in rows), errors)


def collect(fleet: Fleet, agents: Sequence[Agent] | None, since: float | None) -> tuple[list[Used], list[MngrError]]:
    errors: list[MngrError] = []
    booked = books.read(fleet.host)
    if agents is None:
        listing = fleet.list()
        errors += listing.errors
        seen = listing.agents
    else:
        seen = list(agents)
    prices = Prices(fleet.settings)
    ids = {agent.id for agent in seen}
    names = {agent.id: agent.name for agent in seen}
    first = day_of(since) if since is not None else ""
    found = []
    for line in booked.lines:
        if (agents is None or line.agent_id in ids) and line.day >= first:
            used = _booked(line, prices)
            found.append(used._replace(agent=names.get(line.agent_id, used.agent), gone=line.agent_id not in ids))
    for agent in seen:
        try:
            found += daily(agent.record, of(fleet, agent, booked), prices, since)
        except (MngrError, OSError, ImportError) as error:
            hint = error.hint if isinstance(error, MngrError) else "`mngr doctor` checks this machine"
            errors.append(MngrError(f"what `{agent.name}` used cannot be read: {error}", hint=hint))
    return found, errors


def daily(record: Record, spent: Iterable[Spent], prices: Prices, since: float | None = None) -> list[Used]:
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
        Used(record.id, record.name, record.project, record.kind, day, model, totals)
        for (day, model, _), totals in sorted(found.items())
    ]


def settle(fleet: Fleet, record: Record) -> None:
    """Put into the books what the agent used since it was last done, before its program's record goes. Twice is safe.
    Never in the way of what is to be done: usage that cannot be read or written is lost."""
    try:
        answers = of(fleet, record)
        if answers:
            lines = [_line(used) for used in daily(record, answers, Prices(fleet.settings))]
            with held():  # all or nothing
                books.add(fleet.host, lines)
    except Exception:  # noqa: BLE001 (whatever a program wrote, and on a full disk too, an agent can be destroyed)
        return


def grouped(used: Iterable[Used], by: str) -> list[Row]:
    """What cost most comes first; days come in order. All agents that are gone are one row."""
    found: dict[tuple[str, str | None], Totals] = {}
    for item in used:
        key = _KEYS[by](item)
        found[key] = found.get(key, Totals()).plus(item.totals)
    rows = [Row(name, agent_id, totals) for (name, agent_id), totals in found.items()]
    if by == DAY:
        return sorted(rows, key=lambda row: row.name)
    return sorted(rows, key=_dearest_first)


def _dearest_first(row: Row) -> tuple[bool, float, int, str]:
    return row.name == GONE, -(row.totals.cost_usd or 0.0), -row.totals.tokens, row.name


def counted(spent: Spent, prices: Prices) -> Totals:
    cost = prices.cost(spent)
    tokens = (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens, spent.cache_write_tokens)
    return Totals(1, *tokens, cost, int(cost is None))


def summed(totals: Iterable[Totals]) -> Totals:
    result = Totals()
    for item in totals:
        result = result.plus(item)
    return result


def as_json(totals: Totals) -> dict[str, Any]:
    """Money to a millionth of a dollar: what floats add is no fact."""
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


def _line(used: Used) -> Line:
    totals = used.totals
    return Line(used.agent_id, used.agent, used.project, used.type, used.day, used.model, *totals[:6])


def _booked(line: Line, prices: Prices) -> Used:
    """A price may have come to be known since. Those of the settings have no steps, so that they hold for a sum too."""
    cost = line.cost_usd
    if cost is None:
        cost = prices.own_cost(Spent("", line.model, *line.tokens))
    totals = Totals(line.answers, *line.tokens, cost, 0 if cost is not None else line.answers)
    return Used(line.agent_id, line.agent, line.project, line.type, line.day, line.model, totals)


_KEYS: Mapping[str, Callable[[Used], tuple[str, str | None]]] = {
    AGENT: lambda used: (GONE, None) if used.gone else (used.agent, used.agent_id),
    PROJECT: lambda used: (used.project, None),
    DAY: lambda used: (used.day, None),
    MODEL: lambda used: (used.model, None),
    TYPE: lambda used: (used.type, None),
}
