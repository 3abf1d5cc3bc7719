"""Start or resume a run, retry tasks, integrate again: what makes a process the orchestrator; and tell the result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mngr.cli import trust_prompt
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.parser.parser import Args
from mngr.cli.tmr import account, progress, request
from mngr.errors import MngrError, UsageError
from mngr.mapreduce import begun
from mngr.mapreduce import run as runs
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RUNNING, SETTLED, TaskState
from mngr.names import suggest
from mngr.system import git as git_tool
from mngr.system import process
from mngr.system.git import Git, Repo
from mngr.tmr.judge.verdict import VERDICTS
from mngr.tmr.run import TestRun
from mngr.tmr.run_view import tasks_of, verdict_of, view
from mngr.tmr.words.summary import rows, summary


def run(args: Args, app: App) -> int:
    if args.dry_run:
        from mngr.cli.tmr import estimate

        return estimate.show(app, request.asked(args, app, repository(app)))
    return orchestrate(app, begin(args, app), open_pr=args.open_pr)


def begin(args: Args, app: App) -> Run:
    """Create the run that was asked for, without starting it."""
    repo = repository(app)
    run_request = request.asked(args, app, repo)
    if args.open_pr:
        check_pr(run_request.repo)
    made = runs.new(
        repo.top,
        id=args.name,
        directory=args.output_dir,
        private=run_request.private,
        recipe="tmr",
        **run_request.as_json(),
    )
    begun.note(app.host_dir, repo.top, made.directory)
    return made


def resume(args: Args, app: App) -> int:
    found = find(app, args.run)
    changes = request.changes(args, app, repository(app).top, found.state.facts)
    if found.state.finished is not None and not left(found):
        app.out.note(f"run `{found.id}` is finished; nothing is left to do")
        if not app.out.human:
            tell(app, found, result(found))
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
    with working(app, found) as work:
        found.resume()
        if collect:
            work.collect_again(collect)
        work.integrate(accept=accept)
        code = work.exit_code()
        found.note("finished", exit_code=code, summary={"why": "integrated again"})
    return show_result(app, found, code, open_pr=args.open_pr)


def _with_agent(app: App, task: TaskState) -> TaskState:
    """The task, if its last attempt has ended and has an agent whose work can be taken once more."""
    last = task.last
    if last is None or not last.agent_id or last.goes_on:
        raise MngrError(f"no agent of `{task.slug}` has finished yet", hint="`mngr tmr status` shows the progress")
    listing = app.fleet.list(only=[last.agent_id])
    for error in listing.errors if not listing.agents else ():
        raise error
    if not listing.agents:
        raise MngrError(
            f"the agent of `{task.slug}` is gone; the work that was collected stays",
            hint=f"`mngr tmr retry --task {task.slug}` gives the task a new agent",
        )
    return task


def orchestrate(app: App, found: Run, *, resumed: bool = False, open_pr: bool = False) -> int:
    """Work on a run to its end, showing progress; then its result."""
    with working(app, found) as work:
        if resumed:
            found.resume()
        code = work.go()
    return show_result(app, found, code, open_pr=open_pr)


@contextmanager
def working(app: App, found: Run) -> Iterator[TestRun]:
    """Be the orchestrator of a run, with its progress shown. On Ctrl-C, note how to resume, and that agents keep
    working without this process."""
    try:
        with found.locked(), progress.shown(app, found):
            yield TestRun(app.fleet, found)
    except KeyboardInterrupt:
        working_on = sum(task.status == RUNNING for task in found.state.tasks.values())
        agents = f"; {amount(working_on, 'agent')} still working: `mngr tmr stop {found.id}`" if working_on else ""
        app.out.note(f"resume: `mngr tmr resume {found.id}`{agents}")
        raise


def find(app: App, name: str | None, recipes: Sequence[str] = ("tmr",)) -> Run:
    """The run meant, of these recipes. One that this user did not begin is asked about."""
    root = repository(app).top
    found = runs.find(root, name, recipes)
    if not begun.is_noted(app.host_dir, root, found.directory):
        claim = begun.claim(root, found)
        if not trust_prompt.asked_in_passing(app, [claim]):
            raise begun.refused(claim)
        begun.note(app.host_dir, root, found.directory)
    return found


def repository(app: App) -> Repo:
    found = git_tool.locate(app.fleet.local.cwd)
    if found is None:
        raise UsageError(
            "`mngr tmr` needs a git repository, and the current directory is not in one",
            hint="`cd` to your project; a new one needs `git init` and a commit",
        )
    if Git.of_user(found.top).commit_of("HEAD") is None:
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


def show_result(app: App, run: Run, code: int, *, open_pr: bool = False) -> int:
    """Write the pages, say what came out, and return the exit code of the run."""
    found = result(run)
    tell(app, run, found)
    if open_pr:
        _open_pr(app, run, found)
    return code


def result(run: Run) -> dict[str, Any]:
    """Write the pages; the whole result as JSON."""
    from mngr.report import tmr as pages

    report = pages.write(run)
    return {**summary(run.state), "directory": run.directory, "report": report, "rows": rows(view(run.state))}


def tell(app: App, run: Run, found: Mapping[str, Any]) -> None:
    """A result as a person or a script reads it. As lines of JSON the rows were told before, as they came."""
    if app.out.human:
        app.out.line("")
        account.show(app, run, found["report"])
    elif app.out.format == "jsonl":
        app.out.emit_object({"type": "result", **{key: value for key, value in found.items() if key != "rows"}})
    else:
        app.out.emit_object(found)


def check_pr(repo: str) -> None:
    """Before anything is paid for: whether a pull request could be opened at all."""
    process.require_program("gh")
    result = process.run(["gh", "auth", "status"], timeout=60, cwd=repo)
    if not result.ok:
        raise MngrError("`gh` is not logged in", details=result.error_text, hint="`gh auth login`")


def _open_pr(app: App, run: Run, found: Mapping[str, Any]) -> None:
    """Push the branch and open a pull request with the words that were written for it."""
    integration = found["integration"]
    if integration is None or not integration["branch"]:
        app.out.warn("no branch to open a pull request for")
        return
    repo, branch = str(run.state.facts["repo"]), str(integration["branch"])
    process.checked(process.run(["git", "push", "-u", "origin", branch], timeout=600, cwd=repo), "git could not push")
    with open(os.path.join(run.directory, "pr.md"), encoding="utf-8") as file:
        title, _, body = file.read().partition("\n")
    words = ["gh", "pr", "create", "--head", branch, "--title", title.removeprefix("# "), "--body-file", "-"]
    result = process.run(words, timeout=600, cwd=repo, input=body.strip().encode())
    app.out.line(process.checked(result, "`gh` could not open the pull request").text)
