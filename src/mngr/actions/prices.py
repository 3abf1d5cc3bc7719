"""What an answer of a model costs: what the program itself said, else the user's own price, else that of the package
`genai-prices`, which is loaded only then and asks no network. A model that nobody has a price for costs None, not 0."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mngr.agents.kinds.driver import ModelUsage
from mngr.agents.record import seconds_of
from mngr.config import Settings

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

SECTION = "prices"
_MILLION = 1e6


class Price(NamedTuple):
    """USD for a million tokens. What is read from or written to a cache costs as much as other input, unless said."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, spent: ModelUsage) -> float | None:
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
        self._settings = settings.in_force
        self._own: dict[str, Price | None] = {}

    def cost(self, spent: ModelUsage) -> float | None:
        if spent.cost_usd is not None:
            return spent.cost_usd
        if not _read(spent) and not spent.output_tokens:
            return 0.0  # what a program writes in the name of a model, such as that it was interrupted
        if not spent.model:
            return None
        own = self._price(spent.model)
        return own.cost(spent) if own is not None else _published(spent)

    def own_cost(self, spent: ModelUsage) -> float | None:
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


def _published(spent: ModelUsage) -> float | None:
    steady = _steady(spent.model)
    if steady is not None and _read(spent) < steady[1]:
        return steady[0].cost(spent)
    return _calculated(spent)


@lru_cache(maxsize=1000)
def _steady(model: str) -> tuple[Price, float] | None:
    """The price of a model whose price does not depend on the time, and the size of an answer from which it is another.
    The package takes a tenth of a millisecond for each answer, and there are many."""
    million = int(_MILLION)
    try:
        found = _asked(ModelUsage("", model, 1))
        from genai_prices.types import ModelPrice, TieredPrices
    except ImportError:
        return None
    if found is None or not isinstance(found.model.prices, ModelPrice):
        return None
    steps = [price for price in vars(found.model_price).values() if isinstance(price, TieredPrices)]
    first = min((step.start for price in steps for step in price.tiers), default=float("inf"))
    size = int(min(first - 1, million))
    kinds = ((size, 0, 0, 0), (0, size, 0, 0), (0, 0, size, 0), (0, 0, 0, size))
    costs = [_calculated(ModelUsage("", model, *tokens)) for tokens in kinds]
    return Price(*(None if cost is None else cost * million / size for cost in costs)), float(first)


# Agents that run are asked again and again, and their old answers cost what they cost.
@lru_cache(maxsize=100_000)
def _calculated(spent: ModelUsage) -> float | None:
    found = _asked(spent)
    return None if found is None else float(found.total_price)


def _asked(spent: ModelUsage) -> PriceCalculation | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        at = datetime.fromtimestamp(seconds_of(spent.timestamp), UTC)
    except (ValueError, OverflowError, OSError):
        at = None
    used = Usage(
        input_tokens=_read(spent),
        output_tokens=spent.output_tokens,
        cache_read_tokens=spent.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens,
    )
    provider, _, name = spent.model.partition("[")[0].rpartition("/")
    for given in (provider.rpartition("/")[2] or None, None):
        try:
            return calc_price(used, name, provider_id=given, genai_request_timestamp=at)
        except (LookupError, ValueError):
            continue
    return None


def _read(spent: ModelUsage) -> int:
    return spent.input_tokens + spent.cache_read_tokens + spent.cache_write_tokens
