"""Who made what: the same change made by several agents is one piece with all their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mngr.tmr.apply import Applier
from mngr.tmr.parts import Part, Split
from mngr.tmr.unit import EXPECTATION, Piece, Unit, Verified


def units(splits: Iterable[tuple[Verified, Split]]) -> tuple[Unit, ...]:
    """Cut work into units, ordered by task. Work beside the implementation that was measured to stand without its fix,
    as a changed expectation does, is a unit of its own, and so is that of an agent without a fix; the rest is tied to
    the fix."""
    ordered = sorted(splits, key=lambda given: given[0].order)
    fixes: dict[str, list[Verified]] = defaultdict(list)
    alone: dict[str, list[Verified]] = defaultdict(list)
    tied: dict[str, dict[str, list[Verified]]] = defaultdict(lambda: defaultdict(list))
    parts: dict[str, Part] = {part.id: part for _, split in ordered for part in split if part}
    stands = {
        split.rest.id
        for work, split in ordered
        if split.rest and (work.stands_alone or work.place == EXPECTATION or not split.implementation)
    }
    for work, split in ordered:
        if split.implementation:
            fixes[split.implementation.id].append(work)
        if split.rest and split.rest.id in stands:
            alone[split.rest.id].append(work)
        elif split.rest and split.implementation:
            tied[split.implementation.id][split.rest.id].append(work)
    made = [Unit(None, (Piece(parts[id], tuple(makers)),)) for id, makers in alone.items()]
    for id, makers in fixes.items():
        rest = tuple(Piece(parts[other], tuple(theirs)) for other, theirs in tied[id].items())
        made.append(Unit(Piece(parts[id], tuple(makers)), rest))
    return tuple(made)


def shared(applier: Applier, fixes: Sequence[Unit]) -> dict[str, list[str]]:
    """For each fix, the ids of the earlier ones that hold some of its very changes: to revert those takes these away
    too."""
    owned: dict[object, str] = {}
    found: dict[str, list[str]] = {}
    for unit in fixes:
        part = unit.fix.part if unit.fix else None
        own = {*part.changes, *applier.hunks(part)} if part else set()
        found[unit.id] = sorted({owned[thing] for thing in own if thing in owned})
        for thing in own:
            owned.setdefault(thing, unit.id)
    return {id: ids for id, ids in found.items() if ids}
