"""From verified work to one branch. Code decides what is true and what goes on the branch; agents only propose.

Works on objects of the repository and on branches for what is set aside: work tree, index, HEAD and settings of the
user are neither read nor changed. The order is that of task ids and ranks, so the same work gives the same commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mngr.errors import MngrError
from mngr.records import NamedTuple
from mngr.tmr import aside, content, credit
from mngr.tmr.apply import Applier, Clash
from mngr.tmr.aside import Left
from mngr.tmr.branch import Planned, Planner
from mngr.tmr.conflict import Arranger, Line, Resolver, lay
from mngr.tmr.content import ContentRules
from mngr.tmr.gate import Blame, Decision, Gate, GateResult, Judge, Judged, Known, together
from mngr.tmr.objects import Change, Facts, Objects
from mngr.tmr.parts import Split, links, new_files, refusals, split
from mngr.tmr.paths import Kind, Paths
from mngr.tmr.rank import ranked
from mngr.tmr.revert import Revert, Step, reverts
from mngr.tmr.unit import EXPECTATION, Piece, SetAside, Unit, Verified
from mngr.tools.git import Git

_EVIDENCE = 4000


class Rules(NamedTuple):
    """What integration goes by: `batch` is how many units are gated at a time."""

    paths: Paths = Paths()
    known: Known = Known()
    batch: int = 16
    content: ContentRules = ContentRules()


class Committed(NamedTuple):
    """A commit of the branch. `place` says why it is where it is (`unit.py`). `needs` are commits of the branch that it
    cannot do without; `revert` says for a fix and for a changed expectation whether it can be reverted alone, and
    `needed_by` which later commits must go with it."""

    id: str
    kind: Kind
    place: str
    title: str
    rank: int
    because: str
    slugs: tuple[str, ...]
    agents: tuple[str, ...]
    tests: tuple[str, ...]
    paths: tuple[str, ...]
    needs: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    revert: Revert | None = None


class Integrated(NamedTuple):
    """`tip` is the base when nothing got through. `green` is what the gate measured on `tip` itself; None without one.
    `excused` are tests that fail at `tip` and do not count: the decisions say why. `unchanged` are the slugs of work
    that changes nothing."""

    base: str
    tip: str
    commits: tuple[Committed, ...]
    set_aside: tuple[SetAside, ...]
    unchanged: tuple[str, ...]
    decisions: tuple[Decision, ...]
    green: bool | None
    gate: GateResult | None
    excused: tuple[str, ...] = ()


def integrate(
    git: Git,
    run: str,
    base: str,
    inputs: Sequence[Verified],
    *,
    gate: Gate | None = None,
    resolver: Resolver | None = None,
    record: Callable[[Decision], None] | None = None,
    keep: Collection[str] | None = None,
    rules: Rules | None = None,
) -> Integrated:
    """Integrate work on the base. `record` is told every decision as it is made; `keep` are the slugs of the work to
    keep (of all agents that made the same), None for all. Twice gives the same commits. No branch is pointed at the
    tip: that is the caller's."""
    return _Integration(git, run, base, inputs, record, rules or Rules()).run(gate, resolver, keep)


class _Built(NamedTuple):
    line: Line
    planned: list[Planned]
    ids: list[str]
    tip: str


