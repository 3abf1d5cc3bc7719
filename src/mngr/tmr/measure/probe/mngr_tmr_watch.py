"""The clock and the files of the probe, out of reach of the tests; and a watch that gives up what does not end in time.

Stands alone, as the probe does.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable


class Real:
    """Clocks and files that a test may replace while it runs, as they were before it. Tools that do that (freezegun,
    pyfakefs) look through all modules, so these are kept in a class; time-machine leaves this clock alone."""

    _clock = staticmethod(time.clock_gettime)
    _monotonic = time.CLOCK_MONOTONIC
    _dumps = staticmethod(json.dumps)
    _open = staticmethod(os.open)
    _write = staticmethod(os.write)
    _close = staticmethod(os.close)
    environ = os.environ
    exit = staticmethod(os._exit)
    _flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT

    @classmethod
    def now(cls) -> float:
        return cls._clock(cls._monotonic)

    @classmethod
    def append(cls, path: str, row: dict[str, object]) -> None:
        data = (cls._dumps(row) + "\n").encode()
        file = cls._open(path, cls._flags, 0o666)
        try:
            while data:
                data = data[cls._write(file, data) :]
        finally:
            cls._close(file)


class Watch:
    """Calls `give_up` when what it watches does not end in time. Only the innermost is watched; the time that it takes
    does not count for what is around it."""

    def __init__(self, give_up: Callable[[str, float], None]) -> None:
        self._give_up = give_up
        self._watched: list[tuple[str, float, float]] = []  # what, limit, began
        self._timer: threading.Timer | None = None

    def begin(self, what: str, seconds: float) -> None:
        self._watched.append((what, seconds, Real.now()))
        self._set()

    def end(self) -> None:
        took = self.took()
        self._watched = [(what, seconds, began + took) for what, seconds, began in self._watched[:-1]]
        self._set()

    def took(self) -> float:
        return Real.now() - self._watched[-1][2]

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watched and self._watched[-1][1]:
            what, seconds, began = self._watched[-1]
            left = max(0.0, began + seconds - Real.now())
            self._timer = threading.Timer(left, self._give_up, [what, seconds])
            self._timer.daemon = True
            self._timer.start()
