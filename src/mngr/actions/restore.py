"""Bring kept work back: as a stopped agent with its workspace as it was, or as plain files."""

from __future__ import annotations

import os
from typing import Any

from mngr.actions import usage
from mngr.actions.create import take_back
from mngr.actions.site import Site
from mngr.agents import events
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.names import check_name, new_id
from mngr.process import checked
from mngr.tools.git import Git
from mngr.workspaces import restoration, saved_entry, saved_work, snapshots
from mngr.workspaces.plan import Plan
from mngr.workspaces.saved_entry import SavedEntry
from mngr.workspaces.workspace import Workspace, refuse_taken


def survey(site: Site) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """All saved work, oldest first, and by their ids the errors of entries that cannot be read."""
    return saved_work.survey(site.host) if site.host.is_ours() else ([], {})


def find(site: Site, word: str) -> SavedEntry:
    """Saved work by its id, or the newest of an agent of that name."""
    return saved_work.find(site.host, word)


def show(site: Site, entry: SavedEntry, *, patch: bool, colour: bool) -> tuple[bytes, bytes]:
    """Its commits and its uncommitted files, as git prints them."""
    git, how = Git(entry.repo), ["--color=always"] if colour else []
    log = checked(git.run("log", "--oneline", *how, f"-{entry.commits}", entry.parent)).stdout if entry.commits else b""
    if entry.commit == entry.parent:
        return log, b""
    words = ["diff", "--patch" if patch else "--stat", *how, entry.parent, entry.commit]
    return log, checked(git.run(*words)).stdout


def as_agent(site: Site, entry: SavedEntry, *, name: str | None = None, branch: str | None = None) -> Record:
    """A stopped agent that `start` runs again. The saved work stays saved."""
    if entry.agent is None:
        raise MngrError(
            f"`{entry.id}` holds files, not an agent",
            hint=f"`mngr saved restore {entry.id} --to DIR` writes them to a directory",
        )
    name = name or entry.agent.name
    record, _ = make_again(
        site,
        entry,
        name,
        branch=branch,
        history=saved_entry.agent_dir(site.host, entry),
        taken_hint=f"`mngr saved restore {entry.id} --name {name}-2`",
        stop_reason=f"restored from saved work `{entry.id}`",
    )
    site.store.log(record.id, "restored", saved=entry.id)
    return record


def make_again(
    site: Site,
    entry: SavedEntry,
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
    for agent_id in (*([old.id] if _is_gone(site, old) else ()), new_id("agent")):
        with site.store.agent_locked(agent_id):
            record = _reserve(site, old, name, agent_id, taken_hint)
            if record is None:
                continue  # another process has restored the agent with its old id meanwhile
            workspace = None
            try:
                workspace = restoration.restore_into(site.host, entry, record.work_dir, branch)
                site.host.write(os.path.join(site.store.state_dir(agent_id), "env"), b"")
                _bring_history(site, history, record, with_events)
                record = site.store.change(agent_id, **{**_restored(old, workspace.plan), **fields})
                if record.driver or record.reports:
                    usage.start_page(site.host, agent_id)
            except BaseException:
                with held():
                    take_back(site, agent_id, workspace)
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


def as_files(site: Site, entry: SavedEntry, directory: str, *, branch: str | None = None) -> str:
    """The workspace at a directory of the user's choice, with no agent. Refuses one that holds anything."""
    target = os.path.abspath(os.path.join(site.cwd, directory))
    refuse_taken(target)
    restoration.restore_into(site.host, entry, target, branch)
    return target


def _is_gone(site: Site, old: Record) -> bool:
    """Whether nothing has the agent's id and directories: then it gets the id again, so that what belongs to it still
    does."""
    room = site.work_dir(old.transfer, old.name, old.id)
    return not any(os.path.lexists(path) for path in (site.store.state_dir(old.id), old.work_dir, room))


def _reserve(site: Site, old: Record, name: str, agent_id: str, taken_hint: str) -> Record | None:
    """Take the id, the name and a free index; from here on the agent is visible as STARTING. None when the old id is
    in use again."""
    with site.store.locked():
        if agent_id == old.id and not _is_gone(site, old):
            return None
        others = site.store.records()[0]
        if any(other.name == name for other in others):
            raise MngrError(f"an agent named `{name}` exists already", hint=taken_hint)
        taken = {other.number for other in others}
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        record = old._replace(
            id=agent_id,
            name=name,
            work_dir=site.work_dir(old.transfer, name, agent_id),
            session=site.session(name),
            number=free if old.number in taken else old.number,
            started_at=None,
            stopped_at=None,
            stop_reason="",
            archived_at=None,
            creator=site.host.myself(),
        )
        site.host.make_dir(site.store.state_dir(agent_id))
        site.store.write(record, durable=False)
    return record


def _bring_history(site: Site, history: str, record: Record, with_events: bool) -> None:
    names = [name for name in site.host.entries(history) if name == "env"]
    names += snapshots.conversation(site.host, history, record)
    wanted = [name for name in names if with_events or name != events.FILE]
    snapshots.copy_files(site.host, history, site.store.state_dir(record.id), wanted)
