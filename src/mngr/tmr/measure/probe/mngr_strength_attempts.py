"""One attempt of a test: a forked child runs it and says what came of it. Its process group is ended afterwards."""

from __future__ import annotations

import copy
import itertools
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import mngr_tmr_probe as probe
import pytest

TIMEOUT = "timeout"
CRASHED = "crashed"
_BATCH = 60

if TYPE_CHECKING:
    First = Callable[[], object]  # what a child does before it runs the test


def attempt(item: pytest.Item, *, seconds: float, first: First = lambda: None, warm: bool = False) -> str:
    """Run a test in a child, after `first`, with all its fixtures; or, if `warm`, with the fixtures of modules and
    sessions as they are in this process."""

    def work() -> str:
        first()
        return outcome(item, sibling(item) if warm else None)

    return in_child(work, seconds=seconds)


def sibling(item: pytest.Item) -> pytest.Item:
    """For pytest, the next test: with it only the fixtures of the test itself are torn down."""
    return copy.copy(item)


def outcome(item: pytest.Item, following: pytest.Item | None) -> str:
    """Run a test in this process: passed, failed, skipped, xfailed or xpassed."""
    from _pytest.runner import runtestprotocol

    subtests = Subtests()
    name = item.config.pluginmanager.register(subtests)
    try:
        reports = runtestprotocol(item, log=False, nextitem=following)
    finally:
        item.config.pluginmanager.unregister(name=name)
    return probe.judged([*subtests.reports, *reports])[0]


class Subtests:
    """The reports that come while a test runs, beside those of its phases."""

    def __init__(self) -> None:
        self.reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)


def result(outcome: str) -> str:
    """A test that is skipped or does not end noticed nothing."""
    if outcome in ("failed", CRASHED):
        return "killed"
    return TIMEOUT if outcome == TIMEOUT else "survived"


def in_child(work: Callable[[], str], *, seconds: float) -> str:
    """What a function returns in a forked child; `timeout` or `crashed` if it does not. All that it started in its
    process group is ended."""
    with Child(lambda say: say(work())) as child:
        return child.answer(seconds)


def in_turn(item: pytest.Item, firsts: Sequence[First], *, plain: First, seconds: float) -> Iterator[str]:
    """A warm `attempt` for each, in few processes: children that run one attempt after another cost a fifth of children
    that are forked for each. At the end of a child an attempt after `plain` must pass, otherwise one attempt
    changed another, or ended the child, and all of them are made again in processes of their own."""
    for start in range(0, len(firsts), _BATCH):
        batch = firsts[start : start + _BATCH]

        def work(say: Callable[[str], None], batch: Sequence[First] = batch) -> None:
            for first in (*batch, plain):
                first()
                say(outcome(item, sibling(item)))

        with Child(work) as child:
            answers = (child.answer(seconds) for _ in range(len(batch) + 1))
            found = list(itertools.takewhile(lambda answer: answer not in (TIMEOUT, CRASHED), answers))
        if len(found) > len(batch) and found.pop() == "passed":
            yield from found
        else:
            yield from (attempt(item, seconds=seconds, first=first, warm=True) for first in batch)


class Child:
    """A forked process that says something, a line at a time. Ended with its process group at the end of `with`."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self._pipe, theirs = os.pipe()
        self._text = b""
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _run_child(work, theirs)
        os.close(theirs)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        for end in (os.killpg, os.kill):  # not a group yet, perhaps, or gone
            with suppress(ProcessLookupError, PermissionError):
                end(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def answer(self, seconds: float) -> str:
        """The next line. Not up to the end of the pipe: something that the child left running may hold it."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                return TIMEOUT
            data = os.read(self._pipe, 65536)
            if not data:
                return CRASHED
            self._text += data
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()


def _run_child(work: Callable[[Callable[[str], None]], None], pipe: int) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)

        def say(line: str) -> None:
            os.write(pipe, line.encode() + b"\n")

        work(say)
        code = 0
    finally:
        os._exit(code)
