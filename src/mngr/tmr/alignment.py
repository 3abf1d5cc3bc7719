"""Which member of one sequence is which of another: the pairs in order that fit best together. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def aligned(
    before: Sequence[T], after: Sequence[T], fit: Callable[[T, T], float], most: float = math.inf
) -> list[tuple[int, int]]:
    """The places of the pairs whose fits add up to the most; two with a fit of 0 are never one. Those at both ends that
    fit as well as any two can, which is `most`, are pairs without a look at the others."""
    low, olds, news = 0, len(before), len(after)
    while low < min(olds, news) and fit(before[low], after[low]) == most:
        low += 1
    while min(olds, news) > low and fit(before[olds - 1], after[news - 1]) == most:
        olds, news = olds - 1, news - 1
    best = [[0.0] * (news + 1) for _ in range(olds + 1)]
    for old in reversed(range(low, olds)):
        for new in reversed(range(low, news)):
            fits = fit(before[old], after[new])
            paired = fits + best[old + 1][new + 1] if fits else 0.0
            best[old][new] = max(best[old + 1][new], best[old][new + 1], paired)
    found = [(at, at) for at in range(low)]
    old = new = low
    while old < olds and new < news:
        fits = fit(before[old], after[new])
        if fits and best[old][new] == fits + best[old + 1][new + 1]:
            found.append((old, new))
            old, new = old + 1, new + 1
        elif best[old][new] == best[old + 1][new]:
            old += 1
        else:
            new += 1
    return found + list(zip(range(olds, len(before)), range(news, len(after)), strict=True))
