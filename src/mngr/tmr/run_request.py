"""What a run was asked to do. Kept in its ledger, so that whoever resumes it does the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.json_values import plain, typed
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.run import PRIVATE, Run
from mngr.tmr import settings
from mngr.tmr.judge.refusals import ContentRules
from mngr.tmr.recipe import Workers
from mngr.tmr.settings import TmrSettings


class RunRequest(NamedTuple):
    """`paths` are files, directories or node ids, `args` further options of pytest. Without `integrator`, conflicts are
    set aside and the words for people are those that code can write. With `provider`, agents and tests run on its
    hosts; new ones begin as `snapshot`."""

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
    limits: RunLimits = RunLimits()
    provider: str = ""
    agents_per_host: int = 4
    snapshot: str = ""

    def as_json(self) -> dict[str, Any]:
        """Without the values of variables, which are in `private`."""
        integrator = self.integrator._replace(env={}) if self.integrator else None
        workers, settings = self.workers._replace(env={}), self.settings.without_env
        bare = self._replace(workers=workers, integrator=integrator, settings=settings)
        return {**plain(bare), "env_names": sorted({**self.workers.env, **self.settings.environment.env})}

    @property
    def content(self) -> ContentRules:
        """What files on the branch must not hold."""
        return ContentRules(self.settings.largest_file_mb, self.workers.env)

    @property
    def private(self) -> dict[str, Any]:
        found = {"env": dict(self.workers.env)} if self.workers.env else {}
        return {**found, **self.settings.private(self.repo)}


def of_run(run: Run) -> RunRequest:
    """What this run was asked to do. Keys that are not ours are passed over."""
    facts, private = run.state.facts, run.private
    if facts.get("env_names") and private is None:
        names = ", ".join(f"`{name}`" for name in facts["env_names"])
        raise MngrError(
            f"run `{run.id}` has lost the variables of its agents: {names}",
            hint=f"begin another run; they were in `{run.directory}/{PRIVATE}`",
        )
    env = (private or {}).get("env", {})
    workers, integrator = (
        typed(Workers, {**facts[name], "env": {**facts[name]["env"], **env}}) if facts[name] else None
        for name in ("workers", "integrator")
    )
    own = {"workers": workers, "integrator": integrator, "limits": typed(RunLimits, facts["limits"])}
    known = settings.from_json(facts["settings"], (private or {}).get("settings_env", {}))
    return typed(RunRequest, {**facts, **own, "settings": known})
