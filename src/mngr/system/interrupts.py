"""Signals that end a command, as exceptions, and held back where half a step would leave a mess.

Only the command line installs the handlers; without them a hold changes nothing.
"""

from __future__ import annotations

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    import threading
else:
    import _signal  # `signal` wraps this one in enums, which costs a millisecond

_HANGUP, _INTERRUPT, _TERMINATE = 1, 2, 15

_main_thread: int | None = None
_holds: dict[int, int] = {}  # by thread
_ended_by: int | None = None
_waiting: int | None = None
_left = False


class Terminated(BaseException):
    """Another process, or a terminal that closed, asked this one to end. Like KeyboardInterrupt, not an error."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


def install() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise in the main thread. One that the caller ignores stays ignored."""
    global _main_thread
    _main_thread = _thread.get_ident()
    for number, untouched in (
        (_INTERRUPT, _signal.default_int_handler),
        (_TERMINATE, _signal.SIG_DFL),
        (_HANGUP, _signal.SIG_DFL),
    ):
        if _signal.getsignal(number) == untouched:
            _signal.signal(number, _on_signal)


def outlive_terminal() -> None:
    """Finish the work even if this runs in the terminal of an agent that is ended by it."""
    _signal.signal(_HANGUP, _signal.SIG_IGN)


class held:  # noqa: N801 (used like the function it would be with contextlib)
    """A signal that comes within is raised at the end of the block, in place of an error from it. A thread that another
    one ends is not ended within either. For short steps, and for cleaning up."""

    def __enter__(self) -> None:
        thread = _thread.get_ident()
        _holds[thread] = _holds.get(thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        global _waiting
        thread = _thread.get_ident()
        _holds[thread] -= 1
        if not _holds[thread] and thread == _main_thread and _waiting is not None:
            number, _waiting = _waiting, None
            raise _exception(number)


class Abandoned(BaseException):
    """The command is ending, so what one of its threads does is ended too. Not an error, and never reported."""


class others_ended:  # noqa: N801 (used like the function it would be with contextlib)
    """While this is held, the other threads are ended: what they run is killed, and `Abandoned` raised in them."""

    def __enter__(self) -> None:
        global _ended_by
        import threading  # whoever has other threads has it already

        threading.excepthook = _report_unless_abandoned
        self._before, _ended_by = _ended_by, _thread.get_ident()

    def __exit__(self, *_: object) -> None:
        global _ended_by
        _ended_by = self._before


def _report_unless_abandoned(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not Abandoned:
        sys.__excepthook__(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)


def check() -> None:
    """Raise `Abandoned` in a thread that is to end. Everything that waits calls this now and then."""
    if _ended_by is not None and _ended_by != (thread := _thread.get_ident()) and not _holds.get(thread):
        raise Abandoned


def leave() -> None:
    """The command is over and reports its end: a signal from now on ends the process at once."""
    global _left
    _left = True


def _on_signal(number: int, frame: object) -> None:
    global _waiting
    if _left:
        os._exit(128 + number)
    if _main_thread is not None and _holds.get(_main_thread):
        _waiting = number
        return
    raise _exception(number)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == _INTERRUPT else Terminated(number)
