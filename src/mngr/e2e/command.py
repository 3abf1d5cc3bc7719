"""Runs one command of a test to its end, with a deadline that nothing it starts can defeat. Interprets nothing."""

from __future__ import annotations

import codecs
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mngr.e2e import cleanup
from mngr.errors import MngrError
from mngr.system import process

TIMED_OUT_CODE = 124

STREAMS = ("stdout", "stderr")
OnOutput = Callable[[str, str], None]

# After its end a command's output is read for as long as it comes without a pause, up to a limit.
_PAUSE = 0.05
_LONGEST_REST = 0.5


class Ran(NamedTuple):
    """What a command did. `output` is both streams as they came; a command ended by a signal has the exit code that a
    shell gives it, 128 and the signal's number."""

    command: str
    stdout: str
    stderr: str
    output: str
    exit_code: int
    duration: float
    timed_out: bool = False
    number: int = 0

    def __repr__(self) -> str:
        return f"<Ran `{self.command}`: exit code {self.exit_code} after {self.duration:.2f} s>"


class CommandTimedOut(AssertionError):
    """A command did not end in time. `ran` has what it printed until then."""

    def __init__(self, ran: Ran, timeout: float) -> None:
        super().__init__(f"`{ran.command}` did not end within {timeout:g} s, and was ended")
        self.ran = ran


class Running:
    """One command with its pipes. `finish` it, and `close` it when the session ends: what it left in the background
    goes on until then, and what that prints is passed on."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        input: bytes | None,
        on_output: OnOutput,
    ) -> None:
        if not os.path.isdir(cwd):
            raise MngrError(f"the directory `{cwd}` does not exist")
        self._on_output = on_output
        self._input = memoryview(input or b"")
        self._started = time.monotonic()
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("backslashreplace") for name in STREAMS}
        self._fds: dict[int, str] = {}
        self._status: int | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._start(argv, cwd, env, bool(input))

    def _start(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], has_input: bool) -> None:
        theirs: list[int] = []
        try:
            if has_input:
                end, ours = os.pipe()
                os.set_blocking(ours, False)
                self._fds[ours] = "stdin"
            else:
                end = os.open(os.devnull, os.O_RDONLY)
            theirs.append(end)
            for name in STREAMS:
                ours, end = os.pipe()
                self._fds[ours] = name
                theirs.append(end)
            self._pid = process.start(argv, cwd=cwd, env=env, descriptors=(theirs[0], theirs[1], theirs[2]))
        except BaseException:
            self._close_all()
            raise
        finally:
            for fd in theirs:
                os.close(fd)

    def finish(self, timeout: float) -> tuple[int, float, bool]:
        """Wait for its end: exit code, seconds, and whether its whole session was ended at the deadline. Whatever else
        ends this call, an interrupt for example, ends the command too."""
        try:
            ended = self._pump(self._started + timeout)
            if not ended:
                self._end_session()
                self._rest()
        except BaseException:
            self._end_session()
            self._close_all()
            raise
        duration = time.monotonic() - self._started
        assert self._status is not None
        if self._fds:
            self._follow()
        else:
            self._flush()
        if not ended:
            return TIMED_OUT_CODE, duration, True
        return (self._status if self._status >= 0 else 128 - self._status), duration, False

    def close(self) -> None:
        """Stop listening to what was left in the background. It is not ended here."""
        self._closing = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._close_all()

    def _pump(self, deadline: float) -> bool:
        """Pass data on until the command has ended and its pipes are at their end, or silent; False at the deadline."""
        while self._fds or self._status is None:
            left = deadline - time.monotonic()
            if left <= 0 and self._status is None:
                return False
            self._move(min(max(left, 0), _PAUSE if self._fds else 0.005))
            self._wait(os.WNOHANG)
            if self._status is not None and self._fds:
                self._rest()
                break
        return True

    def _rest(self) -> None:
        """After the end: what is in the pipes, and what comes at once. What the command itself wrote is there by now:
        the first look takes all that a pipe can hold, and the second sees its end, however late they are."""
        limit = time.monotonic() + _LONGEST_REST
        for fd in [fd for fd, name in self._fds.items() if name == "stdin"]:
            self._close(fd)
        looks = 0
        while self._fds and (looks < 2 or time.monotonic() < limit):
            if not self._move(_PAUSE):
                break
            looks += 1

    def _move(self, seconds: float) -> bool:
        """Wait so long for the pipes, and pass on what they have; False when there was nothing."""
        poll = select.poll()
        for fd, name in self._fds.items():
            poll.register(fd, select.POLLOUT if name == "stdin" else select.POLLIN)
        ready = [fd for fd, _ in poll.poll(seconds * 1000)]
        # Which was written first cannot be known, but which one was written last; standard output first when in doubt.
        for fd in sorted(ready, key=lambda fd: (os.fstat(fd).st_mtime_ns, self._fds[fd] == "stderr")):
            name = self._fds[fd]
            if not (self._feed(fd) if name == "stdin" else self._read(fd, name)):
                self._close(fd)
        return bool(ready)

    def _feed(self, fd: int) -> bool:
        try:
            self._input = self._input[os.write(fd, self._input[:65536]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self._input)

    def _read(self, fd: int, name: str) -> bool:
        data = os.read(fd, 65536)
        if text := self._decoders[name].decode(data):
            self._on_output(name, text)
        return bool(data)

    def _flush(self) -> None:
        for name, decoder in self._decoders.items():
            if text := decoder.decode(b"", final=True):
                self._on_output(name, text)

    def _wait(self, options: int = 0) -> None:
        if self._status is None:
            pid, status = os.waitpid(self._pid, options)
            self._status = os.waitstatus_to_exitcode(status) if pid else None

    def _end_session(self) -> None:
        """End the command and all that is in its session. Its id stays taken until it has been waited for."""
        if self._status is None:
            cleanup.end(lambda: cleanup.of_session(self._pid))
            os.kill(self._pid, signal.SIGKILL)
            self._wait()

    def _follow(self) -> None:
        """Something in the background holds the pipes: read on beside the test, or it would block, or break."""

        def read_on() -> None:
            while self._fds and not self._closing:
                self._move(0.1)
            self._flush()

        self._thread = threading.Thread(target=read_on, name=f"e2e-output-{self._pid}", daemon=True)
        self._thread.start()

    def _close_all(self) -> None:
        for fd in list(self._fds):
            self._close(fd)

    def _close(self, fd: int) -> None:
        del self._fds[fd]
        os.close(fd)
