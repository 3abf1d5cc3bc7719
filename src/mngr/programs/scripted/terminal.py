"""The agent's terminal: raw input read at all times by a thread, a prompt while it waits. Restored by `close`."""

import os
import select
import termios
import threading
from collections import deque
from collections.abc import Callable

from mngr.programs.scripted.keys import END, INTERRUPT, REPORT, Composer, plain, shorten

_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_ASK_FOR_REPORT = b"\x1b[5n"
_NEW_ROW = "\r\x1b[K"


class Interrupted(Exception):
    """The person at the terminal wants this turn to end."""


class ScriptedTerminal:
    """Standard input and output. `on_message` is called by the reading thread as soon as a message is submitted, with
    whether the agent was waiting for it."""

    def __init__(self, on_message: Callable[[bytes, bool], None]) -> None:
        self._on_message = on_message
        self._source, self._sink = 0, 1
        self._saved = termios.tcgetattr(self._source) if os.isatty(self._source) else None
        self.drawn = os.isatty(self._sink)
        self._writing = threading.RLock()
        self._changed = threading.Condition()
        self._composer = Composer()
        self._inbox: deque[bytes | str] = deque()
        self._waiting = False
        self._interrupted = False
        self._reported = threading.Event()
        self._stop, self._stopper = os.pipe()

    def open(self) -> None:
        """No lines, no echo, no signals, every byte as it comes; output stays as it was, so that newlines return."""
        if self._saved is not None:
            mode = termios.tcgetattr(self._source)
            mode[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP | termios.IXON)
            mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
            termios.tcsetattr(self._source, termios.TCSANOW, mode)
        if self.drawn:
            self.write(_PASTE_ON)
        threading.Thread(target=self._read, name="terminal", daemon=True).start()

    def wait_for_paste_mode(self, seconds: float) -> None:
        """Wait until the terminal has seen that we take bracketed pastes: until then it sends them without brackets."""
        if self._saved is not None and self.drawn:
            self.write(_ASK_FOR_REPORT)
            self._reported.wait(seconds)

    def close(self) -> None:
        """Safe in a signal handler and twice: takes no lock."""
        saved, self._saved = self._saved, None
        try:
            if self.drawn:
                os.write(self._sink, _PASTE_OFF)
            if saved is not None:
                termios.tcsetattr(self._source, termios.TCSANOW, saved)
        except (OSError, termios.error):
            pass  # the terminal is gone, and with it what there was to restore

    def stop_reading(self) -> None:
        os.write(self._stopper, b".")

    def interrupt(self) -> None:
        """End the present turn when it looks next."""
        self._interrupted = True

    def check(self) -> None:
        """Whatever takes long calls this now and then: Ctrl-C ends it there."""
        if self._interrupted:
            raise Interrupted

    def take(self, on_wait: Callable[[], None], *, answer: bool = False) -> bytes | str:
        """The next message, `INTERRUPT` or `END`, however long it takes to come. A Ctrl-C before this was for the turn
        before. `on_wait` is called if no message is there, before one can come. Messages that are there before the
        question are no `answer`, and stay."""
        with self._changed:
            self._interrupted = False
            queued = 0
            if answer:
                queued = self._inbox.index(END) if END in self._inbox else len(self._inbox)
            if len(self._inbox) <= queued:
                on_wait()
                self._waiting = True
                self._draw_prompt()
                self._changed.wait_for(lambda: len(self._inbox) > queued)
            got = self._inbox[queued]
            del self._inbox[queued]
        shown = "> " + shorten(got.decode(errors="replace"), self._width()) if isinstance(got, bytes) else ""
        self.write((_NEW_ROW if self.drawn else "") + shown + "\n")
        return got

    def line(self, text: str) -> None:
        self.write(plain(text) + "\n")

    def status(self, text: str) -> None:
        """A row that the next one replaces; an empty text removes it."""
        if self.drawn:
            self.write(_NEW_ROW + text)

    def title(self, text: str) -> None:
        if self.drawn:
            self.write(f"\x1b]2;{plain(text)}\a")

    def write(self, data: str | bytes) -> None:
        left = memoryview(data.encode(errors="replace") if isinstance(data, str) else data)
        with self._writing:
            while left:
                left = left[os.write(self._sink, left) :]

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._source, self._stop], [], [])
            if self._stop in ready:
                return
            try:
                data = os.read(self._source, 65536)
            except OSError:
                data = b""
            with self._changed:
                for key in self._composer.feed(data) if data else self._composer.finish():
                    self._handle(key, ended=not data)
                if self._waiting and data and not self._composer.pasting:
                    self._draw_prompt()
            if not data:
                return

    def _handle(self, key: bytes | str, *, ended: bool) -> None:
        if isinstance(key, bytes):
            self._on_message(key, self._waiting)
            self._deliver(key)
        elif key == REPORT:
            self._reported.set()
        elif ended or (self._waiting and not self._composer.draft):
            self._deliver(key)
        elif key == INTERRUPT and self._waiting:
            self._composer.draft.clear()
        elif key == INTERRUPT:
            self.interrupt()

    def _deliver(self, key: bytes | str) -> None:
        self._inbox.append(key)
        self._waiting = False  # from here on Ctrl-C is meant for the turn that this begins
        self._changed.notify()

    def _draw_prompt(self) -> None:
        if self.drawn:
            draft = self._composer.draft.decode(errors="replace").rstrip("\r\n")
            self.write(f"{_NEW_ROW}> {shorten(draft, self._width())}")

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._sink).columns
        except OSError:
            columns = 0
        return max(20, (columns or 80) - 3)
