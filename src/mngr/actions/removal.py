"""Remove an agent as one transaction: see docs/design/027-removal.md.

One rename decides, that of its state directory into the trash: before it the agent is whole, after it there is none.
What is left of it then is removed at once, or by `mngr gc` if that was interrupted. Saves nothing: the caller has.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from mngr import secrets
from mngr.actions import source_cache
from mngr.actions.commits import uncommitted_ref
from mngr.actions.site import Site
from mngr.agent import events, record, store
from mngr.agent.record import CorruptRecord, Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import is_id
from mngr.system import files, trash, tree_removal
from mngr.system import git as git_tool
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import history
from mngr.workspace.work.entry import SAVED, SavedEntry
from mngr.workspace.work.git_files import is_repository
from mngr.workspace.workspace import forget_worktree, repo_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# In a state directory in the trash: what is still to be done.
_MARK = "removal.json"


class Removed(NamedTuple):
    """`kept_branch` is its branch, when it holds commits and stays. `left` says what could not be removed."""

    kept_branch: str | None
    left: str


def check(agent: Record) -> None:
    """Raise if its work dir cannot be removed because something is mounted there."""
    if agent.workspace.transfer != NONE:
        tree_removal.refuse_mounts(agent.workspace.work_dir)


def remove(
    site: Site,
    agent: Record,
    entry: SavedEntry | None = None,
    *,
    remove_branch: bool = False,
    keep_pulled: bool = False,
) -> Removed:
    """Remove an agent whose processes have ended and whose work is saved, as `entry` if there was any. The caller holds
    its lock. If this raises, the agent is whole."""
    check(agent)
    path = site.store.state_dir(agent.id)
    mark = {"entry": entry.id if entry else None, "remove_branch": remove_branch, "keep_pulled": keep_pulled}
    with held():
        site.host.write(os.path.join(path, _MARK), files.json_bytes(mark), durable=True)
        trash.set_aside(site.host.dir, path, agent.id)
        if entry is not None:
            log = os.path.join(trash.place(site.host.dir, agent.id), events.FILE)
            with suppress(OSError):  # a full disk does not stop it any more
                site.host.append(log, events.new_event("mngr", "destroyed", saved=entry.id))
        return finish(site, agent.id)


def pending(site: Site) -> list[Record]:
    """The agents whose removal has begun and not ended."""
    ids = (name for name in trash.names(site.host.dir) if is_id(name))
    return [found for agent_id in ids if (found := _record(site, agent_id)) is not None]


def _record(site: Site, agent_id: str) -> Record | None:
    path = trash.place(site.host.dir, agent_id)
    if not os.path.exists(os.path.join(path, _MARK)):
        return None
    try:
        return record.parse(site.host.read(os.path.join(path, "agent.json")), path)
    except (OSError, CorruptRecord):
        return None  # then all that can be done is to delete it


def resume(site: Site, agent_id: str) -> None:
    """Finish the removal of this agent, if one has begun and nobody is at it."""
    if os.path.lexists(trash.place(site.host.dir, agent_id)):
        with site.store.agent_locked(agent_id):
            finish(site, agent_id)


def finish(site: Site, agent_id: str) -> Removed:
    """Remove what is left of an agent whose state directory is in the trash. The caller holds its lock. Twice is safe,
    also after half of it."""
    kept_branch, left = None, ""
    agent = _record(site, agent_id)
    if agent is not None:
        path = trash.place(site.host.dir, agent_id)
        mark: dict[str, Any] = json.loads(site.host.read(os.path.join(path, _MARK)))
        entry = _entry(site, mark["entry"])
        try:
            kept_branch = _remove_workspace(site, agent, entry, mark["remove_branch"])
            _forget_home(site, agent)
            if not mark["keep_pulled"]:
                _forget_pulled(agent, entry)
            if entry is not None:
                _keep_history(site, agent, entry)
        except (MngrError, OSError) as error:
            left = error.message if isinstance(error, MngrError) else f"`{error.filename}`: {error.strerror}"
        else:
            os.unlink(os.path.join(path, _MARK))
    if not left:
        left = "; ".join(filter(None, [trash.deleted(site.host.dir, name) for name in (f"{agent_id}.work", agent_id)]))
    site.store.forget_locks(agent_id)
    return Removed(kept_branch, left)


def _entry(site: Site, entry_id: str | None) -> SavedEntry | None:
    """The saved work; None also when somebody has removed it since."""
    return saved_entry.read(site.host, os.path.join(site.host.dir, SAVED, entry_id)) if entry_id else None


def _remove_workspace(site: Site, agent: Record, entry: SavedEntry | None, remove_branch: bool) -> str | None:
    """Move the work dir into the trash. Returns the branch that stays: one with commits, unless it may go and they are
    saved."""
    workspace = agent.workspace
    if workspace.transfer == NONE:
        return None
    common = _common_dir(agent)
    name = f"{agent.id}.work"
    if not os.path.lexists(trash.place(site.host.dir, name)):  # else another directory may be at its path by now
        trash.set_aside(site.host.dir, workspace.work_dir, name)
    copy_git.forget(site.host, workspace.work_dir)
    if common is None:
        return None
    with repo_lock(site.host, common):  # of several branches with the same commits the last one stays
        forget_worktree(common, workspace.work_dir)
        return _remove_branch(Git.of_user(common), agent, entry, remove_branch)


def _common_dir(agent: Record) -> str | None:
    """The repository of a worktree; None when that is gone, or the agent has no worktree."""
    repo = agent.workspace.repo
    if agent.workspace.transfer != WORKTREE or repo is None or not is_repository(repo):
        return None
    return git_tool.repository(repo).common_dir


def _remove_branch(git: Git, agent: Record, entry: SavedEntry | None, remove_branch: bool) -> str | None:
    branch = agent.workspace.branch
    tip = git.commit_of(f"refs/heads/{branch}") if agent.workspace.created_branch and branch is not None else None
    if branch is None or tip is None:
        return None
    safe = tip == agent.workspace.base_commit or git.is_shared(tip, besides=branch)
    if not safe and agent.life.started_at is None:  # it was made at a commit that saved work or a snapshot holds
        alone = git.rev_list("--max-count=1", tip, "--not", f"--exclude=refs/heads/{branch}", "--all")
        safe = alone.ok and not alone.text
    kept = entry is not None and (
        (f"refs/heads/{branch}", tip) in entry.refs or git.ok("merge-base", "--is-ancestor", tip, entry.commit)
    )
    if (safe or (remove_branch and kept)) and git.run("branch", "-q", "-D", "--", branch).ok:
        return None
    return branch


def _forget_home(site: Site, agent: Record) -> None:
    """Remove what an agent of another machine left in the cache of its repository, and the files it began with."""
    if not agent.workspace.origin:
        return
    source_cache.forget_files(site, agent.id)
    if agent.workspace.repo is not None and is_repository(agent.workspace.repo):
        Git.of_user(agent.workspace.repo).run("update-ref", "-d", f"refs/remotes/home/{agent.id}")


def _forget_pulled(agent: Record, entry: SavedEntry | None) -> None:
    """Remove the refs that `pull` and `merge` made in the repository, unless nothing else holds their commits; `gc`
    reports those."""
    if agent.workspace.repo is None or not agent.git or not is_repository(agent.workspace.repo):
        return
    git = Git.of_user(agent.workspace.repo)
    loose = uncommitted_ref(agent.name)
    if entry is not None and entry.repo == agent.workspace.repo and git.ok("diff", "--quiet", entry.commit, loose):
        git.run("update-ref", "-d", loose)
    ref = f"refs/mngr/pulled/{agent.name}"
    commit = git.commit_of(ref)
    if commit is None:
        return
    alone = git.rev_list("--max-count=1", commit, "--not", "--exclude=refs/mngr/pulled/*", "--all")
    if alone.ok and not alone.text:
        git.run("update-ref", "-d", ref, commit)


def forget_pulled(agent: Record) -> None:
    """Remove the refs that `pull` made on this machine of an agent of another one."""
    _forget_pulled(agent, None)


def _keep_history(site: Site, agent: Record, entry: SavedEntry) -> None:
    """Keep the conversation, the recording and the last screen with its saved work, with its secrets hidden. All else
    goes with the agent: its variables, its copies of the user's settings, its home in a sandbox."""
    source, target = trash.place(site.host.dir, agent.id), saved_entry.agent_dir(site.host, entry)
    screen, env = (files.content(os.path.join(source, name)).decode(errors="replace") for name in (store.SCREEN, "env"))
    if screen:  # all else is masked when it is written
        site.host.write(os.path.join(source, store.SCREEN), secrets.mask(screen, secrets.env_values(env)).encode())
    for path in (*history.kept(site.host, source, agent), store.SCREEN):
        if os.path.isfile(os.path.join(source, path)):
            site.host.make_dir(os.path.dirname(os.path.join(target, path)))
            site.host.move(os.path.join(source, path), os.path.join(target, path))
