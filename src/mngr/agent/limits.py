"""How long an agent may run and how long it may be idle, when that is over, and the script that watches it: a shell
script that sleeps in the agent's own tmux session until the next moment at which a limit can be reached, and then runs
our program once. See `watcher.sh`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mngr.agent import events
from mngr.agent.record import seconds_of
from mngr.named_tuples import NamedTuple
from mngr.system.files import content
from mngr.system.process import join, quote

OUTPUT, USER, AGENT = "output", "user", "agent"
MODES = (OUTPUT, USER, AGENT)
# tmux and the watcher know whole seconds only; one more makes sure that a limit never comes early.
_BLUR = 1.0
FILE = "limits.sh"
WINDOW = "limits"
_SCRIPT = os.path.join(os.path.dirname(__file__), "watcher.sh")
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Limits(NamedTuple):
    """What is None is not limited. `idle_mode` says what counts as being busy."""

    idle_seconds: float | None = None
    idle_mode: str = OUTPUT
    run_seconds: float | None = None

    @property
    def any(self) -> bool:
        return self.idle_seconds is not None or self.run_seconds is not None

    def stored(self) -> dict[str, Any]:
        """As the record keeps them: an empty object when nothing is limited."""
        return self._asdict() if self.any else {}

    def describe(self) -> str:
        parts = []
        if self.idle_seconds is not None:
            parts.append(f"stops when idle for {span(self.idle_seconds)} ({_MEANING[self.idle_mode]})")
        if self.run_seconds is not None:
            parts.append(f"stops after running for {span(self.run_seconds)}")
        return ", ".join(parts) or "no limits"


_MEANING = {OUTPUT: "no output", USER: "no message and no key typed", AGENT: "the agent itself is not working"}


class LimitVerdict(NamedTuple):
    """`reason` is empty while no limit is reached; then `seconds_left` is the earliest moment at which one can be."""

    reason: str
    saved_as: str = ""
    seconds_left: int = 1


def of(stored: Mapping[str, Any]) -> Limits:
    mode = stored.get("idle_mode")
    return Limits(stored.get("idle_seconds"), mode if mode in MODES else OUTPUT, stored.get("run_seconds"))


def judge(limits: Limits, *, started: float, idle_since: float | None, now: float) -> LimitVerdict:
    """`idle_since` is None while the agent is busy by the measure of its mode."""
    left = math.inf
    if limits.run_seconds is not None:
        left = started + limits.run_seconds - now
        if left <= 0:
            ran = f"ran for {span(now - started)} (limit {span(limits.run_seconds)})"
            return LimitVerdict(ran, "time limit", 0)
    if limits.idle_seconds is not None:
        since = now if idle_since is None else max(idle_since, started) + _BLUR
        idle_left = since + limits.idle_seconds - now
        if idle_left <= 0:
            idle = f"idle for {span(now - since)} (limit {span(limits.idle_seconds)})"
            return LimitVerdict(idle, "idle limit", 0)
        left = min(left, idle_left)
    return LimitVerdict("", seconds_left=min(86400, max(1, math.ceil(left))) if limits.any else 86400)


def last_message(happened: Iterable[Mapping[str, Any]]) -> float:
    """When a message was last delivered; 0 when none was."""
    return max((_moment(event) for event in happened if event.get("type") == "message_delivered"), default=0.0)


def script(
    agent_id: str, limits: Limits, *, started: float, state_dir: str, exports: str, enforce: Sequence[str]
) -> str:
    """`enforce` stops the agent, or prints the seconds until it should be asked again. `exports` is what it needs in
    its environment, as shell text."""
    values = {
        "agent": agent_id,
        "events": f"{state_dir}/{events.FILE}",
        "idle": "" if limits.idle_seconds is None else math.ceil(limits.idle_seconds),
        "mode": limits.idle_mode,
        "ends": "" if limits.run_seconds is None else math.ceil(started + limits.run_seconds),
        "started": int(started),
        "says": f"This window stops the agent when a limit is reached: it {limits.describe()}.",
    }
    head = "".join(f"{name}={quote(str(value))}\n" for name, value in values.items())
    return f"#!/bin/sh\n{exports}{head}enforce() {{ {join(enforce)}; }}\n{content(_SCRIPT).decode()}"


def span(seconds: float) -> str:
    """A length of time in at most two units: `90 s` is `1 min 30 s`."""
    left = max(0, int(seconds))
    parts = []
    for size, unit in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


def _moment(event: Mapping[str, Any]) -> float:
    try:
        return seconds_of(str(event.get("timestamp")))
    except ValueError:
        return 0.0
