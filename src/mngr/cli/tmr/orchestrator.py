"""Start or resume a run, retry tasks, integrate again: what makes a process the orchestrator."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mngr import process
from mngr.actions import agent_process
from mngr.agents.kinds import kind as kinds
from mngr.cli.amounts import amount
from mngr.cli.app import App
from mngr.cli.durations import parse_duration
from mngr.cli.option_values import parse_sandbox, variables
from mngr.cli.parser import Args
from mngr.cli.tmr import overrides, progress, run_result
from mngr.errors import MngrError, UsageError
from mngr.mapreduce import run as runs
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RUNNING, SETTLED, TaskState
from mngr.names import suggest
from mngr.tmr import settings as tmr_settings
from mngr.tmr.paths import folders
from mngr.tmr.recipe import Workers, check_prompt
from mngr.tmr.run import TestRun
from mngr.tmr.run_request import RunRequest
from mngr.tmr.summary import tasks_of, verdict_of
from mngr.tmr.verdict import VERDICTS
from mngr.tools import bubblewrap
from mngr.tools import git as git_tool
from mngr.tools.git import Git, Repo


def run(args: Args, app: App) -> int:
    if args.dry_run:
        from mngr.cli.tmr import estimate

        return estimate.show(app, _wish(args, app, repository(app)))
    return orchestrate(app, begin(args, app), open_pr=args.open_pr)


def begin(args: Args, app: App) -> Run:
    """Create the run that was asked for, without starting it."""
    repo = repository(app)
    wish = _wish(args, app, repo)
    if args.open_pr:
        run_result.check_pr(wish.repo)
    return runs.new(
        repo.top, id=args.name, directory=args.output_dir, private=wish.private, recipe="tmr", **wish.as_json()
    )


def resume(args: Args, app: App) -> int:
    found = find(app, args.run)
    changes = overrides.of(args, app, repository(app).top, found.state.facts)
    if found.state.finished is not None and not left(found):
        app.out.note(f"run `{found.id}` is finished; nothing is left to do")
        if not app.out.human:
            run_result.tell(app, found, run_result.result(found))
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
        raise MngrError(
            f"run `{found.id}` has no work to integrate yet", hint=f"`mngr tmr resume {found.id}` continues it"
        )
    with broken_off(app, found), working(app, found) as work:
        found.resume()
        if collect:
            work.collect_again(collect)
        work.integrate(accept=accept)
        code = work.exit_code()
        found.note("finished", exit_code=code, summary={"why": "integrated again"})
    return run_result.show(app, found, code, open_pr=args.open_pr)


def _with_agent(app: App, task: TaskState) -> TaskState:
    """The task, if its last attempt has ended and has an agent whose work can be taken once more."""
    last = task.last
    if last is None or not last.agent_id or last.goes_on:
        raise MngrError(f"no agent of `{task.slug}` has finished yet", hint="`mngr tmr status` shows the progress")
    if not app.fleet.list(only=[last.agent_id]).agents:
        raise MngrError(
            f"the agent of `{task.slug}` is gone; the work that was collected stays",
            hint=f"`mngr tmr retry --task {task.slug}` gives the task a new agent",
        )
    return task


def orchestrate(app: App, found: Run, *, resumed: bool = False, open_pr: bool = False) -> int:
    """Work on a run to its end, showing progress; then its result."""
    with broken_off(app, found), working(app, found) as work:
        if resumed:
            found.resume()
        code = work.go()
    return run_result.show(app, found, code, open_pr=open_pr)


@contextmanager
def working(app: App, found: Run) -> Iterator[TestRun]:
    """Be the orchestrator of a run, with its progress shown."""
    with found.locked(), progress.shown(app, found):
        yield TestRun(app.fleet, found)


@contextmanager
def broken_off(app: App, found: Run) -> Iterator[None]:
    """On Ctrl-C, note how to resume, and that agents keep working without this process."""
    try:
        yield
    except KeyboardInterrupt:
        working_on = sum(task.status == RUNNING for task in found.state.tasks.values())
        agents = f"; {amount(working_on, 'agent')} still working: `mngr tmr stop {found.id}`" if working_on else ""
        app.out.note(f"resume: `mngr tmr resume {found.id}`{agents}")
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
    found = git_tool.look(app.fleet.local.cwd)
    if found is None:
        raise UsageError(
            "`mngr tmr` needs a git repository, and the current directory is not in one",
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
        hint=suggest(name, known, "task") or f"`mngr tmr status {found.id}` shows all",
    )


def _chosen(found: Run, names: Sequence[str], verdicts: Sequence[str]) -> list[TaskState]:
    for word in verdicts:
        if word not in VERDICTS:
            raise UsageError(f"invalid verdict `{word}`", hint=suggest(word, VERDICTS, "one"))
    chosen = [task_named(found, name) for name in names]
    chosen += [task for task in tasks_of(found.state) if verdict_of(task) in verdicts and task not in chosen]
    if not chosen and verdicts:
        words = " or ".join(f"`{word}`" for word in verdicts)
        raise UsageError(f"no task of run `{found.id}` is {words}", hint=f"`mngr tmr status {found.id}` shows all")
    if not chosen:
        raise UsageError(
            "no task was selected",
            hint="select some: `--task TASK` or `--verdict failed`; `mngr tmr status` shows all",
        )
    return chosen


def left(found: Run) -> bool:
    """Whether going on with the run would do anything."""
    unsettled = any(task.status != SETTLED for task in tasks_of(found.state))
    if any(attempt.release_error for task in found.state.tasks.values() for attempt in task.attempts):
        return True
    return unsettled or found.state.trip is not None or found.phase("integrate") is None


def _wish(args: Args, app: App, repo: Repo) -> RunRequest:
    _check_git()
    limits = _limits(args)._replace(lost_seconds=app.settings.number("tmr.lost_seconds", 120))
    git = Git(repo.top)
    base = git.commit_of(args.base)
    if base is None:
        raise UsageError(f"no branch or commit named `{args.base}`")
    dirty = [path for path in repo.dirty if not path.startswith(".mngr/")]
    if dirty and base == repo.head and not args.exclude_unclean:
        raise MngrError(
            f"`{repo.top}` has {amount(len(dirty), 'uncommitted change')} that agents would not see: `{dirty[0]}`"
            + (", ..." if len(dirty) > 1 else ""),
            hint="commit them, or leave them out: `--exclude-unclean`",
        )
    _check_branch(git, args.branch or f"tmr/{args.name or 'run'}")
    chosen = args.type or _default_type(app, needed=not args.dry_run)
    if chosen:
        overrides.check_kind(app, repo.top, chosen, args.permissions, chosen_later=args.dry_run)
        overrides.check_identity(app, git, chosen, given=variables(args, app))
    if args.provider:
        _check_provider(app, args)
    elif args.snapshot:
        raise UsageError("`--snapshot` needs `--provider`")
    settings = tmr_settings.read(app.settings, elsewhere=bool(args.provider))
    if sandbox := parse_sandbox(args):
        _check_sandbox(app, args.transfer, here=not args.provider)
        settings = settings._replace(environment=settings.environment._replace(sandbox=sandbox))
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
        sandbox="on" if sandbox else "",
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
    return RunRequest(
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
        provider=args.provider or "",
        agents_per_host=args.agents_per_host,
        snapshot=args.snapshot or "",
    )


def _check_provider(app: App, args: Args) -> None:
    """Refuse a provider that cannot be used, before anything is spent."""
    from mngr.providers.provider import HostRequest

    if args.provider == "local":
        raise UsageError("`--provider local` is this machine", hint="leave out `--provider`")
    if args.transfer == "git-worktree":
        raise UsageError("agents on other machines cannot share your repository", hint="leave out `--transfer`")
    provider = app.fleet.hosts.provider(args.provider)
    if args.snapshot and provider.pool():
        raise UsageError(f"`--snapshot` is for new hosts; those of `{args.provider}` exist already")
    if not provider.pool():
        provider.require("create")
        provider.check(HostRequest("new", snapshot=args.snapshot or ""))


def _check_sandbox(app: App, transfer: str, *, here: bool) -> None:
    """Raise when agents and test runs cannot have one. Reads what would be read later, as `_settle_trust` does."""
    if transfer == "git-worktree":
        raise UsageError(
            "a worktree shares its repository with yours, so an agent in a sandbox cannot have one",
            hint="leave out `--transfer git-worktree`",
        )
    if here:
        bubblewrap.check()
    app.settings.table("sandbox")


def _settle_trust(app: App, limits: RunLimits) -> None:
    """Read now what would be read later, in the middle of the run, when nobody can be asked to trust it."""
    agent_process.tmux_options(app.fleet.local)
    if limits.budget_usd is not None:
        app.settings.table("prices")


def _check_branch(git: Git, name: str) -> None:
    """Refuse a branch that cannot be created, before anything is spent."""
    if not git.ok("check-ref-format", f"refs/heads/{name}") or name.startswith("-"):
        raise UsageError(f"invalid branch name `{name}`")
    above = [parent for parent in folders(name) if git.has_branch(parent)]
    below = git.must("for-each-ref", "--count=1", "--format=%(refname:short)", f"refs/heads/{name}/")
    if above or below:
        raise UsageError(
            f"the branch `{name}` cannot be created: branch `{below or above[0]}` is in the way",
            hint="choose another name: `--branch NAME`",
        )


def _default_type(app: App, *, needed: bool) -> str:
    """A coding agent that is installed. What is only tried out needs none."""
    try:
        return kinds.default_name(app.settings)
    except UsageError as error:
        if needed:
            hint = "choose one: `--type TYPE`; `mngr doctor` shows what is installed"
            raise UsageError(error.message, hint=hint) from None
        return ""


def _limits(args: Args) -> RunLimits:
    overrides.at_least_one(args, "max_agents", "max_launching", "max_attempts", "agents_per_host")
    timeout = parse_duration(args.timeout)
    return RunLimits(
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
        checkpoint_seconds=max(1.0, parse_duration(args.checkpoint)),
    )


def _in_repository(app: App, repo: Repo, path: str) -> str:
    """A path as typed here, as it is from the top of the repository, where the tests are run."""
    file, colons, rest = path.partition("::")
    full = os.path.realpath(os.path.join(app.fleet.local.cwd, file))
    top = os.path.realpath(repo.top)
    if full != top and not full.startswith(top + "/"):
        raise UsageError(f"`{path}` is not inside this repository")
    if not os.path.exists(full):
        raise UsageError(f"`{file}` does not exist")
    return os.path.relpath(full, top) + colons + rest
