"""`mngr tmr connect`: attach to the agent of a task."""

from __future__ import annotations

from mngr.cli import connecting
from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.tmr.starting import find, task_named
from mngr.errors import MngrError


def connect(args: Args, app: App) -> int:
    found = find(app, args.run)
    task = task_named(found, args.task)
    if task.last is None or not task.last.agent_id:
        raise MngrError(f"`{task.slug}` has no agent yet", hint=f"`mngr tmr status {found.id}`")
    return connecting.connect(app, app.fleet.find(task.last.agent_id), None, start=True)
