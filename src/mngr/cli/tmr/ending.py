"""The result of a run: said to a person or a script, written as pages, offered as a pull request."""

from __future__ import annotations

import os

from mngr import process
from mngr.cli.app import App
from mngr.cli.terminal import cut
from mngr.cli.text import amount
from mngr.errors import MngrError
from mngr.mapreduce.run import Run
from mngr.records import TYPE_CHECKING
from mngr.tmr import verdict
from mngr.tmr.summary import flagged, remedy, row, summary, tasks_of, verdict_of, why

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

VERDICT_STYLES = {
    verdict.FIXED: "green",
    verdict.IMPROVED: "green",
    verdict.UNCHANGED: "dim",
    verdict.HELD: "yellow",
    verdict.BLOCKED: "yellow",
    verdict.REFUTED: "red",
    verdict.REFUSED: "red",
    verdict.UNCLAIMED: "red",
    verdict.FAILED: "red",
}


def show(app: App, run: Run, code: int, *, open_pr: bool = False) -> int:
    """Write the pages, say what came out, and return the exit code of the run."""
    found = result(run)
    tell(app, run, found)
    if open_pr:
        _open_pr(app, run, found)
    if app.out.human:
        app.out.line(f"report: {found['report']}")
    return code


def result(run: Run) -> dict[str, Any]:
    """Write the pages; the whole result as JSON."""
    from mngr.report import tmr as pages

    report = pages.write(run)
    rows = [row(task) for task in tasks_of(run.state)]
    return {**summary(run.state), "directory": run.directory, "report": report, "rows": rows}


def tell(app: App, run: Run, found: Mapping[str, Any]) -> None:
    """A result as a person or a script reads it. As lines of JSON the rows were told before, as they came."""
    if app.out.human:
        _say(app, run, found)
    elif app.out.format == "jsonl":
        app.out.emit_object({"type": "result", **{key: value for key, value in found.items() if key != "rows"}})
    else:
        app.out.emit_object(found)


def _say(app: App, run: Run, found: Mapping[str, Any]) -> None:
    out = app.out
    tasks = tasks_of(run.state)
    out.line("")
    widest = max((len(task.slug) for task in tasks), default=0)
    for task in tasks:
        word = verdict_of(task)
        room = (out.columns or 200) - widest - 17
        out.line(f"  {task.slug:<{widest}}  {word:<11}  {_short(why(task), room)}", VERDICT_STYLES.get(word, ""))
        for flag in flagged(task):
            out.line(f"  {'':<{widest}}  {'look at':>11}  {_short(flag, room)}", "yellow")
    integration = found["integration"]
    if found["not_stopped"]:
        out.line(f"could not be stopped, still running: {', '.join(found['not_stopped'])}", "red")
    if integration is None:
        finished = run.state.finished or {}
        out.line(f"\nnot integrated: {(finished.get('summary') or {}).get('because', 'the run is not over')}")
        out.note(f"hint: {remedy(run.state)}")
        return
    for aside in integration["set_aside"]:
        where = f"; kept on `{aside['branch']}`" if aside["branch"] else ""
        out.line(f"  set aside: {', '.join(aside['slugs'])}: {_short(aside['reason'])}{where}", "yellow")
    if not integration["branch"]:
        out.line(f"\nno change was integrated; {amount(len(tasks), 'task')}, {_seconds(found)}")
        return
    out.line(
        f"\n{integration['branch']}: {amount(len(integration['commits']), 'commit')}, {_colour(integration)}", "bold"
    )
    for commit in integration["commits"]:
        needed = (
            f"  (reverting it takes {', '.join(id[:8] for id in commit['needed_by'])} along)"
            if commit["needed_by"]
            else ""
        )
        out.line(f"  {commit['id'][:8]}  {_short(commit['title'])}{needed}")
    out.line(", ".join([f"{amount(len(tasks), 'task')} in {_seconds(found)}", *_spent(found)]))
    out.note(f"look at it: `git log -p {found['base'][:8]}..{integration['branch']}`, or `mngr tmr review {run.id}`")


def _spent(found: Mapping[str, Any]) -> Iterator[str]:
    """Tokens and money, as far as they are known."""
    if found["tokens"]:
        yield f"{found['tokens']:,} tokens"
    if found["cost_usd"] or (found["tokens"] and not found["unpriced"]):
        yield f"{found['cost_usd']:.2f} USD"
    if found["unpriced"]:
        yield f"{amount(found['unpriced'], 'answer')} without a known price"


def _colour(integration: Mapping[str, Any]) -> str:
    failing = len(set(integration["excused"]))
    if integration["green"] and failing:
        return f"green: no test got worse; {failing} still not passing"
    return {True: "green: its suite passes as measured", False: "RED", None: "not measured"}[integration["green"]]


def _seconds(found: Mapping[str, Any]) -> str:
    return f"{found['seconds']:.0f} s"


def _short(text: str, room: int = 160) -> str:
    return cut(" ".join(text.split()), max(20, room))


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
        app.out.warn("there is no branch to open a pull request for")
        return
    repo, branch = str(run.state.facts["repo"]), str(integration["branch"])
    process.checked(process.run(["git", "push", "-u", "origin", branch], timeout=600, cwd=repo), "git could not push")
    with open(os.path.join(run.directory, "pr.md"), encoding="utf-8") as file:
        title, _, body = file.read().partition("\n")
    words = ["gh", "pr", "create", "--head", branch, "--title", title.removeprefix("# "), "--body-file", "-"]
    result = process.run(words, timeout=600, cwd=repo, input=body.strip().encode())
    app.out.line(process.checked(result, "`gh` could not open the pull request").text)
