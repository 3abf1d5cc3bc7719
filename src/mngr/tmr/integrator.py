"""The integrator: an agent that proposes how two changes go together. Whether that holds is measured elsewhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr import prompts
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.mapreduce import naming
from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import Launch, Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import SETTLED, Attempt, TaskState
from mngr.process import join, quote
from mngr.tmr.conflict import Conflict, Resolver
from mngr.tmr.harvest import harvest
from mngr.tmr.measurement import SuiteEnvironment
from mngr.tmr.objects import Ident, NewCommit, Objects
from mngr.tmr.recipe import Workers, filled
from mngr.tmr.unit import Verified
from mngr.tmr.verdict import INTEGRATED, UNCHANGED
from mngr.tools.git import Git

_NARRATIVE = "narrative"
_NARRATIVE_MAX = 20_000


class IntegratorRecipe(Recipe):
    """Its tasks carry their prompt and the commit to begin at."""

    def __init__(self, run: Run, fleet: Fleet, git: Git, workers: Workers, environment: SuiteEnvironment) -> None:
        self._run, self._fleet, self._git, self._workers = run, fleet, git, workers
        self._environment = environment

    def launch(self, task: TaskState, attempt: Attempt) -> Launch:
        prepare = self._environment.prepare
        return Launch(
            type=self._workers.type,
            args=filled(self._workers.args, task=task.id, slug=task.data["about"], attempt=attempt.number),
            message=task.data["prompt"],
            env={**self._environment.env, **self._workers.env},
            source=self._git.directory,
            transfer=self._workers.transfer,
            branch=f"{task.data['start']}:mngr/*",
            record=self._workers.record,
            permissions=self._workers.permissions,
            allowed_commands=tuple(filter(None, (self._environment.test_command, prepare))),
            provision=(prepare,) if prepare else (),
            extra_paths=self._environment.extra_paths,
        )

    def collect(self, task: TaskState, attempt: Attempt, agent: Agent) -> Mapping[str, Any]:
        directory = os.path.join(self._run.directory, "tasks", task.slug, str(attempt.number))
        ref = f"refs/mngr/runs/{self._run.id}/{task.slug}/{attempt.number}"
        return harvest(self._fleet, self._git, agent, task=task.id, directory=directory, ref=ref)

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        if task.data["about"] == _NARRATIVE:
            answered = bool(_narrative(self._run, task.slug, attempt.number))
        else:
            answered = collected.get("tip") not in (None, task.data["start"])
        return {"verdict": "proposed" if answered else "no answer"}


def narrate(
    engine: Callable[[Recipe, str], Engine],
    recipe: IntegratorRecipe,
    run: Run,
    integration: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """What the integrator tells reviewers about the branch; empty when it has nothing to say. The same branch is told
    about once."""
    tip = str(integration["tip"])
    name = f"narrative of {tip[:10]}"
    text = prompts.render(
        "narrator.md.j2",
        task=name,
        commits=integration["commits"],
        asides=integration["set_aside"],
        open=[row for row in rows if row["verdict"] not in INTEGRATED | {UNCHANGED}],
    )
    data = {"role": naming.INTEGRATE, "about": _NARRATIVE, "start": tip, "prompt": text}
    task = Task(name, f"narrative-{tip[:8]}", data)
    if name not in run.state.tasks or run.state.tasks[name].status != SETTLED:
        engine(recipe, naming.INTEGRATE).go([task])
    last = run.state.tasks[name].last
    return _narrative(run, task.slug, last.number) if last is not None else ""


def _narrative(run: Run, slug: str, number: int) -> str:
    """What an attempt wrote; empty when there is no such file."""
    path = os.path.join(run.directory, "tasks", slug, str(number), "artifacts", "narrative.md")
    try:
        with open(path, "rb") as file:
            return file.read(_NARRATIVE_MAX).decode(errors="replace")
    except OSError:
        return ""


class AgentResolver(Resolver):
    """Asks once about each conflict, also over several integrations of a run: the same conflict has the same answer."""

    def __init__(
        self,
        engine: Callable[[Recipe, str], Engine],
        recipe: IntegratorRecipe,
        run: Run,
        git: Git,
        *,
        tests: Mapping[str, Sequence[str]],
        test_command: str,
    ) -> None:
        self._engine, self._recipe, self._run, self._objects = engine, recipe, run, Objects(git)
        self._tests, self._test_command = tests, test_command

    def resolve(self, conflicts: Sequence[Conflict]) -> Sequence[str | None]:
        """All at once: the engine's own limits say how many agents work at a time."""
        tasks = [self._task(conflict) for conflict in conflicts]
        known = self._run.state.tasks
        if todo := [task for task in tasks if task.id not in known or known[task.id].status != SETTLED]:
            self._engine(self._recipe, naming.INTEGRATE).go(todo)
        return [self._answer(task) for task in tasks]

    def _answer(self, task: Task) -> str | None:
        last = self._run.state.tasks[task.id].last
        collected = last.collected if last is not None else None
        tip = collected.get("tip") if collected else None
        if tip is None or tip == task.data["start"]:
            return None
        return self._objects.facts([tip])[tip].tree

    def _task(self, conflict: Conflict) -> Task:
        ident = Ident("mngr", "mngr@localhost", self._objects.facts([conflict.tip])[conflict.tip].committed_at)
        message = f"Bring in the work of {conflict.piece.slug}, with conflicts\n"
        start = self._objects.write([NewCommit(conflict.tip, {}, message, ident, ident, tree=conflict.merged)])[0]
        digest = hashlib.sha256(f"{start} {conflict.piece.part.id}".encode()).hexdigest()[:8]
        name = f"conflict of {conflict.piece.slug} ({digest})"
        accepted = [maker for unit in conflict.against for maker in unit.makers]
        wanted = conflict.piece.makers
        text = prompts.render(
            "integrator.md.j2",
            task=name,
            paths=conflict.paths,
            quoted_paths=join(conflict.paths),
            accepted=[_side(maker) for maker in accepted],
            wanted=[_side(maker) for maker in wanted],
            base=conflict.base,
            tip=conflict.tip,
            theirs=conflict.theirs,
            tests=[quote(test) for test in sorted({t for m in (*accepted, *wanted) for t in self._tests[m.slug]})],
            test_command=self._test_command,
        )
        data = {"role": naming.INTEGRATE, "about": conflict.piece.slug, "start": start, "prompt": text}
        return Task(name, f"conflict-{digest}", data)


def _side(maker: Verified) -> Mapping[str, str]:
    return {"agent": maker.agent, "task": maker.task, "summary": " ".join(maker.summary.split())[:500]}
