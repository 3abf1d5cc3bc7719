"""What an engine knows of time: the clock it reads, how it waits, and the threads for work that blocks. A simulation
gives a run another one."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Event

from mngr.system import waiting

# Events wake the loop; this is how finely it gathers them, and how soon it sees that a point in time has come.
STEP = 0.05
TICK = 0.25


class Clock:
    """The machine's own."""

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def wakes(self, paths: Sequence[str], wake: Event) -> Iterator[Collection[str]]:
        """Yield at first, then whenever something changes below the paths or `wake` is set, and at least every `TICK`:
        the paths that changed."""
        return waiting.changes(list(paths), deadline=waiting.Deadline(None), at_least_every=TICK, wake=wake, step=STEP)

    def executor(self, work: str, threads: int) -> Executor:
        """Where this kind of work runs, which blocks: at most this many pieces at once."""
        return ThreadPoolExecutor(max(1, threads))


MACHINE = Clock()
