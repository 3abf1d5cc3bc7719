"""Commands that the agent runs: one at a time with its output shown as it comes, or left behind on its own."""

import os
import threading
from collections.abc import Callable

from mngr import process
from mngr.process import checked

SECONDS = 7 * 24 * 3600.0
_KEPT = 100_000
_LOOK_EVERY = 0.03


def run(command: str, show: Callable[[bytes], None]) -> tuple[int, str]:
    """The exit code and the (end of the) output of `sh -c`. Its output goes through a file, so that a child it leaves
    behind cannot hold us. An exception ends the whole process group."""
    import tempfile

    sink, path = tempfile.mkstemp(prefix="mngr-run-")
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(sink, ended, show), daemon=True)
    follower.start()
    try:
        outer = 'exec >"$1" 2>&1; rm -f "$1"; exec sh -c "$2"'
        result = process.run(["sh", "-c", outer, "sh", path, command], timeout=SECONDS)
        ended.set()
        follower.join()
        return result.exit_code, _end_of(sink)
    finally:
        ended.set()
        follower.join()
        os.close(sink)
        if os.path.exists(path):
            os.unlink(path)  # the command was ended before it could


def spawn(command: str) -> int:
    """Start it in a session of its own, without our terminal, and return its process id at once."""
    started = process.run(["sh", "-c", 'sh -c "$1" </dev/null >/dev/null 2>&1 & echo $!', "sh", command], timeout=10)
    return int(checked(started).text)


def _follow(source: int, ended: threading.Event, show: Callable[[bytes], None]) -> None:
    """Show what is written until the command has ended; what a child left behind writes later is not its output."""
    shown = 0
    while True:
        last = ended.wait(_LOOK_EVERY)
        size = os.fstat(source).st_size
        while shown < size:
            data = os.pread(source, min(65536, size - shown), shown)
            if not data:
                break  # the command has cut its own output short
            show(data)
            shown += len(data)
        if last:
            return


def _end_of(source: int) -> str:
    size = os.fstat(source).st_size
    start = max(0, size - _KEPT)
    note = f"({start} bytes left out)\n" if start else ""
    return note + os.pread(source, _KEPT, start).decode(errors="replace")
