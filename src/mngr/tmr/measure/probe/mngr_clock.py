"""Another day for this Python: every clock of dates is ahead by the same time. Timers stay as they are, and so does
what libraries in other languages read."""

from __future__ import annotations

import ctypes
import datetime
import gc
import importlib.util
import time
from typing import Any

AHEAD = datetime.timedelta(days=401, hours=5, minutes=17)


class _Ahead:
    """A clock of the module `time`. No function, which would become a method in a class that keeps it."""

    def __init__(self, real: Any, units: int) -> None:
        self._real, self._ahead = real, int(AHEAD.total_seconds()) * units

    def __call__(self) -> Any:
        return self._real() + self._ahead


class _Now:
    """A function of the module `time` whose last argument is the time as it is, unless it is given."""

    def __init__(self, real: Any, given: int, now: Any) -> None:
        self._real, self._given, self._now = real, given, now

    def __call__(self, *args: Any) -> Any:
        if len(args) > self._given and args[self._given] is not None:
            return self._real(*args)
        return self._real(*args[: self._given], self._now())


def begin(place: str) -> None:
    """In a process that a test started."""
    shift()


def shift() -> str:
    """Why the clock could not be set; empty when it is."""
    if importlib.util.find_spec("time_machine") is not None:
        return "time-machine has the clock"
    before = datetime.datetime.now()
    real = {name: vars(datetime.datetime)[name] for name in ("now", "utcnow")}
    methods: Any = gc.get_referents(vars(datetime.datetime))[0]
    if not isinstance(methods, dict) or methods.get("now") is not real["now"]:
        return "this Python does not let its clock be set"

    def now(cls: Any, tz: Any = None) -> Any:
        return real["now"].__get__(None, cls)(tz) + AHEAD

    def utcnow(cls: Any) -> Any:
        return real["utcnow"].__get__(None, cls)() + AHEAD

    methods.update(now=classmethod(now), utcnow=classmethod(utcnow))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
    if datetime.datetime.now() - before < AHEAD:
        methods.update(real)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))
        return "this Python does not let its clock be set"
    clocks: Any = time
    clocks.time, clocks.time_ns = _Ahead(time.time, 1), _Ahead(time.time_ns, 10**9)
    for name in ("localtime", "gmtime", "ctime"):
        setattr(clocks, name, _Now(getattr(time, name), 0, clocks.time))
    clocks.asctime, clocks.strftime = _Now(time.asctime, 0, clocks.localtime), _Now(time.strftime, 1, clocks.localtime)
    return ""
