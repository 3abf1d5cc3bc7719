"""The one door to sleeping: deadlines, polling, and waiting for files to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

from mngr.system.interrupts import check as check_abandoned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event
    from typing import TypeVar

    from mngr.system.file_watch import FileWatch

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
    `at_least_every` seconds, until the deadline: the paths that changed, if known. A longer `step` gathers more
    changes before it yields, and costs less while nothing happens."""
    from mngr.system import file_watch

    watch = file_watch.watch(paths)  # before the first look, or a change between the two is missed
    try:
        yield ()
        while not deadline.passed:
            found = _changed(watch, Deadline(deadline.left(at_least_every)), wake, step)
            if wake is not None:
                wake.clear()
            yield found
    finally:
        watch.close()


def _changed(watch: FileWatch, due: Deadline, wake: Event | None, step: float) -> Collection[str]:
    """What changed first, together with all that changes within `step` after it; nothing once it is due."""
    while not watch.wait(due.left(_SECONDS_UNATTENDED if wake is None else step)):
        check_abandoned()
        if due.passed or (wake is not None and wake.is_set()):
            return ()
    found = watch.changed()
    gathered = Deadline(max(0.02, step * 2))
    while not gathered.passed and watch.wait(gathered.left(step)):
        found |= watch.changed()
    return found
