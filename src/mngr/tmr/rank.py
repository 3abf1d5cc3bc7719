"""The order of fixes: what was measured first, then what agents claim, then the task's id. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mngr.records import NamedTuple
from mngr.tmr.unit import Unit, Verified


class Ranked(NamedTuple):
    """A fix with its place, from 1, and the words that say why it is there."""

    unit: Unit
    rank: int
    because: str


def ranked(units: Iterable[Unit]) -> tuple[Ranked, ...]:
    ordered = sorted(units, key=_key)
    return tuple(Ranked(unit, number, because(unit)) for number, unit in enumerate(ordered, 1))


def effect(unit: Unit) -> int | None:
    """How many tests were measured to pass because of it; None when that was not measured for any of its makers."""
    measured = [maker.effect for maker in _makers(unit) if maker.effect is not None]
    return len({test for tests in measured for test in tests}) if measured else None


def importance(unit: Unit) -> int | None:
    claims = [maker.importance for maker in _makers(unit) if maker.importance is not None]
    return max(claims) if claims else None


def because(unit: Unit) -> str:
    count, claim = effect(unit), importance(unit)
    measured = "effect not measured" if count is None else f"makes {count} test{'' if count == 1 else 's'} pass"
    return f"{measured}, importance {'not claimed' if claim is None else f'{claim} claimed'}"


def _makers(unit: Unit) -> tuple[Verified, ...]:
    return unit.fix.makers if unit.fix else unit.makers


def _key(unit: Unit) -> tuple[int, int, tuple[str, str, str]]:
    count, claim = effect(unit), importance(unit)
    return (0 if count is None else -1 - count, -(claim or 0), unit.pieces[0].makers[0].order)
