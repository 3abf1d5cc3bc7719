"""Bring kept work back: as a stopped agent with its workspace as it was, or as plain files."""

from __future__ import annotations

import os

from mngr.actions import books
from mngr.actions.create import take_back
from mngr.actions.fleet import Fleet
from mngr.agents import events
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.names import check_name, new_id
from mngr.records import TYPE_CHECKING
from mngr.workspaces import kept, make, saved, snapshots
from mngr.workspaces.kept import Entry
from mngr.workspaces.make import Workspace
from mngr.workspaces.plan import WORKTREE, Plan

if TYPE_CHECKING:
    from typing import Any


def as_agent(fleet: Fleet, entry: Entry, *, name: str | None = None, branch: str | None = None) -> Record:
    """A stopped agent that `start` runs again. The saved work stays saved."""
    if entry.agent is None:
        raise MngrError(
            f"`{entry.id}` holds files, not an agent",
            hint=f"`mngr saved restore {entry.id} --to DIR` writes them to a directory",
        )
    name = name or entry.agent.name
    record, _ = make_again(
        fleet,
        entry,
        name,
        branch=branch,
        history=saved.agent_dir(fleet.host, entry),
        taken_hint=f"`mngr saved restore {entry.id} --name {name}-2`",
        stop_reason=f"restored from saved work `{entry.id}`",
    )
    fleet.store.log(record.id, "restored", saved=entry.id)
    return record


def make_again(
    fleet: Fleet,
    entry: Entry,
    name: str,
    *,
    branch: str | None,
    history: str,
    taken_hint: str,
    with_events: bool = True,
    **fields: Any,
) -> tuple[Record, Workspace]:
    """A stopped agent with the workspace, the variables and the conversation of an entry, and other `fields` of its
    record. One that is gone gets its old id again. On failure nothing is left behind."""
    old = entry.agent
    assert old is not None
    check_name(name)
    for agent_id in (*([old.id] if _is_gone(fleet, old) else ()), new_id("agent")):
        with fleet.store.agent_locked(agent_id):
            record = _reserve(fleet, old, name, agent_id, taken_hint)
            if record is None:
                continue  # another process has restored the agent with its old id meanwhile
            workspace = None
            try:
                workspace = kept.restore_into(fleet.host, entry, record.work_dir, branch)
                fleet.host.write(os.path.join(fleet.store.state_dir(agent_id), "env"), b"")
                _bring_history(fleet, history, record, with_events)
                record = fleet.store.change(agent_id, **{**_restored(old, workspace.plan), **fields})
                if record.driver or record.reports:
                    books.open_page(fleet.host, agent_id)
            except BaseException:
                with held():
                    take_back(fleet, agent_id, workspace)
                raise
            return record, workspace
    raise AssertionError("a new id is in use")


def _restored(old: Record, plan: Plan) -> dict[str, Any]:
    return {
        "transfer": plan.transfer,
        "repo": plan.repo.top if plan.repo else None,
        "source": old.source if plan.repo or old.repo is None else "",
        "branch": plan.branch,
        "created_branch": plan.create_branch or (old.created_branch and plan.branch == old.branch),
        "started_at": old.started_at or timestamp(),
        "stopped_at": timestamp(),
        "creator": None,
    }


def as_files(fleet: Fleet, entry: Entry, directory: str, *, branch: str | None = None) -> str:
    """The workspace at a directory of the user's choice, with no agent. Refuses one that holds anything."""
    target = os.path.abspath(os.path.join(fleet.cwd, directory))
    make.refuse_taken(target)
    kept.restore_into(fleet.host, entry, target, branch)
    return target


def _is_gone(fleet: Fleet, old: Record) -> bool:
    """Whether nothing has the agent's id and directories: then it gets the id again, so that what belongs to it still
    does."""
    room = _work_dir(fleet, old, old.name, old.id)
    return not any(os.path.lexists(path) for path in (fleet.store.state_dir(old.id), old.work_dir, room))


def _work_dir(fleet: Fleet, old: Record, name: str, agent_id: str) -> str:
    room = "worktrees" if old.transfer == WORKTREE else "clones"
    return os.path.join(fleet.host.dir, room, f"{name}-{agent_id[6:14]}")


def _reserve(fleet: Fleet, old: Record, name: str, agent_id: str, taken_hint: str) -> Record | None:
    """Take the id, the name and a free index; from here on the agent is visible as STARTING. None when the old id is
    in use again."""
    with fleet.store.locked():
        if agent_id == old.id and not _is_gone(fleet, old):
            return None
        others = fleet.store.records()[0]
        if any(other.name == name for other in others):
            raise MngrError(f"an agent named `{name}` exists already", hint=taken_hint)
        taken = {other.number for other in others}
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        record = old._replace(
            id=agent_id,
            name=name,
            work_dir=_work_dir(fleet, old, name, agent_id),
            session=fleet.settings.text("tmux.session_prefix", "mngr-") + name,
            number=free if old.number in taken else old.number,
            started_at=None,
            stopped_at=None,
            stop_reason="",
            archived_at=None,
            creator=fleet.host.myself(),
        )
        fleet.host.make_dir(fleet.store.state_dir(agent_id))
        fleet.store.write(record, durable=False)
    return record


def _bring_history(fleet: Fleet, history: str, record: Record, with_events: bool) -> None:
    names = [name for name in fleet.host.entries(history) if name == "env"]
    names += snapshots.conversation(fleet.host, history, record)
    wanted = [name for name in names if with_events or name != events.FILE]
    snapshots.copy_files(fleet.host, history, fleet.store.state_dir(record.id), wanted)
