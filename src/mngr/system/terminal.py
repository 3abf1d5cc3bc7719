"""A process on a pseudo-terminal of its own, as its session's first: start it, read what it shows, end it."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mngr.system.interrupts import held
from mngr.system.waiting import wait_until

_CHUNK = 65536
_DEFAULTS = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)


class OnTerminal:
    """The running process. `fd` is the terminal's other side; reading it never blocks."""

    def __init__(self, argv: Sequence[str], *, columns: int, rows: int, env: Mapping[str, str]) -> None:
        with held():
            self.fd, theirs = os.openpty()
            try:
                os.set_blocking(self.fd, False)
                self.resize(columns, rows)
                # A terminal that the first process of a session opens becomes the session's own.
                opened = (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0)
                copies = [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
                self.pid = os.posix_spawnp(
                    argv[0],
                    list(argv),
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

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """End the process and all others of its group: by hanging up, and what does not go by that, by killing."""
        with held():
            os.close(self.fd)
            for number, seconds in ((signal.SIGHUP, 1.0), (signal.SIGKILL, 5.0)):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)
                if wait_until(lambda: os.waitpid(self.pid, os.WNOHANG)[0], timeout=seconds):
                    return
