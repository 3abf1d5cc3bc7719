"""Signals that end a command, as exceptions, and held back where half a step would leave a mess.

Only the command line installs the handlers; without them a hold changes nothing.
"""

from __future__ import annotations

import _thread
import os

from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # `signal` wraps this one in enums, which costs a millisecond

_HANGUP, _INTERRUPT, _TERMINATE = 1, 2, 15

_main_thread: int | None = None
_holds = 0
_waiting: int | None = None
_latest = _INTERRUPT
_left = False


class Terminated(BaseException):
    """Another process, or a terminal that closed, asked this one to end. Like KeyboardInterrupt it is no error."""

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


class held:  # noqa: N801 (used like the function it would be with contextlib)
    """A signal that comes within is raised at the end of the block, in place of an error from it. For short steps,
    and for cleaning up."""

    def __enter__(self) -> None:
        global _holds
        if _thread.get_ident() == _main_thread:
            _holds += 1

    def __exit__(self, *_: object) -> None:
        global _holds, _waiting
        if _thread.get_ident() != _main_thread:
            return
        _holds -= 1
        if _holds == 0 and _waiting is not None:
            number, _waiting = _waiting, None
            raise _exception(number)


def leave() -> None:
    """The command is over, and its end is being told: a signal from now on ends the process at once."""
    global _left
    _left = True


def latest() -> BaseException:
    """What the last signal asks to raise, for where its exception was swallowed."""
    return _exception(_latest)


def _on_signal(number: int, frame: object) -> None:
    global _latest, _waiting
    if _left:
        os._exit(128 + number)
    _latest = number
    if _holds:
        _waiting = number
        return
    raise _exception(number)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == _INTERRUPT else Terminated(number)
