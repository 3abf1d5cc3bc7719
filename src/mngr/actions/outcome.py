"""The file in which an agent says how its task went. Whatever is there is given as bytes; nothing in it is believed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent import launch
from mngr.errors import MngrError

AT_MOST = 1_000_000


def path(site: Site, agent_id: str) -> str:
    """What `$MNGR_OUTCOME_FILE` is for it."""
    return os.path.join(launch.task_dir(site.store.read(agent_id), site.store.state_dir(agent_id)), "outcome.json")


def exists(site: Site, agent_id: str) -> bool:
    """Whether it wrote one; of what is there, nothing is followed or opened."""
    return os.path.lexists(path(site, agent_id))


def listing(site: Site, ids: Collection[str]) -> tuple[list[tuple[AgentView, bool]], list[MngrError]]:
    """The agents with these ids, each with whether it wrote one: one answer for a caller on another machine."""
    views, errors = find.listing(site, ids)
    return [(view, exists(site, view.id)) for view in views], errors


def secrets(site: Site, agent_id: str) -> tuple[str, ...]:
    """The values of its variables, which do not belong into a text that is kept or shown."""
    return site.store.secrets(agent_id)


def written_at(site: Site, agent_id: str) -> float | None:
    """When it was written last; None when there is none."""
    try:
        return os.lstat(path(site, agent_id)).st_mtime
    except OSError:
        return None


def read(site: Site, agent_id: str, at_most: int = AT_MOST) -> bytes | None:
    """What it wrote, or None. One that is longer is cut one byte later, so that this can be seen. What is not a plain
    file of the agent's own (a link, a pipe, a directory) reads as empty."""
    place = path(site, agent_id)
    if not os.path.lexists(place):
        return None
    record = site.store.read(agent_id)
    home = record.workspace.work_dir if record.workspace.transfer != "none" else site.store.state_dir(agent_id)
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
