"""The recording of an agent's terminal, `recording.cast` in its state directory: who writes it, and its end."""

from __future__ import annotations

import os
import sys

from mngr.agent.record import Record
from mngr.errors import TimedOut
from mngr.system.state_dir import StateDir

FILE = "recording.cast"
LOCK = "{}.recording"
MAX_MB = 50.0
RECORDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder.py")


def recorder_argv(record: Record, host: StateDir, state_dir: str, max_mb: float) -> list[str]:
    """The program to which tmux gives all output. It reads the values to mask from the agent's environment file."""
    lock = os.path.join(host.dir, "locks", LOCK.format(record.id))
    words = [os.path.join(state_dir, FILE), record.name, str(int(max_mb * 1e6)), os.path.join(state_dir, "env"), lock]
    # Without site packages and the user's own Python settings it starts in a third of the time.
    return [sys.executable, "-I", "-S", RECORDER, *words]


def finish(host: StateDir, agent_id: str) -> None:
    """Wait until what a terminal that is gone had written last is in its recording, and nobody writes there."""
    try:
        with host.locked(LOCK.format(agent_id), timeout=10.0, what="the recording"):
            pass
    except TimedOut:
        pass  # it ends by itself; nothing else depends on it
