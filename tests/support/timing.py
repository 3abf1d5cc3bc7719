"""How promises about time are tested where other programs run, too: those make a try slower, and never quicker."""

from collections.abc import Callable


def best_of(tries: int, limit: float, measure: Callable[[int], float]) -> float:
    """The first of some tries that stays below the limit; it fails when none does. `measure` gets the number of the
    try and does all of it anew."""
    seen: list[float] = []
    for number in range(1, tries + 1):
        seen.append(measure(number))
        if seen[-1] < limit:
            return seen[-1]
    raise AssertionError(f"not once below {limit:g} in {tries} tries: {', '.join(f'{value:.3f}' for value in seen)}")
