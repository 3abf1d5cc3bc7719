"""Which commits of an agent are found nowhere else.

Safe are those that a branch, a tag, saved work or a remote of the user's repository holds. Other refs there are not:
`refs/mngr/pulled/NAME` is overwritten by the next agent of that name, a stash is dropped, a remote may be a path that
is gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from mngr.agent.record import Record
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git, quoted_path
from mngr.system.process import checked
from mngr.workspace.plan import RSYNC, WORKTREE
from mngr.workspace.work import git_state
from mngr.workspace.work.git_files import common_dir_of, git_dir_of, is_repository

_SAFE = ("refs/heads/", "refs/tags/", "refs/mngr/saved/")
_REMOTES = "refs/remotes/"
_ON_ANOTHER_MACHINE = re.compile(r"(?!file:)[a-z0-9+]+://|[^/]+:")


class OwnCommits(NamedTuple):
    """`commits` and annotated `tags` that only the agent has. `refs` are its refs (name to object) that the source does
    not have like this, each entry of the stash as `stash/N`. `loose` are commits to keep that none of these holds, of
    them `left_behind` that only a reflog names."""

    commits: int = 0
    tags: int = 0
    refs: tuple[tuple[str, str], ...] = ()
    loose: tuple[str, ...] = ()
    left_behind: int = 0


def measure(
    git: Git,
    git_dir: str,
    record: Record,
    head: str | None,
    *,
    all_refs: bool = False,
    branch_stays: bool = False,
) -> OwnCommits:
    """Of a worktree, its HEAD, its own branch (unless that stays) and private refs; of a repository of its own every
    ref. `all_refs` names those too that the source has."""
    workspace = record.workspace
    assert workspace.repo is not None
    shared = workspace.transfer == WORKTREE
    source = Git.of_user(workspace.repo) if is_repository(workspace.repo) else git if shared else None
    there = _refs(source) if source else {}
    if shared:
        state = git_state.read_worktree(git_dir, workspace.work_dir)
        own = f"refs/heads/{workspace.branch}" if workspace.created_branch and not branch_stays else ""
        refs = {own: tip} if (tip := there.pop(own, None)) and tip != head else {}
    else:
        state = git_state.read(git_dir)
        refs = _own_refs(git, there)
        if workspace.transfer == RSYNC and source:
            copied = git_state.read(git_dir_of(workspace.repo))
            state = state._replace(tips=state.tips - copied.tips, past=state.past - copied.past)
    different = {name: tip for name, tip in refs.items() if there.get(name) != tip}
    tips = {*different.values(), *state.tips, *([head] if head else [])}
    safe = {tip for name, tip in there.items() if name.startswith(_SAFE)}
    safe |= {workspace.base_commit} if workspace.base_commit else set()
    named = tuple(sorted((refs if all_refs else different).items()))
    if (tips | state.past) <= safe:
        return OwnCommits(refs=named)
    safe |= on_remotes(source, there, common_dir_of(workspace.repo)) if source else set()
    env: Mapping[str, str] = {}
    if not shared:
        safe |= on_remotes(git, _refs(git), git_dir, workspace.work_dir)
        if source:
            env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(f"{common_dir_of(workspace.repo)}/objects")}
    tagged, tags = ({}, 0) if shared else _tags(git, different, set(there.values()))
    alone = _alone(git, tips | state.past, safe, env)
    work = _reachable({*tips, *tagged.values()}, alone)
    held = _reachable({*different.values(), *tagged.values(), *([head] if head else [])}, alone)
    left = alone.keys() - held
    parents = {parent for commit in left for parent in alone[commit]}
    return OwnCommits(
        commits=len(work),
        tags=tags,
        refs=named,
        loose=tuple(sorted(left - parents)),
        left_behind=len(alone.keys() - work),
    )


def _refs(git: Git) -> dict[str, str]:
    """Every ref with what it points to. One that is damaged is no ref."""
    lines = git.must("for-each-ref", "--format=%(objectname) %(refname)").split("\n")
    return {name: tip for tip, name in (line.split(" ", 1) for line in lines if line)}


def _own_refs(git: Git, there: Mapping[str, str]) -> dict[str, str]:
    """Branches, tags, and each entry of the stash as `stash/N`, unless the whole stash is that of the source."""
    refs = {name: tip for name, tip in _refs(git).items() if not name.startswith((_REMOTES, "refs/mngr/"))}
    if (newest := refs.pop("refs/stash", None)) and newest != there.get("refs/stash"):
        stashes = git.must("stash", "list", "--format=%H").split("\n")
        refs.update({f"stash/{number}": commit for number, commit in enumerate(stashes)})
    return refs


def _tags(git: Git, refs: Mapping[str, str], known: Collection[str]) -> tuple[dict[str, str], int]:
    """Of tags that are not known elsewhere, the commit that each is of, and how many are no commits themselves: those
    with a message."""
    tips = [tip for name, tip in refs.items() if name.startswith("refs/tags/") and tip not in known]
    if not tips:
        return {}, 0
    asked = "".join(f"{tip}\n{tip}^{{commit}}\n" for tip in tips).encode()
    answers = git.must("cat-file", "--batch-check=%(objecttype) %(objectname)", input=asked).split("\n")
    kinds, commits = (
        [line.split(" ")[0] for line in answers[::2]],
        [line.split(" ")[1] for line in answers[1::2]],
    )
    found = {tip: commit for tip, commit in zip(tips, commits, strict=True) if commit != "missing"}
    return found, sum(kind != "commit" for kind in kinds)


def on_remotes(git: Git, refs: Mapping[str, str], git_dir: str, work_dir: str = "") -> set[str]:
    """What the remotes of a repository have as of the last push or fetch. A remote that is a path has to be there. Of a
    copy in a `work_dir` it must not be in that, and every remote has to be set up."""
    found = {name.removeprefix(_REMOTES): tip for name, tip in refs.items() if name.startswith(_REMOTES)}
    if not found:
        return set()
    config = os.path.join(git_dir, "config")
    words = ("config", "--file", config, "--no-includes", "-z", "--get-regexp", r"^remote\..*\.url$")
    items = (item.split("\n", 1) for item in git.run(*words).text.split("\0") if "\n" in item)
    urls = {key.removeprefix("remote.").removesuffix(".url"): url for key, url in items}
    there = tuple(f"{name}/" for name, url in urls.items() if _is_there(url, git_dir, work_dir))
    known = tuple(f"{name}/" for name in urls)
    return {tip for name, tip in found.items() if name.startswith(there) or not (work_dir or name.startswith(known))}


def _is_there(url: str, git_dir: str, work_dir: str) -> bool:
    if _ON_ANOTHER_MACHINE.match(url):
        return True
    base = os.path.dirname(git_dir) if os.path.basename(git_dir) == ".git" else git_dir
    path = os.path.realpath(os.path.join(base, url.removeprefix("file://")))
    within = bool(work_dir) and f"{path}/".startswith(f"{os.path.realpath(work_dir)}/")
    return is_repository(path) and not within


def _alone(git: Git, commits: Iterable[str], safe: Iterable[str], env: Mapping[str, str]) -> dict[str, list[str]]:
    """The commits that are reachable from these and not from the safe ones, each with its parents."""
    lines = "".join([*(f"{commit}\n" for commit in commits), *(f"^{commit}\n" for commit in safe)])
    listed = git.run("rev-list", "--parents", "--ignore-missing", "--stdin", input=lines.encode(), env=env)
    return {names[0]: names[1:] for names in (line.split(" ") for line in checked(listed).text.split("\n") if line)}


def _reachable(tips: Collection[str], graph: Mapping[str, list[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [tip for tip in tips if tip in graph]
    while waiting:
        commit = waiting.pop()
        if commit not in found:
            found.add(commit)
            waiting += [parent for parent in graph[commit] if parent in graph]
    return found
