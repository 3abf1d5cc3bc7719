"""Measures how late states are seen, so that a busy machine does not count against a kind. Part of the list in
`kind_checks`."""

from __future__ import annotations

import time
from typing import NamedTuple

from mngr.agent.state import RUNNING, WAITING
from mngr.fleet.agent import Agent
from mngr.system.waiting import Deadline
from mngr_testing.checks.subject import Subject, expect

LOOKS, LOOK_SECONDS = 10, 1.0


class Look(NamedTuple):
    """The state that one look saw, and when the look began and ended."""

    began: float
    ended: float
    state: str


def _look(subject: Subject, agent: Agent) -> Look:
    began = time.time()
    state = subject.now(agent).state
    return Look(began, time.time(), state)


def lateness(subject: Subject, agent: Agent) -> float:
    """How late RUNNING or WAITING was at least: by the looks that began when it was true, and missed it."""
    mark, stamp = subject.mark(), "date +%s.%N >"
    work = f"{stamp} {mark}.began; {subject.hold(mark)}; {stamp} {mark}.ended"
    subject.send(agent, subject.words.run(work))
    text = subject.becomes(lambda: subject.file(agent, f"{mark}.began"), bool, "it works", subject.turn_seconds)
    began = float(text)
    working = _looks_at_work(subject, agent)
    subject.release(agent, mark)
    resting = [_look(subject, agent)]
    deadline = Deadline(subject.turn_seconds)
    while resting[-1].state != WAITING or not subject.file(agent, f"{mark}.ended"):
        expect(not deadline.passed, f"it did not come to rest: {resting[-1].state}")
        resting.append(_look(subject, agent))
    ended = float(subject.file(agent, f"{mark}.ended"))
    first = next(number for number, look in enumerate(working) if look.state == RUNNING)
    after = {look.state for look in (*working[first:], *resting) if look.ended < ended}
    expect(after == {RUNNING}, f"it was RUNNING until the end, and yet was seen as {after}")
    if subject.server is not None:
        ended = max(ended, *(entry.ended_at or 0.0 for entry in subject.server.log))
    missed = [look.began - began for look in working[:first]]
    missed += [look.began - ended for look in resting if look.state != WAITING]
    return max(missed, default=0.0)


def _looks_at_work(subject: Subject, agent: Agent) -> list[Look]:
    """Looks at an agent at work, until a while after the first one that saw it RUNNING."""
    looks = [_look(subject, agent)]
    deadline = Deadline(subject.fact_seconds)
    while True:
        seen = any(look.state == RUNNING for look in looks)
        if seen and len(looks) >= LOOKS and looks[-1].began - looks[0].began >= LOOK_SECONDS:
            return looks
        lasted = looks[-1].ended - looks[0].began
        expect(seen or not deadline.passed, f"it worked for {lasted:.2f} s, and was never seen RUNNING")
        looks.append(_look(subject, agent))
