"""A terminal on a host through the plain stream that every provider has.

`python -m mngr.remote.terminal COMMAND-LINE PROGRAM...` runs here, with our terminal in raw mode; the program runs
`far` on the host, which gives the command line a terminal there. Frames go there: what is typed, and the size whenever
it changes. What the command line prints comes back as it is."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress

from mngr.remote.frames import Frame, FrameReader, pack
from mngr.system.process import environment, start

# A write of so little to a pipe is whole, also when the handler of a new size writes in between.
_TYPED = 2048
_CHUNK = 1 << 16


def near(line: str, argv: Sequence[str]) -> int:
    """Run the command line there with a terminal of our size; its exit code. Our terminal is as before afterwards."""
    source, target = os.pipe()
    pid = start(argv, cwd="/", env=environment(), descriptors=(source, 1, 2))
    os.close(source)
    before = termios.tcgetattr(0)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGWINCH, lambda number, frame: _send(target, pack({"size": _size()})))
    _send(target, pack({"size": _size(), "line": line, "term": os.environ.get("TERM", "xterm")}))
    tty.setraw(0)
    try:
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if select.select([0], [], [], 0.1)[0]:
                typed = os.read(0, _TYPED)
                if not typed:
                    os.close(target)
                    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                _send(target, pack({}, typed))
    finally:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def _size() -> list[int]:
    size = os.get_terminal_size(0)
    return [size.lines, size.columns]


def _send(fd: int, data: bytes) -> None:
    with suppress(OSError):  # the program has ended; its exit code is read next
        os.write(fd, data)


def far() -> None:
    """The end on the host: frames come in, what the command line prints goes out. Exits as the command line does."""
    reader = FrameReader()
    first: list[Frame] = []
    while not first:
        data = os.read(0, _CHUNK)
        if not data:
            sys.exit(1)
        first = list(reader.feed(data))
    pid, master = pty.fork()
    if pid == 0:
        os.environ["TERM"] = str(first[0].header["term"])
        os.execv("/bin/sh", ["sh", "-c", str(first[0].header["line"])])
    for frame in first:
        _take(master, frame)
    open_ends = [0, master]
    while master in open_ends:
        for fd in select.select(open_ends, [], [])[0]:
            try:
                data = os.read(fd, _CHUNK)
            except OSError:  # Linux: the last process of the terminal has ended
                data = b""
            if not data:
                open_ends.remove(fd)
                if fd == 0:
                    os.kill(pid, signal.SIGHUP)
            elif fd == 0:
                for frame in reader.feed(data):
                    _take(master, frame)
            else:
                _write(1, data)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)


def _take(master: int, frame: Frame) -> None:
    if "size" in frame.header:
        rows, columns = frame.header["size"]
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    _write(master, frame.body)


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


if __name__ == "__main__":
    sys.exit(near(sys.argv[1], sys.argv[2:]))
