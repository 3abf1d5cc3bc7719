"""From verified work to one branch. Code decides what is true and what goes on the branch; agents only propose.

Works on objects of the repository and on branches for what is set aside: work tree, index, HEAD and settings of the
user are neither read nor changed. The order is that of task ids and ranks, so the same work gives the same commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.system.git import Git
from mngr.tmr.branch import same_edit, set_aside
from mngr.tmr.branch.applier import Applier, Clash
from mngr.tmr.branch.conflict import Arranger, Resolver, UnitLine, lay
from mngr.tmr.branch.gate import Blame, Gate, IntegrationDecision, Judge, Judged, KnownTests, together
from mngr.tmr.branch.integrated import Committed, Integrated
from mngr.tmr.branch.objects import CommitFacts, Objects, PathChange
from mngr.tmr.branch.planner import Planned, Planner, reverts
from mngr.tmr.branch.set_aside import LeftOut
from mngr.tmr.branch.unit import (
    EXPECTATION,
    ChangePart,
    SetAside,
    Unit,
    VerifiedWork,
    WorkPiece,
    WorkSplit,
    ranked,
    split,
    units_of,
)
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.tmr.judge.refusals import ContentRules, refusals

_EVIDENCE = 4000


class Rules(NamedTuple):
    """What integration goes by: `batch` is how many units are gated at a time."""

    paths: Paths = Paths()
    known: KnownTests = KnownTests()
    batch: int = 16
    content: ContentRules = ContentRules()


def integrate(
    git: Git,
    run: str,
    base: str,
    inputs: Sequence[VerifiedWork],
    *,
    gate: Gate | None = None,
    resolver: Resolver | None = None,
    record: Callable[[IntegrationDecision], None] | None = None,
    keep: Collection[str] | None = None,
    rules: Rules | None = None,
) -> Integrated:
    """Integrate work on the base. `record` is told every decision as it is made; `keep` are the slugs of the work to
    keep (of all agents that made the same), None for all. Twice gives the same commits. No branch is pointed at the
    tip: that is the caller's."""
    return _Integration(git, run, base, inputs, record, rules or Rules()).run(gate, resolver, keep)


WorkChanges = tuple[VerifiedWork, tuple[PathChange, ...]]


class _Built(NamedTuple):
    planned: list[Planned]
    ids: list[str]
    tip: str


