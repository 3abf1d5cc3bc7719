"""Show a listing again after every change, in place, without flicker."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

from mngr.actions.agent import Listing
from mngr.cli.app import App
from mngr.cli.terminal import is_terminal

Rows = list[dict[str, Any]]

_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def watch(app: App, select: Callable[[Listing], Rows], show: Callable[[Rows, Listing], None]) -> int:
    """On a terminal redraw in place until Ctrl-C; elsewhere print the listing again whenever a state changes."""
    in_place = is_terminal(app.stdout) and app.out.human
    last: object = None
    if in_place:
        app.stdout.write(_OTHER_SCREEN)
    try:
        for listing in app.fleet.watch():
            rows = select(listing)
            seen = [(row["id"], row["name"], row["state"], row["state_reason"], str(row["labels"])) for row in rows]
            if in_place:
                _redraw(app, lambda rows=rows, listing=listing: show(rows, listing))  # type: ignore[misc]
            elif seen != last:
                show(rows, listing)
                app.out.flush()
            last = seen
    except KeyboardInterrupt:
        return 0
    finally:
        if in_place:
            app.stdout.write(_BACK)
            app.stdout.flush()
    return 0


def _redraw(app: App, show: Callable[[], None]) -> None:
    """Write the whole screen in one go: home, every line cleared to its end, the rest below cleared."""
    import shutil

    height = shutil.get_terminal_size().lines
    terminal, draft = app.out.stdout, StringIO()
    app.out.stdout = draft
    try:
        show()
    finally:
        app.out.stdout = terminal
    lines = draft.getvalue().split("\n")
    if len(lines) > height:
        lines = [*lines[: height - 1], f"... and {len(lines) - height} more"]
    terminal.write(_HOME + f"{_CLEAR_LINE}\n".join(lines) + _CLEAR_LINE + _CLEAR_BELOW)
    terminal.flush()
