"""Ctrl-C in the scripted agent: it always ends the work that it may end."""

import os
import signal
import sys
import threading
import weakref

import pytest

from mngr.agents.kinds.scripted.interrupts import Interrupted, Interrupts


class Thing:
    pass


def work(interrupts: Interrupts, dropped: list[object]) -> None:
    """Interrupted at first where nobody sees it."""
    thing = Thing()
    seen = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    with interrupts.allowed():
        del thing
        assert dropped == [Interrupted] and seen() is None
        threading.Event().wait(30)


def test_an_interrupt_that_python_drops_in_a_finalizer_is_raised_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda facts: dropped.append(facts.exc_type))
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    interrupts.listen()
    try:
        with pytest.raises(Interrupted):
            work(interrupts, dropped)
        interrupts.check()  # nothing is left for the next step
    finally:
        signal.signal(signal.SIGINT, before)
