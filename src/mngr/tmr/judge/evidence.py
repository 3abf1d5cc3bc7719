"""What was measured of an agent's work, from which its verdict follows. Made once, by `gather`; read by everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import plain, typed
from mngr.tmr.judge.changed_file import Flag
from mngr.tmr.measure.baseline import FLAKY, BaselineTest
from mngr.tmr.measure.strength import Strength


class Marks(NamedTuple):
    """What the task's test did: T is the tests and P the product, 0 the base and 1 the agent's commit. Empty is not
    measured."""

    t0p0: str = ""
    t0p1: str = ""
    t1p0: str = ""
    t1p1: str = ""


class ChangedExpectation(NamedTuple):
    """An expected value that the work changed."""

    path: str
    line: int
    before: str
    after: str


class Change(NamedTuple):
    """What the work changes. `refusals` are why it must not get on a branch, `flags` what a person should look at,
    `needed` the files by which tests are judged and without whose change the test does not pass. `notes` are odd and
    say nothing about the work."""

    files: tuple[str, ...] = ()
    tests_changed: bool = False
    product_changed: bool = False
    shorter: bool = False
    refusals: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    needed: tuple[str, ...] = ()
    expectations: tuple[ChangedExpectation, ...] = ()
    notes: tuple[str, ...] = ()


class AtTip(NamedTuple):
    """What its own commit shows. `new` and `changed` are tests that the base has not, or otherwise, and `outcomes` all
    outcomes of these; `lost` are tests of the base that are gone, `renamed` those that are there under another name,
    `cases` what its own test is called now. `users` are tests of the base that run a helper or fixture that is changed.
    `broken` are files that cannot be collected any more, `worse` other tests that passed at the base and do not now,
    with what they do; `repeated` is what failed and was run again. `log` is the directory of the measurement, `e2e`
    that of what its tests recorded."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outcomes: Mapping[str, tuple[str, ...]] = {}
    lost: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    worse: Mapping[str, str] = {}
    repeated: tuple[str, ...] = ()
    gate_exit: int | None = None
    seconds: float = 0.0
    log: str = ""
    e2e: str = ""


class Halves(NamedTuple):
    """What the old tests show on the new product, and the new tests on the old one. `effect` are tests that failed at
    the base and pass with the product as changed; `found` new or changed tests that fail on the old product;
    `as_before` tests that the work touches and whose version of the base held there and does not now, with what it
    does; `stands_alone` is whether its tests pass without its change of the product."""

    effect: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    as_before: Mapping[str, str] = {}
    stands_alone: bool | None = None


class Noticed(NamedTuple):
    """What its tests notice. `cannot_fail` pass whatever the product does; `unspoiled` are said to be fixed and pass
    with a spoiled product too. `kept` are lost tests whose kills others have now; of those that are `unsure` that could
    not be measured. `unfaithful` is what became of its citations."""

    strength: Strength | None = None
    cannot_fail: tuple[str, ...] = ()
    unspoiled: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    unfaithful: tuple[str, ...] = ()


class Beyond(NamedTuple):
    """What other measurements say of work that holds, in words. `depends` is what its tests need to pass here and not
    elsewhere, `general` the word for whether the fix is one for other inputs too, and `only` why not; `keys` are inputs
    without which it was never seen to work. `touched` is what
    the product touches since then and should not, `shown` what else is new; `unreached` are changed lines of the
    product that no test runs, `slower` tests that take much longer."""

    depends: tuple[str, ...] = ()
    general: str = ""
    only: str = ""
    keys: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    unreached: str = ""
    slower: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """What is said about the work and holds nothing up."""
        return (*filter(None, [self.unreached]), *self.slower, *self.shown)


class Trouble(NamedTuple):
    """`broken_by` says how the work breaks its own test run, `problem` why the measurement did not come to its end,
    `failure` what is wrong with this machine, or that checking itself failed."""

    broken_by: str = ""
    problem: str = ""
    failure: str = ""

    def __bool__(self) -> bool:
        return any(self)


class Evidence(NamedTuple):
    """`was` is what its test did at the base."""

    task: str = ""
    was: BaselineTest = BaselineTest("")
    marks: Marks = Marks()
    change: Change = Change()
    tip: AtTip = AtTip()
    halves: Halves = Halves()
    noticed: Noticed = Noticed()
    beyond: Beyond = Beyond()
    trouble: Trouble = Trouble()

    @property
    def flaky(self) -> bool:
        """Whether its test both passed and failed at the base."""
        return self.was.verdict == FLAKY

    @property
    def replaced(self) -> tuple[str, ...]:
        """Tests of the base that are gone, and in whose place there is something."""
        return (*self.tip.renamed, *self.noticed.kept, *self.noticed.unsure)

    @property
    def deleted(self) -> tuple[str, ...]:
        """Tests of the base that are gone for nothing."""
        return tuple(test for test in self.tip.lost if test not in self.replaced)


_PARTS = {"change": Change, "tip": AtTip, "halves": Halves, "noticed": Noticed, "beyond": Beyond, "trouble": Trouble}


def as_json(found: Evidence) -> dict[str, Any]:
    """All facts in one table, for the ledger."""
    table: dict[str, Any] = {}
    for name in _PARTS:
        table.update(plain(getattr(found, name)))
    strength = found.noticed.strength
    was = found.was._replace(text="")
    facts = {"task": found.task, "was": plain(was), "marks": plain(found.marks), "after": found.marks.t1p1}
    return {**table, **facts, "strength": strength.as_json() if strength else None}


def from_json(table: Mapping[str, Any]) -> Evidence:
    """The inverse of `as_json`, also for what older versions wrote."""
    change, noticed = typed(Change, table), typed(Noticed, table)
    strength = table.get("strength")
    return Evidence(
        task=str(table.get("task") or ""),
        was=typed(BaselineTest, {"verdict": FLAKY if table.get("flaky") else "", **(table.get("was") or {})}),
        marks=typed(Marks, table.get("marks") or {"t1p1": table.get("after") or ""}),
        change=change._replace(
            flags=tuple(typed(Flag, one) for one in table.get("flags", ())),
            expectations=tuple(typed(ChangedExpectation, one) for one in table.get("expectations", ())),
        ),
        tip=typed(AtTip, table),
        halves=typed(Halves, {**table, "effect": table.get("effect") or ()}),
        noticed=noticed._replace(strength=typed(Strength, strength) if strength else None),
        beyond=typed(Beyond, table),
        trouble=typed(Trouble, table),
    )
