"""Move commits between an agent and the repository it came from. Never a silent merge, never a lost commit."""

from __future__ import annotations

import os
from typing import NamedTuple

from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError, UsageError
from mngr.system import git as git_tool
from mngr.system.git import Git
from mngr.system.process import CommandFailed, checked, quote
from mngr.workspace.plan import NONE, WORKTREE
from mngr.workspace.work import files as uncommitted_files
from mngr.workspace.workspace import repo_lock

_PUSHED = "refs/mngr/pushed/commit"


class Pulled(NamedTuple):
    """`commits` are those that the agent made since its base; `new` how many of them were not here before."""

    name: str
    branch: str | None
    commit: str
    commits: int
    new: int
    uncommitted: int
    already_here: bool


class AgentTip(NamedTuple):
    """Where the work of an agent stands, as its own site sees it. `commits` are those since its base."""

    record: Record
    head: str
    branch: str | None
    commits: int
    uncommitted: int

    @property
    def sound(self) -> bool:
        return len(self.head) in (40, 64) and set(self.head) <= set("0123456789abcdef")


def tip(site: Site, agent_id: str) -> AgentTip:
    """The agent's HEAD and what it has not committed."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    head = there.must("rev-parse", "HEAD")
    commits = there.count(head, *(["--not", record.workspace.base_commit] if record.workspace.base_commit else []))
    return AgentTip(record, head, there.current_branch(), commits, len(there.changed_paths()))


def pull(site: Site, agent_id: str, *, into: str = "branch", dry_run: bool = False) -> Pulled:
    """Bring the agent's commits here: as its branch (made, or moved forward; never merged), into the current branch
    (forward only), or just as objects under `refs/mngr/pulled/NAME`. Runs on the caller's machine."""
    found = site.run(tip, agent_id)
    record, head = found.record, found.head
    host, here = site.near.host, home(site, record)
    branch = pulled_branch(record)
    shared = site.is_near and record.workspace.transfer == WORKTREE
    before, pulled = here.commit_of(f"refs/heads/{branch}"), here.commit_of(f"refs/mngr/pulled/{record.name}")
    new = 0 if shared or (here.commit_of(head) and here.is_shared(head)) else found.commits
    done = Pulled(
        record.name,
        branch if into != "none" else None,
        head,
        found.commits,
        new,
        found.uncommitted,
        already_here=shared,
    )
    if dry_run:
        return done
    fetch(site, found, here)
    if into == "none":
        return done
    if into == "current":
        current = Git(checkout(site, here))
        _forward(current, head, f"`{current.current_branch() or 'HEAD'}`", record.name)
        return done._replace(branch=current.current_branch())
    if before == head or (shared and found.branch == branch):
        return done
    if before is not None and not here.ok("merge-base", "--is-ancestor", before, head):
        raise MngrError(
            f"branch `{branch}` here and the agent's work have diverged; nothing was moved",
            hint=f"merge on purpose: `git merge refs/mngr/pulled/{record.name}` holds the agent's commits",
        )
    if not site.is_near:
        _refuse_branch(here, branch, record.name, taken=before is not None and before != pulled)
    with repo_lock(host, here.must("rev-parse", "--path-format=absolute", "--git-common-dir")):
        here.must("fetch", "-q", ".", f"{head}:refs/heads/{branch}", doing=f"branch `{branch}` could not be moved")
    return done


def _refuse_branch(here: Git, branch: str, name: str, *, taken: bool) -> None:
    """Another machine says which branch it is: none that is not a branch name, none of the user's own."""
    if not here.ok("check-ref-format", "--branch", branch):
        raise MngrError(f"{branch!r}, the branch of `{name}`, is not a branch name; nothing was moved")
    if taken and branch != f"mngr/{name}":
        raise MngrError(
            f"branch `{branch}` is here already, and not by `mngr pull {name}`; nothing was moved",
            hint=f"merge on purpose: `git merge refs/mngr/pulled/{name}` holds the agent's commits",
        )


def fetch(site: Site, found: AgentTip, here: Git) -> None:
    """Make the agent's HEAD known here as `refs/mngr/pulled/NAME`; its site then knows that it is safe."""
    record = found.record
    ref = f"refs/mngr/pulled/{record.name}"
    if site.is_near and record.workspace.transfer == WORKTREE:
        here.must("update-ref", ref, found.head)
        return
    _fetch_ref(site, record, here, f"+HEAD:{ref}")
    if not site.is_near:
        arrived = here.commit_of(ref)
        assert arrived is not None
        site.run(mark_home, record.id, arrived)


