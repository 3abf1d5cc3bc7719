"""`mngr tmr report`: write the pages of a run, and say where they are."""

from __future__ import annotations

import os

from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.text import amount
from mngr.cli.tmr.starting import find
from mngr.tmr.summary import tasks_of


def report(args: Args, app: App) -> int:
    """`path` of the index.html, the `run` and how many `tasks` it shows, the files beside it, and the `player`."""
    from mngr.report import player
    from mngr.report import tmr as pages

    found = find(app, args.run)
    output = os.path.join(app.fleet.cwd, args.output) if args.output else None
    path = pages.write(found, output)
    tasks = len(tasks_of(found.state))
    shown = player.find()
    files = {name: os.path.join(found.directory, name) for name in pages.BESIDE}
    value = {"path": path, "run": found.id, "tasks": tasks, "files": files, "player": shown.origin if shown else None}
    app.out.emit_object(value, human=path)
    app.out.note(f"{amount(tasks, 'task')}; beside the run: {', '.join(pages.BESIDE)}")
    if shown is None:
        app.out.note(f"recordings are not shown, since the player is not installed: `{player.HINT}`")
    return 0
