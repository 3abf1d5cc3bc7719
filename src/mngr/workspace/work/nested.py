"""Repositories inside a work tree, of which git keeps only the id of a commit: submodules and embedded ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from mngr.named_tuples import NamedTuple
from mngr.system.git import Git, quoted_path
from mngr.system.process import CommandFailed
from mngr.workspace.work import git_files, git_state, tree
from mngr.workspace.work.commits import on_remotes
from mngr.workspace.work.disk import entries
from mngr.workspace.work.git_files import git_dir_of


class InnerRepositories(NamedTuple):
    """Paths of submodules and embedded repositories: `changed` with work of their own, `ignored` with nothing but
    ignored files or commits that only a reflog names, `others` all else (if asked for). `modules` are git directories
    of submodules that are not checked out and have commits of their own, below that of the work tree."""

    changed: tuple[str, ...]
    ignored: tuple[str, ...]
    others: tuple[str, ...]
    modules: tuple[str, ...]


def survey(git: Git, git_dir: str, paths: Iterable[str], *, whole: bool, base: str = "") -> InnerRepositories:
    """Look at those that a commit or the index of this work tree names, and at what git keeps of others. The commits
    that `base` names are those that the copy was made with."""
    found: dict[str, list[str]] = {"work": [], "rest": [], "": []}
    used = set()
    for path in paths:
        full = os.path.join(git.directory, path)
        if os.path.lexists(os.path.join(full, ".git")):
            used.add(os.path.realpath(git_dir_of(full)))
            found[_content(git, path, base)].append(path)
    modules = [path for path in _modules(git_dir, "modules") if os.path.realpath(f"{git_dir}/{path}") not in used]
    own = tuple(path for path in modules if _commits(git, os.path.join(git_dir, path)) == "work")
    return InnerRepositories(tuple(found["work"]), tuple(found["rest"]), tuple(found[""]) if whole else (), own)


def _content(git: Git, path: str, base: str) -> str:
    """`work`, `rest` (ignored files, commits that only a reflog names), or nothing that is not elsewhere."""
    inner = git.inner(path)
    made_with = git.run("rev-parse", "--verify", "-q", f"{base}:{path}").text if base else ""
    try:
        found = tree.look(inner, modes=True)
    except CommandFailed:
        return "work"
    below = (name for name in found.submodules if os.path.lexists(os.path.join(inner.directory, name, ".git")))
    parts = {_content(inner, name, made_with) for name in below}
    parts.add(_commits(git, git_dir_of(inner.directory), made_with))
    parts.add("work" if found.changed else "rest" if found.ignored else "")
    return "work" if "work" in parts else "rest" if "rest" in parts else ""


def _commits(git: Git, git_dir: str, made_with: str = "") -> str:
    """The same for the commits alone: those that no remote has and the copy was not made with. git in the work tree
    around it is asked, which obeys none of the settings in there."""
    if os.path.isfile(os.path.join(git_dir, "commondir")):
        return ""  # a worktree: its commits are those of the repository that it belongs to
    if os.path.isdir(os.path.join(git_dir, "reftable")):
        return "work"  # only git reads those
    refs = git_files.refs(git_dir)
    remotes = {name: tip for name, tip in refs.items() if name.startswith("refs/remotes/")}
    safe = on_remotes(git, remotes, git_dir, git.directory) | ({made_with} if made_with else set())
    state = git_state.read(git_dir)
    tips = {tip for name, tip in refs.items() if name not in remotes} | state.tips
    env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(os.path.join(git_dir, "objects"))}
    for commits, answer in ((tips, "work"), (state.past, "rest")):
        if not commits <= safe and _any_alone(git, commits, safe, env):
            return answer
    return ""


def _any_alone(git: Git, commits: Iterable[str], safe: Iterable[str], env: Mapping[str, str]) -> bool:
    lines = "".join([*(f"{commit}\n" for commit in commits), *(f"^{commit}\n" for commit in safe)])
    found = git.run("rev-list", "--max-count=1", "--ignore-missing", "--stdin", input=lines.encode(), env=env)
    return bool(found.text) or not found.ok


def _modules(git_dir: str, below: str) -> Iterator[str]:
    """The git directories of submodules, whose names may have slashes."""
    for name in entries(os.path.join(git_dir, below)):
        path = f"{below}/{name}"
        full = os.path.join(git_dir, path)
        if os.path.isfile(os.path.join(full, "HEAD")):
            yield path
            yield from _modules(git_dir, f"{path}/modules")
        elif os.path.isdir(full) and not os.path.islink(full):
            yield from _modules(git_dir, path)
