"""Move commits between an agent and the repository it came from. Never a silent merge, never a lost commit."""

from __future__ import annotations

import os

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.errors import MngrError, UsageError
from mngr.interrupts import held
from mngr.process import CommandFailed, checked, quote
from mngr.records import NamedTuple
from mngr.tools import git as git_tool
from mngr.tools.git import Git
from mngr.workspaces import make, tree
from mngr.workspaces.plan import NONE, WORKTREE


class Pulled(NamedTuple):
    """`commits` are those that the agent made since its base; `new` how many of them were not here before."""

    name: str
    branch: str | None
    commit: str
    commits: int
    new: int
    uncommitted: int
    already_here: bool


class Merged(NamedTuple):
    name: str
    into: str
    commits: int
    uncommitted: int
    commit: str


def pull(fleet: Fleet, agent: Agent, *, into: str = "branch", dry_run: bool = False) -> Pulled:
    """Bring the agent's commits here: as its branch (made, or moved forward; never merged), into the current branch
    (forward only), or just as objects under `refs/mngr/pulled/NAME`."""
    record, there, here = agent.record, *_ends(fleet, agent)
    head = there.must("rev-parse", "HEAD")
    branch = pulled_branch(agent)
    shared = record.transfer == WORKTREE
    before = here.commit_of(f"refs/heads/{branch}")
    commits = there.count(head, *(["--not", record.base_commit] if record.base_commit else []))
    new = 0 if shared or (here.commit_of(head) and here.is_shared(head)) else commits
    uncommitted = len(there.changed_paths())
    done = Pulled(agent.name, branch if into != "none" else None, head, commits, new, uncommitted, already_here=shared)
    if dry_run:
        return done
    fetch(fleet, agent)
    if into == "none":
        return done
    if into == "current":
        current = Git(fleet.host, _checkout(fleet, agent))
        _forward(current, head, f"`{current.current_branch() or 'HEAD'}`", agent.name)
        return done._replace(branch=current.current_branch())
    if before == head or (shared and there.current_branch() == branch):
        return done
    if before is not None and not here.ok("merge-base", "--is-ancestor", before, head):
        raise MngrError(
            f"branch `{branch}` here and the agent's work have diverged; nothing was moved",
            hint=f"merge on purpose: `git merge refs/mngr/pulled/{agent.name}` holds the agent's commits",
        )
    with make.repo_lock(fleet.host, here.must("rev-parse", "--path-format=absolute", "--git-common-dir")):
        here.must("fetch", "-q", ".", f"{head}:refs/heads/{branch}", doing=f"branch `{branch}` could not be moved")
    return done


def fetch(fleet: Fleet, agent: Agent) -> str:
    """Make the agent's HEAD known here as `refs/mngr/pulled/NAME` and return the commit."""
    there, here = _ends(fleet, agent)
    ref = f"refs/mngr/pulled/{agent.name}"
    head = there.must("rev-parse", "HEAD")
    if agent.record.transfer == WORKTREE:
        here.must("update-ref", ref, head)
    else:
        here.must(
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            there.directory,
            f"+HEAD:{ref}",
            doing=f"the commits of `{agent.name}` could not be fetched",
        )
    return head


def fetch_uncommitted(fleet: Fleet, agent: Agent) -> str | None:
    """What the agent has not committed, as a commit on top of its HEAD, known here as
    `refs/mngr/pulled/NAME-uncommitted`; None when there is nothing. The agent's files and index stay as they are."""
    there, here = _ends(fleet, agent)
    ref = uncommitted_ref(agent.name)
    changed = there.changed_paths()
    if not changed:
        here.run("update-ref", "-d", ref)  # what was fetched before is committed or gone by now
        return None
    commit = there.commit_tree(
        tree.dirty_tree(there, changed), [there.must("rev-parse", "HEAD")], f"Not committed by {agent.name}\n"
    )
    there.must("update-ref", ref, commit)
    if agent.record.transfer != WORKTREE:
        here.must("fetch", "-q", "--no-tags", "--no-write-fetch-head", there.directory, f"+{ref}:{ref}")
        there.run("update-ref", "-d", ref)
    return commit


