"""Decide what an agent's workspace will be, and refuse what cannot work, before anything is made."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.errors import MngrError, UsageError
from mngr.names import suggest
from mngr.process import Runner
from mngr.records import NamedTuple
from mngr.tools import git
from mngr.tools.git import Git, Repo

WORKTREE = "git-worktree"
MIRROR = "git-mirror"
RSYNC = "rsync"
NONE = "none"
MODES = (WORKTREE, MIRROR, RSYNC, NONE)
DEFAULT_BRANCH = ":mngr/*"


class Wish(NamedTuple):
    """What the user asked for. `unclean` is None (refuse), "include" or "exclude"."""

    name: str
    source: str
    transfer: str | None = None
    branch: str | None = None
    unclean: str | None = None


class Plan(NamedTuple):
    """What will be made. `start` is the commit the workspace begins at; None without git."""

    transfer: str
    source: str
    repo: Repo | None = None
    branch: str | None = None
    create_branch: bool = False
    base_branch: str | None = None
    start: str | None = None
    include_unclean: bool = False


def decide(runner: Runner, wish: Wish) -> Plan:
    """Raises a MngrError that names what is in the way; changes nothing."""
    if not os.path.isdir(wish.source):
        raise UsageError(f"`{wish.source}` is not a directory")
    if wish.transfer is not None and wish.transfer not in MODES:
        raise UsageError(f"`{wish.transfer}` is not a transfer mode", hint=suggest(wish.transfer, MODES, "mode"))
    repo = _repository(runner, wish)
    transfer = wish.transfer or (WORKTREE if repo else RSYNC)
    if repo is None:
        if transfer in (WORKTREE, MIRROR):
            raise MngrError(
                f"`{wish.source}` is not in a git repository, so `--transfer {transfer}` cannot work",
                hint="use `--transfer rsync` for a copy, `--transfer none` to work in place, or `git init` and commit",
            )
        if wish.branch is not None:
            raise UsageError(f"`--branch` needs a git repository, and `{wish.source}` is not in one")
        if wish.transfer is None and _holds_home(wish.source):
            raise MngrError(
                f"`{wish.source}` is in no git repository, and a copy of it would hold your whole home directory",
                hint="`cd` to a project first; or `--transfer none` to work in place, `--transfer rsync` to copy all",
            )
        return Plan(transfer, wish.source)
    if transfer == NONE:
        if wish.branch is not None:
            raise UsageError("`--branch` makes no sense with `--transfer none`: the agent works in your own checkout")
        return Plan(NONE, repo.top, repo, branch=repo.branch, base_branch=repo.branch, start=repo.head)
    _refuse_submodules(repo, transfer)
    if transfer == RSYNC and os.path.isfile(os.path.join(repo.top, ".git")):
        raise MngrError(
            f"`{repo.top}` is a worktree of another repository, and a copy of it would still use that one",
            hint="use `--transfer git-mirror` for a repository of its own",
        )
    if repo.head is None:
        raise MngrError(
            f"the repository `{repo.top}` has no commit yet",
            hint="commit something first (`git commit --allow-empty -m start`), or use `--transfer none`",
        )
    return _with_branch(runner, wish, repo, transfer)


def for_names(plan: Plan, wish: Wish, names: Sequence[str]) -> list[Plan]:
    """The plan that was decided for one name, for each of these. Raises when they would get in each other's way."""
    if plan.repo is None or plan.transfer == NONE:
        return [plan] * len(names)
    spec = wish.branch or DEFAULT_BRANCH
    branches = [split_branch(spec, name, plan.repo.branch)[1] or plan.branch for name in names]
    if plan.transfer == WORKTREE and len(set(branches)) < len(names):
        raise UsageError(
            f"`--branch {spec}` is one branch for {len(names)} agents, and git allows a branch in one work tree only",
            hint=f"a `*` becomes the name: `--branch '{spec.partition(':')[0]}:{branches[0]}-*'`",
        )
    if "HEAD" in branches:
        raise UsageError("a branch cannot be called `HEAD`", hint="for example `--branch ':feature/*'`")
    return [plan._replace(branch=branch) for branch in branches]


def split_branch(spec: str, name: str, current: str | None) -> tuple[str | None, str | None]:
    """`[BASE][:NEW]` as base and new branch. Without a colon BASE itself is used; an empty NEW is `mngr/NAME`."""
    base, colon, new = spec.partition(":")
    if not colon:
        return base or current, None
    return base or None, (new or DEFAULT_BRANCH[1:]).replace("*", name)


def _repository(runner: Runner, wish: Wish) -> Repo | None:
    try:
        return git.look(runner, wish.source)
    except MngrError:
        if wish.transfer in (NONE, RSYNC) and wish.branch is None:
            return None  # asked to treat it as plain files; git is not needed
        raise


def _holds_home(directory: str) -> bool:
    """Whether it is the home directory or one above: where a shell begins, and hardly ever what an agent is for."""
    home, place = os.path.realpath(os.path.expanduser("~")), os.path.realpath(directory)
    return os.path.commonpath((home, place)) == place


def _with_branch(runner: Runner, wish: Wish, repo: Repo, transfer: str) -> Plan:
    here = Git(runner, repo.top)
    base, new = split_branch(wish.branch or DEFAULT_BRANCH, wish.name, repo.branch)
    start = repo.head
    if base is not None and base != repo.branch:
        start = here.commit_of(base)
        if start is None:
            names = here.must("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes").split("\n")
            raise UsageError(f"no branch or commit is called `{base}`", hint=suggest(base, names, "branch"))
    if new is not None and not here.ok("check-ref-format", "--branch", new):
        raise UsageError(f"`{new}` is not a branch name that git accepts", hint="for example `--branch ':feature/*'`")
    dirty = tuple(path for path in repo.dirty if not path.startswith(".mngr/"))
    if dirty and start == repo.head and wish.unclean is None:
        raise MngrError(
            f"`{repo.top}` has uncommitted changes: {_some(dirty)}",
            hint="`--include-unclean` carries them into the agent as a commit, `--exclude-unclean` leaves them out",
        )
    if dirty and wish.unclean == "include" and start != repo.head:
        raise UsageError(f"`--include-unclean` carries changes on top of HEAD, but `--branch` begins at `{base}`")
    if new is None and transfer == WORKTREE and base == repo.branch:
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
        base_branch=base or repo.branch,
        start=start,
        include_unclean=bool(dirty) and wish.unclean == "include",
    )


def _refuse_submodules(repo: Repo, transfer: str) -> None:
    try:
        with open(os.path.join(repo.top, ".gitmodules"), encoding="utf-8", errors="replace") as file:
            names = [line.split("=", 1)[1].strip() for line in file if line.strip().startswith("path") and "=" in line]
    except FileNotFoundError:
        return
    if names:
        raise MngrError(
            f"`{repo.top}` has submodules ({_some(names)}), and `--transfer {transfer}` cannot keep work in them safe",
            hint="use `--transfer none` to work in place",
        )


def _some(items: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(f"`{item}`" for item in items[:3])
    return shown + (f" and {len(items) - 3} more" if len(items) > 3 else "")
