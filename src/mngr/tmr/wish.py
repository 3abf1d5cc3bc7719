"""What a run was asked to do. Kept in its ledger, so that whoever resumes it does the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.mapreduce.limits import Limits
from mngr.records import NamedTuple
from mngr.tmr import settings
from mngr.tmr.recipe import Workers
from mngr.tmr.settings import TmrSettings


class Wish(NamedTuple):
    """`paths` are files, directories or node ids, `args` further options of pytest. Without `integrator`, conflicts are
    set aside and the words for people are those that code can write."""

    repo: str
    base: str
    branch: str
    settings: TmrSettings
    workers: Workers
    integrator: Workers | None = None
    paths: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    failing: bool = False
    baseline: bool = True
    canary: bool = True
    limits: Limits = Limits()

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "settings": self.settings.as_json(),
            "workers": self.workers._asdict(),
            "integrator": self.integrator._asdict() if self.integrator else None,
            "limits": self.limits._asdict(),
        }


def from_json(facts: Mapping[str, Any]) -> Wish:
    """The inverse, out of the facts of a run. Keys that are not ours are passed over."""
    own = {name: facts[name] for name in Wish._fields if name in facts}
    own["settings"] = settings.from_json(own["settings"])
    own["workers"] = _workers(own["workers"])
    own["integrator"] = _workers(own["integrator"]) if own["integrator"] else None
    own["limits"] = Limits(**{name: value for name, value in own["limits"].items() if name in Limits._fields})
    return Wish(**{**own, "paths": tuple(own["paths"]), "args": tuple(own["args"])})


def _workers(value: Mapping[str, Any]) -> Workers:
    return Workers(**{**value, "args": tuple(value["args"])})
