"""What integration made of the work, as it is written to the ledger and read from it by everybody else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import typed
from mngr.tmr.branch.gate import GateFailure, GateResult, IntegrationDecision
from mngr.tmr.branch.planner import Revert
from mngr.tmr.branch.same_edit import Alike
from mngr.tmr.branch.unit import UNCONTROVERSIAL, SetAside
from mngr.tmr.judge.paths import PathKind


class Committed(NamedTuple):
    """A commit of the branch. `place` says why it is where it is (`unit.py`). `needs` are commits of the branch that it
    cannot do without; `revert` says for a fix and for a changed expectation whether it can be reverted alone, and
    `needed_by` which later commits must go with it."""

    id: str
    kind: PathKind = PathKind.OTHER
    place: str = UNCONTROVERSIAL
    title: str = ""
    rank: int = 0
    because: str = ""
    slugs: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    revert: Revert | None = None


class Integrated(NamedTuple):
    """`tip` is the base when nothing got through. `green` is what the gate measured on `tip` itself; None without one.
    `excused` are tests that fail at `tip` and do not count: the decisions say why. `not_passing` are
    tests of the base that, as they are there, do not pass on the product of `tip`, whatever their new version does.
    `alike` are works, also such as wait for a person, that do nearly the same.
    `unchanged` are the slugs of work that changes nothing, `dropped` and `accepted` those of work that a person decided
    about, `overruled` those of refuted work that a person accepted, each with the reason. `branch` is where the tip was
    put, empty when nothing got through; `narrative` is what an agent tells about it."""

    base: str = ""
    tip: str = ""
    commits: tuple[Committed, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    unchanged: tuple[str, ...] = ()
    decisions: tuple[IntegrationDecision, ...] = ()
    green: bool | None = None
    gate: GateResult | None = None
    excused: tuple[str, ...] = ()
    not_passing: tuple[str, ...] = ()
    alike: tuple[Alike, ...] = ()
    dropped: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    overruled: Mapping[str, str] = {}
    branch: str = ""
    narrative: str = ""

    @property
    def failures(self) -> tuple[GateFailure, ...]:
        return self.gate.failures if self.gate else ()


def from_json(value: Mapping[str, Any]) -> Integrated:
    """The inverse of `plain`, also for what older versions wrote."""
    gate = value.get("gate")
    return typed(Integrated, value)._replace(
        tip=str(value.get("tip") or ""),
        commits=tuple(map(_committed, value.get("commits", ()))),
        set_aside=tuple(typed(SetAside, one) for one in value.get("set_aside", ())),
        decisions=(),
        alike=tuple(typed(Alike, one) for one in value.get("alike", ())),
        gate=_gate(gate) if gate else None,
    )


def _committed(value: Mapping[str, Any]) -> Committed:
    revert = value.get("revert")
    kind = PathKind(value.get("kind", PathKind.OTHER))
    return typed(Committed, value)._replace(kind=kind, revert=typed(Revert, revert) if revert else None)


def _gate(value: Mapping[str, Any]) -> GateResult:
    failures = tuple(typed(GateFailure, one) for one in value.get("failures", ()))
    return GateResult(bool(value.get("green")), failures, str(value.get("log") or ""))
