"""What a run was asked to do. Kept in its ledger, so that whoever resumes it does the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.errors import MngrError
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.run import PRIVATE, Run
from mngr.records import NamedTuple
from mngr.tmr import settings
from mngr.tmr.content import ContentRules
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
        """Without the values of variables, which are in `private`."""
        return {
            **self._asdict(),
            "settings": self.settings.as_json(),
            "workers": {**self.workers._asdict(), "env": {}},
            "integrator": {**self.integrator._asdict(), "env": {}} if self.integrator else None,
            "limits": self.limits._asdict(),
            "env_names": sorted(self.workers.env),
        }

    @property
    def content(self) -> ContentRules:
        """What files on the branch must not hold."""
        return ContentRules(self.settings.largest_file_mb, self.workers.env)

    @property
    def private(self) -> dict[str, Any]:
        return {"env": dict(self.workers.env)} if self.workers.env else {}


def of_run(run: Run) -> Wish:
    """What this run was asked to do. Keys that are not ours are passed over."""
    facts, private = run.state.facts, run.private
    if facts.get("env_names") and private is None:
        names = ", ".join(f"`{name}`" for name in facts["env_names"])
        raise MngrError(
            f"run `{run.id}` has lost the variables of its agents: {names}",
            hint=f"begin another run; they were in `{run.directory}/{PRIVATE}`",
        )
    own = {name: facts[name] for name in Wish._fields if name in facts}
    own["settings"] = settings.from_json(own["settings"])
    env = (private or {}).get("env", {})
    own["workers"] = _workers(own["workers"], env)
    own["integrator"] = _workers(own["integrator"], env) if own["integrator"] else None
    own["limits"] = Limits(**{name: value for name, value in own["limits"].items() if name in Limits._fields})
    return Wish(**{**own, "paths": tuple(own["paths"]), "args": tuple(own["args"])})


def _workers(value: Mapping[str, Any], env: Mapping[str, str]) -> Workers:
    return Workers(**{**value, "args": tuple(value["args"]), "env": {**value["env"], **env}})
