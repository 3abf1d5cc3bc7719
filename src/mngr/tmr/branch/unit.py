"""What integration works with: verified work of agents, split into its implementation part and the rest; the units
that it is cut into; and the order of the fixes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from mngr.tmr.branch.objects import PathChange
from mngr.tmr.judge.paths import PathKind, Paths

# Where on the branch work belongs, in this order: squashed by kind; in a commit of its own, to be looked at first;
# ranked, in a commit of its own; after these, behaviour that nobody asked for yet.
UNCONTROVERSIAL, EXPECTATION, FIX, BEHAVIOUR = "uncontroversial", "expectation", "fix", "new behaviour"


class ChangePart(NamedTuple):
    """Changes that stay together, as differences from the commit `base`."""

    base: str
    changes: tuple[PathChange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)

    @property
    def id(self) -> str:
        """The same for the same change of the same base: paths, modes and contents, whoever made it and when."""
        lines = sorted(f"{change.path}\0{change.old}\0{change.new}" for change in self.changes)
        return sha256("\0\0".join([self.base, *lines]).encode(errors="surrogateescape")).hexdigest()


class WorkSplit(NamedTuple):
    """The two parts; one with no changes is None."""

    implementation: ChangePart | None
    rest: ChangePart | None


def split(base: str, changes: Iterable[PathChange], paths: Paths) -> WorkSplit:
    implementation: list[PathChange] = []
    rest: list[PathChange] = []
    for change in sorted(changes, key=lambda change: change.path):
        (implementation if paths.kind(change.path) == PathKind.IMPLEMENTATION else rest).append(change)
    return WorkSplit(
        ChangePart(base, tuple(implementation)) if implementation else None,
        ChangePart(base, tuple(rest)) if rest else None,
    )


class VerifiedWork(NamedTuple):
    """One agent's work as it came out of verification.

    `effect` is what was measured: the tests that failed at the base and pass with this work; None when nobody measured.
    `importance` is what the agent claims. `stands_alone`: whether its tests, docs and the like pass without its
    implementation part; None when nobody measured. `flags` are what a person should look at, a word each. `repaired` is
    for work without an implementation part what `effect` is for a fix. `place` is where verification puts it; empty, it
    is a fix when it has an implementation part. `evidence` is why an expectation had to change, in lines.
    `overruled` is why a person accepted it although it was refuted.
    """

    task: str
    slug: str
    agent: str
    tip: str
    importance: int | None = None
    effect: tuple[str, ...] | None = None
    summary: str = ""
    stands_alone: bool | None = None
    flags: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    place: str = ""
    evidence: tuple[str, ...] = ()
    overruled: str = ""

    @property
    def order(self) -> tuple[str, str, str]:
        return (self.task, self.slug, self.agent)


class WorkPiece(NamedTuple):
    """One part and everyone who made it, the first by task id first."""

    part: ChangePart
    makers: tuple[VerifiedWork, ...]

    @property
    def slug(self) -> str:
        return self.makers[0].slug


def makers_of(pieces: Iterable[WorkPiece]) -> tuple[VerifiedWork, ...]:
    """Everyone who made one of the pieces, each once."""
    found = {maker.order: maker for piece in pieces for maker in piece.makers}
    return tuple(found[order] for order in sorted(found))


class Unit(NamedTuple):
    """What is on the branch whole or not at all: work beside the implementation, or a fix and what needs it."""

    fix: WorkPiece | None
    rest: tuple[WorkPiece, ...]

    @property
    def pieces(self) -> tuple[WorkPiece, ...]:
        return (self.fix, *self.rest) if self.fix else self.rest

    @property
    def id(self) -> str:
        """A slug may have several units: its fix, work that stands without it, and what it shares with others."""
        return f"fix:{self.fix.slug}" if self.fix else f"rest:{self.rest[0].slug}:{self.rest[0].part.id[:12]}"

    @property
    def slug(self) -> str:
        return self.pieces[0].slug

    @property
    def makers(self) -> tuple[VerifiedWork, ...]:
        return makers_of(self.pieces)

    @property
    def place(self) -> str:
        """Of work beside the implementation, an expectation that anyone of its makers changed is looked at first. A
        change of the product is a fix if it is one for any of its makers."""
        if self.fix:
            return BEHAVIOUR if all(maker.place == BEHAVIOUR for maker in self.fix.makers) else FIX
        return EXPECTATION if any(maker.place == EXPECTATION for maker in self.makers) else UNCONTROVERSIAL

    @property
    def flagged(self) -> bool:
        return any(maker.flags for maker in self.makers)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path for piece in self.pieces for path in piece.part.paths)

    @property
    def promises(self) -> frozenset[str]:
        """Tests that were measured to pass with this unit: their failure is never excused by the baseline."""
        each = (maker.effect or () if self.fix else maker.repaired for maker in self.makers)
        return frozenset(test for tests in each for test in tests)


class SetAside(NamedTuple):
    """Work that is not on the branch, where it is kept, and why. `against` names the agents of the other side."""

    slugs: tuple[str, ...]
    agents: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    what: str = ""
    reason: str = ""
    branch: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def units_of(splits: Iterable[tuple[VerifiedWork, WorkSplit]]) -> tuple[Unit, ...]:
    """Cut work into units, ordered by task. Work beside the implementation that was measured to stand without its fix,
    as a changed expectation does, is a unit of its own, and so is that of an agent without a fix; the rest is tied to
    the fix."""
    ordered = sorted(splits, key=lambda given: given[0].order)
    fixes: dict[str, list[VerifiedWork]] = defaultdict(list)
    alone: dict[str, list[VerifiedWork]] = defaultdict(list)
    tied: dict[str, dict[str, list[VerifiedWork]]] = defaultdict(lambda: defaultdict(list))
    parts: dict[str, ChangePart] = {part.id: part for _, split in ordered for part in split if part}
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
    made = _with_shared([Unit(None, (WorkPiece(parts[id], tuple(makers)),)) for id, makers in alone.items()])
    for id, makers in fixes.items():
        rest = tuple(WorkPiece(parts[other], tuple(theirs)) for other, theirs in tied[id].items())
        made.append(Unit(WorkPiece(parts[id], tuple(makers)), rest))
    return tuple(made)


def _with_shared(units: Sequence[Unit]) -> list[Unit]:
    """Units beside the implementation. What several of those that are commits of their own share, such as the same
    patch of a `conftest.py`, is a unit of all their makers, before them."""
    holders: dict[PathChange, list[Unit]] = defaultdict(list)
    for unit in units:
        for change in unit.pieces[0].part.changes if unit.flagged or unit.place == EXPECTATION else ():
            holders[change].append(unit)
    shared: dict[tuple[Unit, ...], list[PathChange]] = defaultdict(list)
    for change, those in holders.items():
        if len(those) > 1 and len({(unit.flagged, unit.place) for unit in those}) == 1:
            shared[tuple(those)].append(change)
    found = []
    for members, changes in shared.items():
        part = ChangePart(members[0].pieces[0].part.base, tuple(changes))
        # What such work repairs, it repairs with its other changes.
        makers = tuple(maker._replace(repaired=()) for maker in makers_of(unit.pieces[0] for unit in members))
        found.append(Unit(None, (WorkPiece(part, makers),)))
    gone = {(unit, change) for members, changes in shared.items() for unit in members for change in changes}
    for unit in units:
        [(part, makers)] = unit.pieces
        if left := tuple(change for change in part.changes if (unit, change) not in gone):
            found.append(Unit(None, (WorkPiece(part._replace(changes=left), makers),)))
    return found


class Ranked(NamedTuple):
    """A fix with its place, from 1, and the words that say why it is there."""

    unit: Unit
    rank: int
    because: str


def ranked(units: Iterable[Unit]) -> tuple[Ranked, ...]:
    """Fixes in their order: what was measured first, then what agents claim, then the task's id; new behaviour after
    all of them."""
    ordered = sorted(units, key=_key)
    return tuple(Ranked(unit, number, because(unit)) for number, unit in enumerate(ordered, 1))


def effect(unit: Unit) -> int | None:
    """How many tests were measured to pass because of it; None when that was not measured for any of its makers."""
    measured = [maker.effect for maker in (unit.fix or unit).makers if maker.effect is not None]
    return len({test for tests in measured for test in tests}) if measured else None


def importance(unit: Unit) -> int | None:
    claims = [maker.importance for maker in (unit.fix or unit).makers if maker.importance is not None]
    return max(claims) if claims else None


def because(unit: Unit) -> str:
    if unit.place == BEHAVIOUR:
        return "new behaviour: no test failed before"
    count, claim = effect(unit), importance(unit)
    measured = "effect not measured" if count is None else f"makes {count} test{'' if count == 1 else 's'} pass"
    return f"{measured}, importance {'not claimed' if claim is None else f'{claim} claimed'}"


def _key(unit: Unit) -> tuple[bool, int, int, tuple[str, str, str]]:
    count, claim = effect(unit), importance(unit)
    return (unit.place == BEHAVIOUR, 0 if count is None else -1 - count, -(claim or 0), unit.pieces[0].makers[0].order)