def push(fleet: Fleet, agent: Agent, revision: str, *, dry_run: bool = False) -> tuple[str, int]:
    """Move the agent's branch forward to a commit of this repository. Returns the commit and how many came."""
    there, here = _ends(fleet, agent)
    source = Git(fleet.host, _checkout(fleet, agent))
    commit = source.commit_of(revision)
    if commit is None:
        raise UsageError(f"no branch or commit is called `{revision}`")
    if dry_run:
        # Both ends' objects are needed to count, and none may be written.
        objects = here.must("rev-parse", "--path-format=absolute", "--git-path", "objects")
        both = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": git_tool.quoted_path(objects)}
        return commit, int(there.must("rev-list", "--count", commit, "--not", "HEAD", env=both))
    if agent.record.transfer != WORKTREE and not there.commit_of(commit):
        ref = f"refs/mngr/pushed/{agent.name}"
        here.must("update-ref", ref, commit)
        try:
            there.must("fetch", "-q", "--no-tags", "--no-write-fetch-head", here.directory, ref)
        finally:
            here.run("update-ref", "-d", ref)
    count = there.count(commit, "--not", "HEAD")
    if count:
        _forward(there, commit, f"the branch of `{agent.name}`", agent.name)
    return commit, count


def diff(fleet: Fleet, agent: Agent, *options: str) -> bytes:
    """Everything the agent changed since its base, uncommitted and untracked files included, as git prints it."""
    there, _ = _ends(fleet, agent)
    base = agent.record.base_commit or "HEAD"
    result = there.run("diff", *options, base, tree.dirty_tree(there, there.changed_paths()))
    if not result.ok:
        raise CommandFailed(result, "git could not compare")
    return result.stdout


def summary(fleet: Fleet, agent: Agent) -> bytes:
    """The agent's commits and a diffstat, as git prints them."""
    there, _ = _ends(fleet, agent)
    base = agent.record.base_commit or "HEAD"
    log = checked(there.run("log", "--oneline", f"{base}..HEAD"))
    return log.stdout + b"\n" + checked(there.run("diff", "--stat", base, "HEAD")).stdout


def merge(
    fleet: Fleet, agent: Agent, *, squash: bool = False, message: str | None = None, dry_run: bool = False
) -> Merged:
    """Bring the agent's commits into the branch checked out here. A conflict is found before anything is touched. A
    merge, rebase, ... that the user has in progress is an error, and stays as it is."""
    there, _ = _ends(fleet, agent)
    current = Git(fleet.host, _checkout(fleet, agent))
    _refuse_operation(current)
    branch = current.current_branch() or "HEAD"
    head = fetch(fleet, agent)
    uncommitted = len(there.changed_paths())
    count = current.count(head, "--not", "HEAD")
    if count == 0:
        return Merged(agent.name, branch, 0, uncommitted, current.must("rev-parse", "HEAD"))
    merged_tree = _merged_tree(current, head, agent.name)
    if dry_run:
        return Merged(agent.name, branch, count, uncommitted, head)
    if squash:
        head = _squashed(current, head, merged_tree, message or f"Work of agent {agent.name}")
    words = ["--ff-only"] if squash else ["--no-edit", "-m", message or f"Merge agent {agent.name}"]
    try:
        result = current.run("merge", "-q", *words, head)
    except BaseException:
        with held():
            _abort_merge(current, head)
        raise
    if not result.ok:
        undone = "nothing was changed" if _abort_merge(current, head) else "and could not undo what it began"
        raise CommandFailed(result, f"git could not merge `{agent.name}` into `{branch}`; {undone}")
    return Merged(agent.name, branch, count, uncommitted, current.must("rev-parse", "HEAD"))


