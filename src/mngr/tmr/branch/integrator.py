"""The integrator: an agent that proposes how two changes go together. Whether that holds is measured elsewhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr import prompts
from mngr.mapreduce import task_names
from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import AgentLaunch, Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import SETTLED, Attempt, TaskState
from mngr.system import files
from mngr.system.git import Git
from mngr.system.process import join
from mngr.tmr.branch.conflict import Conflict, Resolver
from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.objects import NewCommit, Objects, ours
from mngr.tmr.branch.unit import VerifiedWork
from mngr.tmr.judge.verdict import INTEGRATED, UNCHANGED
from mngr.tmr.recipe import WorkersRecipe
from mngr.tmr.run_view import TaskView

_NARRATIVE = "narrative"
_NARRATIVE_MAX = 20_000


class IntegratorRecipe(WorkersRecipe):
    """Its tasks carry their prompt and the commit to begin at."""

    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        about, start, prompt = (task.data[name] for name in ("about", "start", "prompt"))
        return self.agent(task, attempt, about=about, start=start, message=prompt)

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
    integrated: Integrated,
    tasks: Sequence[TaskView],
) -> str:
    """What the integrator tells reviewers about the branch; empty when it has nothing to say. The same branch is told
    about once."""
    tip = integrated.tip
    name = f"narrative of {tip[:10]}"
    text = prompts.render(
        "narrator.md.j2",
        task=name,
        commits=integrated.commits,
        asides=integrated.set_aside,
        open=[task for task in tasks if task.word not in INTEGRATED | {UNCHANGED}],
    )
    data = {"role": task_names.INTEGRATE, "about": _NARRATIVE, "start": tip, "prompt": text}
    task = Task(name, f"narrative-{tip[:8]}", data)
    [last] = settled(engine, recipe, run, task_names.INTEGRATE, [task])
    return _narrative(run, task.slug, last.number) if last is not None else ""


def settled(
    engine: Callable[[Recipe, str], Engine], recipe: Recipe, run: Run, role: str, tasks: Sequence[Task]
) -> list[Attempt | None]:
    """The last attempt at each of these tasks, once all are settled; those that already are begin nothing. The engine's
    own limits say how many agents work at a time."""
    known = run.state.tasks
    if todo := [task for task in tasks if task.id not in known or known[task.id].status != SETTLED]:
        engine(recipe, role).go(todo)
    return [run.state.tasks[task.id].last for task in tasks]


def proposed(attempt: Attempt | None, start: str) -> str | None:
    """The commit that an attempt made on top of another one; None when it made none."""
    tip = attempt.collected.get("tip") if attempt is not None and attempt.collected else None
    return None if tip in (None, start) else str(tip)


def _narrative(run: Run, slug: str, number: int) -> str:
    """What an attempt wrote; empty when there is no such file."""
    path = os.path.join(run.directory, "tasks", slug, str(number), "artifacts", "narrative.md")
    return files.content(path)[:_NARRATIVE_MAX].decode(errors="replace")


class AgentResolver(Resolver):
    """Asks once about each conflict, also over several integrations of a run: the same conflict has the same answer."""

    def __init__(
        self,
        engine: Callable[[Recipe, str], Engine],
        recipe: IntegratorRecipe,
        run: Run,
        git: Git,
        *,
        commands: Mapping[str, Sequence[str]],
    ) -> None:
        """`commands` are those that run the tests of each task's work, by slug."""
        self._engine, self._recipe, self._run, self._objects = engine, recipe, run, Objects(git)
        self._commands = commands

    def resolve(self, conflicts: Sequence[Conflict]) -> Sequence[str | None]:
        tasks = [self._task(conflict) for conflict in conflicts]
        ended = settled(self._engine, self._recipe, self._run, task_names.INTEGRATE, tasks)
        tips = [proposed(last, task.data["start"]) for task, last in zip(tasks, ended, strict=True)]
        return [self._objects.facts([tip])[tip].tree if tip else None for tip in tips]

    def _task(self, conflict: Conflict) -> Task:
        ident = ours(self._objects.facts([conflict.tip])[conflict.tip].committed_at)
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
            commands=sorted({command for maker in (*accepted, *wanted) for command in self._commands[maker.slug]}),
        )
        data = {"role": task_names.INTEGRATE, "about": conflict.piece.slug, "start": start, "prompt": text}
        return Task(name, f"conflict-{digest}", data)


def _side(maker: VerifiedWork) -> Mapping[str, str]:
    return {"agent": maker.agent, "task": maker.task, "summary": " ".join(maker.summary.split())[:500]}
