"""The words of verdicts, and a verdict as it is kept: what was decided, and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import plain, typed
from mngr.tmr.branch.unit import BEHAVIOUR, EXPECTATION, FIX, UNCONTROVERSIAL
from mngr.tmr.judge import evidence as evidences
from mngr.tmr.judge.evidence import Evidence

FIXED = "fixed"  # its test failed, and the base's own version of it passes with the new product
FIXED_TOGETHER = "fixed together"  # its test failed, and passes when product and test are both changed
# Nothing failed at the base; a new or changed test fails on the old product: somebody must want what the new one does.
NEW_BEHAVIOUR = "new behaviour"
EXPECTATION_CHANGED = "expectation changed"  # its test failed, and passes on the old product once the test is changed
STRONGER = "stronger"  # its test notices more than before
SAME = "same"  # its test notices the same as before, in less text
IMPROVED = "improved"  # passes before and after; what its tests notice was not measured, or no test was changed
UNCHANGED = "unchanged"  # no changes, and none were needed
UNPROVEN = "unproven"  # the product is changed, and no test shows why: for a person to accept
HELD = "held"  # measured as good, but a person must accept something about it first
BLOCKED = "blocked"  # the agent says that it cannot continue
REFUTED = "refuted"  # what it claims is not what was measured
REFUSED = "refused"  # a change that must not get on a branch, whatever its tests do
UNCLAIMED = "unclaimed"  # no outcome that could be held against anything; work, if any, is kept
FAILED = "failed"  # the work could not be collected or measured
NOT_STARTED = "not started"
VERDICTS = (
    *(FIXED, FIXED_TOGETHER, NEW_BEHAVIOUR, EXPECTATION_CHANGED, STRONGER, SAME, IMPROVED, UNCHANGED),
    *(HELD, UNPROVEN, BLOCKED, REFUTED, REFUSED, UNCLAIMED, FAILED, NOT_STARTED),
)
FIXES = frozenset({FIXED, FIXED_TOGETHER})
# A person looks at these before the branch is merged: nothing but the agent's own version of a test asks for them.
TO_LOOK_AT = frozenset({FIXED_TOGETHER, NEW_BEHAVIOUR, EXPECTATION_CHANGED})
INTEGRATED = FIXES | TO_LOOK_AT | {STRONGER, SAME, IMPROVED}
# On the branch once a person accepts it.
ACCEPTABLE = frozenset({HELD, UNPROVEN})
_PLACES = {EXPECTATION_CHANGED: EXPECTATION, NEW_BEHAVIOUR: BEHAVIOUR}


class Decision(NamedTuple):
    """What follows from the evidence. `place` is where on the branch the work goes, or would go; `promises` are tests
    that did not pass at the base and do with it: later work may not break them."""

    word: str = ""
    reasons: tuple[str, ...] = ()
    place: str = ""
    promises: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """`blocked` is what the agent says that it lacks; `second_opinion` what another agent's variant of the test said of
    the work."""

    decision: Decision = Decision()
    evidence: Evidence = Evidence()
    blocked: str = ""
    second_opinion: str = ""

    @property
    def word(self) -> str:
        return self.decision.word

    @property
    def to_look_at(self) -> bool:
        """Whether a person looks at it before the branch is merged, whatever is flagged: where the test changed what it
        wants, or made itself steady."""
        return self.word in TO_LOOK_AT or _steadied(self.word, self.evidence)

    @property
    def effect(self) -> tuple[str, ...] | None:
        """The tests that its change of the product makes pass; None without such a change."""
        return self.decision.promises if self.evidence.change.product_changed else None

    @property
    def repaired(self) -> tuple[str, ...]:
        """The tests that pass since they were changed themselves."""
        return () if self.evidence.change.product_changed else self.decision.promises

    def as_json(self) -> dict[str, Any]:
        """For the ledger, as one table."""
        decided = plain(self.decision)
        own = {"verdict": decided.pop("word"), "blocked": self.blocked, "second_opinion": self.second_opinion}
        return {**evidences.as_json(self.evidence), **decided, **own, "effect": plain(self.effect)}


def from_json(table: Mapping[str, Any]) -> Verdict:
    """The inverse of `Verdict.as_json`, also for what older versions wrote."""
    found = evidences.from_json(table)
    decision = typed(Decision, {**table, "word": table.get("verdict", "")})
    if "place" not in table:
        promises = (*(table.get("effect") or ()), *table.get("repaired", ()))
        product = bool(table.get("product_changed", table.get("effect") is not None))
        found = found._replace(change=found.change._replace(product_changed=product))
        decision = decision._replace(place=place_of(decision.word, found), promises=promises)
    return Verdict(decision, found, table.get("blocked") or "", table.get("second_opinion") or "")


def place_of(word: str, found: Evidence) -> str:
    """Where on the branch work with this verdict goes."""
    if _steadied(word, found):
        return EXPECTATION
    return _PLACES.get(word) or (FIX if found.change.product_changed else UNCONTROVERSIAL)


def _steadied(word: str, found: Evidence) -> bool:
    """Its test passes every time now, and only the test was changed: perhaps it looks away now."""
    return word == FIXED and found.flaky and not found.change.product_changed
