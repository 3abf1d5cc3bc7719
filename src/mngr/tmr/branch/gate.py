"""Red or green, measured; and which unit is to blame. The gate itself, which runs the tests, is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from mngr.errors import MngrError
from mngr.tmr.branch.unit import Unit

_ASKS = 3
_LOOKS = 4  # at a failing test alone, before anybody is blamed for it
UNNAMED = "gate"


class GateFailure(NamedTuple):
    """A test's node id, or the name of another check (`lint`, `collect`), and what it printed."""

    test: str
    text: str = ""


class GateResult(NamedTuple):
    """Red with no failure named means that nothing could be measured: never excused, at the base an error."""

    green: bool
    failures: tuple[GateFailure, ...] = ()
    log: str = ""

    @property
    def measured(self) -> bool:
        return self.green or bool(self.failures)


class Gate(Protocol):
    def check(
        self, commit: str, units: tuple[Unit, ...], *, final: bool = False, focus: tuple[str, ...] = ()
    ) -> GateResult:
        """Judge a commit. `units` are those whose tests it should run; `final` asks for the whole suite; with `focus`
        only what it names (from earlier failures) is run."""


class KnownTests(NamedTuple):
    """What the baseline found out about tests before any agent worked."""

    failing: frozenset[str] = frozenset()
    flaky: frozenset[str] = frozenset()


class IntegrationDecision(NamedTuple):
    """What was decided and why, for the ledger. `about` are slugs."""

    what: str
    because: str
    about: tuple[str, ...] = ()


class Blame(NamedTuple):
    """A unit that turns the gate red: alone, or (fine alone) together with its partner; with several, each of them is
    red together with it."""

    unit: Unit
    partners: tuple[Unit, ...]
    failures: tuple[GateFailure, ...]


class Judged(NamedTuple):
    accepted: tuple[Unit, ...]
    blamed: tuple[Blame, ...]
    final: GateResult | None


