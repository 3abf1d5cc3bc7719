"""A small process beside pytest that cleans up after it when it was killed. It does nothing as long as pytest lives.

It learns of environments through a pipe, a line for each: `+ROOT` when one is made, `-ROOT` when it is gone. The pipe
ends with pytest, however that ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from mngr import process
from mngr.waiting import wait_until

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from mngr.e2e.reaper import main; main()"


class Reaper:
    """Started with the first environment; `close` ends it when pytest ends as it should."""

    def __init__(self) -> None:
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        theirs, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            # Without our variables: who ends all processes with some HOME must not end this one, but let it work.
            self._pid = process.start(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, source],
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                descriptors=(theirs, null, null),
            )
        finally:
            os.close(theirs)
            os.close(null)

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


def main() -> None:
    """Read until the pipe ends or the parent is gone, then clean up what is still there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    from mngr.e2e.process_cleanup import clean  # now: later the files may be gone

    for root in sorted(_left_over(_told())):
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


def _left_over(text: bytes) -> set[str]:
    known: set[str] = set()
    for line in text.split(b"\n")[:-1]:
        (known.add if line[:1] == b"+" else known.discard)(os.fsdecode(line[1:]))
    return known
