"""The pages of tests and runs, written to disk or served to this machine."""

from __future__ import annotations

from typing import Any

from mngr.cli.app import App
from mngr.errors import UsageError
from mngr.report import player
from mngr.report.server import PageServer
from mngr.report.source import Source


def show_written(app: App, path: str, counted: str, value: dict[str, Any]) -> int:
    """Print the path of pages that were written; `counted` says what they show."""
    found = player.find()
    app.out.emit_object({"path": path, **value, "player": found.origin if found else None}, human=path)
    app.out.note(counted)
    _note_missing_player(app)
    return 0


def serve(app: App, source: Source, port: int, value: dict[str, Any], note: str = "") -> int:
    """Serve the pages until Ctrl-C, after printing their address."""
    server = PageServer(source, port)
    try:
        app.out.emit_object({"url": server.url, "port": server.server_port, **value}, human=server.url)
        app.out.flush()
        if note:
            app.out.note(note)
        _note_missing_player(app)
        app.out.note("stop with Ctrl-C")
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise UsageError(f"invalid port `{text}`", hint="a number from 1 to 65535, or leave `--port` out")
    return int(text)


def _note_missing_player(app: App) -> None:
    if player.find() is None:
        app.out.note(f"recordings are not shown, because the player is not installed: `{player.HINT}`")
