"""Bring saved work back: as a stopped agent with its workspace as it was, or as plain files."""

import os

from mngr.actions.fleet import Fleet
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.names import check_name, new_id
from mngr.workspaces import make, saved
from mngr.workspaces.plan import WORKTREE
from mngr.workspaces.saved import Entry


def as_agent(fleet: Fleet, entry: Entry, *, name: str | None = None, branch: str | None = None) -> Record:
    """A stopped agent that `start` runs again. The saved work stays saved."""
    old = entry.agent
    if old is None:
        raise MngrError(
            f"`{entry.id}` holds files, not an agent",
            hint=f"`mngr saved restore {entry.id} --to DIR` writes them to a directory",
        )
    name = check_name(name or old.name)
    agent_id = new_id("agent")
    room = "worktrees" if old.transfer == WORKTREE else "clones"
    work_dir = os.path.join(fleet.host.dir, room, f"{name}-{agent_id[6:14]}")
    with fleet.store.locked():
        if any(other.name == name for other in fleet.store.records()[0]):
            raise MngrError(
                f"an agent named `{name}` exists already", hint=f"`mngr saved restore {entry.id} --name {name}-2`"
            )
        plan = saved.restore_into(fleet.host, entry, work_dir, branch)
        record = old._replace(
            id=agent_id,
            name=name,
            work_dir=work_dir,
            session=fleet.settings.text("tmux.session_prefix", "mngr-") + name,
            transfer=plan.transfer,
            repo=plan.repo.top if plan.repo else None,
            source=old.source if plan.repo or old.repo is None else "",
            branch=plan.branch,
            created_branch=plan.create_branch or (old.created_branch and plan.branch == old.branch),
            started_at=old.started_at or timestamp(),
            stopped_at=timestamp(),
            stop_reason=f"restored from saved work `{entry.id}`",
        )
        try:
            fleet.host.make_dir(fleet.store.state_dir(agent_id))
            fleet.host.write(os.path.join(fleet.store.state_dir(agent_id), "env"), b"")
            _bring_history(fleet, entry, agent_id)
            fleet.store.write(record)
            fleet.store.log(agent_id, "restored", saved=entry.id)
        except BaseException:
            with held():
                make.unmake(fleet.host, plan, work_dir)
                fleet.store.forget(agent_id)
            raise
    return record


def as_files(fleet: Fleet, entry: Entry, directory: str, *, branch: str | None = None) -> str:
    """The workspace at a directory of the user's choice, with no agent. Refuses one that holds anything."""
    target = os.path.abspath(os.path.join(fleet.cwd, directory))
    if os.path.isdir(target) and os.listdir(target):
        raise MngrError(f"`{target}` is not empty", hint="name a directory that does not exist yet")
    if os.path.lexists(target) and not os.path.isdir(target):
        raise MngrError(f"`{target}` exists and is not a directory")
    saved.restore_into(fleet.host, entry, target, branch)
    return target


def _bring_history(fleet: Fleet, entry: Entry, agent_id: str) -> None:
    kept = saved.agent_dir(fleet.host, entry)
    for name in fleet.host.entries(kept):
        if name.endswith(".jsonl"):
            fleet.host.write(
                os.path.join(fleet.store.state_dir(agent_id), name), fleet.host.read(os.path.join(kept, name))
            )