def _fetch_ref(site: Site, record: Record, here: Git, refspec: str) -> None:
    there = site.git_path(record.workspace.work_dir)
    with site.carrying():
        here.fetch(there.path, refspec, env=there.env, doing=f"the commits of `{record.name}` could not be fetched")


def mark_home(site: Site, agent_id: str, commit: str) -> None:
    """Note that the caller's machine has this commit of the agent, so that it does not count as work found only
    here. Twice is safe."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    if record.workspace.repo is None or not there.commit_of(commit):
        return
    cache, ref = Git(record.workspace.repo), f"refs/remotes/home/{record.id}"
    if record.workspace.transfer == WORKTREE:
        cache.must("update-ref", ref, commit)
        return
    mark = "refs/mngr/home"
    there.must("update-ref", mark, commit)
    try:
        cache.fetch(there.directory, f"+{mark}:{ref}")
    finally:
        there.run("update-ref", "-d", mark)


def fetch_uncommitted(site: Site, agent_id: str) -> str | None:
    """What the agent has not committed, as a commit on top of its HEAD, known here as
    `refs/mngr/pulled/NAME-uncommitted`; None when there is nothing. The agent's files and index stay as they are."""
    record, commit = site.run(commit_uncommitted, agent_id)
    here, ref = home(site, record), uncommitted_ref(record.name)
    if commit is None:
        here.run("update-ref", "-d", ref)  # what was fetched before is committed or gone by now
    elif not (site.is_near and record.workspace.transfer == WORKTREE):
        _fetch_ref(site, record, here, f"+{ref}:{ref}")
        site.run(drop_uncommitted, agent_id)
    return commit


def commit_uncommitted(site: Site, agent_id: str) -> tuple[Record, str | None]:
    """What the agent has not committed, as a commit under `refs/mngr/pulled/NAME-uncommitted` of its repository."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    changed = there.changed_paths()
    if not changed:
        return record, None
    commit = there.commit_tree(
        uncommitted_files.dirty_tree(there, changed),
        [there.must("rev-parse", "HEAD")],
        f"Not committed by {record.name}\n",
    )
    there.must("update-ref", uncommitted_ref(record.name), commit)
    return record, commit


def drop_uncommitted(site: Site, agent_id: str) -> None:
    """Remove the ref of `commit_uncommitted`."""
    record = site.store.read(agent_id)
    _work_tree(record).run("update-ref", "-d", uncommitted_ref(record.name))


def push(site: Site, agent_id: str, revision: str, *, dry_run: bool = False) -> tuple[str, int]:
    """Move the agent's branch forward to a commit of this repository. Returns the commit and how many came. Runs on
    the caller's machine."""
    found = site.run(tip, agent_id)
    record, here = found.record, home(site, found.record)
    source = Git(checkout(site, here))
    commit = source.commit_of(revision)
    if commit is None:
        raise UsageError(f"no branch or commit is called `{revision}`")
    if dry_run:
        return commit, _count_new(site, record, here, commit, found.head)
    if not site.is_near:
        there = site.git_path(record.workspace.work_dir)
        words = ("push", "-q", "--force", "--no-verify", there.path, f"{commit}:{_PUSHED}")
        with site.carrying():
            source.must(*words, env=there.env, doing=f"the commits could not be sent to `{record.name}`")
    elif record.workspace.transfer != WORKTREE and not (agent := _work_tree(record)).commit_of(commit):
        here.must("update-ref", _PUSHED, commit)
        try:
            agent.fetch(here.directory, _PUSHED)
        finally:
            here.run("update-ref", "-d", _PUSHED)
    return commit, site.run(forward, agent_id, commit)


def _count_new(site: Site, record: Record, here: Git, commit: str, head: str) -> int:
    """How many commits a push would send. Writes nothing at the agent."""
    if here.commit_of(head):
        return here.count(commit, "--not", head)
    if not site.is_near:
        return here.count(commit, "--not", *([record.workspace.base_commit] if record.workspace.base_commit else []))
    # Both ends' objects are needed to count, and none may be written.
    objects = here.must("rev-parse", "--path-format=absolute", "--git-path", "objects")
    both = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": git_tool.quoted_path(objects)}
    return int(_work_tree(record).must("rev-list", "--count", commit, "--not", "HEAD", env=both))