class _Integration:
    def __init__(
        self,
        git: Git,
        run: str,
        base: str,
        inputs: Sequence[VerifiedWork],
        record: Callable[[IntegrationDecision], None] | None,
        rules: Rules,
    ) -> None:
        self.run_id = run
        self.rules = rules
        self.objects = Objects(git)
        self.inputs = sorted(inputs, key=lambda work: work.order)
        slugs = [work.slug for work in self.inputs]
        if twice := sorted({slug for slug in slugs if slugs.count(slug) > 1}):
            raise MngrError(f"two pieces of work are called `{twice[0]}`")
        self.facts = self.objects.facts([base, *(work.tip for work in inputs)])
        if base not in self.facts:
            raise MngrError(f"the base `{base}` is not a commit of this repository")
        self.base = self.facts[base]
        self.decisions: dict[IntegrationDecision, None] = {}
        self._record = record
        self.refused: list[SetAside] = []
        self.unchanged: list[str] = []
        self.left: dict[str, LeftOut] = {}

    def decide(self, decision: IntegrationDecision) -> None:
        """Once each: the same question may come up in many orders."""
        if decision not in self.decisions:
            self.decisions[decision] = None
            if self._record:
                self._record(decision)

    def run(self, gate: Gate | None, resolver: Resolver | None, keep: Collection[str] | None) -> Integrated:
        units = units_of(self.splits(self.unified(self.changes(), gate)))
        self.credits(units)
        parts = [piece.part for unit in units for piece in unit.pieces]
        self.applier = Applier(self.objects, self.base, parts, self.by_function)
        self.planner = Planner(self.run_id, self.applier, self.rules.paths, self.facts)
        self._trials: dict[tuple[Unit, ...], _Built] = {}
        judge = Judge(gate, self.rules.known, self.commit_of, self.fitting, self.decide) if gate else None
        verify = (lambda units, about: judge.failures(units, about=about)) if judge else None
        self.arranger = Arranger(self.applier, resolver, verify, self.decide, self.rules.content)
        line, judged = self.arrange_and_judge(self.kept(units, keep), judge)
        built = self.build(line)
        return self.finish(built, judged)

    def changes(self) -> list[WorkChanges]:
        """The net change of each, from the base to its tip: what was verified, however its history came about."""
        there = [work for work in self.inputs if work.tip in self.facts]
        for work in self.inputs:
            if work.tip not in self.facts:
                self.refuse(work, (f"the commit `{work.tip[:60]}` does not exist",))
        pairs = [(self.base.tree, self.facts[work.tip].tree) for work in there]
        found = self.objects.changes(pairs)
        works = [found[pair] for pair in pairs]
        refused = refusals(self.objects, self.base.id, works, self.rules.paths, self.rules.content)
        done = []
        for work, changes, reasons in zip(there, works, refused, strict=True):
            if reasons:
                self.refuse(work, reasons)
            elif changes:
                done.append((work, changes))
            else:
                self.unchanged.append(work.slug)
        return done

    def splits(self, given: Sequence[WorkChanges]) -> list[tuple[VerifiedWork, WorkSplit]]:
        return [(work, split(self.base.id, changes, self.rules.paths)) for work, changes in given]

    def unified(self, given: list[WorkChanges], gate: Gate | None) -> list[WorkChanges]:
        """The changes with what several agents did in other words written alike. Where names differ, the tests of those
        whose work is written otherwise now must be green with it; without a gate their work stays as it is."""
        sure = self.written(given, renamed=False)
        maybe = self.written(sure, renamed=True) if gate else sure
        asked = [at for at, one in enumerate(maybe) if one != sure[at]]
        if gate and asked and not self.proven([maybe[at] for at in asked], gate):
            refuted = [at for at in asked if len(asked) == 1 or not self.proven([maybe[at]], gate)]
            maybe = [sure[at] if at in refuted else one for at, one in enumerate(maybe)]
        for (work, before), (_, after) in zip(given, maybe, strict=True):
            paths = [old.path for old, new in zip(before, after, strict=True) if old != new]
            if paths:
                names = ", ".join(f"`{path}`" for path in paths)
                self.decide(IntegrationDecision("made one", f"the same edit of {names} as others made", (work.slug,)))
        return maybe

    def written(self, given: Sequence[WorkChanges], *, renamed: bool) -> list[WorkChanges]:
        made = same_edit.unify(self.objects, [changes for _, changes in given], renamed=renamed)
        return [(work, changes) for (work, _), changes in zip(given, made, strict=True)]

    def proven(self, given: Sequence[WorkChanges], gate: Gate) -> bool:
        """Whether the tests of these works are green with the changes as they are given, on the base alone."""
        units = units_of(self.splits(given))
        parts = [piece.part for unit in units for piece in unit.pieces]
        applier = Applier(self.objects, self.base, parts, self.by_function)
        line = lay(applier, units)
        return not line.stuck and gate.check(applier.commit(line.end(applier.start)), units).green

    def refuse(self, work: VerifiedWork, reasons: tuple[str, ...]) -> None:
        self.refused.append(set_aside.refused(work, reasons))
        self.decide(IntegrationDecision("refused", reasons[0], (work.slug,)))

    def by_function(self, path: str) -> bool:
        return path.endswith(".py") and self.rules.paths.kind(path) == PathKind.TEST

    def credits(self, units: Sequence[Unit]) -> None:
        for piece in (piece for unit in units for piece in unit.pieces if len(piece.makers) > 1):
            slugs = tuple(maker.slug for maker in piece.makers)
            self.decide(IntegrationDecision("made one", "the changes are identical", slugs))

    def kept(self, units: Sequence[Unit], keep: Collection[str] | None) -> list[Unit]:
        """What stands alone by place and task, flagged work after what is not, then the fixes by rank; without what a
        person dropped."""
        rests = sorted(
            (unit for unit in units if not unit.fix), key=lambda unit: (unit.place == EXPECTATION, unit.flagged)
        )
        kept = []
        for unit in (*rests, *(one.unit for one in ranked(unit for unit in units if unit.fix))):
            makers = unit.fix.makers if unit.fix else unit.makers
            if keep is None or all(maker.slug in keep for maker in makers):
                kept.append(unit)
            else:
                self.left[unit.id] = LeftOut(unit.pieces, "dropped in review")
                self.decide(IntegrationDecision("dropped", "by a person, in review", (unit.slug,)))
        return kept

    def arrange_and_judge(self, units: list[Unit], judge: Judge | None) -> tuple[UnitLine, Judged | None]:
        """Arrange and judge until the line that was judged green is the line there is. Who was left out for a clash
        with a unit that turned out red gets another chance."""
        line, units = self.arranged(units)
        if self.arranger.resolved:  # who was resolved at the end may fit in its own place now
            line, units = self.arranged(units)
        while judge is not None:
            judged = judge.run(line.units, self.rules.batch)
            for blame in judged.blamed:
                self.left[blame.unit.id] = _blamed(blame)
            units = [unit for unit in units if unit.id not in self.left]
            line, units = self.arranged(units)
            if line.units == judged.accepted:
                return line, judged
        return line, None

    def arranged(self, units: list[Unit]) -> tuple[UnitLine, list[Unit]]:
        """The line, and the units with those pieces taken off that clash while their fix does not."""
        while True:
            line = self.arranger.arrange(units)
            tied = next((stuck for stuck in line.stuck if stuck.unit.fix and stuck.piece is not stuck.unit.fix), None)
            self.stuck = [stuck for stuck in line.stuck if stuck is not tied]
            if tied is None:
                return line, units
            rest = tuple(piece for piece in tied.unit.rest if piece is not tied.piece)
            units = [unit._replace(rest=rest) if unit.id == tied.unit.id else unit for unit in units]
            left = _clashed((tied.piece,), tied.clash, tied.against)
            self.left[f"tied:{tied.piece.slug}"] = left
            self.decide(IntegrationDecision("set aside without its fix", left.reason, (tied.piece.slug,)))

    def fitting(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        return lay(self.applier, units).units

    def commit_of(self, units: tuple[Unit, ...], final: bool) -> str | None:
        line = lay(self.applier, units)
        if line.stuck:
            return None
        return self.build(line).tip if final else self.applier.commit(line.end(self.applier.start))

    def build(self, line: UnitLine) -> _Built:
        """Make the commits of a line. A fix that adds nothing to those before it is no commit: they get its credit."""
        if line.units not in self._trials:
            full = lay(self.applier, self.credited(line))
            ranks = {one.unit.id: one for one in ranked(unit for unit in full.units if unit.fix)}
            wanted = self.needs(line.units)  # also for what is there already, which is tied to the fix no more
            ids_of = {id: {unit.id for unit in units} for id, units in wanted.items()}
            needs = {id: [one.unit for one in ranks.values() if one.unit.id in ids] for id, ids in ids_of.items()}
            planned = self.planner.plan(full, ranks, needs)
            ids = self.objects.write([one.new for one in planned])
            self._trials[line.units] = _Built(planned, ids, ids[-1] if ids else self.base.id)
        return self._trials[line.units]

    def needs(self, units: Sequence[Unit], *, alone: bool = False) -> dict[str, list[Unit]]:
        """For each fix, the earlier ones that hold some of its changes, and those that its conflicts were with. What is
        tied to it counts too, such as the same patch of a `conftest.py`, unless only the fixes themselves are asked."""
        fixes = {unit.id: unit for unit in units if unit.fix}
        pieces = {id: unit.pieces[:1] if alone else unit.pieces for id, unit in fixes.items()}
        changes = {id: tuple(one for piece in own for one in piece.part.changes) for id, own in pieces.items()}
        whole = {id: ChangePart(self.base.id, own) for id, own in changes.items()}
        found = {}
        for id, shared in self.applier.shared(whole).items():
            parts = [piece.part.id for piece in fixes[id].pieces]
            met = {other.id for part in parts for other in self.arranger.resolved.get(part, ())}
            found[id] = [unit for other, unit in fixes.items() if other in met.union(shared)]
        return found

    def credited(self, line: UnitLine) -> list[Unit]:
        """The units that add something. The makers of a fix that does not, and what is tied to it, are added to the
        last of those that together hold all of it."""
        needs, state = self.needs(line.units, alone=True), self.applier.start
        done: dict[str, Unit] = {}
        for unit, states in zip(line.units, line.states, strict=True):
            if unit.fix and state.files == states[0].files:
                into = [done[other.id] for other in needs[unit.id] if other.id in done]
                names = [other.slug for other in into]
                because = f"all of it is in {' and '.join(f'`{name}`' for name in names) or 'what is there already'}"
                self.decide(IntegrationDecision("made one", because, (unit.slug, *names)))
                for last in into[-1:]:
                    fix = last.fix and last.fix._replace(makers=(*last.fix.makers, *unit.fix.makers))
                    done[last.id] = Unit(fix, (*last.rest, *unit.rest))
            else:
                needless = unit.fix and states[0].files == states[-1].files
                done[unit.id] = unit._replace(rest=()) if needless else unit
            state = states[-1]
        return list(done.values())

    def finish(self, built: _Built, judged: Judged | None) -> Integrated:
        left = [*self.left.values()]
        for stuck in self.stuck:
            one = _clashed(stuck.unit.pieces, stuck.clash, stuck.against)
            if refused := self.arranger.refused.get(stuck.unit.id):
                one = one._replace(reason=f"{one.reason}; the integrator was asked: {refused}")
            left.append(one)
            self.decide(IntegrationDecision("set aside", one.reason, (stuck.unit.slug,)))
        left.sort(key=lambda one: (one.makers[0].order, one.reason))
        kept = set_aside.keep(self.applier, self.run_id, left)
        return Integrated(
            base=self.base.id,
            tip=built.tip,
            commits=_committed(self.objects, self.base, built),
            set_aside=tuple(sorted([*self.refused, *kept], key=lambda one: (one.tasks, one.slugs, one.branch))),
            unchanged=tuple(self.unchanged),
            decisions=tuple(self.decisions),
            green=judged.final is not None if judged and judged.accepted else None,
            gate=judged.final if judged else None,
            excused=tuple(failure.test for failure in judged.final.failures) if judged and judged.final else (),
        )


def _clashed(pieces: tuple[WorkPiece, ...], clash: Clash, against: Sequence[Unit]) -> LeftOut:
    agents = tuple(dict.fromkeys(maker.agent for unit in against for maker in unit.makers))
    others = ", ".join(f"`{agent}`" for agent in agents) or "what is on the branch"
    reason = f"clashes with {others} in {', '.join(f'`{path}`' for path in clash.paths)}"
    if clash.twice:
        reason += f": both define {', '.join(f'`{name}`' for name in clash.twice)}"
    return LeftOut(pieces, reason, clash.paths, agents)


def _blamed(blame: Blame) -> LeftOut:
    tests = ", ".join(f"`{failure.test}`" for failure in blame.failures[:5])
    agents = tuple(maker.agent for unit in blame.partners for maker in unit.makers)
    evidence = tuple(f"{failure.test}\n{failure.text[-_EVIDENCE:]}" for failure in blame.failures)
    return LeftOut(blame.unit.pieces, f"turns the gate red{together(agents)}: {tests}", (), agents, evidence)


def _committed(objects: Objects, base: CommitFacts, built: _Built) -> tuple[Committed, ...]:
    pairs = list(zip(built.ids, built.planned, strict=True))
    fix_ids = {one.unit.id: id for id, one in pairs if one.rank and one.unit}
    needs = {id: tuple(fix_ids[unit.id] for unit in one.needs if unit.id in fix_ids) for id, one in pairs}
    asked = [id for id, one in pairs if one.rank or one.place == EXPECTATION]
    can = reverts(objects, base, {id: one.paths for id, one in pairs}, asked)
    done = []
    for id, one in pairs:
        dependent = {other for other, needed in needs.items() if id in needed}
        dependent |= set(can[id].needed_by) if id in can else set()
        done.append(
            Committed(
                id=id,
                kind=one.kind,
                place=one.place,
                title=one.new.message.split("\n", 1)[0],
                rank=one.rank,
                because=one.because,
                slugs=tuple(maker.slug for maker in one.makers),
                agents=tuple(maker.agent for maker in one.makers),
                tests=tuple(dict.fromkeys(maker.task for maker in one.makers)),
                paths=one.paths,
                needs=needs[id],
                needed_by=tuple(other for other in built.ids if other in dependent),
                revert=can.get(id),
            )
        )
    return tuple(done)
