"""Parts that clash: the resolver is asked about all that are independent at once, and code checks its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from mngr.tmr.branch.applier import Applier, Clash, State
from mngr.tmr.branch.gate import GateFailure, IntegrationDecision
from mngr.tmr.branch.objects import Objects, PathChange, TreeEntry
from mngr.tmr.branch.unit import ChangePart, Unit, WorkPiece
from mngr.tmr.judge import weaker_tests
from mngr.tmr.judge.changed_file import File
from mngr.tmr.judge.paths import Paths
from mngr.tmr.judge.refusals import ContentRules, refusals

_MARKERS = (b"<<<<<<< ", b">>>>>>> ")


class Conflict(NamedTuple):
    """Both sides of a clash, as commits that git can show and diff: `tip` holds what is accepted so far, `theirs` the
    piece alone on `base`. `merged` is the tree of the merge, with git's markers in `paths`."""

    unit: Unit
    piece: WorkPiece
    base: str
    tip: str
    theirs: str
    merged: str
    paths: tuple[str, ...]
    against: tuple[Unit, ...]


class Resolver(Protocol):
    def resolve(self, conflicts: Sequence[Conflict]) -> Sequence[str | None]:
        """For each the tree that its `tip` should have with the piece in it, or None. Only proposals: they are checked
        and judged."""


class Stuck(NamedTuple):
    """A piece that does not go onto the line, and what it met there."""

    unit: Unit
    piece: WorkPiece
    clash: Clash
    against: tuple[Unit, ...]


class UnitLine(NamedTuple):
    """Units one after the other: after each of its pieces, the state. Those that clash are left out."""

    units: tuple[Unit, ...]
    states: tuple[tuple[State, ...], ...]
    stuck: tuple[Stuck, ...]

    def end(self, start: State) -> State:
        return self.states[-1][-1] if self.states else start


def lay(applier: Applier, units: Sequence[Unit]) -> UnitLine:
    """Apply units in this order, each whole or not at all."""
    state = applier.start
    done: list[Unit] = []
    states: list[tuple[State, ...]] = []
    stuck: list[Stuck] = []
    for unit in units:
        own: list[State] = []
        for piece in unit.pieces:
            answer = applier.apply(own[-1] if own else state, piece.part)
            if isinstance(answer, Clash):
                met = _against(answer, piece, done)
                stuck.append(Stuck(unit, piece, answer, met))
                break
            own.append(answer)
        else:
            done.append(unit)
            states.append(tuple(own))
            state = own[-1]
    return UnitLine(tuple(done), tuple(states), tuple(stuck))


