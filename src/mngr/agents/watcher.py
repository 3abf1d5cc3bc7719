"""The watcher of an agent with limits: a shell script that sleeps in the agent's own tmux session until the next moment
at which a limit can be reached, and then runs our program once. See `watcher.sh`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from mngr.agents import events
from mngr.agents.limits import Limits
from mngr.files import content
from mngr.process import join, quote

FILE = "limits.sh"
WINDOW = "limits"
_SCRIPT = os.path.join(os.path.dirname(__file__), "watcher.sh")


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
