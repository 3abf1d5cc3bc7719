"""Ctrl-C: stops what may be stopped, at once, and anything else at the next step. Refuses to break a half-done edit."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """The person at the terminal wants this turn to end."""


class Interrupts:
    """SIGINT in the main thread, made into `Interrupted` only where it is allowed to come."""

    def __init__(self) -> None:
        self._allowed = False
        self._asked = False
        self._turn = 0
        self._meant_for: int | None = None

    def listen(self) -> None:
        signal.signal(signal.SIGINT, self._on_signal)

    def ask(self) -> None:
        """Interrupt the main thread in its present turn, from any other thread."""
        self._meant_for = self._turn
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    def next_turn(self) -> None:
        """What was meant for the turn before must not end this one."""
        self._turn += 1
        self._asked = False

    def check(self) -> None:
        if self._asked:
            self._asked = False
            raise Interrupted

    @contextmanager
    def allowed(self) -> Iterator[None]:
        try:
            self._allowed = True
            self.check()
            yield
        finally:
            self._allowed = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        meant_for, self._meant_for = self._meant_for, None
        if meant_for is not None and meant_for != self._turn:
            return
        if self._allowed:
            self._allowed = False
            raise Interrupted
        self._asked = True