class Judge:
    """Asks the gate. `commit_of` gives the commit of some units in their order (None when they do not go together);
    asked for the final one, it gives the very commit that will be delivered. `fitting` gives those of some units that
    go together."""

    def __init__(
        self,
        gate: Gate,
        known: KnownTests,
        commit_of: Callable[[tuple[Unit, ...], bool], str | None],
        fitting: Callable[[Sequence[Unit]], tuple[Unit, ...]],
        record: Callable[[IntegrationDecision], None],
    ) -> None:
        self._gate = gate
        self._known = known
        self._commit_of = commit_of
        self._fitting = fitting
        self._record = record
        self._failing = set(known.failing)
        self._unsteady: set[str] = set()
        self._seen: dict[tuple[str, str, bool, tuple[str, ...], int], GateResult] = {}

    def run(self, units: Sequence[Unit], size: int) -> Judged:
        """Accept all units when the whole suite is green with them. Otherwise batch by batch, whose tests are fewer,
        then all by the whole suite. Whoever is to blame is left out, and what is left is judged again."""
        everyone = tuple(units)
        if not everyone:
            return Judged((), (), None)  # the branch is the base
        commit = self._commit_of(everyone, True)
        if commit is not None and not self._counted(self._ask(commit, everyone, True, (), 0), everyone):
            return Judged(everyone, (), self._last(everyone, True))
        gone: dict[str, Blame] = {}
        pairs: dict[str, list[Blame]] = {}
        green: tuple[Unit, ...] = ()
        for end, final in [*((end, False) for end in range(size, len(units) + size, size)), (len(units), True)]:
            while True:
                line = self._fitting([unit for unit in units[:end] if unit.id not in gone])
                found = self.failures(line, final=final) if line else ()
                if not found:
                    break
                blame = self._blame(line, 0 if final else _beginning(line, green), found, final)
                if blame is not None:
                    self._leave(blame, gone, pairs)
            green = line
        return Judged(green, tuple(gone.values()), self._last(green, True))

    def _leave(self, blame: Blame, gone: dict[str, Blame], pairs: dict[str, list[Blame]]) -> None:
        """Leave the unit out. Its partner goes instead when it promised nothing and breaks only what the unit promised;
        and when it is red with an earlier unit too, which is then back, unless they break what the partner promised. A
        partner goes for good, so this ends."""
        partner, tests = blame.partners[0] if blame.partners else None, _names(blame.failures)
        if partner is not None and not partner.promises and blame.unit.promises.issuperset(tests):
            blame = Blame(partner, (blame.unit,), blame.failures)
        elif partner is not None and not partner.promises.issuperset(tests):
            both = [*pairs.pop(partner.id, ()), blame]
            if len(both) > 1:
                back = tuple(gone.pop(one.unit.id).unit.slug for one in both[:-1])
                because = f"`{partner.slug}` goes instead, which is red together with several"
                self._record(IntegrationDecision("back on the branch", because, back))
                failures = tuple({failure.test: failure for one in both for failure in one.failures}.values())
                blame = Blame(partner, tuple(one.unit for one in both), failures)
            else:
                pairs[partner.id] = both
        gone[blame.unit.id] = blame
        self._record(_words(blame))

    def failures(
        self,
        units: tuple[Unit, ...],
        *,
        final: bool = False,
        focus: tuple[str, ...] = (),
        about: tuple[Unit, ...] | None = None,
    ) -> tuple[GateFailure, ...] | None:
        """What fails twice and is no news: None when the units do not go together. With `about` only the tests of those
        among them are run. A look that could measure nothing is none, and is taken once more."""
        commit = self._commit_of(units, final)
        if commit is None:
            return None
        part = "" if about is None else " ".join(unit.id for unit in about)
        run = units if about is None else about
        seen: list[tuple[GateFailure, ...]] = []
        for number in range(_ASKS):
            result = self._ask(commit, run, final, focus, number, part)
            counted = self._counted(result, units)
            if not counted and not seen:
                return ()
            if result.measured:
                seen.append(counted)
            elif number == 1 and not seen:
                return counted
            if len(seen) == 2:
                break
        first, stable = seen[0], {failure.test for failure in seen[-1]}
        passed = sorted(failure.test for failure in first if failure.test not in stable)
        if passed:
            slugs = tuple(unit.slug for unit in units)
            self._record(
                IntegrationDecision("not counted as red", f"failed once and passed once: {_list(passed)}", slugs)
            )
        return tuple(failure for failure in first if failure.test in stable)

    def _blame(self, units: tuple[Unit, ...], green: int, found: tuple[GateFailure, ...], final: bool) -> Blame | None:
        """The last unit of the shortest red beginning. None when it is nobody's fault: the base alone is red, or what
        was red twice is so no more. That counts no longer, but for what a unit promised."""
        focus = _names(found)
        if UNNAMED not in focus and self._is_flaky(units, focus):
            return None
        if UNNAMED in focus or not self.failures(units, focus=focus):
            focus = ()  # nothing to name, or it fails only among all the others

        def red(some: tuple[Unit, ...]) -> tuple[GateFailure, ...]:
            seen = self.failures(some, focus=focus, final=final and not focus) or ()
            return tuple(failure for failure in seen if failure.test in _names(found))

        if green and red(units[:green]):
            green = 0
        if not green and self._old(focus, found, final):
            return None
        high = _shortest(units, green, red)
        tests = red(units[:high])
        if not tests or not units:
            self._unsteady |= set(_names(found))
            self._record(
                IntegrationDecision("not counted as red", f"failed twice, then passed: {_list(_names(found))}")
            )
            return None
        return Blame(units[high - 1], _partner(units[high - 1], units[: high - 1], red), tests)

    def _is_flaky(self, units: tuple[Unit, ...], names: tuple[str, ...]) -> bool:
        """Whether one of these passes and fails when it is run alone a few times, with these units or without any. That
        is nobody's fault, also when it passed in the baseline; it counts no longer, but for what a unit promised."""
        promised = {test for unit in units for test in unit.promises}
        for some in (units, ()):
            commit = self._commit_of(some, False)
            looks = [self._ask(commit, some, False, names, number) for number in range(_LOOKS)] if commit else []
            failed = [set(_names(look.failures)) & set(names) for look in looks if look.measured]
            flaky = {name for name in set().union(*failed) if not all(name in one for one in failed)} - promised
            if flaky:
                self._unsteady |= flaky
                because = f"passes and fails when it is run alone: {_list(sorted(flaky))}"
                self._record(IntegrationDecision("not counted as red", because, tuple(unit.slug for unit in some)))
                return True
        return False

    def _old(self, focus: tuple[str, ...], found: tuple[GateFailure, ...], final: bool) -> bool:
        """Whether some of it fails without any unit too, be it only now and then: that is nobody's fault, and counts no
        longer but for what a unit promised."""
        commit = self._commit_of((), final and not focus)
        if commit is None:
            return False
        asked = [self._ask(commit, (), final and not focus, focus, number) for number in (0, 1)]
        each = [[one for one in self._counted(result, ()) if one.test in _names(found)] for result in asked]
        names = [set(_names(failures)) for failures in each]
        if UNNAMED in names[0] & names[1]:
            raise MngrError("the gate cannot judge even the base of this run", details=each[0][0].text)
        always, ever = names[0] & names[1], (names[0] | names[1]) - {UNNAMED}
        self._failing |= ever
        if always:
            self._record(IntegrationDecision("not counted as red", f"fails at the base too: {_list(sorted(always))}"))
        if ever - always:
            self._record(
                IntegrationDecision("not counted as red", f"flaky at the base too: {_list(sorted(ever - always))}")
            )
        return bool(ever)

    def _counted(self, result: GateResult, units: tuple[Unit, ...]) -> tuple[GateFailure, ...]:
        """Failures that mean something: those of tests that neither failed nor were flaky before, and of those that one
        of these units promised to fix."""
        promised = {test for unit in units for test in unit.promises}
        excused = ((self._known.flaky | self._failing) - promised) | self._unsteady
        if not result.green and not result.failures:
            named: tuple[GateFailure, ...] = (GateFailure(UNNAMED, result.log),)
        else:
            named = result.failures
        return tuple(failure for failure in named if failure.test not in excused)

    def _ask(
        self,
        commit: str,
        units: tuple[Unit, ...],
        final: bool,
        focus: tuple[str, ...],
        number: int,
        part: str = "",
    ) -> GateResult:
        """Each question once; `part` tells those about some of the units from those about all."""
        asked = (commit, part, final, focus, number)
        if asked not in self._seen:
            self._seen[asked] = self._gate.check(commit, units, final=final, focus=focus)
        return self._seen[asked]

    def _last(self, units: tuple[Unit, ...], final: bool) -> GateResult | None:
        commit = self._commit_of(units, final)
        looks = [self._seen.get((commit or "", "", final, (), number)) for number in range(_ASKS)]
        return next((look for look in looks if look is not None and look.measured), None)


