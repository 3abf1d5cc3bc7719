"""What integration works with: verified work of agents, and the units it is cut into."""

from __future__ import annotations

from mngr.records import NamedTuple
from mngr.tmr.parts import Part

# Where on the branch work belongs, in this order: squashed by kind; in a commit of its own, to be looked at first;
# ranked, in a commit of its own.
UNCONTROVERSIAL, EXPECTATION, FIX = "uncontroversial", "expectation", "fix"


class Verified(NamedTuple):
    """One agent's work as it came out of verification.

    `effect` is what was measured: the tests that failed at the base and pass with this work; None when nobody measured.
    `importance` is what the agent claims. `stands_alone`: whether its tests, docs and the like pass without its
    implementation part; None when nobody measured. `flags` are what a person should look at, a word each. `mended` is
    for work without an implementation part what `effect` is for a fix. `place` is where verification puts it; empty, it
    is a fix when it has an implementation part. `evidence` is why an expectation had to change, in lines.
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
    mended: tuple[str, ...] = ()
    place: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, str, str]:
        return (self.task, self.slug, self.agent)


class Piece(NamedTuple):
    """One part and everyone who made it, the first by task id first."""

    part: Part
    makers: tuple[Verified, ...]

    @property
    def slug(self) -> str:
        return self.makers[0].slug


class Unit(NamedTuple):
    """What is on the branch whole or not at all: work beside the implementation, or a fix and what needs it."""

    fix: Piece | None
    rest: tuple[Piece, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (self.fix, *self.rest) if self.fix else self.rest

    @property
    def id(self) -> str:
        """A slug may have two units: its fix, and work that stands without it."""
        return f"fix:{self.fix.slug}" if self.fix else f"rest:{self.rest[0].slug}"

    @property
    def slug(self) -> str:
        return self.pieces[0].slug

    @property
    def makers(self) -> tuple[Verified, ...]:
        found = {maker.order: maker for piece in self.pieces for maker in piece.makers}
        return tuple(found[order] for order in sorted(found))

    @property
    def place(self) -> str:
        """Of work beside the implementation, an expectation that anyone of its makers changed is looked at first."""
        if self.fix:
            return FIX
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
        each = (maker.effect or () if self.fix else maker.mended for maker in self.makers)
        return frozenset(test for tests in each for test in tests)


class SetAside(NamedTuple):
    """Work that is not on the branch, where it is kept, and why. `against` names the agents of the other side."""

    slugs: tuple[str, ...]
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    what: str
    reason: str
    branch: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
