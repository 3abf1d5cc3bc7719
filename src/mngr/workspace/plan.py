"""Decide what an agent's workspace will be, and refuse what cannot work, before anything is made."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.errors import MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import suggest
from mngr.system import git
from mngr.system.git import Git, Repo, Status

WORKTREE = "git-worktree"
MIRROR = "git-mirror"
RSYNC = "rsync"
NONE = "none"
MODES = (WORKTREE, MIRROR, RSYNC, NONE)
DEFAULT_BRANCH = ":mngr/*"
# How a mirror gets its objects: it reads those of the source, for a copy that is soon removed, or has its own, none of
# them a second name of a file of the source, which whoever writes the copy could change.
SHARED, COPIED = "--shared", "--no-local"


class Plan(NamedTuple):
    """What will be made. `start` is the commit the workspace begins at; None without git. `submodules` is whether it
    gets any."""

    transfer: str
    source: str
    repo: Repo | None = None
    branch: str | None = None
    create_branch: bool = False
    base_branch: str | None = None
    start: str | None = None
    include_unclean: bool = False
    objects: str = ""
    submodules: bool = False


def in_sandbox(plan: Plan) -> Plan:
    """The plan for an agent that must be able to write nothing but its own files. Raises for one that could."""
    if plan.transfer == WORKTREE:
        raise UsageError(
            "a worktree shares its repository with yours, so an agent in a sandbox cannot have one",
            hint="leave out `--transfer`, or use `--transfer git-mirror`",
        )
    if plan.transfer == NONE and os.path.isfile(os.path.join(plan.source, ".git")):
        raise MngrError(
            f"`{plan.source}` is a worktree, and its repository is elsewhere: an agent in a sandbox could not commit",
            hint="leave out `--transfer none`",
        )
    if plan.transfer == NONE and _holds_home(plan.source):
        raise MngrError(f"a sandbox in `{plan.source}` would show your whole home directory", hint="`cd` to a project")
    return plan._replace(objects=COPIED)


def decide(
    source: str,
    names: Sequence[str],
    transfer: str | None,
    branch: str | None,
    unclean: str | None,
    default: str = WORKTREE,
) -> list[Plan]:
    """The plan for each of these agents of one source, with what the user asked for; `unclean` is None (refuse),
    "include" or "exclude"; `default` is the transfer of a repository. Raises a MngrError that names the obstacle;
    changes nothing."""
    if not os.path.isdir(source):
        raise UsageError(f"`{source}` is not a directory")
    if transfer is not None and transfer not in MODES:
        raise UsageError(f"`{transfer}` is not a transfer mode", hint=suggest(transfer, MODES, "mode"))
    repo = _repository(source, plain=transfer in (NONE, RSYNC) and branch is None)
    if repo is None:
        return [_of_files(source, transfer, branch)] * len(names)
    transfer = transfer or default
    if transfer == NONE:
        if branch is not None:
            raise UsageError("`--branch` cannot be used with `--transfer none`: the agent works in your own checkout")
        status = git.status(repo.top)
        plan = Plan(NONE, repo.top, repo, branch=status.branch, base_branch=status.branch, start=status.head)
        return [plan] * len(names)
    if transfer == RSYNC and os.path.isfile(os.path.join(repo.top, ".git")):
        raise MngrError(
            f"`{repo.top}` is a worktree of another repository, and a copy of it would still use that one",
            hint="use `--transfer git-mirror` for a repository of its own",
        )
    status = git.status(repo.top)
    if status.head is None:
        raise MngrError(
            f"the repository `{repo.top}` has no commit yet",
            hint="commit something first (`git commit --allow-empty -m start`), or use `--transfer none`",
        )
    spec = branch or DEFAULT_BRANCH
    plan = _with_branch(repo, status, transfer, spec, names[0], unclean)
    plan = plan._replace(submodules=_has_submodules(plan, status))
    branches = [split_branch(spec, name, status.branch)[1] or plan.branch for name in names]
    if transfer == WORKTREE and len(set(branches)) < len(names):
        raise UsageError(
            f"`--branch {spec}` is one branch for {len(names)} agents, and git allows a branch in one work tree only",
            hint=f"a `*` becomes the name: `--branch '{spec.partition(':')[0]}:{branches[0]}-*'`",
        )
    if len(names) > 1 and "HEAD" in branches:
        raise UsageError("a branch cannot be called `HEAD`", hint="for example `--branch ':feature/*'`")
    return [plan._replace(branch=name) for name in branches]


def _of_files(source: str, transfer: str | None, branch: str | None) -> Plan:
    """The plan for a directory that is in no git repository."""
    if transfer in (WORKTREE, MIRROR):
        raise MngrError(
            f"`{source}` is not in a git repository, so `--transfer {transfer}` cannot work",
            hint="use `--transfer rsync` for a copy, `--transfer none` to work in place, or `git init` and commit",
        )
    if branch is not None:
        raise UsageError(f"`--branch` needs a git repository, and `{source}` is not in one")
    if transfer is None and _holds_home(source):
        raise MngrError(
            f"`{source}` is not in a git repository, and a copy of it would hold your whole home directory",
            hint="`cd` to a project first; or `--transfer none` to work in place, `--transfer rsync` to copy all",
        )
    return Plan(transfer or RSYNC, source)


def split_branch(spec: str, name: str, current: str | None) -> tuple[str | None, str | None]:
    """`[BASE][:NEW]` as base and new branch. Without a colon BASE itself is used; an empty NEW is `mngr/NAME`."""
    base, colon, new = spec.partition(":")
    if not colon:
        return base or current, None
    return base or None, (new or DEFAULT_BRANCH[1:]).replace("*", name)


def _repository(source: str, *, plain: bool) -> Repo | None:
    """With `plain`, a directory that git cannot read counts as plain files."""
    try:
        return git.locate(source)
    except MngrError:
        if plain:
            return None
        raise


def _holds_home(directory: str) -> bool:
    """Whether it is the home directory or one above: where a shell begins, and hardly ever what an agent is for."""
    home, place = os.path.realpath(os.path.expanduser("~")), os.path.realpath(directory)
    return os.path.commonpath((home, place)) == place


def _with_branch(repo: Repo, status: Status, transfer: str, spec: str, name: str, unclean: str | None) -> Plan:
    here = Git.of_user(repo.top)
    base, new = split_branch(spec, name, status.branch)
    start = status.head
    if base is not None and base != status.branch:
        start = here.commit_of(f"refs/heads/{base}") or here.commit_of(base)  # git itself prefers a tag
        if start is None:
            names = here.must("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes").split("\n")
            raise UsageError(f"no branch or commit is called `{base}`", hint=suggest(base, names, "branch"))
    if new is not None and not here.ok("check-ref-format", "--branch", new):
        raise UsageError(f"`{new}` is not a branch name that git accepts", hint="for example `--branch ':feature/*'`")
    dirty = tuple(path for path in status.dirty if not path.startswith(".mngr/"))
    if dirty and start == status.head and unclean is None:
        raise MngrError(
            f"`{repo.top}` has uncommitted changes: {_some(dirty)}",
            hint="`--include-unclean` carries them into the agent as a commit, `--exclude-unclean` leaves them out",
        )
    if dirty and unclean == "include" and start != status.head:
        raise UsageError(f"`--include-unclean` carries changes on top of HEAD, but `--branch` begins at `{base}`")
    if new is None and transfer == WORKTREE and base == status.branch:
        raise UsageError(
            f"branch `{base}` is checked out in `{repo.top}`, and git allows a branch in one work tree only",
            hint=f"`--branch {base}:` makes a branch from it, `--transfer git-mirror` a repository of its own",
        )
    return Plan(
        transfer=transfer,
        source=repo.top,
        repo=repo,
        branch=new or base,
        create_branch=new is not None,
        base_branch=base or status.branch,
        start=start,
        include_unclean=bool(dirty) and unclean == "include",
    )


def _has_submodules(plan: Plan, status: Status) -> bool:
    """Raises for submodules that the copy cannot have."""
    there = os.path.lexists(os.path.join(plan.source, ".gitmodules"))
    if plan.start is None or (plan.start == status.head and not there):
        return False
    from mngr.workspace import submodules

    if not submodules.listed(plan.source, plan.start):
        return False
    if plan.transfer != MIRROR:
        raise MngrError(
            f"`{plan.source}` has submodules, and `--transfer {plan.transfer}` cannot keep work in them safe",
            hint="use `--transfer git-mirror` for a repository of its own, or `--transfer none` to work in place",
        )
    if plan.include_unclean:
        submodules.refuse_uncommitted(plan.source, plan.start)
    return bool(submodules.find(plan.source, plan.start))


def _some(items: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(f"`{item}`" for item in items[:3])
    return shown + (f" and {len(items) - 3} more" if len(items) > 3 else "")
