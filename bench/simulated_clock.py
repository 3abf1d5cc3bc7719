"""A clock for an engine whose agents are simulated: nobody sleeps, time goes on to the next thing that happens."""

import heapq
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from threading import Event
from typing import Any, TypeVar

from mngr.mapreduce.clock import STEP, TICK, Clock

T = TypeVar("T")

# Seconds that a piece of work takes, by its kind: assumed, of the order that ssh and git to another machine take.
SECONDS = {"start": 3.0, "tell": 1.0, "collect": 1.5, "check": 0.5, "checkpoint": 0.5}


class SimulatedClock(Clock):
    def __init__(self, seconds: Mapping[str, float] = SECONDS, start: float = 1_800_000_000.0) -> None:
        self.now = start
        self._seconds = seconds
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed: list[str] = []
        self.turns = 0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def at(self, moment: float, deed: Callable[[], None]) -> None:
        """Do this at that moment, as soon as the engine waits."""
        heapq.heappush(self._due, (moment, next(self._numbers), deed))

    def spend(self, seconds: float) -> None:
        """The engine was busy for so long."""
        self.now += seconds

    def change(self, path: str) -> None:
        """An event of the file system."""
        self._changed.append(path)

    def wakes(self, paths: Sequence[str], wake: Event) -> Iterator[Collection[str]]:
        while True:
            self.turns += 1
            changed, self._changed = self._changed, []
            wake.clear()
            yield changed
            self._go_on()

    def _go_on(self) -> None:
        """To the next tick, or to just after the next thing that happens, with all that is close to it."""
        first = max(self.now, self._due[0][0]) if self._due else self.now + TICK
        end = first + 2 * STEP if first < self.now + TICK else self.now + TICK
        while self._due and self._due[0][0] <= end:
            moment, _, deed = heapq.heappop(self._due)
            self.now = max(self.now, moment)
            deed()
        self.now = max(self.now, end)

    def executor(self, work: str, threads: int) -> Executor:
        return SimulatedExecutor(self, self._seconds[work], threads)


class SimulatedExecutor(Executor):
    """Threads that are simulated too: each piece of work is done, all at once, at the moment at which it would end."""

    def __init__(self, clock: SimulatedClock, seconds: float, threads: int) -> None:
        self._clock, self._seconds = clock, seconds
        self._free_at = [0.0] * max(1, threads)
        self._open = 0

    def submit(self, work: Callable[..., T], /, *args: Any, **options: Any) -> Future[T]:
        future: Future[T] = Future()
        ends_at = max(self._clock.now, heapq.heappop(self._free_at)) + self._seconds
        heapq.heappush(self._free_at, ends_at)
        self._open += 1

        def do() -> None:
            self._open -= 1
            try:
                result = work(*args, **options)
            except BaseException as error:  # noqa: BLE001 (it is raised by whoever asks for the result)
                future.set_exception(error)
            else:
                future.set_result(result)

        self._clock.at(ends_at, do)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """An engine that is over has no work under way but messages that nobody waits for."""
        while wait and not cancel_futures and self._open:
            self._clock._go_on()
