"""Ctrl-C: stops what may be stopped, at once, and anything else at the next step. Refuses to break a half-done edit."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_INSIST_SECONDS = 0.3


class Interrupted(Exception):
    """The person at the terminal wants this turn to end."""


class Interrupts:
    """SIGINT in the main thread, made into `Interrupted` only where it is allowed to come."""

    def __init__(self) -> None:
        self._allowed = False
        self._asked = False
        self._turn = 0
        self._meant_for: int | None = None
        self._block = 0
        self._insists_on: int | None = None

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
            self._block += 1

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        insists_on, self._insists_on = self._insists_on, None
        if insists_on is not None and insists_on != self._block:
            return
        meant_for, self._meant_for = self._meant_for, None
        if meant_for is not None and meant_for != self._turn:
            return
        if self._allowed:
            # Python drops what is raised inside of a finalizer, so it is raised once more when nothing came of it.
            again = threading.Timer(_INSIST_SECONDS, self._insist, [self._block])
            again.daemon = True
            again.start()
            raise Interrupted
        self._asked = True

    def _insist(self, block: int) -> None:
        main = threading.main_thread().ident
        if self._block == block and main is not None:
            self._insists_on = block
            signal.pthread_kill(main, signal.SIGINT)
