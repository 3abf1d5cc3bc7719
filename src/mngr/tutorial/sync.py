"""Lets an agent make the tests match the tutorial. Whether they do is checked here, in the agent's own copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mngr import prompts
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.process import join
from mngr.records import NamedTuple
from mngr.tools.git import Git
from mngr.tutorial import talk
from mngr.tutorial.check import NOT_RUN, Problem, Report
from mngr.tutorial.sources import Sources

CHANGED, UNCOMMITTED, FAILING = "script-changed", "uncommitted", "tests-failing"
_LEFT_BY_TESTS = frozenset(("__pycache__", ".pytest_cache", ".hypothesis", ".coverage"))
_MOST_TOLD = 60
_LINES_OF_OUTPUT = 60


class Job(NamedTuple):
    """`sources` are named from the root of the repository, as the agent sees them in its copy. `test_command` is run
    there before each check, and has to end with 0. `prompt` is a file that replaces the packaged prompt."""

    sources: Sources
    test_command: str = ""
    prompt: str | None = None
    test_seconds: float = 1800.0


def first_prompt(job: Job, report: Report) -> str:
    return _render("sync.md.j2", job, report.problems, own=job.prompt)


def run(
    fleet: Fleet, job: Job, wish: talk.Wish, report: Report, *, rounds: int, timeout: float, tell: Callable[[str], None]
) -> tuple[talk.Talked, tuple[Problem, ...]]:
    """Talk with an agent until its copy passes the check, is committed and has the tutorial unchanged. What was missing
    at the end comes with it. The work is left as the commits of the agent."""
    text = job.sources.text()
    if wish.unclean == "exclude" and _is_edited(fleet, job.sources):
        raise UsageError(
            f"`{job.sources.script}` has uncommitted changes, which `--exclude-unclean` would leave out",
            hint="commit it, or take all along with `--include-unclean`",
        )
    measured = report.ran is not None
    last: tuple[Problem, ...] = ()

    def verdict(agent: Agent) -> talk.Verdict:
        nonlocal last
        last = tuple(_missing(fleet, agent, job, text, measured))
        return talk.Verdict(len(last), _render("sync_again.md.j2", job, last) if last else "")

    talked = talk.hold(fleet, wish, first_prompt(job, report), verdict, rounds=rounds, timeout=timeout, tell=tell)
    return talked, last


def _render(name: str, job: Job, problems: Sequence[Problem], own: str | None = None) -> str:
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


def _is_edited(fleet: Fleet, sources: Sources) -> bool:
    return bool(Git(fleet.host, sources.root).run("status", "--porcelain", "--", sources.script).text)


def _missing(fleet: Fleet, agent: Agent, job: Job, text: str, measured: bool) -> list[Problem]:
    """Everything that keeps the agent's copy from being what was asked for. `measured`: what was run was looked at
    before, so it has to be known in the copy too."""
    there = job.sources.elsewhere(agent.record.work_dir)
    problems: list[Problem] = []
    if _text(there) != text:
        message = f"{job.sources.script}:1: the tutorial was changed; it is what the tests are held against"
        words = ["git", "checkout", agent.record.base_commit or "BASE", "--", job.sources.script]
        hint = f"take it back as it was: `{join(words)}`"
        return [Problem(CHANGED, message, job.sources.script, 1, hint=hint)]
    if job.test_command:
        problems += _failing(fleet, agent, job)
    report = there.report()
    problems += report.problems
    if measured and report.ran is None:
        message = f"{there.usual}:1: there is no recorded run of the tests in this copy: what they run is not known"
        problems.append(Problem(NOT_RUN, message, there.usual, 1, hint="run the tests with pytest"))
    if changed := _uncommitted(fleet, agent):
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        problems.append(
            Problem(UNCOMMITTED, f"{changed[0]}:1: not committed: {shown}", changed[0], 1, hint="commit it")
        )
    return problems


def _uncommitted(fleet: Fleet, agent: Agent) -> list[str]:
    """Its files that are not committed, without what running tests leaves behind."""
    if not agent.record.repo:
        return []
    changed = Git(fleet.host, agent.record.work_dir).changed_paths()
    return [path for path in changed if _LEFT_BY_TESTS.isdisjoint(path.split("/"))]


def _text(sources: Sources) -> str | None:
    try:
        return sources.text()
    except MngrError:
        return None


def _failing(fleet: Fleet, agent: Agent, job: Job) -> list[Problem]:
    try:
        done = fleet.exec(agent, job.test_command, timeout=job.test_seconds)
    except TimedOut as error:
        return [Problem(FAILING, f"`{job.test_command}`: {error.message}", job.sources.tests[0], 1)]
    if done.ok:
        return []
    output = (done.stdout + done.stderr).decode(errors="backslashreplace").strip("\n").split("\n")
    message = f"`{job.test_command}` failed (exit code {done.exit_code}); the end of its output:"
    return [Problem(FAILING, message, job.sources.tests[0], 1, text="\n".join(output[-_LINES_OF_OUTPUT:]))]
