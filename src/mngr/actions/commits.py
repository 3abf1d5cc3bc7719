"""The commits of an agent, on its own machine: where it stands, what it changed, and moving its branch forward."""

from __future__ import annotations

import os

from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.process import CommandFailed, checked, quote
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, WORKTREE
from mngr.workspace.work import files as uncommitted_files

PUSHED = "refs/mngr/pushed/commit"


class AgentTip(NamedTuple):
    """Where the work of an agent stands, as its own site sees it. `commits` are those since its base, `own` is that of
    its `Git`."""

    record: Record
    head: str
    branch: str | None
    commits: int
    uncommitted: int
    own: str

    @property
    def sound(self) -> bool:
        return len(self.head) in (40, 64) and set(self.head) <= set("0123456789abcdef")


def tip(site: Site, agent_id: str) -> AgentTip:
    """The agent's HEAD and what it has not committed."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    head = there.must("rev-parse", "HEAD")
    base = record.workspace.base_commit
    # An agent can begin its repository again, and then that commit is not in it.
    commits = there.count("--ignore-missing", head, *(["--not", base] if base else []))
    return AgentTip(record, head, there.current_branch(), commits, len(there.changed_paths()), there.own)


def mark_home(site: Site, agent_id: str, commit: str) -> None:
    """Note that the caller's machine has this commit of the agent, so that it does not count as work found only
    here. Twice is safe."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    if record.workspace.repo is None or not there.commit_of(commit):
        return
    cache, ref = Git.of_user(record.workspace.repo), f"refs/remotes/home/{record.id}"
    if record.workspace.transfer == WORKTREE:
        cache.must("update-ref", ref, commit)
        return
    mark = "refs/mngr/home"
    there.must("update-ref", mark, commit)
    try:
        cache.fetch(there.directory, f"+{mark}:{ref}", own=there.own)
    finally:
        there.run("update-ref", "-d", mark)


def commit_uncommitted(site: Site, agent_id: str) -> tuple[Record, str | None, str]:
    """What the agent has not committed, as a commit under `refs/mngr/pulled/NAME-uncommitted` of its repository, and
    `own` of its `Git`."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    changed = there.changed_paths()
    if not changed:
        return record, None, there.own
    inside = [path for path in there.submodules() if there.inner(path).changed_paths()]
    missing = f"\nwithout what is changed inside of {', '.join(f'`{path}`' for path in inside)}\n" if inside else ""
    commit = there.commit_tree(
        uncommitted_files.dirty_tree(there, changed),
        [there.must("rev-parse", "HEAD")],
        f"Not committed by {record.name}\n{missing}",
    )
    there.must("update-ref", uncommitted_ref(record.name), commit)
    return record, commit, there.own


def drop_uncommitted(site: Site, agent_id: str) -> None:
    """Remove the ref of `commit_uncommitted`."""
    record = site.store.read(agent_id)
    work_tree(site, record).run("update-ref", "-d", uncommitted_ref(record.name))


def forward(site: Site, agent_id: str, commit: str) -> int:
    """Move the agent's branch forward to a commit that its repository has. Returns how many are new to it."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    try:
        count = there.count(commit, "--not", "HEAD")
        if count:
            move_forward(there, commit, f"the branch of `{record.name}`", record.name)
    finally:
        there.run("update-ref", "-d", PUSHED)
    if record.workspace.origin:
        mark_home(site, agent_id, commit)
    return count


def diff(site: Site, agent_id: str, *options: str) -> bytes:
    """Everything the agent changed since its base, uncommitted and untracked files included, as git prints it."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    base = _base(there, record)
    result = there.run("diff", *options, base, uncommitted_files.dirty_tree(there, there.changed_paths()))
    if not result.ok:
        raise CommandFailed(result, "git could not compare")
    return result.stdout


def summary(site: Site, agent_id: str) -> bytes:
    """The agent's commits and a diffstat, as git prints them."""
    record = site.store.read(agent_id)
    there = work_tree(site, record)
    base = _base(there, record)
    log = checked(there.run("log", "--oneline", "HEAD", *(["--not", base] if there.commit_of(base) else [])))
    return log.stdout + b"\n" + checked(there.run("diff", "--stat", base, "HEAD")).stdout


def _base(there: Git, record: Record) -> str:
    """What an agent's work is compared with; no file at all if the agent has begun its repository again."""
    base = record.workspace.base_commit or "HEAD"
    return base if there.commit_of(base) else there.must("mktree", input=b"")


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


def work_tree(site: Site, record: Record) -> Git:
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
    return copy_git.of(site.host, record)


def move_forward(git: Git, commit: str, what: str, name: str) -> None:
    refuse_operation(git)
    result = git.run("merge", "-q", "--no-autostash", "--ff-only", commit)
    if not result.ok:
        raise MngrError(
            f"{what} cannot be moved forward to {commit[:10]}; nothing was changed",
            details=result.error_text,
            hint=f"merge on purpose: `mngr merge {name}`, or there: `mngr exec {name} 'git merge {commit[:10]}'`",
        )
