"""What an answer of a model costs: what the program itself said, else the user's own price, else that of the package
`genai-prices`, which is loaded only then and asks no network. A model that nobody has a price for costs None, not 0."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from mngr.agent.record import seconds_of
from mngr.named_tuples import NamedTuple
from mngr.programs.driver import ModelUsage
from mngr.settings.layers import Settings

SECTION = "prices"


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
        return total / 1e6


class Prices:
    """The prices that hold with these settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.trusted_only
        self._own: dict[str, Price | None] = {}

    def cost(self, spent: ModelUsage) -> float | None:
        if spent.cost_usd is not None:
            return spent.cost_usd
        if not _read(spent) and not spent.output_tokens:
            return 0.0  # what a program writes in the name of a model, such as that it was interrupted
        if not spent.model:
            return None
        own = self.own(spent.model)
        return own.cost(spent) if own is not None else _published(spent)

    def own(self, model: str) -> Price | None:
        """The user's own price. It also holds for a sum of answers: published ones may rise with the size of each."""
        if model not in self._own:
            tables = (self._settings.table((SECTION, name)) for name in names(model))
            table = {key: found.value for key, found in next(filter(None, tables), {}).items()}
            prices = {key: price for key, price in table.items() if isinstance(price, int | float)}
            self._own[model] = Price(**prices) if table else None
        return self._own[model]


def names(model: str) -> list[str]:
    """What a price may call a model: as the program does, without a variant such as `[1m]`, without its provider."""
    plain = model.partition("[")[0]
    return list(dict.fromkeys(name for name in (model, plain, plain.rpartition("/")[2]) if name))


# Agents that run are asked again and again, and their old answers cost what they cost.
@lru_cache(maxsize=100_000)
def _published(spent: ModelUsage) -> float | None:
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
            return float(calc_price(used, name, provider_id=given, genai_request_timestamp=at).total_price)
        except (LookupError, ValueError):
            continue
    return None


def _read(spent: ModelUsage) -> int:
    return spent.input_tokens + spent.cache_read_tokens + spent.cache_write_tokens
