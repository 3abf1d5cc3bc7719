"""The result of a run: said to a person or a script, written as pages, offered as a pull request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mngr import process
from mngr.cli.app import App
from mngr.cli.tmr import account
from mngr.errors import MngrError
from mngr.mapreduce.run import Run
from mngr.tmr import places
from mngr.tmr.summary import summary


def show(app: App, run: Run, code: int, *, open_pr: bool = False) -> int:
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
    rows = places.rows(run.state)
    return {**summary(run.state), "directory": run.directory, "report": report, "rows": rows}


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
