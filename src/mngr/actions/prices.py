"""What an answer of a model costs: what the program itself said, else the user's own price, else that of the package
`genai-prices`, which is loaded only then and asks no network. A model that nobody has a price for costs None, not 0."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mngr.agents.kinds.driver import Spent
from mngr.agents.record import seconds_of
from mngr.config import Settings
from mngr.records import NamedTuple

SECTION = "prices"
_MILLION = 1e6


class Price(NamedTuple):
    """USD for a million tokens. What is read from or written to a cache costs as much as other input, unless said."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, spent: Spent) -> float | None:
        total = 0.0
        for tokens, price in (
            (spent.input_tokens, self.input),
            (spent.output_tokens, self.output),
            (spent.cache_read_tokens, self.input if self.cache_read is None else self.cache_read),
            (spent.cache_write_tokens, self.input if self.cache_write is None else self.cache_write),
        ):
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return total / _MILLION


class Prices:
    """The prices that hold with these settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._own: dict[str, Price | None] = {}

    def cost(self, spent: Spent) -> float | None:
        if spent.cost_usd is not None:
            return spent.cost_usd
        if not spent.model:
            return None
        own = self._price(spent.model)
        return own.cost(spent) if own is not None else _published(spent)

    def own_cost(self, spent: Spent) -> float | None:
        """By the user's own price alone, for a sum of many answers: published ones may rise with the size of each."""
        own = self._price(spent.model)
        return own.cost(spent) if own is not None else None

    def _price(self, model: str) -> Price | None:
        if model not in self._own:
            self._own[model] = self._find(model)
        return self._own[model]

    def _find(self, model: str) -> Price | None:
        for name in names(model):
            if table := self._settings.table((SECTION, name)):
                return _price({key: value.value for key, value in table.items()})
        return None


def names(model: str) -> list[str]:
    """What a price may call a model: as the program does, without a variant such as `[1m]`, without its provider."""
    plain = model.partition("[")[0]
    return list(dict.fromkeys(name for name in (model, plain, plain.rpartition("/")[2]) if name))


def _price(table: Mapping[str, object]) -> Price:
    return Price(**{key: value for key, value in table.items() if isinstance(value, int | float)})


# Agents that run are asked again and again, and their old answers cost what they cost.
@lru_cache(maxsize=100_000)
def _published(spent: Spent) -> float | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    from datetime import UTC, datetime

    try:
        at = datetime.fromtimestamp(seconds_of(spent.timestamp), UTC)
    except (ValueError, OverflowError, OSError):
        at = None
    cached = spent.cache_read_tokens + spent.cache_write_tokens
    used = Usage(
        input_tokens=spent.input_tokens + cached,
        output_tokens=spent.output_tokens,
        cache_read_tokens=spent.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens,
    )
    provider, _, rest = spent.model.partition("[")[0].rpartition("/")
    for name, given in ((rest, provider.rpartition("/")[2] or None), (rest, None)):
        try:
            return float(calc_price(used, name, provider_id=given, genai_request_timestamp=at).total_price)
        except (LookupError, ValueError):
            continue
    return None
