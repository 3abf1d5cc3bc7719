"""A process on a pseudo-terminal of its own, as its session's first: start it, talk to it, end all that it started."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import sys
import termios
from collections.abc import Mapping, Sequence

from mngr.errors import MngrError
from mngr.hosts import processes
from mngr.interrupts import held
from mngr.waiting import wait_until

_CHUNK = 65536
_SECONDS_TO_HANG_UP = 1.0
_SECONDS_TO_DIE = 5.0
_UTF8_INPUT = 0x4000  # IUTF8, which the module `termios` does not name: Backspace takes a whole character back
_DEFAULTS = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)


class OnTerminal:
    """The running process. `fd` is the terminal's other side; reading and writing it never blocks."""

    def __init__(self, argv: Sequence[str], *, columns: int, rows: int, cwd: str, env: Mapping[str, str]) -> None:
        if not os.path.isdir(cwd):
            raise MngrError(f"the directory `{cwd}` does not exist")
        self.exit_code: int | None = None
        with held():
            self.fd, theirs = os.openpty()
            try:
                _prepare(theirs)
                os.set_blocking(self.fd, False)
                self.resize(columns, rows)
                # A shell finds the program on the PATH of `env`, and says on the terminal when there is none.
                words = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", cwd, *argv]
                # A terminal that the first process of a session opens becomes the session's own.
                opened = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0)
                copies = [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
                self.pid = os.posix_spawn(
                    words[0],
                    words,
                    dict(env),
                    file_actions=[opened, *copies],
                    setsid=True,
                    setsigmask=(),
                    setsigdef=_DEFAULTS,
                )
            except BaseException:
                os.close(self.fd)
                raise
            finally:
                os.close(theirs)

    def read(self) -> bytes | None:
        """What it wrote, empty when there is nothing now; None when the terminal is closed on its side."""
        try:
            return os.read(self.fd, _CHUNK) or None
        except BlockingIOError:
            return b""
        except OSError:  # how Linux says that nobody has it open any more
            return None

    def write(self, data: bytes) -> int:
        """How much of it was taken."""
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self) -> bool:
        """Whether it has; then `exit_code` is what a shell would say: 128 and the number of a signal."""
        if self.exit_code is None:
            self.exit_code = self._look()
        return self.exit_code is not None

    def _look(self) -> int | None:
        """Where the system allows it, the process stays a zombie, so that its id, which is the session's too, cannot
        become another one's before `end`."""
        if sys.platform == "darwin":
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status)
            return (code if code >= 0 else 128 - code) if pid else None
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status

    def hang_up(self) -> None:
        """End the process and all others of its session: by hanging up, and what does not go by that, by killing.
        Returns when they are gone; `ended` then says how. What they wrote last can still be read."""
        with held():
            self._signal(signal.SIGHUP, signal.SIGCONT)
            wait_until(lambda: self.ended() and not self._others(), timeout=_SECONDS_TO_HANG_UP)
            wait_until(self._killed, timeout=_SECONDS_TO_DIE)

    def close(self) -> None:
        """Let go of the terminal and of the process, after `hang_up`."""
        with held():
            os.close(self.fd)
            if sys.platform != "darwin" and self.ended():
                os.waitpid(self.pid, 0)

    def _killed(self) -> bool:
        self._signal(signal.SIGKILL)
        return self.ended() and not self._others()

    def _others(self) -> set[int]:
        return processes.of_session(self.pid) - {self.pid}

    def _signal(self, *numbers: signal.Signals) -> None:
        for pid in {*self._others(), *([] if self.ended() else [self.pid])}:
            for number in numbers:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    continue


def _prepare(terminal: int) -> None:
    if sys.platform == "linux":
        settings = termios.tcgetattr(terminal)
        settings[0] |= _UTF8_INPUT
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