def _abort_merge(git: Git, head: str) -> bool:
    """Undo the merge of this commit, if git has begun it; a merge of anything else is not ours. False when it stays."""
    return git.commit_of("MERGE_HEAD") != head or git.ok("merge", "--abort")


def _refuse_operation(git: Git) -> None:
    """Raise when somebody has a merge, a rebase, ... in progress there: it is theirs to finish or to abort."""
    operation = git.operation()
    if operation is not None:
        raise MngrError(
            f"a {operation} is in progress in `{git.directory}`; nothing was changed",
            hint=f"finish it, or `git -C {quote(git.directory)} {operation} --abort`, then try again",
        )


def uncommitted_ref(name: str) -> str:
    """Where `fetch_uncommitted` puts what it fetched."""
    return f"refs/mngr/pulled/{name}-uncommitted"


def pulled_branch(agent: Agent) -> str:
    """The branch here that holds the agent's commits."""
    record = agent.record
    return record.branch if record.created_branch and record.branch else f"mngr/{record.name}"


def _ends(fleet: Fleet, agent: Agent) -> tuple[Git, Git]:
    """git at the agent, and git in the repository it came from."""
    record = agent.record
    if record.transfer == NONE:
        raise MngrError(
            f"`{agent.name}` works in place, in `{record.work_dir}`: there is nothing to move",
            hint="use git there as usual",
        )
    if record.repo is None:
        raise MngrError(
            f"`{agent.name}` has no git repository",
            hint=f"move files instead: `mngr pull {agent.name}:PATH` brings them here, "
            f"`mngr push {agent.name}:PATH FILE` sends them",
        )
    for directory in (record.work_dir, record.repo):
        if not os.path.isdir(directory):
            raise MngrError(f"the directory `{directory}` of `{agent.name}` is gone")
    return Git(fleet.host, record.work_dir), Git(fleet.host, record.repo)


def _checkout(fleet: Fleet, agent: Agent) -> str:
    """The work tree the user means: where they stand, when that is the agent's repository, else its source."""
    assert agent.record.repo is not None
    here = git_tool.look(fleet.host, fleet.cwd)
    home = git_tool.look(fleet.host, agent.record.repo)
    return here.top if here and home and here.common_dir == home.common_dir else agent.record.repo


def _forward(git: Git, commit: str, what: str, name: str) -> None:
    _refuse_operation(git)
    result = git.run("merge", "-q", "--ff-only", commit)
    if not result.ok:
        raise MngrError(
            f"{what} cannot be moved forward to {commit[:10]}; nothing was changed",
            details=result.error_text,
            hint=f"merge on purpose: `mngr merge {name}`, or there: `mngr exec {name} 'git merge {commit[:10]}'`",
        )


def _merged_tree(git: Git, commit: str, name: str) -> str | None:
    """What a merge would give, found without touching a file; None with a git that is too old to tell."""
    result = git.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "HEAD", commit)
    first, *paths = result.text.split("\n")
    if result.exit_code == 1:
        paths = [path for path in paths if path]
        shown = ", ".join(f"`{path}`" for path in paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        raise MngrError(
            f"the work of `{name}` conflicts with yours in {shown}; nothing was changed",
            hint=f"merge by hand: `git merge refs/mngr/pulled/{name}`",
        )
    return first if result.ok else None


def _squashed(git: Git, commit: str, merged_tree: str | None, title: str) -> str:
    """One commit on top of HEAD with the merge of that commit. Made beside the index, which may hold other things."""
    if merged_tree is None:
        raise MngrError("`--squash` needs git 2.38 or newer", hint="`git --version` shows yours; merge without it")
    log = git.must("log", "--reverse", "--format=* %s", f"HEAD..{commit}")
    text = f"{title}\n\n{log}\n".encode("utf-8", "surrogateescape")
    return git.must("commit-tree", merged_tree, "-p", "HEAD", "-F", "-", input=text, doing="git could not commit")
