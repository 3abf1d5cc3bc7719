"""When a run has used what it may use: money, tokens, time. Pure."""

from __future__ import annotations

from mngr.mapreduce.limits import Limits
from mngr.mapreduce.state import RunState, Usage
from mngr.records import NamedTuple

BUDGET, DEADLINE = "budget", "deadline"


class Over(NamedTuple):
    why: str
    because: str


def over(state: RunState, limits: Limits, now: float) -> Over | None:
    """What is used up, if anything is."""
    limited = limits.budget_usd is not None or limits.budget_tokens is not None
    used = state.usage if limited else Usage()
    if limits.budget_usd is not None and used.cost_usd >= limits.budget_usd:
        return Over(BUDGET, f"${used.cost_usd:.2f} of ${limits.budget_usd:.2f} are spent")
    if limits.budget_usd is not None and used.unpriced:
        return Over(
            BUDGET,
            f"{used.unpriced} answers have no known price, so that ${limits.budget_usd:.2f} cannot be kept to: "
            "set `[prices]`, or limit tokens",
        )
    if limits.budget_tokens is not None and used.tokens >= limits.budget_tokens:
        return Over(BUDGET, f"{used.tokens} of {limits.budget_tokens} tokens are used")
    if limits.deadline is not None and now >= limits.deadline:
        return Over(DEADLINE, "the deadline has passed")
    return None
