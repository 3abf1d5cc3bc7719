"""Do the same to many things in parallel threads, and end them when the command is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mngr.system.interrupts import Terminated, held, others_ended

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    Item = TypeVar("Item")
    T = TypeVar("T")

AT_ONCE = 16
_SECONDS_UNATTENDED = 0.2


def each(
    act: Callable[[Item], T], items: Sequence[Item], seen: Callable[[int, T], None] = lambda at, result: None
) -> tuple[list[T | None], BaseException | None]:
    """What came of each item, in order, and what is to be raised once that is reported: the signal that ended it all
    early, or the first error of `act`, which ends no other item. None stands for an item that has no result. `seen` is
    called in this thread with the number and the result of each item as it comes."""
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    results: list[T | None] = [None] * len(items)
    raised: BaseException | None = None
    running: dict[Future[T], int] = {}

    def take(future: Future[T]) -> None:
        nonlocal raised
        at = running.pop(future)
        if error := future.exception():
            raised = raised or error
            return
        result = results[at] = future.result()
        seen(at, result)

    pool = ThreadPoolExecutor(max_workers=max(1, min(AT_ONCE, len(items))))
    try:
        with held():  # the pool would not know a thread that was started in the moment of a signal
            running.update((pool.submit(act, item), at) for at, item in enumerate(items))
        while running:
            # A signal that the system gives to another thread does not wake this one, so it never waits for long.
            for future in wait(running, timeout=_SECONDS_UNATTENDED, return_when=FIRST_COMPLETED).done:
                with held():
                    take(future)
        pool.shutdown()
    except (KeyboardInterrupt, Terminated) as signal:
        _end(pool)
        for future in [one for one in running if not one.cancelled()]:
            take(future)
        raised = signal
    except BaseException:
        _end(pool)
        raise
    return results, raised


def _end(pool: Executor) -> None:
    """End what the threads of a pool do, and begin nothing more."""
    try:
        with held(), others_ended():
            pool.shutdown(wait=True, cancel_futures=True)
    except (KeyboardInterrupt, Terminated):
        pass  # a second signal asks for what was just done
