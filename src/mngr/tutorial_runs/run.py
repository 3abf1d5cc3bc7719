"""A run of one agent that works on the tutorial: it is told what is missing until nothing is, or its rounds are over.

What is missing is measured here whenever the agent calls its work done. What the agent says about it is not asked for.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mngr import json_values
from mngr.errors import FAILED, TIMED_OUT, UNDECIDED, MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce import attempt_end, decide, policy, task_names
from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import AgentLaunch, Task
from mngr.mapreduce.run import Run, all_of
from mngr.mapreduce.state import SETTLED, Attempt, TaskState
from mngr.system import files
from mngr.system.git import Git
from mngr.tmr import run_request
from mngr.tmr.recipe import CONTINUED, WorkersRecipe
from mngr.tmr.run_request import RunRequest
from mngr.tutorial.sources import Sources

SYNC, FILL = "tutorial-sync", "tutorial-fill"
PASSED, OUT_OF_ROUNDS, AGENT_ENDED = "passed", "out of rounds", "agent ended"
_TASKS = {SYNC: Task("tutorial sync", "tests"), FILL: Task("tutorial fill", "examples")}


class TutorialRequest(NamedTuple):
    """What `sync` or `fill` was asked to do, kept in the ledger so that whoever resumes the run does the same.
    `sources` are named from the top of the repository. `asked` is what only one of the two verbs knows."""

    run: RunRequest
    sources: Sources
    prompt: str
    asked: Mapping[str, Any]

    @property
    def rounds(self) -> int:
        return self.run.limits.max_returns + 1

    def facts(self) -> dict[str, Any]:
        """What its run is made with."""
        own = {"sources": self.sources, "prompt": self.prompt, "asked": self.asked}
        return {"private": self.run.private, **self.run.as_json(), **json_values.plain(own)}


def request_of(run: Run) -> TutorialRequest:
    facts = run.state.facts
    sources = json_values.typed(Sources, facts["sources"])
    return TutorialRequest(run_request.of_run(run), sources, facts["prompt"], facts["asked"])


class Look(NamedTuple):
    """What a look at the agent's work found: how much is missing, what the agent is told, and the facts as JSON."""

    missing: int
    message: str
    facts: Mapping[str, Any]


