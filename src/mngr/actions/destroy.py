"""Remove an agent for good, after everything that exists only there has been saved."""

from __future__ import annotations

import os
from typing import NamedTuple

from mngr.actions import find, source_cache, usage
from mngr.actions.agent_process import end_processes
from mngr.actions.commits import uncommitted_ref
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.record import Record, timestamp
from mngr.errors import MngrError
from mngr.programs.driver import HOME
from mngr.system import git as git_tool
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import measure as unsaved_work
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry
from mngr.workspace.work.measure import UnsavedWork
from mngr.workspace.workspace import remove_worktree, repo_lock


class Destroyed(NamedTuple):
    """`kept_branch` is its branch, when it holds commits and stays. `entry` is the saved work, if there was any."""

    name: str
    entry: SavedEntry | None
    kept_branch: str | None
    outlived: tuple[int, ...]


class HasWork(MngrError):
    """The agent holds work that is found nowhere else."""


def measure(site: Site, record: Record) -> UnsavedWork:
    if record.life.started_at is None and not any(e.get("type") == "started" for e in site.store.events(record.id)):
        return UnsavedWork()  # its creation was interrupted, so nobody worked there
    return unsaved_work.only_here(site.host, record, ignored_max_mb=site.settings.number("saved.ignored_max_mb", 10))


def with_work(site: Site) -> dict[str, str]:
    """The ids of agents with work that is found nowhere else, each with a line about it. Raises when one cannot be
    read."""
    records, broken = site.store.records() if site.host.is_ours() else ([], [])
    for error in broken:
        raise error
    work = [(record, measure(site, record)) for record in records]
    return {record.id: f"{record.name}: {found.describe()}" for record, found in work if found.any}


def check(site: Site, agent_id: str, *, force: bool) -> UnsavedWork:
    """What would be saved; raises HasWork when that is work and nobody forced it."""
    return _check(site, find.agent(site, agent_id), force)


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
    """Refuse while there is unsaved work (unless forced), end its processes, save, remove. If saving fails, the
    workspace stays. With `discard` nothing is looked for, and nothing saved; with `settled` its usage is noted
    already; with `moved` no process is ended: it is stopped, and those that carry its id are where it runs now."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        if not discard:
            _check(site, agent, force)
        if moved and agent.pane is not None:
            raise MngrError(f"`{agent.name}` was started again meanwhile")
        outlived = () if moved else end_processes(site, agent)
        try:
            # Measured again: it may have written until its last moment.
            left = UnsavedWork() if discard else measure(site, agent.record)
            entry = saved_work.save_agent(site.host, agent.record, left, "destroy")
            if not settled:
                usage.record_usage(site, agent.record)
        except BaseException:
            if agent.status.alive:  # it was, so it can be started again
                with held():
                    site.store.change(agent.id, stopped_at=timestamp(), stop_reason="stopped by `mngr destroy`")
            raise
        with held():  # a workspace that is half gone would look like work
            kept_branch = _remove_workspace(site, agent.record, entry, remove_branch)
            copy_git.forget(site.host, agent.record.workspace.work_dir)
            _forget_home(site, agent.record)
            if not discard:
                forget_pulled(agent.record, entry)
            _retire_state(site, agent, entry)
        return Destroyed(agent.name, entry, kept_branch, outlived)


def _remove_workspace(site: Site, record: Record, entry: SavedEntry | None, remove_branch: bool) -> str | None:
    """Returns the branch that stays: one with commits, unless it may go and they are saved."""
    if record.workspace.transfer == NONE:
        return None
    if record.workspace.transfer != WORKTREE or record.workspace.repo is None:
        site.host.remove(record.workspace.work_dir)
        return None
    if not unsaved_work.is_repository(record.workspace.repo):
        site.host.remove(record.workspace.work_dir)  # the repository itself is gone
        return None
    common = git_tool.repository(record.workspace.repo).common_dir
    git = Git.of_user(common)
    remove_worktree(site.host, git.directory, common, record.workspace.work_dir)
    if (
        not record.workspace.created_branch
        or record.workspace.branch is None
        or not git.has_branch(record.workspace.branch)
    ):
        return None
    with repo_lock(site.host, common):  # of several branches with the same commits the last one stays
        tip = git.commit_of(f"refs/heads/{record.workspace.branch}")
        assert tip is not None
        safe = tip == record.workspace.base_commit or git.is_shared(tip, besides=record.workspace.branch)
        kept = entry is not None and (
            (f"refs/heads/{record.workspace.branch}", tip) in entry.refs
            or git.ok("merge-base", "--is-ancestor", tip, entry.commit)
        )
        if (safe or (remove_branch and kept)) and git.run("branch", "-q", "-D", "--", record.workspace.branch).ok:
            return None
    return record.workspace.branch


def _forget_home(site: Site, record: Record) -> None:
    """Remove what an agent of another machine left in the cache of its repository, and the files it began with."""
    if not record.workspace.origin:
        return
    source_cache.forget_files(site, record.id)
    if record.workspace.repo is not None and unsaved_work.is_repository(record.workspace.repo):
        Git.of_user(record.workspace.repo).run("update-ref", "-d", f"refs/remotes/home/{record.id}")


def forget_pulled(record: Record, entry: SavedEntry | None) -> None:
    """Remove the refs that `pull` and `merge` made in the repository, unless nothing else holds their commits; `gc`
    reports those."""
    if record.workspace.repo is None or not record.git or not unsaved_work.is_repository(record.workspace.repo):
        return
    git = Git.of_user(record.workspace.repo)
    loose = uncommitted_ref(record.name)
    if entry is not None and entry.repo == record.workspace.repo and git.ok("diff", "--quiet", entry.commit, loose):
        git.run("update-ref", "-d", loose)
    ref = f"refs/mngr/pulled/{record.name}"
    commit = git.commit_of(ref)
    if commit is None:
        return
    alone = git.rev_list("--max-count=1", commit, "--not", "--exclude=refs/mngr/pulled/*", "--all")
    if alone.ok and not alone.text:
        git.run("update-ref", "-d", ref, commit)


def _keep_conversation_alone(site: Site, record: Record, state_dir: str) -> None:
    home = os.path.join(state_dir, HOME)
    kept = saved_work.conversation(site.host, state_dir, record)
    for name in site.host.entries(home):
        path = f"{HOME}/{name}"
        if path not in kept and not any(other.startswith(f"{path}/") for other in kept):
            site.host.remove(os.path.join(home, name))


def _retire_state(site: Site, agent: AgentView, entry: SavedEntry | None) -> None:
    """Remove its variables and its copies of the user's settings. If work was saved, its events and its conversation
    stay with that work."""
    state_dir = site.store.state_dir(agent.id)
    site.host.remove(os.path.join(state_dir, "env"))
    if entry is not None:
        _keep_conversation_alone(site, agent.record, state_dir)
        site.store.log(agent.id, "destroyed", saved=entry.id)
        site.host.move(state_dir, saved_entry.agent_dir(site.host, entry))
    site.store.forget(agent.id)