class _Integration:
    def __init__(
        self,
        git: Git,
        run: str,
        base: str,
        inputs: Sequence[Verified],
        record: Callable[[Decision], None] | None,
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
        self.decisions: dict[Decision, None] = {}
        self._record = record
        self.refused: list[SetAside] = []
        self.unchanged: list[str] = []
        self.left: dict[str, Left] = {}

    def decide(self, decision: Decision) -> None:
        """Once each: the same question may come up in many orders."""
        if decision not in self.decisions:
            self.decisions[decision] = None
            if self._record:
                self._record(decision)

    def run(self, gate: Gate | None, resolver: Resolver | None, keep: Collection[str] | None) -> Integrated:
        units = credit.units(self.splits())
        self.credits(units)
        pieces = [piece for unit in units for piece in unit.pieces]
        trees = {piece.part: self.facts[piece.makers[0].tip].tree for piece in pieces}
        self.applier = Applier(self.objects, self.base, trees, self.by_function)
        self.planner = Planner(self.run_id, self.applier, self.rules.paths, self.facts)
        self._trials: dict[tuple[Unit, ...], _Built] = {}
        judge = Judge(gate, self.rules.known, self.commit_of, self.fitting, self.decide) if gate else None
        verify = (lambda units, about: judge.failures(units, about=about)) if judge else None
        self.arranger = Arranger(self.applier, resolver, verify, self.decide, self.rules.content)
        line, judged = self.settle(self.kept(units, keep), judge)
        built = self.build(line)
        return self.finish(built, judged)

    def splits(self) -> list[tuple[Verified, Split]]:
        """The net change of each, from the base to its tip: what was verified, however its history came about."""
        there = [work for work in self.inputs if work.tip in self.facts]
        for work in self.inputs:
            if work.tip not in self.facts:
                self.refuse(work, (f"the commit `{work.tip[:60]}` does not exist",))
        pairs = {work.slug: (self.base.tree, self.facts[work.tip].tree) for work in there}
        found = self.objects.changes(pairs.values())
        targets = self.objects.blobs(oid for changes in found.values() for oid in links(changes))
        news = {oid for changes in found.values() for oid in new_files(changes)}
        wrong = content.problems(self.objects, self.base.id, news, self.rules.content)
        done = []
        for work in there:
            changes: tuple[Change, ...] = found[pairs[work.slug]]
            if reasons := refusals(changes, targets, self.rules.paths, wrong):
                self.refuse(work, reasons)
            elif changes:
                done.append((work, split(self.base.id, changes, self.rules.paths)))
            else:
                self.unchanged.append(work.slug)
        return done

    def refuse(self, work: Verified, reasons: tuple[str, ...]) -> None:
        self.refused.append(aside.refused(work, reasons))
        self.decide(Decision("refused", reasons[0], (work.slug,)))

    def by_function(self, path: str) -> bool:
        return path.endswith(".py") and self.rules.paths.kind(path) == Kind.TEST

    def credits(self, units: Sequence[Unit]) -> None:
        for piece in (piece for unit in units for piece in unit.pieces if len(piece.makers) > 1):
            slugs = tuple(maker.slug for maker in piece.makers)
            self.decide(Decision("made one", "the changes are identical", slugs))

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
                self.leave(unit, Left(unit.pieces, "dropped in review"))
                self.decide(Decision("dropped", "by a person, in review", (unit.slug,)))
        return kept

    def settle(self, units: list[Unit], judge: Judge | None) -> tuple[Line, Judged | None]:
        """Arrange and judge until the line that was judged green is the line there is. Who was left out for a clash
        with a unit that turned out red gets another chance."""
        line, units = self.arranged(units)
        if self.arranger.resolved:  # who was resolved at the end may fit in its own place now
            line, units = self.arranged(units)
        while judge is not None:
            judged = judge.run(line.units, self.rules.batch)
            for blame in judged.blamed:
                self.leave(blame.unit, _blamed(blame))
            units = [unit for unit in units if unit.id not in self.left]
            line, units = self.arranged(units)
            if line.units == judged.accepted:
                return line, judged
        return line, None

    def arranged(self, units: list[Unit]) -> tuple[Line, list[Unit]]:
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
            self.decide(Decision("set aside without its fix", left.reason, (tied.piece.slug,)))

    def leave(self, unit: Unit, left: Left) -> None:
        self.left[unit.id] = left

    def fitting(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        return lay(self.applier, units).units

    def commit_of(self, units: tuple[Unit, ...], final: bool) -> str | None:
        line = lay(self.applier, units)
        if line.stuck:
            return None
        return self.build(line).tip if final else self.applier.commit(line.end(self.applier.start))

    def build(self, line: Line) -> _Built:
        """Make the commits of a line. A fix that adds nothing to those before it is no commit: they get its credit."""
        asked = line.units
        while asked not in self._trials:
            planned, ids = self.written(line)
            again = self.without_empty(line, planned, ids)
            if again is None:
                self._trials[asked] = _Built(line, planned, ids, ids[-1] if ids else self.base.id)
            else:
                line = again
        return self._trials[asked]

    def written(self, line: Line) -> tuple[list[Planned], list[str]]:
        fixes = [unit for unit in line.units if unit.fix]
        by_id = {unit.id: unit for unit in line.units}
        shared = credit.shared(self.applier, fixes)
        needs = {id: [by_id[other] for other in others] for id, others in shared.items()}
        for unit in fixes:
            met = [other.id for piece in unit.pieces for other in self.arranger.resolved.get(piece.part.id, ())]
            more = [by_id[id] for id in met if id in by_id and by_id[id].fix and id not in shared.get(unit.id, ())]
            needs[unit.id] = [*needs.get(unit.id, ()), *more]
        planned = self.planner.plan(line, {one.unit.id: one for one in ranked(fixes)}, needs)
        return planned, self.objects.write([one.new for one in planned])

    def without_empty(self, line: Line, planned: Sequence[Planned], ids: Sequence[str]) -> Line | None:
        facts = self.objects.facts(ids)
        trees = [self.base.tree, *(facts[id].tree for id in ids)]
        for number, one in enumerate(planned):
            if trees[number] != trees[number + 1] or one.unit is None:
                continue
            if not one.rank:
                return lay(self.applier, [unit._replace(rest=()) if unit is one.unit else unit for unit in line.units])
            needed = {unit.id for unit in one.needs}
            into = [unit for unit in line.units if unit.id in needed]
            names = tuple(unit.slug for unit in into)
            because = f"all of it is in {' and '.join(f'`{name}`' for name in names) or 'what is there already'}"
            self.decide(Decision("made one", because, (one.unit.slug, *names)))
            last = into[-1] if into else None
            return lay(self.applier, [_with(unit, one.unit, last) for unit in line.units if unit is not one.unit])
        return None

    def finish(self, built: _Built, judged: Judged | None) -> Integrated:
        left = [*self.left.values()]
        for stuck in self.stuck:
            one = _clashed(stuck.unit.pieces, stuck.clash, stuck.against)
            if refused := self.arranger.refused.get(stuck.unit.id):
                one = one._replace(reason=f"{one.reason}; the integrator was asked: {refused}")
            left.append(one)
            self.decide(Decision("set aside", one.reason, (stuck.unit.slug,)))
        left.sort(key=lambda one: (one.makers[0].order, one.reason))
        kept = aside.keep(self.applier, self.run_id, left)
        return Integrated(
            base=self.base.id,
            tip=built.tip,
            commits=_committed(self.objects, self.base, built),
            set_aside=tuple(sorted([*self.refused, *kept], key=lambda one: (one.tasks, one.slugs, one.branch))),
            unchanged=tuple(self.unchanged),
            decisions=tuple(self.decisions),
            green=None if judged is None else judged.final is not None,
            gate=judged.final if judged else None,
            excused=tuple(failure.test for failure in judged.final.failures) if judged and judged.final else (),
        )


def _with(unit: Unit, contained: Unit, last: Unit | None) -> Unit:
    """The last of the units that together contain another one, with its makers and what was tied to it."""
    if unit is not last or unit.fix is None or contained.fix is None:
        return unit
    fix = unit.fix._replace(makers=(*unit.fix.makers, *contained.fix.makers))
    return Unit(fix, (*unit.rest, *contained.rest))


def _clashed(pieces: tuple[Piece, ...], clash: Clash, against: Sequence[Unit]) -> Left:
    agents = tuple(dict.fromkeys(maker.agent for unit in against for maker in unit.makers))
    others = ", ".join(f"`{agent}`" for agent in agents) or "what is on the branch"
    reason = f"clashes with {others} in {', '.join(f'`{path}`' for path in clash.paths)}"
    if clash.twice:
        reason += f": both define {', '.join(f'`{name}`' for name in clash.twice)}"
    return Left(pieces, reason, clash.paths, agents)


def _blamed(blame: Blame) -> Left:
    tests = ", ".join(f"`{failure.test}`" for failure in blame.failures[:5])
    agents = tuple(maker.agent for unit in blame.partners for maker in unit.makers)
    evidence = tuple(f"{failure.test}\n{failure.text[-_EVIDENCE:]}" for failure in blame.failures)
    return Left(blame.unit.pieces, f"turns the gate red{together(agents)}: {tests}", (), agents, evidence)


def _committed(objects: Objects, base: Facts, built: _Built) -> tuple[Committed, ...]:
    pairs = list(zip(built.ids, built.planned, strict=True))
    fix_ids = {one.unit.id: id for id, one in pairs if one.rank and one.unit}
    needs = {id: tuple(fix_ids[unit.id] for unit in one.needs if unit.id in fix_ids) for id, one in pairs}
    asked = [id for id, one in pairs if one.rank or one.place == EXPECTATION]
    can = reverts(objects, base, [Step(id, one.paths) for id, one in pairs], asked)
    done = []
    for id, one in pairs:
        dependent = {other for other, needed in needs.items() if id in needed}
        if id in can:
            dependent |= set(can[id].needed_by)
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