class TutorialRecipe(WorkersRecipe):
    """`allowed` are commands that the agent needs, `uploads` files that it gets."""

    allowed: tuple[str, ...] = ()
    uploads: tuple[tuple[str, str], ...] = ()

    def __init__(self, run: Run, request: TutorialRequest) -> None:
        asked = request.run
        super().__init__(run, Git.of_user(asked.repo), asked.settings.environment, asked.workers)
        self.request = request

    def begin(self) -> None:
        """Raise if the work could not be measured, before an agent is paid."""

    @abstractmethod
    def look(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Look:
        """What is missing in the work that was collected."""

    def end(self, tip: str) -> str:
        """Clean up, and put a commit that passed where the user finds it; returns the name of a branch."""
        return ""

    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        base = self.request.run.base
        start = self.start_of(task, attempt, base)
        message = self.request.prompt + (CONTINUED if start != base else "")
        launch = self.agent(task, attempt, about=task.slug, start=start, message=message)
        return launch._replace(allowed_commands=(*launch.allowed_commands, *self.allowed), uploads=self.uploads)

    def unreadable(self, task: TaskState, attempt: Attempt, agent: Agent) -> str:
        return self._looked(task, attempt, self.collect(task, attempt, agent)).message

    def correction(self, problem: str) -> str:
        return problem

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._looked(task, attempt, collected)
        return {**found.facts, "missing": found.missing}

    def _looked(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Look:
        if not collected.get("tip"):
            problems = "; ".join(collected.get("problems", ())) or attempt.collect_error
            raise MngrError(f"its work could not be collected: {problems}")
        found = self.look(task, attempt, collected)
        path = self.round_file(task, attempt, attempt.returns + 1)
        files.write_atomic(path, files.json_bytes({**found.facts, "missing": found.missing, "told": found.message}))
        return found

    def round_file(self, task: TaskState, attempt: Attempt, number: int) -> str:
        return os.path.join(self.place(task, attempt), f"round-{number}.json")

    def rounds_of(self, task: TaskState, attempt: Attempt) -> list[Mapping[str, Any]]:
        """What each look found, oldest first."""
        found = (self.round_file(task, attempt, number) for number in range(1, attempt.returns + 2))
        return [json_values.loads(data) for path in found if (data := files.content(path))]


class Turn(NamedTuple):
    """One round of the agent, and how much was missing at its end."""

    number: int
    missing: int


class TutorialResult(NamedTuple):
    """How a run ended: `end` in a word, `because` for a person. `found` is what the last look found; the branch is at
    the commit that passed it."""

    agent: str
    work_dir: str
    branch: str
    end: str
    because: str
    turns: tuple[Turn, ...]
    found: Mapping[str, Any]
    rounds: tuple[Mapping[str, Any], ...]
    code: int

    @property
    def ok(self) -> bool:
        return self.end == PASSED


def resume(run: Run, recipe: TutorialRecipe) -> None:
    """Let a run go on, however it ended. An agent whose work did not pass gets one more turn, and is told what is
    missing; one that used up its time is followed by another, which begins at its commits."""
    run.resume()
    for task in run.state.tasks.values():
        last = task.last
        if task.status == SETTLED and last is not None and (last.verdict or {}).get("missing"):
            told = recipe.rounds_of(task, last)[-1]["told"] if last.ended != attempt_end.TIMEOUT else ""
            run.retry(task.id, because="the run was resumed", message=told)


def work(fleet: Fleet, run: Run, recipe: TutorialRecipe) -> TutorialResult:
    """Work on a run whose lock the caller holds until its agent is done, or cannot continue. Agents of an earlier
    process are adopted. Raises if there is nothing to measure."""
    recipe.begin()
    gone = Engine(run, recipe, fleet, recipe.request.run.limits).go([_TASKS[run.state.facts["recipe"]]])
    (task,) = gone.state.tasks.values()
    last = task.last
    if last is None or not last.agent_id:
        raise MngrError(f"the agent could not be started: {last.because if last else gone.because}")
    if (gone.why == decide.SETTLED and last.verdict is None) or last.check_error:
        raise MngrError(
            f"the work of `{last.agent}` could not be measured: {last.check_error or last.collect_error}",
            hint=f"`mngr tutorial resume {run.id}` tries again",
        )
    found = last.verdict or {}
    rounds = recipe.rounds_of(task, last)
    spent = policy.spent(gone.state, recipe.request.run.limits, last.ended_at or 0.0)
    end, code = _end(spent[0] if spent else gone.why, last, found, last_round=len(rounds) >= recipe.request.rounds)
    branch = recipe.end(str((last.collected or {}).get("tip")) if end == PASSED else "")
    there = fleet.list(only=[last.agent_id]).agents
    return TutorialResult(
        agent=last.agent,
        work_dir=there[0].record.workspace.work_dir if there else "",
        branch=branch,
        end=end,
        because=last.because if gone.why == decide.SETTLED else gone.because,
        turns=tuple(Turn(number, each["missing"]) for number, each in enumerate(rounds, 1)),
        found=found,
        rounds=tuple(rounds),
        code=code,
    )


def _end(why: str, last: Attempt, found: Mapping[str, Any], *, last_round: bool) -> tuple[str, int]:
    """How it ended, in a word, and the exit code."""
    if found and not found["missing"]:
        return PASSED, 0
    if why != decide.SETTLED:
        return why, UNDECIDED if why in (decide.PAUSED, decide.BREAKER) else FAILED
    if last.ended == attempt_end.OUTCOME:
        return OUT_OF_ROUNDS if last_round else AGENT_ENDED, FAILED
    return last.ended, TIMED_OUT if last.ended == attempt_end.TIMEOUT else FAILED


def free_name(fleet: Fleet, repo: str, name: str) -> str:
    """This name of a run, or the first like it that no run, agent or branch has."""
    taken = {os.path.basename(place) for place in all_of(repo)}
    taken |= {dict(agent.record.spec.labels).get(task_names.RUN, "") for agent in fleet.list().agents}
    git = Git.of_user(repo)
    names = (name if number == 1 else f"{name}-{number}" for number in range(1, 1000))
    return next(free for free in names if free not in taken and not git.has_branch(branch_of(free)))


def branch_of(run: str) -> str:
    return f"mngr/{run}"


def teller(run: Run, recipe: TutorialRecipe, tell: Callable[[str], None]) -> Callable[[Mapping[str, Any]], None]:
    """What tells a person of the entries of the ledger that they want to know."""

    def hear(entry: Mapping[str, Any]) -> None:
        task = run.state.tasks.get(str(entry.get("task")))
        last = task.last if task is not None else None
        if task is None or last is None:
            return
        match entry["type"]:
            case "started":
                tell(f"`{last.agent}` is working; `mngr connect {last.agent}` shows it")
            case "returned":
                missing = recipe.rounds_of(task, last)[last.returns - 1]["missing"]
                tell(f"round {last.returns} of {recipe.request.rounds}: {missing} missing; `{last.agent}` is told")
            case "nudged":
                tell(f"`{last.agent}` is asked for its outcome")
            case "ended" if entry.get("retry"):
                tell(f"`{last.agent}`: {entry['because']}; will be tried again")

    return hear
