"""`mngr tmr serve`: the pages of a run while it goes on, with the terminals of its agents, for this machine alone."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.tmr.starting import find
from mngr.errors import UsageError


def serve(args: Args, app: App) -> int:
    from mngr.report import player
    from mngr.report.server import Server
    from mngr.report.tmr import TmrRun
    from mngr.report.tmr_screens import Screens

    port = args.port or 0
    if not 0 <= port < 65536:
        raise UsageError(f"`{port}` is no port", hint="a number from 1 to 65535, or leave `--port` out")
    found = find(app, args.run)
    server = Server(TmrRun(found.directory, Screens(app.fleet)), port)
    try:
        value = {"url": server.url, "port": server.server_port, "run": found.id, "directory": found.directory}
        app.out.emit_object(value, human=server.url)
        app.out.flush()
        if player.find() is None:
            app.out.note(f"recordings are not shown, since the player is not installed: `{player.HINT}`")
        app.out.note("Ctrl-C ends it")
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
