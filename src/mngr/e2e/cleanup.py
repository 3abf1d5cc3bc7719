"""Ends the processes of a session and removes its directory: here, by a process beside pytest when that was killed, or
by hand with a script. Only what is marked."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

from mngr.system import process, tree_removal
from mngr.system import process_table as processes
from mngr.system.waiting import Deadline, wait_until

_SECONDS_TO_END = 2.0
_SECONDS_TO_DIE = 10.0
_CALL = "import sys; sys.path.insert(0, sys.argv[1]); from mngr.e2e.{0} import {1}; {1}(*sys.argv[2:])"


def of_environment(root: str) -> dict[int, str]:
    """The processes of an environment, with their start times: what they have in theirs, unless they took care to lose
    it."""
    return processes.with_entries((f"HOME={root}/home", f"TMUX_TMPDIR={root}/t"))


def of_session(leader: int) -> dict[int, str]:
    """The processes of a session, with their start times."""
    found = (processes.identify(pid) for pid in processes.of_session(leader))
    return dict(entry for entry in found if entry is not None)


def end(
    find: Callable[[], Mapping[int, str]],
    *,
    ask: Sequence[int] = (signal.SIGTERM,),
    seconds: float = _SECONDS_TO_END,
) -> None:
    """Ask all processes found to end, by these signals, then kill what is left of them, and what they started
    meanwhile."""
    found = find()
    if not found:
        return
    for number in ask:
        _signal(found, number)
    wait_until(lambda: not processes.still_alive(found), timeout=seconds)
    deadline = Deadline(_SECONDS_TO_DIE)
    while (left := find()) and not deadline.passed:
        _signal(left, signal.SIGKILL)
        deadline.pause(0.01)


def _signal(found: Mapping[int, str], number: int) -> None:
    for pid in processes.still_alive(found):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def clean(root: str) -> None:
    """End everything that runs in an environment and remove its directory. Twice is safe."""
    end(lambda: of_environment(root))
    tree_removal.remove_tree(root)


def remove_script(root: str) -> str:
    """A shell script that does what `clean` does, and then removes itself."""
    return f"""\
#!/bin/sh
# Ends what still runs in the environment that this test left, and removes it. Twice is safe.
{process.join(_python("cleanup", "clean", root))} && rm -f -- "$(dirname "$0")/environment.json" "$0"
"""


def _python(module: str, function: str, *words: str) -> list[str]:
    """The words that call a function of `mngr.e2e` in a Python that starts quickly."""
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return [sys.executable, "-I", "-S", "-c", _CALL.format(module, function), source, *words]


def start_beside(
    module: str, function: str, env: Mapping[str, str], *, stdin: int | None = None, stdout: int | None = None
) -> int:
    """Call a function of `mngr.e2e` in a process and a session of its own, which has none of our descriptors but these:
    nobody who waits for our output waits for it. Its process id."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        descriptors = (null if stdin is None else stdin, null if stdout is None else stdout, null)
        return process.start(_python(module, function), cwd="/", env=env, descriptors=descriptors)
    finally:
        os.close(null)


class Reaper:
    """A small process beside pytest that cleans up after it when it was killed; it does nothing while pytest lives. It
    learns of environments through a pipe, a line for each: `+ROOT` when one is made, `-ROOT` when it is gone. The
    pipe ends with pytest, however that ends; `close` ends it when pytest ends as it should."""

    def __init__(self) -> None:
        theirs, self._pipe = os.pipe()
        try:
            # Without our variables: who ends all processes with some HOME must not end this one, but let it work.
            self._pid = start_beside("cleanup", "reap", {"PATH": os.environ.get("PATH", os.defpath)}, stdin=theirs)
        finally:
            os.close(theirs)

    def watch(self, root: str) -> None:
        self._tell(f"+{root}\n")

    def forget(self, root: str) -> None:
        self._tell(f"-{root}\n")

    def close(self) -> None:
        """It has what is left to do done when this returns, if that takes no more than some seconds."""
        os.close(self._pipe)
        wait_until(self._ended, timeout=10, every=0.005)

    def _ended(self) -> bool:
        try:
            return os.waitpid(self._pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe, os.fsencode(line))
        except BrokenPipeError:
            pass  # somebody ended it; the session cleans up by itself as long as pytest lives


def reap() -> None:
    """The process itself: read until the pipe ends or the parent is gone, then clean up what is still there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    left: set[str] = set()
    for line in _told().split(b"\n")[:-1]:
        (left.add if line[:1] == b"+" else left.discard)(os.fsdecode(line[1:]))
    for root in sorted(left):
        try:
            clean(root)
        except OSError:
            continue


def _told() -> bytes:
    """All that came through the pipe. A child that pytest forked may hold its other end for longer than pytest lives,
    so what counts is that pytest lives, and what it wrote before its end is read after it."""
    parent = os.getppid()
    text = b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    alive = True
    while True:
        if poll.poll(1000 if alive else 0):
            data = os.read(0, 65536)
            if not data:
                return text
            text += data
        elif not alive:
            return text
        alive = os.getppid() == parent
