"""Move commits between an agent and the repository it came from. Never a silent merge, never a lost commit."""

from __future__ import annotations

import os

from mngr.actions.commits import (
    PUSHED,
    AgentTip,
    commit_uncommitted,
    drop_uncommitted,
    forward,
    mark_home,
    move_forward,
    pulled_branch,
    tip,
    uncommitted_ref,
    work_tree,
)
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.system import git as git_tool
from mngr.system.git import Git
from mngr.system.process import quote
from mngr.workspace.plan import WORKTREE
from mngr.workspace.workspace import repo_lock


class Pulled(NamedTuple):
    """`commits` are those that the agent made since its base; `new` how many of them were not here before."""

    name: str
    branch: str | None
    commit: str
    commits: int
    new: int
    uncommitted: int
    already_here: bool


def pull(site: Site, agent_id: str, *, into: str = "branch", dry_run: bool = False) -> Pulled:
    """Bring the agent's commits here: as its branch (made, or moved forward; never merged), into the current branch
    (forward only), or just as objects under `refs/mngr/pulled/NAME`."""
    found = site.run(tip, agent_id)
    record, head = found.record, found.head
    host, here = site.local.host, home(site, record)
    branch = pulled_branch(record)
    shared = site.is_local and record.workspace.transfer == WORKTREE
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
        current = Git.of_user(checkout(site, here))
        move_forward(current, head, f"`{current.current_branch() or 'HEAD'}`", record.name)
        return done._replace(branch=current.current_branch())
    if before == head or (shared and found.branch == branch):
        return done
    if before is not None and not here.ok("merge-base", "--is-ancestor", before, head):
        raise MngrError(
            f"branch `{branch}` here and the agent's work have diverged; nothing was moved",
            hint=f"merge on purpose: `git merge refs/mngr/pulled/{record.name}` holds the agent's commits",
        )
    if not site.is_local:
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
    kept = _keep_replaced(here, ref)
    if site.is_local and record.workspace.transfer == WORKTREE:
        here.must("update-ref", ref, found.head)
    else:
        _fetch_ref(site, record, here, f"+HEAD:{ref}", found.own)
    if kept and here.ok("merge-base", "--is-ancestor", kept, ref):
        here.run("update-ref", "-d", kept)  # the same agent went on
    if not site.is_local:
        arrived = here.commit_of(ref)
        assert arrived is not None
        site.run(mark_home, record.id, arrived)


def _keep_replaced(here: Git, ref: str) -> str:
    """Before a ref is overwritten, give commits that no branch, tag or saved work has a second one: they may be of an
    earlier agent of that name. `mngr gc` reports it. Returns that ref, or nothing."""
    commit = here.commit_of(ref)
    words = ("--not", "--branches", "--tags", "--glob=refs/mngr/saved/*")
    if commit is None or not here.rev_list("--max-count=1", commit, *words).text:
        return ""
    lines = here.must("for-each-ref", "--format=%(refname) %(objectname)", f"{ref}-replaced-*").split("\n")
    taken = dict(line.split(" ") for line in lines if line)
    if commit in taken.values():
        return ""
    kept = next(name for number in range(1, len(taken) + 2) if (name := f"{ref}-replaced-{number}") not in taken)
    here.must("update-ref", kept, commit)
    return kept


def _fetch_ref(site: Site, record: Record, here: Git, refspec: str, own: str) -> None:
    there, failed = site.git_path(record.workspace.work_dir), f"the commits of `{record.name}` could not be fetched"
    with site.carrying():
        here.fetch(there.path, refspec, own=own, env=there.env, doing=failed)


def fetch_uncommitted(site: Site, agent_id: str) -> str | None:
    """What the agent has not committed, as a commit on top of its HEAD, known here as
    `refs/mngr/pulled/NAME-uncommitted`; None when there is nothing. The agent's files and index stay as they are."""
    record, commit, own = site.run(commit_uncommitted, agent_id)
    here, ref = home(site, record), uncommitted_ref(record.name)
    if commit is None:
        here.run("update-ref", "-d", ref)  # what was fetched before is committed or gone by now
    elif not (site.is_local and record.workspace.transfer == WORKTREE):
        _fetch_ref(site, record, here, f"+{ref}:{ref}", own)
        site.run(drop_uncommitted, agent_id)
    return commit


def push(site: Site, agent_id: str, revision: str, *, dry_run: bool = False) -> tuple[str, int]:
    """Move the agent's branch forward to a commit of this repository. Returns the commit and how many came."""
    found = site.run(tip, agent_id)
    record, here = found.record, home(site, found.record)
    source = Git.of_user(checkout(site, here))
    commit = source.commit_of(revision)
    if commit is None:
        raise UsageError(f"no branch or commit is called `{revision}`")
    if dry_run:
        return commit, _count_new(site, record, here, commit, found.head)
    if not site.is_local:
        there = site.git_path(record.workspace.work_dir)
        served = git_tool.there(found.own, "git-receive-pack")
        words = ("push", "-q", "--force", "--no-verify", f"--receive-pack={served}", there.path, f"{commit}:{PUSHED}")
        with site.carrying():
            source.must(*words, env=there.env, doing=f"the commits could not be sent to `{record.name}`")
    elif record.workspace.transfer != WORKTREE and not (agent := work_tree(site, record)).commit_of(commit):
        ref = f"{PUSHED}-{os.getpid()}"  # `gc` removes it if we cannot
        here.must("update-ref", ref, commit)
        try:
            agent.fetch(here.directory, ref)
        finally:
            here.run("update-ref", "-d", ref)
    return commit, site.run(forward, agent_id, commit)


def _count_new(site: Site, record: Record, here: Git, commit: str, head: str) -> int:
    """How many commits a push would send. Writes nothing at the agent."""
    if here.commit_of(head):
        return here.count(commit, "--not", head)
    if not site.is_local:
        return here.count(commit, "--not", *([record.workspace.base_commit] if record.workspace.base_commit else []))
    # Both ends' objects are needed to count, and none may be written.
    objects = here.must("rev-parse", "--path-format=absolute", "--git-path", "objects")
    both = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": git_tool.quoted_path(objects)}
    return int(work_tree(site, record).must("rev-list", "--count", commit, "--not", "HEAD", env=both))


def home(site: Site, record: Record) -> Git:
    """git in the repository on the caller's machine that the agent came from."""
    local = site.local
    if site.is_local:
        assert record.workspace.repo is not None
        if not os.path.isdir(record.workspace.repo):
            raise MngrError(f"the directory `{record.workspace.repo}` of `{record.name}` is gone")
        return Git.of_user(record.workspace.repo)
    from mngr.workspace.origin import machine_id

    repo = record.workspace.origin.get("repo", "")
    if repo and record.workspace.origin.get("machine") == machine_id(local.host) and os.path.isdir(repo):
        return Git.of_user(repo)
    around = git_tool.locate(local.cwd)
    base = record.workspace.base_commit
    if around is not None and base and Git.of_user(around.top).commit_of(base):
        return Git.of_user(around.home)
    raise MngrError(
        f"the repository of `{record.name}` is not on this machine",
        hint=f"run this inside a clone that has the commit {(record.workspace.base_commit or '')[:10]}",
    )


def checkout(site: Site, home: Git) -> str:
    """The work tree the user means: where they stand, when that is of this repository, else the repository's own."""
    there = git_tool.repository(home.directory)
    try:
        here = git_tool.locate(site.local.cwd)
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
