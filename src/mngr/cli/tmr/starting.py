"""Begin a run, go on with one, try tasks again, integrate again: what makes a process the orchestrator."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from mngr import process
from mngr.actions import create as creating
from mngr.agents.kinds import kind as kinds
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.inputs import variables
from mngr.cli.parser import Args
from mngr.cli.text import amount
from mngr.cli.tmr import ending, overrides, progress
from mngr.errors import MngrError, UsageError
from mngr.mapreduce import run as runs
from mngr.mapreduce.limits import Limits
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RUNNING, SETTLED, TaskState
from mngr.names import suggest
from mngr.records import TYPE_CHECKING
from mngr.tmr import settings as tmr_settings
from mngr.tmr.paths import folders
from mngr.tmr.recipe import Workers, check_prompt
from mngr.tmr.run import TestRun
from mngr.tmr.summary import tasks_of, verdict_of
from mngr.tmr.verdict import VERDICTS
from mngr.tmr.wish import Wish
from mngr.tools import git as git_tool
from mngr.tools.git import Git, Repo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def run(args: Args, app: App) -> int:
    if args.dry_run:
        from mngr.cli.tmr import estimating

        return estimating.show(app, _wish(args, app, repository(app)))
    return orchestrate(app, begin(args, app), open_pr=args.open_pr)


def begin(args: Args, app: App) -> Run:
    """Make the run that is asked for; nothing is done for it yet."""
    repo = repository(app)
    wish = _wish(args, app, repo)
    if args.open_pr:
        ending.check_pr(wish.repo)
    return runs.new(
        repo.top, id=args.name, directory=args.output_dir, private=wish.private, recipe="tmr", **wish.as_json()
    )


def resume(args: Args, app: App) -> int:
    found = find(app, args.run)
    changes = overrides.of(args, app, repository(app).top, found.state.facts)
    if found.state.finished is not None and not left(found):
        app.out.note(f"run `{found.id}` is over; nothing is left to do")
        if not app.out.human:
            ending.tell(app, found, ending.result(found))
        return int(found.state.finished.get("exit_code", 0))
    if changes:
        with found.locked():
            found.override(**changes)
    return orchestrate(app, found, resumed=True)


def retry(args: Args, app: App) -> int:
    found = find(app, args.run)
    chosen = _chosen(found, args.task or (), args.verdict or ())
    with found.locked():
        for task in chosen:
            found.retry(task.id, because="asked for by a person", message=args.message or "")
    app.out.note(f"another attempt for {', '.join(task.slug for task in chosen)}")
    return orchestrate(app, found, resumed=True)


def integrate(args: Args, app: App) -> int:
    found = find(app, args.run)
    collect = [_with_agent(app, task_named(found, name)).id for name in args.collect or ()]
    accept = [task_named(found, name).slug for name in args.accept or ()]
    if found.phase("select") is None:
        raise MngrError(f"run `{found.id}` has no work to integrate yet", hint=f"`mngr tmr resume {found.id}` goes on")
    with broken_off(app, found), working(app, found) as work:
        found.resume()
        if collect:
            work.collect_again(collect)
        work.integrate(accept=accept)
        code = work.exit_code()
        found.note("finished", exit_code=code, summary={"why": "integrated again"})
    return ending.show(app, found, code, open_pr=args.open_pr)


def _with_agent(app: App, task: TaskState) -> TaskState:
    """The task, if its last attempt has ended and has an agent whose work can be taken once more."""
    last = task.last
    if last is None or not last.agent_id or last.goes_on:
        raise MngrError(f"no agent of `{task.slug}` has ended yet", hint="`mngr tmr status` shows how far it is")
    if not app.fleet.list(only=[last.agent_id]).agents:
        raise MngrError(
            f"the agent of `{task.slug}` is gone; what was collected of it stays",
            hint=f"`mngr tmr retry --task {task.slug}` gives the task another one",
        )
    return task


def orchestrate(app: App, found: Run, *, resumed: bool = False, open_pr: bool = False) -> int:
    """Work on a run to its end, showing progress; then its result."""
    with broken_off(app, found), working(app, found) as work:
        if resumed:
            found.resume()
        code = work.go()
    return ending.show(app, found, code, open_pr=open_pr)


@contextmanager
def working(app: App, found: Run) -> Iterator[TestRun]:
    """Be the orchestrator of a run, with its progress shown."""
    with found.locked(), progress.shown(app, found):
        yield TestRun(app.fleet, found)


@contextmanager
def broken_off(app: App, found: Run) -> Iterator[None]:
    """Say at Ctrl-C how to go on, and that agents, which do not need this process, work on."""
    try:
        yield
    except KeyboardInterrupt:
        working_on = sum(task.status == RUNNING for task in found.state.tasks.values())
        agents = f"; {amount(working_on, 'agent')} still at work: `mngr tmr stop {found.id}`" if working_on else ""
        app.out.note(f"go on: `mngr tmr resume {found.id}`{agents}")
        raise


def find(app: App, name: str | None) -> Run:
    """The run meant, with a clear error for one of another recipe."""
    found = runs.find(repository(app).top, name)
    if found.state.facts.get("recipe") != "tmr":
        raise MngrError(f"`{found.directory}` is not a run of `mngr tmr`")
    return found


_GIT_NEEDED = (2, 38)


def _check_git() -> None:
    """Integration merges without a work tree, which an older git cannot do."""
    words = process.run(["git", "version"], timeout=60).text.split()
    found = tuple(int(part) for part in words[2].split(".")[:2] if part.isdigit()) if len(words) > 2 else ()
    if len(found) == 2 and found < _GIT_NEEDED:
        raise MngrError(f"`mngr tmr` needs git 2.38 or later, and this is {words[2]}", hint="install a newer git")


def repository(app: App) -> Repo:
    found = git_tool.look(app.fleet.host, app.fleet.cwd)
    if found is None:
        raise UsageError(
            "`mngr tmr` needs a git repository, and this is none",
            hint="`cd` to your project; a new one needs `git init` and a commit",
        )
    if found.head is None:
        raise UsageError("the repository has no commit yet", hint="`git add -A && git commit -m start`")
    return found


def task_named(found: Run, name: str) -> TaskState:
    """By test, slug, or the only beginning or end of either."""
    every = found.state.tasks.values()
    exact = [task for task in every if task.id in (name, name.partition("[")[0]) or task.slug == name]
    fitting = exact or [task for task in every if task.slug.startswith(name) or task.id.endswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"`{name}` could be any of {', '.join(f'`{task.slug}`' for task in fitting[:5])}")
    known = [task.slug for task in tasks_of(found.state)]
    raise UsageError(
        f"run `{found.id}` has no task `{name}`",
        hint=suggest(name, known, "task") or f"see them all: `mngr tmr status {found.id}`",
    )


def _chosen(found: Run, names: Sequence[str], verdicts: Sequence[str]) -> list[TaskState]:
    for word in verdicts:
        if word not in VERDICTS:
            raise UsageError(f"`{word}` is no verdict", hint=suggest(word, VERDICTS, "one"))
    chosen = [task_named(found, name) for name in names]
    chosen += [task for task in tasks_of(found.state) if verdict_of(task) in verdicts and task not in chosen]
    if not chosen and verdicts:
        words = " or ".join(f"`{word}`" for word in verdicts)
        raise UsageError(f"no task of run `{found.id}` is {words}", hint=f"see them all: `mngr tmr status {found.id}`")
    if not chosen:
        raise UsageError(
            "no task is chosen",
            hint="name some: `--task TASK`, or all of a verdict: `--verdict failed`; see `mngr tmr status`",
        )
    return chosen


def left(found: Run) -> bool:
    """Whether going on with the run would do anything."""
    unsettled = any(task.status != SETTLED for task in tasks_of(found.state))
    if any(attempt.release_error for task in found.state.tasks.values() for attempt in task.attempts):
        return True
    return unsettled or found.state.trip is not None or found.phase("integrate") is None


def _wish(args: Args, app: App, repo: Repo) -> Wish:
    _check_git()
    limits = _limits(args)
    git = Git(app.fleet.host, repo.top)
    base = git.commit_of(args.base)
    if base is None:
        raise UsageError(f"no branch or commit is called `{args.base}`")
    dirty = [path for path in repo.dirty if not path.startswith(".mngr/")]
    if dirty and base == repo.head and not args.exclude_unclean:
        raise MngrError(
            f"`{repo.top}` has {amount(len(dirty), 'uncommitted change')} that agents would not see: `{dirty[0]}`"
            + (", ..." if len(dirty) > 1 else ""),
            hint="commit them, or leave them out on purpose: `--exclude-unclean`",
        )
    _check_branch(git, args.branch or f"tmr/{args.name or 'run'}")
    chosen = args.type or _default_type(app, needed=not args.dry_run)
    if chosen:
        overrides.check_kind(app, repo.top, chosen, args.permissions, chosen_later=args.dry_run)
        overrides.check_identity(app, git, chosen, given=variables(args, app))
    settings = tmr_settings.read(app.settings)
    _settle_trust(app, limits)
    prompt = args.prompt or (os.path.join(repo.top, settings.prompt) if settings.prompt else "")
    if prompt:
        check_prompt(prompt)
    workers = Workers(
        type=chosen,
        args=tuple(args.rest),
        transfer=args.transfer,
        env=variables(args, app),
        record=args.record,
        prompt=os.path.abspath(prompt) if prompt else "",
        more=args.instructions or "",
        permissions=args.permissions or "",
    )
    integrator = None
    # A scripted agent follows the script of its test, which knows nothing of conflicts.
    alone = chosen == "scripted" and args.integrator is None and not args.integrator_arg
    if args.integrator != "none" and not alone:
        type = args.integrator or chosen
        if type:
            overrides.check_kind(app, repo.top, type, args.permissions, chosen_later=args.dry_run)
        rest = tuple(args.integrator_arg or ()) or (workers.args if type == chosen else ())
        integrator = workers._replace(type=type, args=rest, prompt="")
    words = [*(["-k", args.keyword] if args.keyword else []), *(["-m", args.mark] if args.mark else [])]
    return Wish(
        repo=repo.top,
        base=base,
        branch=args.branch or "",
        settings=settings,
        workers=workers,
        integrator=integrator,
        paths=tuple(_in_repository(app, repo, path) for path in args.tests),
        args=tuple(words),
        failing=args.failing,
        baseline=args.baseline,
        canary=args.canary,
        limits=limits,
    )


def _settle_trust(app: App, limits: Limits) -> None:
    """Read now what would be read later, in the middle of the run, when nobody can be asked to trust it."""
    creating.tmux_options(app.fleet)
    if limits.budget_usd is not None:
        app.settings.table("prices")


def _check_branch(git: Git, name: str) -> None:
    """Whether a branch of this name can be made, before anything is paid for."""
    if not git.ok("check-ref-format", f"refs/heads/{name}") or name.startswith("-"):
        raise UsageError(f"`{name}` is no name for a branch")
    above = [parent for parent in folders(name) if git.has_branch(parent)]
    below = git.must("for-each-ref", "--count=1", "--format=%(refname:short)", f"refs/heads/{name}/")
    if above or below:
        raise UsageError(
            f"the branch `{name}` cannot be made, since there is one called `{below or above[0]}`",
            hint="name another one: `--branch NAME`",
        )


def _default_type(app: App, *, needed: bool) -> str:
    """A coding agent that is installed. What is only tried out needs none."""
    try:
        return kinds.default_name(app.settings)
    except UsageError as error:
        if needed:
            hint = "name one: `--type TYPE`; `mngr doctor` shows what is installed"
            raise UsageError(error.message, hint=hint) from None
        return ""


def _limits(args: Args) -> Limits:
    overrides.at_least_one(args, "max_agents", "max_launching", "max_attempts")
    timeout = parse_duration(args.timeout)
    return Limits(
        max_agents=args.max_agents,
        max_launching=args.max_launching,
        max_attempts=args.max_attempts,
        timeout_seconds=timeout,
        warn_seconds=min(300.0, timeout / 5),
        stall_seconds=parse_duration(args.stall),
        budget_usd=args.budget_usd,
        budget_tokens=args.budget_tokens,
        deadline=time.time() + parse_duration(args.deadline) if args.deadline else None,
        when_over=args.when_over,
    )


def _in_repository(app: App, repo: Repo, path: str) -> str:
    """A path as typed here, as it is from the top of the repository, where the tests are run."""
    file, colons, rest = path.partition("::")
    full = os.path.realpath(os.path.join(app.fleet.cwd, file))
    top = os.path.realpath(repo.top)
    if full != top and not full.startswith(top + "/"):
        raise UsageError(f"`{path}` is not inside this repository")
    if not os.path.exists(full):
        raise UsageError(f"`{file}` does not exist")
    return os.path.relpath(full, top) + colons + rest
