"""Remove an agent for good, after everything that exists only there has been saved."""

from __future__ import annotations

import os

from mngr.actions import find, usage
from mngr.actions.agent import Agent
from mngr.actions.commits import uncommitted_ref
from mngr.actions.fleet import Fleet
from mngr.actions.lifecycle import end_processes
from mngr.agents.kinds.driver import HOME
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.records import NamedTuple
from mngr.tools.git import Git
from mngr.workspaces import make, saved, snapshots, work
from mngr.workspaces.plan import NONE, WORKTREE
from mngr.workspaces.saved import Entry
from mngr.workspaces.work import Work


class Destroyed(NamedTuple):
    """`kept_branch` is its branch, when it holds commits and stays. `entry` is the saved work, if there was any."""

    name: str
    entry: Entry | None
    kept_branch: str | None
    outlived: tuple[int, ...]


class HasWork(MngrError):
    """The agent holds work that is found nowhere else."""


def measure(fleet: Fleet, record: Record) -> Work:
    if record.started_at is None and not any(e.get("type") == "started" for e in fleet.store.events(record.id)):
        return Work()  # its creation was interrupted, so nobody worked there
    return work.only_here(fleet.host, record, ignored_max_mb=fleet.settings.number("saved.ignored_max_mb", 10))


def check(fleet: Fleet, agent: Agent, *, force: bool) -> Work:
    """What would be saved; raises HasWork when that is work and nobody forced it."""
    if agent.state == "UNKNOWN" and not force:
        raise MngrError(
            f"whether `{agent.name}` runs is not known: {agent.status.reason}", hint="`mngr doctor` looks into it"
        )
    found = measure(fleet, agent.record)
    if found.any and not force:
        raise HasWork(
            f"`{agent.name}` has work that is found nowhere else: {found.describe()}",
            hint=f"take it: `mngr {_taking(agent, found)}`; or let it be saved and go: "
            f"`mngr destroy {agent.name} --force`",
        )
    return found


def _taking(agent: Agent, found: Work) -> str:
    """The verb that brings such work here: no merge takes files that nobody committed."""
    if not agent.record.git:
        return f"pull {agent.name} DIR"
    return f"merge {agent.name}" if found.commits or found.tags else f"pull {agent.name} --files DIR"


def destroy(
    fleet: Fleet, agent_id: str, *, force: bool = False, remove_branch: bool = False, discard: bool = False
) -> Destroyed:
    """Refuse while there is unsaved work (unless forced), end its processes, save, remove. If saving fails, the
    workspace stays. With `discard` nothing is looked for, and nothing saved."""
    with fleet.store.agent_locked(agent_id):
        agent = find.agent(fleet, agent_id)
        if not discard:
            check(fleet, agent, force=force)
        outlived = end_processes(fleet, agent)
        try:
            # Measured again: it may have written until its last moment.
            left = Work() if discard else measure(fleet, agent.record)
            entry = saved.save_agent(fleet.host, agent.record, left, "destroy")
            usage.settle(fleet, agent.record)
        except BaseException:
            if agent.status.alive:  # it was, so it can be started again
                with held():
                    fleet.store.change(agent.id, stopped_at=timestamp(), stop_reason="stopped by `mngr destroy`")
            raise
        with held():  # a workspace that is half gone would look like work
            kept_branch = _remove_workspace(fleet, agent.record, entry, remove_branch)
            if not discard:
                _forget_pulled(fleet, agent.record, entry)
            _retire_state(fleet, agent, entry)
        return Destroyed(agent.name, entry, kept_branch, outlived)


def _remove_workspace(fleet: Fleet, record: Record, entry: Entry | None, remove_branch: bool) -> str | None:
    """Returns the branch that stays: one with commits, unless it may go and they are saved."""
    if record.transfer == NONE:
        return None
    if record.transfer != WORKTREE or record.repo is None:
        fleet.host.remove(record.work_dir)
        return None
    # The work tree it was made from may be gone; its own still knows the repository.
    asked = (Git(fleet.host, place) for place in (record.repo, record.work_dir) if work.has_repository(place))
    found = (git.run("rev-parse", "--path-format=absolute", "--git-common-dir") for git in asked)
    common = next((result for result in found if result.ok), None)
    if common is None:
        fleet.host.remove(record.work_dir)  # the repository itself is gone
        return None
    git = Git(fleet.host, common.text)
    make.remove_worktree(fleet.host, git.directory, common.text, record.work_dir)
    if not record.created_branch or record.branch is None or not git.has_branch(record.branch):
        return None
    with make.repo_lock(fleet.host, common.text):  # of several branches with the same commits the last one stays
        tip = git.commit_of(f"refs/heads/{record.branch}")
        assert tip is not None
        safe = tip == record.base_commit or git.is_shared(tip, besides=record.branch)
        kept = entry is not None and (
            (f"refs/heads/{record.branch}", tip) in entry.refs
            or git.ok("merge-base", "--is-ancestor", tip, entry.commit)
        )
        if (safe or (remove_branch and kept)) and git.run("branch", "-q", "-D", "--", record.branch).ok:
            return None
    return record.branch


def _forget_pulled(fleet: Fleet, record: Record, entry: Entry | None) -> None:
    """What `pull` and `merge` noted in the repository. If nothing else holds those commits, it stays; `gc` tells."""
    if record.repo is None or not record.git or not work.has_repository(record.repo):
        return
    git = Git(fleet.host, record.repo)
    loose = uncommitted_ref(record.name)
    if entry is not None and entry.repo == record.repo and git.ok("diff", "--quiet", entry.commit, loose):
        git.run("update-ref", "-d", loose)
    ref = f"refs/mngr/pulled/{record.name}"
    commit = git.commit_of(ref)
    if commit is None:
        return
    alone = git.run("rev-list", "--max-count=1", commit, "--not", "--exclude=refs/mngr/pulled/*", "--all")
    if alone.ok and not alone.text:
        git.run("update-ref", "-d", ref, commit)


def _keep_conversation_alone(fleet: Fleet, record: Record, state_dir: str) -> None:
    home = os.path.join(state_dir, HOME)
    kept = snapshots.conversation(fleet.host, state_dir, record)
    for name in fleet.host.entries(home):
        path = f"{HOME}/{name}"
        if path not in kept and not any(other.startswith(f"{path}/") for other in kept):
            fleet.host.remove(os.path.join(home, name))


def _retire_state(fleet: Fleet, agent: Agent, entry: Entry | None) -> None:
    """Remove its variables and its copies of the user's settings. If work was saved, its events and its conversation
    stay with that work."""
    state_dir = fleet.store.state_dir(agent.id)
    fleet.host.remove(os.path.join(state_dir, "env"))
    if entry is not None:
        _keep_conversation_alone(fleet, agent.record, state_dir)
        fleet.store.log(agent.id, "destroyed", saved=entry.id)
        fleet.host.move(state_dir, saved.agent_dir(fleet.host, entry))
    fleet.store.forget(agent.id)
