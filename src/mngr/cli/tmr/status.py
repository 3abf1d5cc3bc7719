"""`mngr tmr status`: how far a run is, its tasks by what needs you, or all runs in a line each."""

from __future__ import annotations

import time

from mngr.cli.ages import age
from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.table import Column
from mngr.cli.tmr import account, progress
from mngr.cli.tmr.starting import find, repository
from mngr.mapreduce import run as runs
from mngr.mapreduce.run import Run
from mngr.records import TYPE_CHECKING
from mngr.tmr import places
from mngr.tmr.summary import doing, summary

if TYPE_CHECKING:
    from typing import Any

_RUN_COLUMNS = [
    Column("RUN", "run"),
    Column("STATE", "state"),
    Column("AGE", "age"),
    Column("TASKS", "tasks", right=True),
    Column("VERDICTS", "verdicts_text", flexible=True),
    Column("BRANCH", "branch"),
]


def status(args: Args, app: App) -> int:
    if args.all:
        rows = [_run_row(Run(place)) for place in runs.all_of(repository(app).top)]
        app.out.emit_rows(rows, _RUN_COLUMNS, envelope={"runs": rows}, empty="No runs")
        return 0
    found = find(app, args.run)
    rows = places.rows(found.state)
    facts = {**summary(found.state), "state": state_of(found), "directory": found.directory}
    if not app.out.human:
        app.out.emit_rows(rows, [], envelope={**facts, "rows": rows})
        return 0
    account.show(app, found, account.report_of(found))
    for text in progress.standing(found.state, time.time()):
        app.out.note(text)
    return 0


def state_of(found: Run) -> str:
    """What a run is doing: measured, not remembered."""
    return doing(found.state, found.orchestrator() is not None)


def _run_row(found: Run) -> dict[str, Any]:
    facts = summary(found.state)
    integration = facts["integration"] or {}
    return {
        "run": facts["run"],
        "state": state_of(found),
        "age": age(time.time() - found.state.began_at),
        "tasks": facts["tasks"],
        "verdicts": facts["verdicts"],
        "verdicts_text": ", ".join(f"{count} {word}" for word, count in facts["verdicts"].items()),
        "branch": integration.get("branch") or "",
        "exit_code": facts["exit_code"],
        "directory": found.directory,
    }