class Arranger:
    """Puts as many units as possible onto the branch, in their order: what stands alone before the fixes."""

    def __init__(
        self,
        applier: Applier,
        resolver: Resolver | None,
        verify: Callable[[tuple[Unit, ...], tuple[Unit, ...]], tuple[GateFailure, ...] | None] | None,
        record: Callable[[IntegrationDecision], None],
        rules: ContentRules,
    ) -> None:
        self._applier = applier
        self._resolver = resolver
        self._verify = verify
        self._record = record
        self._content = rules
        self._asked: set[str] = set()  # ids of parts
        self.resolved: dict[str, tuple[Unit, ...]] = {}
        self.refused: dict[str, str] = {}  # why an answer was not taken, by unit

    def arrange(self, units: Sequence[Unit]) -> UnitLine:
        """The line in the given order; those whose conflict was resolved come at the end of their section. What is
        stuck in the end is on it. The resolver is asked once about each piece."""
        line = lay(self._applier, units)
        while self._resolver is not None and (conflicts := self._independent(line)):
            self._asked |= {conflict.piece.part.id for conflict in conflicts}
            answers = self._resolver.resolve(conflicts)
            for conflict, tree in zip(conflicts, answers, strict=True):
                line = self._answered(line, conflict, tree)
        return line

    def _independent(self, line: UnitLine) -> list[Conflict]:
        """Conflicts to ask about now. Of those that meet in a file, the first: its answer is part of what the others
        meet."""
        found: list[Conflict] = []
        taken: set[str] = set()
        for stuck in line.stuck:
            conflict = self._conflict(line, stuck)
            paths = {*conflict.paths, *stuck.unit.paths}
            if not paths & taken and conflict.piece.part.id not in self._asked:
                found.append(conflict)
                taken |= paths
        return found

    def _answered(self, line: UnitLine, conflict: Conflict, tree: str | None) -> UnitLine:
        """The line with the answer in it when it keeps to the conflict and the gate finds it green; else as it was."""
        unit, part = conflict.unit, conflict.piece.part
        answer = "it has no answer" if tree is None else self._take(line, conflict, tree)
        if isinstance(answer, UnitLine):
            against = ", ".join(other.slug for other in conflict.against)
            self._record(IntegrationDecision("conflict resolved", f"with {against}; verified", (unit.slug,)))
            self.resolved[part.id] = conflict.against
            return answer._replace(stuck=tuple(other for other in line.stuck if other.unit.id != unit.id))
        self._applier.resolve(part, None)
        self.refused[unit.id] = answer
        self._record(IntegrationDecision("conflict not resolved", answer, (unit.slug,)))
        return line

    def _take(self, line: UnitLine, conflict: Conflict, tree: str) -> UnitLine | str:
        """The line with the answer in it, or why it is refused."""
        objects = self._applier.objects
        tip_tree = objects.facts([conflict.tip])[conflict.tip].tree
        if not objects.git.ok("cat-file", "-e", f"{tree}^{{tree}}"):
            return f"the answer `{tree[:60]}` is no tree"
        changes = objects.changes([(tip_tree, tree)])[tip_tree, tree]
        asked = {
            *conflict.paths,
            *(path.rpartition("~")[0] for path in conflict.paths),
        }  # git's name for a file in the way
        beside = objects.changes([(conflict.merged, tree)])[conflict.merged, tree]
        outside = sorted({change.path for change in beside} - asked)
        if outside:
            return f"the answer changes `{outside[0]}`, which the conflict is not about"
        if not changes:
            return "the answer leaves the change out"
        [reasons] = refusals(objects, conflict.base, [changes], Paths(), self._content)
        if reasons:
            return f"in the answer, {reasons[0]}"
        blobs = objects.blobs(change.new.oid for change in changes if change.new and change.path in conflict.paths)
        if any(line.startswith(_MARKERS) for data in blobs.values() for line in data.splitlines()):
            return "the answer has conflict markers in it"
        if weaker := _weaker(objects, changes, conflict.piece):
            return f"the answer is weaker than both sides: {weaker}"
        if self._verify is None:
            return "there is no gate to verify the answer"
        self._applier.resolve(conflict.piece.part, ChangePart(conflict.tip, changes))
        rests = [unit for unit in line.units if not unit.fix]
        fixes = [unit for unit in line.units if unit.fix]
        order = [*rests, *fixes, conflict.unit] if conflict.unit.fix else [*rests, conflict.unit, *fixes]
        trial = lay(self._applier, order)
        if len(trial.units) <= len(line.units):
            return "with the answer, other changes clash"
        # As any work is verified: by the tests of those whom it is about. What it does to others, the gate will see.
        failures = self._verify(trial.units[: trial.units.index(conflict.unit) + 1], (*conflict.against, conflict.unit))
        if failures:
            return f"its answer is refuted, since with it `{failures[0].test}` fails"
        return trial

    def _conflict(self, line: UnitLine, stuck: Stuck) -> Conflict:
        """As met at the end of its section, where the answer will be used."""
        applier = self._applier
        before = lay(applier, [unit for unit in line.units if stuck.unit.fix or not unit.fix])
        state = before.end(applier.start)
        piece, clash = stuck.piece, stuck.clash
        for one in stuck.unit.pieces:
            answer = applier.apply(state, one.part)
            if isinstance(answer, Clash):
                piece, clash = one, answer
                break
            state = answer
        return Conflict(
            unit=stuck.unit,
            piece=piece,
            base=applier.base.id,
            tip=applier.commit(state),
            theirs=applier.part_commit(piece.part),
            merged=clash.tree,
            paths=clash.paths,
            against=_against(clash, piece, before.units),
        )


def _weaker(objects: Objects, changes: Sequence[PathChange], piece: WorkPiece) -> str:
    """What a person would have to look at in the answer and in neither of the sides that it is made of; or nothing."""
    theirs = {change.path: change.new for change in piece.part.changes}
    ways = [(one.path, one.old, theirs[one.path], one.new) for one in changes if theirs.get(one.path) and one.old]
    blobs = objects.blobs(entry.oid for _, *entries in ways for entry in entries if entry)

    def text(entry: TreeEntry | None) -> str | None:
        return blobs.get(entry.oid, b"").decode(errors="replace") if entry else None

    for path, ours, other, answer in ways:
        marks = [
            {
                flag.kind: flag.text
                for flag in weaker_tests.find(File(path, text(side), text(answer), implementation=False))
            }
            for side in (ours, other)
        ]
        for kind in marks[0].keys() & marks[1].keys():
            return marks[0][kind]
    return ""


def _against(clash: Clash, piece: WorkPiece, done: Sequence[Unit]) -> tuple[Unit, ...]:
    """Units that touch the paths of the clash; those of the whole piece when a rename moved it elsewhere."""
    for paths in (set(clash.paths), set(piece.part.paths)):
        if met := tuple(unit for unit in done if paths & unit.paths):
            return met
    return ()