def forward(site: Site, agent_id: str, commit: str) -> int:
    """Move the agent's branch forward to a commit that its repository has. Returns how many are new to it."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    try:
        count = there.count(commit, "--not", "HEAD")
        if count:
            _forward(there, commit, f"the branch of `{record.name}`", record.name)
    finally:
        there.run("update-ref", "-d", _PUSHED)
    if record.workspace.origin:
        mark_home(site, agent_id, commit)
    return count


def diff(site: Site, agent_id: str, *options: str) -> bytes:
    """Everything the agent changed since its base, uncommitted and untracked files included, as git prints it."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    base = record.workspace.base_commit or "HEAD"
    result = there.run("diff", *options, base, uncommitted_files.dirty_tree(there, there.changed_paths()))
    if not result.ok:
        raise CommandFailed(result, "git could not compare")
    return result.stdout


def summary(site: Site, agent_id: str) -> bytes:
    """The agent's commits and a diffstat, as git prints them."""
    record = site.store.read(agent_id)
    there = _work_tree(record)
    base = record.workspace.base_commit or "HEAD"
    log = checked(there.run("log", "--oneline", f"{base}..HEAD"))
    return log.stdout + b"\n" + checked(there.run("diff", "--stat", base, "HEAD")).stdout


def refuse_operation(git: Git) -> None:
    """Raise when somebody has a merge, a rebase, ... in progress there: it is theirs to finish or to abort."""
    operation = git.operation()
    if operation is not None:
        end = "reset" if operation == "bisect" else "--abort"
        raise MngrError(
            f"a {operation} is in progress in `{git.directory}`; nothing was changed",
            hint=f"finish it, or `git -C {quote(git.directory)} {operation} {end}`, then try again",
        )


def uncommitted_ref(name: str) -> str:
    """Where `fetch_uncommitted` puts what it fetched."""
    return f"refs/mngr/pulled/{name}-uncommitted"


def pulled_branch(record: Record) -> str:
    """The branch here that holds the agent's commits."""
    return (
        record.workspace.branch
        if record.workspace.created_branch and record.workspace.branch
        else f"mngr/{record.name}"
    )


def _work_tree(record: Record) -> Git:
    """git at the agent, on the agent's own site."""
    if record.workspace.transfer == NONE:
        raise MngrError(
            f"`{record.name}` works in place, in `{record.workspace.work_dir}`: there is nothing to move",
            hint="use git there as usual",
        )
    if record.workspace.repo is None:
        raise MngrError(
            f"`{record.name}` has no git repository",
            hint=f"move files instead: `mngr pull {record.name}:PATH` brings them here, "
            f"`mngr push {record.name}:PATH FILE` sends them",
        )
    if not os.path.isdir(record.workspace.work_dir):
        raise MngrError(f"the directory `{record.workspace.work_dir}` of `{record.name}` is gone")
    return Git(record.workspace.work_dir)


def home(site: Site, record: Record) -> Git:
    """git in the repository on the caller's machine that the agent came from."""
    near = site.near
    if site.is_near:
        assert record.workspace.repo is not None
        if not os.path.isdir(record.workspace.repo):
            raise MngrError(f"the directory `{record.workspace.repo}` of `{record.name}` is gone")
        return Git(record.workspace.repo)
    from mngr.workspace.origin import machine_id

    repo = record.workspace.origin.get("repo", "")
    if repo and record.workspace.origin.get("machine") == machine_id(near.host) and os.path.isdir(repo):
        return Git(repo)
    around = git_tool.locate(near.cwd)
    if around is not None and record.workspace.base_commit and Git(around.top).commit_of(record.workspace.base_commit):
        return Git(around.home)
    raise MngrError(
        f"the repository of `{record.name}` is not on this machine",
        hint=f"run this inside a clone that has the commit {(record.workspace.base_commit or '')[:10]}",
    )


def checkout(site: Site, home: Git) -> str:
    """The work tree the user means: where they stand, when that is of this repository, else the repository's own."""
    there = git_tool.repository(home.directory)
    try:
        here = git_tool.locate(site.near.cwd)
    except MngrError:
        here = None  # what they stand in is not a work tree, so they do not mean that
    if here is not None and here.common_dir == there.common_dir:
        return here.top
    if not os.path.lexists(os.path.join(home.directory, ".git")):
        raise MngrError(
            f"`{home.directory}` is a bare repository, and the current directory is not in one of its work trees",
            hint=f"`cd` to one: `git -C {quote(home.directory)} worktree list` shows them",
        )
    return home.directory


def _forward(git: Git, commit: str, what: str, name: str) -> None:
    refuse_operation(git)
    result = git.run("merge", "-q", "--no-autostash", "--ff-only", commit)
    if not result.ok:
        raise MngrError(
            f"{what} cannot be moved forward to {commit[:10]}; nothing was changed",
            details=result.error_text,
            hint=f"merge on purpose: `mngr merge {name}`, or there: `mngr exec {name} 'git merge {commit[:10]}'`",
        )
