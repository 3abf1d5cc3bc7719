"""The `[tmr]` settings of a project: how its tests are run, and which of its files are the product."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr import secrets
from mngr.actions.create import extra_paths
from mngr.json_values import typed
from mngr.settings.layers import Settings
from mngr.tmr.judge.paths import Paths
from mngr.tmr.measure.measurement import EMPTY, SuiteEnvironment, default_command


class TmrSettings(NamedTuple):
    environment: SuiteEnvironment
    gate_command: str
    implementation: tuple[str, ...]
    non_implementation: tuple[str, ...]
    read_only: tuple[str, ...]
    prompt: str
    max_jobs: int
    baseline_repeats: int
    effect_runs: int
    largest_file_mb: float = 5
    tutorial: str = "tutorial.sh"
    mutants: int = 20
    second_opinion: bool = False

    def private(self, repo: str) -> dict[str, Any]:
        """What stays out of the ledger: the variables, and which of their values may be secret. One that names files of
        the repository (`PYTHONPATH=src/lib`) is none: what is measured would be unreadable."""
        env = dict(self.environment.env)
        secret = [
            value
            for value in secrets.unusual(env.values())
            if not all(os.path.exists(os.path.join(repo, path)) for path in value.split(":"))
        ]
        return {"settings_env": env, "secret_settings": secret} if env else {}

    @property
    def without_env(self) -> TmrSettings:
        return self._replace(environment=self.environment._replace(env={}))

    @property
    def paths(self) -> Paths:
        return Paths(self.implementation, self.non_implementation, self.read_only)


def read(settings: Settings, *, elsewhere: bool = False, test_command: str = "") -> TmrSettings:
    """The settings; `elsewhere` says that tests run on other machines, of which only their own know a Python. A test
    command that is given takes the place of the one in the settings."""
    command = test_command or settings.text("tmr.test_command")
    return TmrSettings(
        environment=SuiteEnvironment(
            test_command=command or ("python3 -m pytest" if elsewhere else default_command()),
            prepare=settings.text("tmr.prepare"),
            env={name: str(value.value) for name, value in settings.table("tmr.env").items()},
            test_seconds=settings.number("tmr.test_seconds", 120),
            job_seconds=settings.number("tmr.job_seconds", 1800),
            extra_paths=extra_paths(settings),
            home=settings.text("tmr.home") or EMPTY,
        ),
        gate_command=settings.text("tmr.gate_command"),
        implementation=tuple(settings.strings("tmr.paths.implementation")),
        non_implementation=tuple(settings.strings("tmr.paths.non_implementation")),
        read_only=tuple(settings.strings("tmr.paths.read_only")),
        prompt=settings.text("tmr.prompt"),
        max_jobs=int(settings.number("tmr.max_jobs", os.cpu_count() or 2)),
        baseline_repeats=int(settings.number("tmr.baseline_repeats", 2)),
        effect_runs=int(settings.number("tmr.effect_runs", 20)),
        largest_file_mb=settings.number("tmr.largest_file_mb", 5),
        tutorial=settings.text("tutorial.script") or "tutorial.sh",
        mutants=int(settings.number("tmr.mutants", 20)),
        second_opinion=settings.get("tmr.second_opinion") is True,
    )


def from_json(value: Mapping[str, Any], env: Mapping[str, str]) -> TmrSettings:
    """As the ledger has them, which leaves out the variables: a run goes on as it began, whatever became of the
    settings meanwhile."""
    environment = typed(SuiteEnvironment, value["environment"])
    return typed(TmrSettings, {**value, "environment": environment._replace(env={**environment.env, **env})})
