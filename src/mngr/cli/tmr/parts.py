"""The smaller parts of `mngr tmr`: connect, init, report, serve, status and stop."""

from __future__ import annotations

import os
import time

from mngr.cli import connection, trust_prompt
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.table import Column
from mngr.cli.parser.parser import Args
from mngr.cli.tmr import account
from mngr.cli.tmr.orchestrator import find, left, repository, task_named
from mngr.errors import MngrError, TimedOut
from mngr.mapreduce.run import Run
from mngr.settings import edit as settings_file
from mngr.settings import layers as config
from mngr.system.waiting import wait_until
from mngr.tmr.detect import look
from mngr.tmr.run import TestRun
from mngr.tmr.run_view import tasks_of, view
from mngr.tmr.words.log_lines import standing
from mngr.tmr.words.summary import doing, summary
from mngr.tmr.words.summary import rows as rows_of

_STOP_SECONDS = 300.0


def connect(args: Args, app: App) -> int:
    found = find(app, args.run)
    task = task_named(found, args.task)
    if task.last is None or not task.last.agent_id:
        raise MngrError(f"`{task.slug}` has no agent yet", hint=f"`mngr tmr status {found.id}`")
    return connection.connect(app, app.fleet.find(task.last.agent_id), None, start=True)


def init(args: Args, app: App) -> int:
    """Keys that are set already stay as they are."""
    top = repository(app).top
    here = os.path.relpath(os.path.realpath(app.fleet.local.cwd), os.path.realpath(top))
    path = config.scope_path("project", app.fleet.local.host.dir, top)
    rows = []
    with trust_prompt.changed_by_user(app, "project", top):
        for guess in look(top, "" if here == "." else here):
            key = f"tmr.{guess.key}"
            is_set = bool(app.settings.explain(key))  # trusted or not
            rows.append({"key": key, "value": guess.value, "because": guess.because, "written": not is_set})
            if not is_set and not args.dry_run:
                settings_file.set_value(path, key, guess.value, scope="project")
    if not rows and app.out.human:
        app.out.line("nothing to write: the tests are run with `python3 -m pytest`, without any preparation")
        return 0
    for row in rows:
        row["what"] = "kept as it is" if not row["written"] else "would be written" if args.dry_run else "written"
    columns = [
        Column("KEY", "key"),
        Column("VALUE", "value", flexible=True),
        Column("FOUND IN", "because"),
        Column("STATUS", "what"),
    ]
    app.out.emit_rows(rows, columns, envelope={"path": path, "settings": rows, "dry_run": args.dry_run})
    if not args.dry_run:
        app.out.note(f"in `{path}`; `mngr tmr --dry-run` tries it")
    return 0


def report(args: Args, app: App) -> int:
    """`path` of the index.html, the `run` and how many `tasks` it shows, the files beside it, and the `player`."""
    from mngr.cli.output import pages
    from mngr.report import tmr

    found = find(app, args.run)
    path = tmr.write(found, os.path.join(app.fleet.local.cwd, args.output) if args.output else None)
    tasks = len(tasks_of(found.state))
    files = {name: os.path.join(found.directory, name) for name in tmr.BESIDE}
    counted = f"{amount(tasks, 'task')}; beside the run: {', '.join(tmr.BESIDE)}"
    return pages.show_written(app, path, counted, {"run": found.id, "tasks": tasks, "files": files})


def serve(args: Args, app: App) -> int:
    """The pages of a run while it is under way, with the terminals of its agents."""
    from mngr.cli.output import pages
    from mngr.report.tmr import TmrRun
    from mngr.report.tmr_screens import Screens

    port = pages.parse_port(args.port or "0")
    found = find(app, args.run)
    source = TmrRun(found.directory, Screens(app.fleet))
    return pages.serve(app, source, port, {"run": found.id, "directory": found.directory})


def status(args: Args, app: App) -> int:
    found = find(app, args.run)
    rows = rows_of(view(found.state))
    facts = {
        **summary(found.state),
        "state": doing(found.state, found.orchestrator() is not None),
        "directory": found.directory,
    }
    if not app.out.human:
        app.out.emit_rows(rows, [], envelope={**facts, "rows": rows})
        return 0
    account.show(app, found, account.report_of(found))
    for text in standing(found.state, time.time()):
        app.out.note(text)
    return 0


def stop(args: Args, app: App) -> int:
    """The orchestrator, if there is one, is asked and waited for; without one, its agents are stopped from here. A run
    that is over is left as it is."""
    found = find(app, args.run)
    pid = found.orchestrator()
    if pid is not None:
        found.ask_to_stop()
        app.out.note(f"asked process {pid} to stop; it collects all work first")
        if not wait_until(lambda: found.orchestrator() is None, timeout=_STOP_SECONDS, every=0.1):
            raise TimedOut(
                f"run `{found.id}` did not stop within {_STOP_SECONDS:g} s", hint=f"`mngr tmr status {found.id}`"
            )
        found.refresh()
    elif not _over(found):
        with found.locked():
            TestRun(app.fleet, found).stop()
    facts = {**summary(found.state), "directory": found.directory}
    told = (
        f"run `{found.id}` is finished"
        if _over(found)
        else f"stopped {found.id}; `mngr tmr resume {found.id}` continues it"
    )
    app.out.emit_object(facts, human=told)
    return 0


def _over(found: Run) -> bool:
    return found.state.finished is not None and not left(found)
