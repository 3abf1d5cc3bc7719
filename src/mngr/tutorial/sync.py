"""Lets an agent make the tests match the tutorial. Whether they do is checked in a clean checkout of its commits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mngr import prompts
from mngr.e2e.code_state import is_left_by_tests
from mngr.errors import MngrError, TimedOut
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system.process import join
from mngr.tutorial.check import NOT_RUN, TutorialProblem
from mngr.tutorial.sources import Sources
from mngr.workspace import copy_git

CHANGED, UNCOMMITTED, FAILING = "script-changed", "uncommitted", "tests-failing"
_MOST_TOLD = 60
_LINES_OF_OUTPUT = 60
_TEST_SECONDS = 1800.0
_NOT_STARTED = (126, 127)  # of a shell


@dataclass
class SyncJob:
    """`sources` are named from the root of the repository, as the agent sees them in its copy; `text` is the tutorial,
    which has to stay. `test_command` is run in a clean checkout before each check, after `prepare`, and has to end with
    0. `problems` are what was missing at the last look. `prompt` is a file that replaces the packaged prompt;
    `extra_paths` are files outside git that the tests need."""

    fleet: Fleet
    sources: Sources
    text: str
    problems: Sequence[TutorialProblem]
    test_command: str
    prepare: str
    prompt: str | None
    extra_paths: Mapping[str, str]

    def first_prompt(self) -> str:
        return self._render("sync.md.j2", self.prompt)

    def look(self, agent: Agent) -> tuple[int, str]:
        """How much is missing in a clean checkout of the agent's last commit, or not committed, and what the agent is
        told about it."""
        self.problems = _missing(self, agent)
        return len(self.problems), self._render("sync_again.md.j2") if self.problems else ""

    def _render(self, name: str, own: str | None = None) -> str:
        return prompts.render(
            name,
            own,
            script=self.sources.script,
            tests=self.sources.tests,
            test_command=self.test_command,
            check_command=check_command(self.sources),
            problems=self.problems[:_MOST_TOLD],
            more=max(0, len(self.problems) - _MOST_TOLD),
        )


def check_command(sources: Sources) -> str:
    tests = [word for path in sources.tests for word in ("--tests", path)]
    return join(["mngr", "tutorial", "check", "--script", sources.script, *tests])


def _missing(job: SyncJob, agent: Agent) -> list[TutorialProblem]:
    """Everything that keeps the agent's work from being what was asked for."""
    with _clean_copy(job, agent) as copy:
        problems = _missing_in(copy, job, agent.record.workspace.base_commit or "BASE")
    paths = copy_git.of(agent.site.host, agent.record).changed_paths() if agent.record.workspace.repo else []
    if changed := [path for path in paths if not is_left_by_tests(path)]:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        message = f"{changed[0]}:1: not committed, so not checked: {shown}"
        problems.insert(0, TutorialProblem(UNCOMMITTED, message, changed[0], 1, hint="commit it"))
    return problems


@contextmanager
def _clean_copy(job: SyncJob, agent: Agent) -> Iterator[Agent]:
    """A checkout of the agent's last commit, removed afterwards. What a killed process left of it is removed before.
    Without git there is nothing but the agent's own copy."""
    if not agent.record.workspace.repo:
        yield agent
        return
    name, labels = f"{agent.name}-check", {"tutorial-check": agent.id}
    for left in job.fleet.list().agents:
        if labels.items() <= dict(left.record.spec.labels).items():
            left.destroy(discard=True)
    copy = job.fleet.create(
        name,
        command="true",
        source=agent.record.workspace.work_dir,
        transfer="git-mirror",
        branch=f"HEAD:mngr-check/{name}",
        unclean="exclude",
        labels=labels,
        extra_paths=job.extra_paths,
    )
    try:
        yield copy
    finally:
        copy.destroy(discard=True)


def _missing_in(copy: Agent, job: SyncJob, base: str) -> list[TutorialProblem]:
    there = job.sources.elsewhere(copy.record.workspace.work_dir)
    if not os.path.exists(os.path.join(there.root, there.script)) or there.text() != job.text:
        message = f"{job.sources.script}:1: the tutorial was changed; it is what the tests are held against"
        words = join(["git", "checkout", base, "--", job.sources.script])
        return [TutorialProblem(CHANGED, message, job.sources.script, 1, hint=f"restore it and commit that: `{words}`")]
    problems = _failing(copy, job) if job.test_command else []
    report = there.report()
    if job.test_command and job.sources.artifacts != () and report.ran is None and not problems:
        message = f"{there.usual}:1: `{job.test_command}` recorded no test that uses `e2e`: what is run is not known"
        problems.append(TutorialProblem(NOT_RUN, message, there.usual, 1))
    return [*problems, *report.problems]


def _failing(copy: Agent, job: SyncJob) -> list[TutorialProblem]:
    """The first of the two commands that fails. One that cannot be started at all is no fault of the agent: raises."""
    for command in filter(None, (job.prepare, job.test_command)):
        try:
            done = copy.exec(command, timeout=_TEST_SECONDS)
        except TimedOut as error:
            return [TutorialProblem(FAILING, f"`{command}`: {error.message}", job.sources.tests[0], 1)]
        lines = (done.stdout + done.stderr).decode(errors="backslashreplace").strip("\n").split("\n")
        output = "\n".join(lines[-_LINES_OF_OUTPUT:])
        if done.exit_code in _NOT_STARTED:
            raise MngrError(
                f"`{command}` cannot be started in a clean checkout (exit code {done.exit_code})",
                details=output,
                hint="`mngr config set tmr.prepare 'CMD'` prepares it; `--test-command` names another command",
            )
        if not done.ok:
            message = f"`{command}` failed (exit code {done.exit_code}); the end of its output:"
            return [TutorialProblem(FAILING, message, job.sources.tests[0], 1, text=output)]
    return []
