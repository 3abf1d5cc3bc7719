"""Remove an agent for good, after everything that exists only there has been saved."""

from __future__ import annotations

from mngr.actions import find, lifecycle, removal, usage
from mngr.actions.agent_process import end_processes
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.workspace.work import measure as unsaved_work
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry
from mngr.workspace.work.measure import UnsavedWork
from mngr.workspace.work.tree import OmittedPath


class Destroyed(NamedTuple):
    """`kept_branch` is its branch, when it holds commits and stays. `entry` is the saved work, if there was any. `left`
    says what could not be deleted, `left_out` which ignored files were too large to be saved."""

    name: str
    entry: SavedEntry | None
    kept_branch: str | None
    outlived: tuple[int, ...]
    left: str = ""
    left_out: tuple[OmittedPath, ...] = ()


class HasWork(MngrError):
    """The agent holds work that is found nowhere else."""


def measure(site: Site, record: Record) -> UnsavedWork:
    if record.life.started_at is None and not any(e.get("type") == "started" for e in site.store.events(record.id)):
        return UnsavedWork()  # its creation was interrupted, so nobody worked there
    return unsaved_work.measure(site.host, record, ignored_max_mb=site.settings.number("saved.ignored_max_mb", 10))


def with_work(site: Site) -> dict[str, str]:
    """The ids of agents with work that is found nowhere else, each with a line about it. Raises when one cannot be
    read."""
    records, broken = site.store.records() if site.host.is_ours() else ([], [])
    for error in broken:
        raise error
    work = [(record, measure(site, record)) for record in records]
    return {record.id: f"{record.name}: {found.describe()}" for record, found in work if found.any}


def check(site: Site, agent_id: str, *, force: bool) -> UnsavedWork:
    """What would be saved. Raises HasWork when that is work and nobody forced it, or if it cannot be removed."""
    agent = find.agent(site, agent_id)
    removal.check(agent.record)
    return _check(site, agent, force)


def _restored(site: Site, agent: AgentView, force: bool) -> AgentView:
    """The agent, after a restore of a snapshot that was interrupted: half of it is not work. If that cannot be finished
    and is forced, what is there counts."""
    from mngr.actions import snapshots

    try:
        snapshots.resume(site, agent.record)
    except MngrError:
        if not force:
            raise
    return find.agent(site, agent.id)


def _check(site: Site, agent: AgentView, force: bool) -> UnsavedWork:
    if not force:
        agent.require_known()
    found = measure(site, agent.record)
    if found.any and not force:
        raise HasWork(
            f"`{agent.name}` has work that is found nowhere else: {found.describe()}",
            hint=f"collect it with `mngr {_taking(agent, found)}`, or save it and destroy the agent: "
            f"`mngr destroy {agent.name} --force`",
        )
    return found


def _taking(agent: AgentView, found: UnsavedWork) -> str:
    """The verb that brings such work here: no merge takes files that nobody committed."""
    if not agent.record.git:
        return f"pull {agent.name} DIR"
    return f"merge {agent.name}" if found.commits or found.tags else f"pull {agent.name} --files DIR"


def destroy(
    site: Site,
    agent_id: str,
    *,
    force: bool = False,
    remove_branch: bool = False,
    discard: bool = False,
    settled: bool = False,
    moved: bool = False,
) -> Destroyed:
    """Refuse while there is unsaved work (unless forced), end its processes, save, remove. If saving fails, the agent
    stays, stopped. With `discard` nothing is measured and nothing saved; with `settled` its usage is recorded already;
    with `moved` no process is ended: it is stopped, and those that carry its id are where it runs now."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        removal.check(agent.record)
        if site.store.is_restoring(agent_id) and not discard:
            agent = _restored(site, agent, force)
        measured = None if discard or force else _check(site, agent, force=False)
        if moved and agent.pane is not None:
            raise MngrError(f"`{agent.name}` was started again meanwhile")
        outlived: tuple[int, ...] = ()
        if agent.status.alive and not moved:
            outlived = lifecycle.end(site, agent, "stopped by `mngr destroy`").outlived
        elif not moved:
            outlived = end_processes(site, agent)
        if discard:
            measured = UnsavedWork()
        elif measured is None or agent.pane is not None:  # until now it may have written
            measured = measure(site, agent.record)
        entry = saved_work.save_agent(site.host, agent.record, measured, "destroy", always=measured.history)
        if not settled:
            usage.record_usage(site, agent.record)
        removed = removal.remove(site, agent.record, entry, remove_branch=remove_branch, keep_pulled=discard)
        return Destroyed(agent.name, entry, removed.kept_branch, outlived, removed.left, measured.left_out)