def _beginning(line: Sequence[Unit], green: Sequence[Unit]) -> int:
    """How many units of the line are the first of the green ones."""
    return next((at for at, (one, two) in enumerate(zip(line, green, strict=False)) if one.id != two.id), len(green))


def _shortest(units: tuple[Unit, ...], green: int, red: Callable[[tuple[Unit, ...]], object]) -> int:
    """The length of the shortest red beginning: all of the units are red, the first `green` of them are not."""
    high = len(units)
    while high - green > 1:
        middle = (high + green) // 2
        green, high = (green, middle) if red(units[:middle]) else (middle, high)
    return high


def _partner(guilty: Unit, others: tuple[Unit, ...], red: Callable[[tuple[Unit, ...]], object]) -> tuple[Unit, ...]:
    """The last unit of the shortest beginning of the others that makes the guilty unit red; none when it is red
    alone."""
    if not others or red((guilty,)):
        return ()
    return (others[_shortest(others, 0, lambda some: red((*some, guilty))) - 1],)


def _names(failures: Sequence[GateFailure]) -> tuple[str, ...]:
    return tuple(sorted({failure.test for failure in failures}))


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def together(names: Sequence[str]) -> str:
    """The words for the other side of a blame."""
    return f" together with {'several: ' * (len(names) > 1)}{_list(names)}" if names else ""


def _words(blame: Blame) -> IntegrationDecision:
    others = together([unit.slug for unit in blame.partners])
    because = f"red{others}, twice: {_list(_names(blame.failures))}"
    return IntegrationDecision("set aside", because, (blame.unit.slug,))
