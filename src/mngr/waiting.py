"""The one door to sleeping: deadlines, polling, and waiting for files to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from mngr.interrupts import check as check_abandoned
from mngr.interrupts import latest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event
    from typing import TypeVar

    T = TypeVar("T")


# How long a thread that waits may take to see that it is to end.
_SECONDS_UNATTENDED = 0.2


class Deadline:
    """A point in time some seconds from now; `None` is never."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def left(self, at_most: float) -> float:
        """Seconds until the deadline, never more than `at_most`, never below 0."""
        if self._end is None:
            return at_most
        return max(0.0, min(at_most, self._end - time.monotonic()))

    def pause(self, seconds: float) -> None:
        time.sleep(self.left(seconds))


def wait_until(check: Callable[[], T | None], *, timeout: float, every: float = 0.02) -> T | None:
    """Poll until `check` gives something true, and return it; None when the time is over."""
    deadline = Deadline(timeout)
    while True:
        check_abandoned()
        value = check()
        if value or deadline.passed:
            return value
        deadline.pause(every)


def changes(
    paths: list[str], *, deadline: Deadline, at_least_every: float, wake: Event | None = None, step: float = 0.005
) -> Iterator[Collection[str]]:
    """Yield at first, then on every change below the paths, whenever `wake` is set (it is cleared) and at least every
    so many seconds, until the deadline: the paths that changed, if it can tell. A longer `step` gathers more changes
    before it yields, and costs less while nothing happens."""
    from watchfiles import Change  # noqa: F401  (the package checks its own binary here)
    from watchfiles._rust_notify import RustNotify

    if not all(map(_is_utf8, paths)):  # the watcher cannot name such a path
        while True:
            yield ()
            if deadline.passed:
                return
            deadline.pause(min(0.1, at_least_every))
            if wake is not None:
                wake.clear()
    # Watch before the first look, or a change between the two is missed.
    with RustNotify(paths, False, False, 0, True, True) as watcher:
        yield ()
        while not deadline.passed:
            due = Deadline(deadline.left(at_least_every))
            found: str | set[tuple[int, str]] = "timeout"
            while found == "timeout" and not due.passed:
                check_abandoned()
                milliseconds = max(1, int(due.left(_SECONDS_UNATTENDED) * 1000))
                found = watcher.watch(max(20, int(step * 2000)), int(step * 1000), milliseconds, wake)
            if found == "signal":
                raise latest()  # the watcher keeps the exception of a signal's handler to itself
            if wake is not None:
                wake.clear()
            yield () if isinstance(found, str) else {path for _, path in found}


def _is_utf8(path: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in path)
