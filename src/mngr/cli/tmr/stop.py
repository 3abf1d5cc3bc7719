"""`mngr tmr stop`: end a run cleanly, with all work saved."""

from __future__ import annotations

from mngr.cli.app import App
from mngr.cli.parser import Args
from mngr.cli.tmr.starting import find, left
from mngr.errors import TimedOut
from mngr.mapreduce.run import Run
from mngr.tmr.run import TestRun
from mngr.tmr.summary import summary
from mngr.waiting import wait_until

_SECONDS = 300.0


def stop(args: Args, app: App) -> int:
    """The orchestrator, if there is one, is asked and waited for; without one, its agents are stopped from here. A run
    that is over is left as it is."""
    found = find(app, args.run)
    pid = found.orchestrator()
    if pid is not None:
        found.ask_to_stop()
        app.out.note(f"asked process {pid} to stop; it takes over all work first")
        if not wait_until(lambda: found.orchestrator() is None, timeout=_SECONDS, every=0.1):
            raise TimedOut(f"run `{found.id}` still goes on after {_SECONDS:g} s", hint=f"`mngr tmr status {found.id}`")
        found.refresh()
    elif not _over(found):
        with found.locked():
            TestRun(app.fleet, found).stop()
    facts = {**summary(found.state), "directory": found.directory}
    told = f"run `{found.id}` is over" if _over(found) else f"stopped {found.id}; `mngr tmr resume {found.id}` goes on"
    app.out.emit_object(facts, human=told)
    return 0


def _over(found: Run) -> bool:
    return found.state.finished is not None and not left(found)
