"""Test map-reduce as a recipe of the engine: one agent per test, its work brought home and measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr import prompts
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.mapreduce import attempt_end
from mngr.mapreduce.recipe import AgentLaunch, Recipe
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.system.git import Git
from mngr.tmr import outcome
from mngr.tmr.blocks import Blocks
from mngr.tmr.harvest import fetch_commits, harvest
from mngr.tmr.judge.gather import verify
from mngr.tmr.judge.verdict import FAILED, Decision, Verdict
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.measurement import SuiteEnvironment

_FAILURE_HEAD, _FAILURE_TAIL = 2000, 4000
_PROMPT = "mapper.md.j2"
CHECKER = ".mngr/task/check_outcome.py"
CHECK_COMMAND = f"python3 {CHECKER}"
_INTERRUPTED = attempt_end.RETRIED | {
    attempt_end.STOPPED,
    attempt_end.BLOCKED,
    attempt_end.TIMEOUT,
    attempt_end.STALLED,
}
CONTINUED = """

Another agent began this task and was interrupted. Its commits are on your branch: look at them with `git log -p` first,
and continue from there. Change or revert what is wrong with them.
"""


class Workers(NamedTuple):
    """What the agents are. In `args`, `{task}`, `{name}`, `{slug}` and `{attempt}` stand for its own."""

    type: str
    args: tuple[str, ...] = ()
    transfer: str = "git-mirror"
    env: Mapping[str, str] = {}
    record: bool = True
    prompt: str = ""
    more: str = ""
    permissions: str = ""
    sandbox: str = ""


class WorkersRecipe(Recipe):
    """What the recipes of this package have in common: agents that begin at a commit, and whose work is harvested."""

    def __init__(self, run: Run, git: Git, environment: SuiteEnvironment, workers: Workers) -> None:
        self._run, self._git, self._environment, self._workers = run, git, environment, workers

    def agent(self, task: TaskState, attempt: Attempt, *, about: str, start: str, message: str) -> AgentLaunch:
        """The agent for an attempt; `about` is what `{slug}` in its arguments stands for."""
        workers, environment = self._workers, self._environment
        return AgentLaunch(
            type=workers.type,
            args=filled(workers.args, task=task.id, slug=about, attempt=attempt.number),
            message=message,
            env={**environment.env, **workers.env},
            source=self._git.directory,
            transfer=workers.transfer,
            branch=f"{start}:mngr/*",
            record=workers.record,
            permissions=workers.permissions,
            sandbox=workers.sandbox,
            allowed_commands=tuple(filter(None, (environment.test_command, environment.prepare))),
            provision=tuple(filter(None, [self._without_remotes(), environment.prepare])),
            extra_paths=environment.extra_paths,
        )

    def _without_remotes(self) -> str:
        """Takes from a copy of the repository the places that it could push to; a worktree shares those of the user."""
        remove = 'for remote in $(git remote); do git remote remove "$remote"; done'
        return remove if self._workers.transfer == "git-mirror" else ""

    def collect(self, task: TaskState, attempt: Attempt, agent: Agent) -> Mapping[str, Any]:
        directory, ref = self.place(task, attempt), self._ref(task, attempt)
        return harvest(self._git, agent, task=task.id, directory=directory, ref=ref)

    def place(self, task: TaskState, attempt: Attempt) -> str:
        """Where the files of an attempt are."""
        return os.path.join(self._run.directory, "tasks", task.slug, str(attempt.number))

    def start_of(self, task: TaskState, attempt: Attempt, base: str) -> str:
        """The commit to begin at: what an agent had committed that was interrupted, else the base."""
        for before in reversed(task.attempts[: attempt.number - 1]):
            tip = (before.collected or {}).get("tip")
            if tip:
                return str(tip) if before.ended in _INTERRUPTED else base
            # Of a host that was lost, what was fetched while the agent worked.
            saved = self._git.commit_of(self._checkpoint_ref(task, before)) if before.host else None
            if saved is not None:
                return saved
        return base

    def _ref(self, task: TaskState, attempt: Attempt) -> str:
        return f"refs/mngr/runs/{self._run.id}/{task.slug}/{attempt.number}"

    def _checkpoint_ref(self, task: TaskState, attempt: Attempt) -> str:
        return f"{self._ref(task, attempt)}-checkpoint"


class TestRecipe(WorkersRecipe):
    __test__ = False  # not one for pytest

    def __init__(self, run: Run, git: Git, base: BaseCommit, workers: Workers, seconds: float | None = None) -> None:
        """`seconds` is the time that each agent has, if it is limited."""
        super().__init__(run, git, base.measurer.environment, workers)
        self._base = base
        self._minutes = round(seconds / 60) if seconds else 0
        self._blocks = Blocks(git, base.commit)

    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        start = self.start_of(task, attempt, self._base.commit)
        message = self.prompt(task) + (CONTINUED if start != self._base.commit else "")
        plain = self.agent(task, attempt, about=task.slug, start=start, message=message)
        # What it may run to see whether its work is good, with the permissions `tests`.
        allowed = (*plain.allowed_commands, *filter(None, [self._base.gate_command]), CHECK_COMMAND)
        return plain._replace(allowed_commands=allowed, uploads=((outcome.__file__, CHECKER),))

    def prompt(self, task: TaskState) -> str:
        found, measured = self._base.found(task.id), self._base.before(task.id)
        return prompts.render(
            _PROMPT,
            own=self._workers.prompt,
            task=task.id,
            file=found.file if found else task.id,
            line=found.line if found else 0,
            blocks=self._blocks.of(task.id),
            minutes=self._minutes,
            verdict=measured.verdict,
            failure=_shortened(measured.text),
            command=self._base.command_for(task.id),
            gate_command=self._base.gate_command,
            check_command=CHECK_COMMAND,
            implementation=self._base.paths.implementation,
            read_only=self._base.paths.read_only,
            more=self._workers.more,
        )

    def collect(self, task: TaskState, attempt: Attempt, agent: Agent) -> Mapping[str, Any]:
        found = super().collect(task, attempt, agent)
        if found["tip"] is None:
            raise MngrError("its work could not be collected: " + "; ".join(found["problems"]))
        return found

    def checkpoint(self, task: TaskState, attempt: Attempt, agent: Agent) -> None:
        ref = self._checkpoint_ref(task, attempt)
        if agent.pull(into="none", dry_run=True).commit != (self._git.commit_of(ref) or self._base.commit):
            fetch_commits(self._git, agent, ref)

    def unreadable(self, task: TaskState, attempt: Attempt, agent: Agent) -> str:
        try:
            outcome.parse(agent.outcome(at_most=outcome.MAX_BYTES), task.id, agent.record.workspace.work_dir)
        except outcome.UnreadableOutcome as wrong:
            return str(wrong)
        return ""

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        if not collected:
            return Verdict(Decision(FAILED, (attempt.collect_error,))).as_json()
        return verify(self._base, task=task.id, slug=task.slug, harvested=collected).as_json()


def _shortened(failure: str) -> str:
    """Its beginning, which names the cases that failed, and its end, which says how."""
    if len(failure) <= _FAILURE_HEAD + _FAILURE_TAIL:
        return failure
    return f"{failure[:_FAILURE_HEAD]}\n[...]\n{failure[-_FAILURE_TAIL:]}"


def check_prompt(own: str) -> None:
    """Raises when no prompt can be made of this file: better known before anything is run."""
    names = ("task", "file", "line", "verdict", "failure", "command", "gate_command", "implementation", "read_only")
    more = ("blocks", "minutes", "check_command", "more")
    prompts.render(_PROMPT, own=own, **dict.fromkeys((*names, *more), ""))


def filled(words: tuple[str, ...], *, task: str, slug: str, attempt: int) -> tuple[str, ...]:
    """The words with what stands in braces replaced; other braces stay. `{name}` is the test without its place."""
    test = os.path.basename(task.rpartition("::")[2].partition("[")[0])
    for name, value in {"task": task, "name": test, "slug": slug, "attempt": str(attempt)}.items():
        words = tuple(word.replace(f"{{{name}}}", value) for word in words)
    return words
