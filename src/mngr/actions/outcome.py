"""The file in which an agent says how its task went. Whatever is there is given as bytes; nothing in it is believed."""

from __future__ import annotations

from collections.abc import Collection

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent import launch
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system import inside
from mngr.system.inside import UnsafePath

AT_MOST = 1_000_000


def _place(site: Site, agent: Record) -> tuple[str, str]:
    """What `$MNGR_OUTCOME_FILE` is for it, as a directory and a path below it."""
    root, task = launch.task_place(agent, site.store.state_dir(agent.id))
    return root, f"{task}/outcome.json"


def exists(site: Site, agent_id: str) -> bool:
    """Whether it wrote one; of what is there, nothing is followed or opened."""
    return _exists(site, site.store.read(agent_id))


def _exists(site: Site, agent: Record) -> bool:
    try:
        return inside.facts(*_place(site, agent)) is not None
    except UnsafePath:
        return True


def remove(site: Site, agent_id: str) -> None:
    """Remove it. Twice is safe."""
    inside.remove(*_place(site, site.store.read(agent_id)))


def listing(site: Site, ids: Collection[str]) -> tuple[list[tuple[AgentView, bool]], list[MngrError]]:
    """The agents with these ids, each with whether it wrote one: one answer for a caller on another machine."""
    views, errors = find.listing(site, ids)
    return [(view, _exists(site, view.record)) for view in views], errors


def secrets(site: Site, agent_id: str) -> tuple[str, ...]:
    """The values of its variables, which do not belong into a text that is kept or shown."""
    return site.store.secrets(agent_id)


def written_at(site: Site, agent_id: str) -> float | None:
    """When it was written last; None when there is none."""
    try:
        found = inside.facts(*_place(site, site.store.read(agent_id)))
    except (UnsafePath, OSError):
        return None
    return found.st_mtime if found is not None else None


def read(site: Site, agent_id: str, at_most: int = AT_MOST) -> bytes | None:
    """What it wrote, or None. One that is longer is cut one byte later, so that this can be seen. What is not a plain
    file of the agent's own (a link, a pipe, a directory) reads as empty."""
    try:
        return inside.read(*_place(site, site.store.read(agent_id)), at_most)
    except (UnsafePath, OSError):
        return b""


def artifact(site: Site, agent_id: str, name: str, at_most: int = AT_MOST) -> bytes | None:
    """A file that it put into `$MNGR_ARTIFACTS_DIR`, in the same way."""
    root, task = launch.task_place(site.store.read(agent_id), site.store.state_dir(agent_id))
    try:
        return inside.read(root, f"{task}/artifacts/{name}", at_most)
    except (UnsafePath, OSError):
        return b""
