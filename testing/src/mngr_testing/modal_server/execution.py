"""One process in a sandbox with its input and output. Clients that lost a stream continue at any offset."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple

from mngr.system.process import start

CHUNK = 1 << 16
# Output that a client has read is kept this long, for a client whose stream broke.
KEPT_AFTER_READ = 4 << 20
# The input of a terminal has no end; this key tells its reader that there is no more.
END_KEY = b"\x04"
# Linux only, so not in `termios`: open the other side of a terminal, and unlock it.
TIOCGPTPEER, TIOCSPTLCK = 0x5441, 0x40045431


class Size(NamedTuple):
    rows: int
    columns: int


class Lost(Exception):
    """Output at this offset is no longer kept."""


class Output:
    """What a process wrote so far; grows until `ended`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._offset = 0
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, data: bytes) -> None:
        self._data += data
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, offset: int) -> AsyncIterator[bytes]:
        """All output from this offset on, until its end. Raises Lost."""
        while True:
            if offset < self._offset:
                raise Lost
            data = bytes(self._data[offset - self._offset : offset - self._offset + CHUNK])
            if data:
                yield data
                offset += len(data)
                self._forget(offset)
            elif self._ended:
                return
            else:
                await self._changed.wait()

    def _forget(self, read_to: int) -> None:
        surplus = read_to - self._offset - KEPT_AFTER_READ
        if surplus > KEPT_AFTER_READ:
            del self._data[:surplus]
            self._offset += surplus


class Execution:
    """A process that was started, until it ended and its output was taken. `code` is negative for a signal."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], terminal: int | None, ended: Callable[[], None]):
        """Starts the process. `terminal` is the controlling side of its terminal; without one it gets three pipes."""
        self.stdout, self.stderr = Output(), Output()
        self.written, self.closed = 0, False
        self.code: int | None = None
        self.done = asyncio.Event()
        self._ended = ended
        self._writing = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._outputs: dict[int, Output] = {}
        if terminal is None:
            self.pid = self._start_with_pipes(argv, env)
        else:
            self.pid = self._start_with_terminal(argv, env, terminal)
        for fd in {self._stdin, *self._outputs}:
            os.set_blocking(fd, False)
        for fd in self._outputs:
            self._loop.add_reader(fd, self._take, fd)
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._reap)

    def _start_with_pipes(self, argv: Sequence[str], env: Mapping[str, str]) -> int:
        (stdin, self._stdin), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
        self._outputs = {out: self.stdout, err: self.stderr}
        self._is_terminal = False
        try:
            return start(argv, cwd="/", env=env, descriptors=(stdin, stdout, stderr))
        finally:
            for fd in (stdin, stdout, stderr):
                os.close(fd)

    def _start_with_terminal(self, argv: Sequence[str], env: Mapping[str, str], terminal: int) -> int:
        self._stdin = terminal
        self._outputs = {terminal: self.stdout}
        self.stderr.end()
        self._is_terminal = True
        inner = fcntl.ioctl(terminal, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        try:
            return start(argv, cwd="/", env=env, descriptors=(inner, inner, inner))
        finally:
            os.close(inner)

    async def write(self, offset: int, data: bytes, eof: bool) -> None:
        """Write what was not yet written. Raises BrokenPipeError when the process does not read any more."""
        async with self._writing:
            if offset > self.written:
                raise ValueError(f"input continues at {self.written}, not at {offset}")
            left = memoryview(data)[self.written - offset :]
            if self.closed:
                if left:
                    raise BrokenPipeError
                return
            await self._write(left)
            if eof:
                await self._close_stdin()

    async def _write(self, left: memoryview) -> None:
        while left:
            if self.done.is_set():
                raise BrokenPipeError
            try:
                count = os.write(self._stdin, left)
            except BlockingIOError:
                await self._writable()
            except OSError:
                raise BrokenPipeError from None
            else:
                self.written += count
                left = left[count:]

    async def _writable(self) -> None:
        """Also returns when the process ends: a terminal that nobody reads would stay full."""
        ready = asyncio.Event()
        self._loop.add_writer(self._stdin, ready.set)
        waits = [asyncio.ensure_future(event.wait()) for event in (ready, self.done)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not self.done.is_set():
                self._loop.remove_writer(self._stdin)
            for wait in waits:
                wait.cancel()

    async def _close_stdin(self) -> None:
        self.closed = True
        if self._is_terminal:
            await self._write(memoryview(END_KEY))
        else:
            os.close(self._stdin)

    def kill(self) -> None:
        """End the process and the one that it started in the sandbox, with their process groups."""
        for pid in (*children(self.pid), self.pid):
            for end in (os.killpg, os.kill):
                try:
                    end(pid, signal.SIGKILL)
                except OSError:
                    pass

    def _take(self, fd: int) -> bool:
        """Move what can be read now; whether there may be more."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose last process is gone
            data = b""
        if data:
            self._outputs[fd].put(data)
            return True
        self._end_output(fd)
        return False

    def _end_output(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._outputs.pop(fd).end()
        if not self._is_terminal:
            os.close(fd)

    def _reap(self) -> None:
        """The process ended: take the rest of its output, without waiting for others that hold it open."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.done.set()
        for fd in list(self._outputs):
            while self._take(fd):
                pass
            if fd in self._outputs:
                self._end_output(fd)
        if self._is_terminal or not self.closed:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
        self.closed = True
        self._ended()


def open_terminal(ptmx: str, size: Size) -> int:
    """The controlling side of a new terminal of this file system for terminals."""
    fd = os.open(ptmx, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(fd, TIOCSPTLCK, struct.pack("i", 0))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows or 24, size.columns or 80, 0, 0))
    return fd


def children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Whether it still runs. One that ended and was not yet waited for by its parent does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
