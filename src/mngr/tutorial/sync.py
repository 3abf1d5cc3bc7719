"""Lets an agent make the tests match the tutorial. Whether they do is checked in a clean checkout of its commits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mngr import prompts
from mngr.actions.agent import Agent
from mngr.e2e.code_state import is_left_by_tests
from mngr.errors import MngrError, TimedOut
from mngr.fleet.fleet import Fleet
from mngr.process import join
from mngr.tools.git import Git
from mngr.tutorial import talk
from mngr.tutorial.check import NOT_RUN, Report, TutorialProblem
from mngr.tutorial.sources import Sources

CHANGED, UNCOMMITTED, FAILING = "script-changed", "uncommitted", "tests-failing"
_MOST_TOLD = 60
_LINES_OF_OUTPUT = 60
_NOT_STARTED = (126, 127)  # of a shell


class SyncJob(NamedTuple):
    """`sources` are named from the root of the repository, as the agent sees them in its copy. `test_command` is run in
    a clean checkout before each check, after `prepare`, and has to end with 0. `prompt` is a file that replaces the
    packaged prompt; `extra_paths` are files outside git that the tests need."""

    sources: Sources
    test_command: str = ""
    prompt: str | None = None
    prepare: str = ""
    extra_paths: Mapping[str, str] = {}
    test_seconds: float = 1800.0


def first_prompt(job: SyncJob, report: Report) -> str:
    return _render("sync.md.j2", job, report.problems, own=job.prompt)


def run(
    fleet: Fleet,
    job: SyncJob,
    agent: Agent,
    report: Report,
    *,
    rounds: int,
    timeout: float,
    tell: Callable[[str], None],
) -> tuple[talk.Talked, tuple[TutorialProblem, ...]]:
    """Talk with an agent until a clean checkout of its last commit passes the check and has the tutorial unchanged, and
    nothing is uncommitted. What was missing at the end comes with it. The work is left as the commits of the agent."""
    text = job.sources.text()
    last: tuple[TutorialProblem, ...] = ()

    def look(agent: Agent) -> tuple[int, str]:
        nonlocal last
        last = tuple(_missing(fleet, agent, job, text))
        return len(last), _render("sync_again.md.j2", job, last) if last else ""

    talked = talk.hold(fleet, agent, first_prompt(job, report), look, rounds=rounds, timeout=timeout, tell=tell)
    return talked, last


def _render(name: str, job: SyncJob, problems: Sequence[TutorialProblem], own: str | None = None) -> str:
    return prompts.render(
        name,
        own,
        script=job.sources.script,
        tests=job.sources.tests,
        test_command=job.test_command,
        check_command=check_command(job.sources),
        problems=problems[:_MOST_TOLD],
        more=max(0, len(problems) - _MOST_TOLD),
    )


def check_command(sources: Sources) -> str:
    tests = [word for path in sources.tests for word in ("--tests", path)]
    return join(["mngr", "tutorial", "check", "--script", sources.script, *tests])


def _missing(fleet: Fleet, agent: Agent, job: SyncJob, text: str) -> list[TutorialProblem]:
    """Everything that keeps the agent's work from being what was asked for."""
    with _clean_copy(fleet, agent, job) as copy:
        problems = _missing_in(copy, job, text, agent.record.base_commit or "BASE")
    paths = Git(agent.record.work_dir).changed_paths() if agent.record.repo else []
    if changed := [path for path in paths if not is_left_by_tests(path)]:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        message = f"{changed[0]}:1: not committed, so not checked: {shown}"
        return [TutorialProblem(UNCOMMITTED, message, changed[0], 1, hint="commit it"), *problems]
    return problems


@contextmanager
def _clean_copy(fleet: Fleet, agent: Agent, job: SyncJob) -> Iterator[Agent]:
    """A checkout of the agent's last commit, removed afterwards. What a killed process left of it is removed before.
    Without git there is nothing but the agent's own copy."""
    if not agent.record.repo:
        yield agent
        return
    name, labels = f"{agent.name}-check", {"tutorial-check": agent.id}
    for left in fleet.list().agents:
        if labels.items() <= dict(left.record.labels).items():
            left.destroy(discard=True)
    copy = fleet.create(
        name,
        command="true",
        source=agent.record.work_dir,
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


def _missing_in(copy: Agent, job: SyncJob, text: str, base: str) -> list[TutorialProblem]:
    there = job.sources.elsewhere(copy.record.work_dir)
    if not os.path.exists(os.path.join(there.root, there.script)) or there.text() != text:
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
            done = copy.exec(command, timeout=job.test_seconds)
        except TimedOut as error:
            return [TutorialProblem(FAILING, f"`{command}`: {error.message}", job.sources.tests[0], 1)]
        output = (done.stdout + done.stderr).decode(errors="backslashreplace").strip("\n").split("\n")
        if done.exit_code in _NOT_STARTED:
            raise MngrError(
                f"`{command}` cannot be started in a clean checkout (exit code {done.exit_code})",
                details="\n".join(output[-_LINES_OF_OUTPUT:]),
                hint="`mngr config set tmr.prepare 'CMD'` prepares it; `--test-command` names another command",
            )
        if not done.ok:
            message = f"`{command}` failed (exit code {done.exit_code}); the end of its output:"
            return [
                TutorialProblem(FAILING, message, job.sources.tests[0], 1, text="\n".join(output[-_LINES_OF_OUTPUT:]))
            ]
    return []
