"""The file in which an agent says how its task went. Whatever is there is given as bytes; nothing in it is believed."""

from __future__ import annotations

import os
import stat

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import launch

AT_MOST = 1_000_000


def path(fleet: Fleet, agent: Agent) -> str:
    """What `$MNGR_OUTCOME_FILE` is for it."""
    return os.path.join(launch.task_dir(agent.record, fleet.store.state_dir(agent.id)), "outcome.json")


def exists(fleet: Fleet, agent: Agent) -> bool:
    """Whether it wrote one; of what is there, nothing is followed or opened."""
    return os.path.lexists(path(fleet, agent))


def written_at(fleet: Fleet, agent: Agent) -> float | None:
    """When it was written last; None when there is none."""
    try:
        return os.lstat(path(fleet, agent)).st_mtime
    except OSError:
        return None


def read(fleet: Fleet, agent: Agent, at_most: int = AT_MOST) -> bytes | None:
    """What it wrote, or None. One that is longer is cut one byte later, so that this can be seen. What is not a plain
    file of the agent's own (a link, a pipe, a directory) reads as empty."""
    place = path(fleet, agent)
    if not os.path.lexists(place):
        return None
    home = agent.record.work_dir if agent.record.transfer != "none" else fleet.store.state_dir(agent.id)
    directory = os.path.dirname(place)
    if os.path.realpath(directory) != os.path.join(os.path.realpath(home), os.path.relpath(directory, home)):
        return b""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
    with open(fd, "rb") as file:
        return file.read(at_most + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
