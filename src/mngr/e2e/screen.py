"""A full-screen program on a real terminal: a test reads its screen and presses keys, and all of it is recorded."""

from __future__ import annotations

import codecs
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mngr import secrets
from mngr.e2e import keys
from mngr.e2e.cast import About, Recording
from mngr.errors import MngrError, TimedOut
from mngr.hosts.terminal import OnTerminal
from mngr.process import find_program
from mngr.records import NamedTuple
from mngr.waiting import wait_until

if TYPE_CHECKING:
    from mngr.e2e.emulator import Emulator

_TICK_MILLISECONDS = 30
_QUIET_TICKS = 4  # without a word from a process that has ended, until nothing more is to come
_MOST_UNREAD = 65536  # answers to a program that asks and never reads
_LARGEST = 1000


class Cursor(NamedTuple):
    """Counted from 0."""

    column: int
    row: int
    shown: bool


class Screen:
    """The program runs from here until `close`, which ends its whole session. A thread of its own reads it; what it
    shows stays readable afterwards."""

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        columns: int,
        rows: int,
        cast_path: str,
        title: str,
        number: int,
        on_keys: Callable[[str], None],
        on_end: Callable[[int], None] = lambda code: None,
    ) -> None:
        """A `str` is a shell line. `env` is the whole environment, but for what describes the terminal. `on_end` gets
        the exit code, from the thread that reads, before anybody else can see it."""
        _check_size(columns, rows)
        self.title = title
        self.columns, self.rows = columns, rows
        self._on_keys, self._on_end = on_keys, on_end
        self._lock = threading.RLock()
        self._emulator = _emulator(columns, rows, self._answer)
        self._unsent = b""
        self._exit_code: int | None = None
        self._closing = False
        self._hung_up = False
        self._closed = False
        hidden = list(secrets.named_values(env))
        about = About("spawn", secrets.mask(title, hidden), number, columns, rows)
        self._recording = Recording(cast_path, about, hidden)
        try:
            self._process = OnTerminal(_argv(command), columns=columns, rows=rows, cwd=cwd, env=_on_our_terminal(env))
        except BaseException:
            self._recording.remove()
            raise
        self._reader = threading.Thread(target=self._read, name=f"screen {number}", daemon=True)
        self._reader.start()

    @property
    def lines(self) -> list[str]:
        """As many as the screen has, each without the blanks at its end."""
        with self._lock:
            return self._emulator.display.rows()

    @property
    def text(self) -> str:
        """The lines, without empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n")

    @property
    def cursor(self) -> Cursor:
        with self._lock:
            display = self._emulator.display
            return Cursor(min(display.cursor.x, display.columns - 1), display.cursor.y, not display.cursor.hidden)

    @property
    def exit_code(self) -> int | None:
        """None while it runs; of a process that a signal ended, 128 and its number. All it wrote is on the screen."""
        return self._exit_code

    @property
    def alive(self) -> bool:
        return self._exit_code is None and not self._closed

    @property
    def over(self) -> bool:
        """Whether nothing more can come: it has ended, and nobody is left on its terminal."""
        return not self.alive and self._hung_up

    def type(self, text: str) -> None:
        """Type text; the end of a line is the Enter key."""
        self._send(keys.typed(text), text)

    def press(self, *names: str) -> None:
        """Press keys by tmux's names: `Enter`, `Escape`, `Up`, `C-c`, `M-x`, `F1`, or a character."""
        with self._lock:
            application = self._emulator.display.application_cursor
            data = b"".join(keys.encoded(name, application_cursor=application) for name in names)
            self._send(data, " ".join(names))

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the program is told by a signal."""
        _check_size(columns, rows)
        with self._lock:
            self._check_alive("has no terminal to resize")
            self.columns, self.rows = columns, rows
            self._emulator.resize(columns, rows)
            self._recording.resize(columns, rows)
            self._process.resize(columns, rows)

    def wait_exit(self, timeout: float = 60) -> int:
        """The exit code, once the program has ended. It goes on running when the time is over."""
        wait_until(lambda: not self.alive or None, timeout=timeout)
        if self._exit_code is None:
            raise TimedOut(f"`{self.title}` did not end within {timeout:g} s", details=self.text)
        return self._exit_code

    def close(self) -> None:
        """End the program and all it started on this terminal, and finish the recording. Twice is safe."""
        if self._closed:
            return
        self._closed = True
        # The reader goes on meanwhile: a program that ends in order may have much to write first.
        self._process.hang_up()
        self._closing = True
        self._reader.join()
        self._process.close()
        self._recording.close(self._exit_code)
        if self._recording.failure:
            raise MngrError(f"`{self._recording.path}` could not be written whole: {self._recording.failure}")

    def _send(self, data: bytes, shown: str) -> None:
        with self._lock:
            self._check_alive("takes no keys")
            self._unsent += data
            self._flush()
        self._on_keys(shown)

    def _check_alive(self, what: str) -> None:
        if not self.alive:
            end = "was closed" if self._exit_code is None else f"has ended (exit code {self._exit_code})"
            raise MngrError(f"`{self.title}` {end} and {what}", details=self.text)

    def _answer(self, text: str) -> None:
        """What the terminal itself says to the program. Called while the lock is held."""
        if len(self._unsent) < _MOST_UNREAD:
            self._unsent += text.encode()
            self._flush()

    def _flush(self) -> None:
        self._unsent = self._unsent[self._process.write(self._unsent) :] if self._unsent else b""

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        poll = select.poll()
        poll.register(self._process.fd, select.POLLIN)
        is_open, quiet, last = True, 0, False
        while not last:
            # Asked before the terminal is read: what was written until then is seen below.
            closing, ended = self._closing, self._process.ended()
            wanted = select.POLLIN | (select.POLLOUT if self._unsent else 0)
            if is_open:
                poll.modify(self._process.fd, wanted)
            ready = poll.poll(_TICK_MILLISECONDS)
            data = self._process.read() if ready else b""
            if data is None:
                poll.unregister(self._process.fd)
                is_open, self._hung_up = False, True
            elif data:
                self._take(decoder.decode(data))
            quiet = quiet + 1 if ended and not data else 0
            last = closing and not data
            with self._lock:
                self._flush()
            if last or not is_open or quiet >= _QUIET_TICKS:
                self._look(decoder)

    def _look(self, decoder: codecs.IncrementalDecoder) -> None:
        """Take note of the end, once."""
        if self._exit_code is None and self._process.ended():
            self._take(decoder.decode(b"", final=True))
            code = self._process.exit_code
            assert code is not None
            with self._lock:
                self._recording.close(code)
            self._on_end(code)
            self._exit_code = code

    def _take(self, text: str) -> None:
        with self._lock:
            self._recording.output(text)
            self._emulator.feed(text)


def _argv(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    return [find_program("bash") or "sh", "-c", command]


def _on_our_terminal(env: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "TERMCAP")}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def _check_size(columns: int, rows: int) -> None:
    if not (1 <= columns <= _LARGEST and 1 <= rows <= _LARGEST):
        raise MngrError(f"a terminal of {columns}x{rows} cannot be", hint=f"both are from 1 to {_LARGEST}")


def _emulator(columns: int, rows: int, answer: Callable[[str], None]) -> Emulator:
    try:
        from mngr.e2e.emulator import Emulator
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyte", "wcwidth"):
            raise
        raise MngrError(
            "screens of tests need the package `pyte`, which is not installed", hint="pip install 'mngr[e2e]'"
        ) from error
    return Emulator(columns, rows, answer)
