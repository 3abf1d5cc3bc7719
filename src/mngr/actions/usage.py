"""What agents used, in tokens and money: of existing agents from their programs' records, of destroyed ones from the
books, a file with a line for each agent, day and model that is only added to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from mngr.actions.prices import Prices
from mngr.actions.site import Site
from mngr.agent.record import Record, seconds_of, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.programs import driver
from mngr.programs.driver import ModelUsage
from mngr.system.files import content, read_lines
from mngr.system.interrupts import held
from mngr.system.state_dir import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    was known when it was written, None when no price was. Answers up to `until` are in the usage ledger, also those
    that the record of the agent's program still holds."""

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


class CollectedUsage(NamedTuple):
    """What a site knows of its agents' usage, without prices: they are known where the user's settings are. `answers`
    are those of each agent that are not in the usage ledger, `lines` those that are."""

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
    """Answers since the agent was made that are not in the usage ledger: what a clone or a restored agent brought along
    was another's, or is in the usage ledger. One without a time counts as one of the first."""
    moments = [_moment(spent.timestamp, made) for spent in found]
    return [spent for spent, at in zip(found, moments, strict=True) if at >= made and at > booked_until]


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


def record_usage(site: Site, record: Record) -> None:
    """Put into the usage ledger of this machine what the agent used since that was last done, before its program's
    record goes. Twice is safe. Never raises: usage that cannot be read or written is lost."""
    try:
        if driver.of(record) is not None:
            write_usage(site, record, collected(site, [record.id]))
    except Exception:  # noqa: BLE001 (whatever a program wrote, and on a full disk too, an agent can be destroyed)
        return


def write_usage(site: Site, record: Record, found: CollectedUsage) -> None:
    """Add what was collected of this agent to the usage ledger of this machine."""
    answers = [answer for _, some in found.answers for answer in some]
    with held():  # all or nothing
        for line in daily(record, answers, Prices(site.settings)) if answers else ():
            _write(site.host, line._asdict())


def start_counting(host: StateDir, agent_id: str) -> None:
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
    """Up to when each agent is in the usage ledger, by its id."""
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
