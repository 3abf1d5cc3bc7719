"""What exists only in an agent's workspace: commits no other branch has, uncommitted files, files git ignores."""

from __future__ import annotations

import os
from typing import NamedTuple

from mngr.agent.record import Record
from mngr.system.git import Git, worktree_entry
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, WORKTREE
from mngr.workspace.work import files as uncommitted_files


class UnsavedWork(NamedTuple):
    """`refs` are refs (name to commit) that are not the same in the source repository, each entry of the stash as
    `stash/N`; `tags` how many of them are tags with a message of their own that only this clone holds."""

    commits: int = 0
    tags: int = 0
    changed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    left_out: tuple[uncommitted_files.OmittedPath, ...] = ()
    refs: tuple[tuple[str, str], ...] = ()

    @property
    def any(self) -> bool:
        """Whether removing the workspace would lose work. Ignored files alone are kept, but are no reason to refuse."""
        return bool(self.commits or self.tags or self.changed)

    def describe(self) -> str:
        parts = []
        if self.commits:
            parts.append(f"{self.commits} commit{'s' if self.commits > 1 else ''} that no other branch has")
        if self.tags:
            parts.append(f"{self.tags} tag{'s' if self.tags > 1 else ''}")
        if self.changed:
            parts.append(f"{len(self.changed)} uncommitted file{'s' if len(self.changed) > 1 else ''}")
        return " and ".join(parts)


def only_here(host: StateDir, record: Record, *, ignored_max_mb: float) -> UnsavedWork:
    """Measure it. An agent that works in place has nothing of its own; a workspace that is gone has nothing left."""
    if record.workspace.transfer == NONE or not os.path.isdir(record.workspace.work_dir):
        return UnsavedWork()
    if record.workspace.repo is None:
        return UnsavedWork(changed=differing_files(record.workspace.work_dir, record.workspace.source, skip=host.dir))
    git = copy_git.of(host, record)
    if not own_repository(record):
        # The agent removed its own repository, or the one it belongs to is gone: all that is left are files.
        return UnsavedWork(changed=differing_files(record.workspace.work_dir, "", skip=host.dir))
    kept, left = uncommitted_files.ignored(git, megabytes=ignored_max_mb)
    found = _worktree_commits(git, record) if record.workspace.transfer == WORKTREE else _own_commits(git, record)
    return found._replace(
        changed=git.changed_paths(),
        ignored=tuple(path for path in kept if path != uncommitted_files.OWN_MARK),
        left_out=tuple(left),
    )


def everything(host: StateDir, record: Record, *, ignored_max_mb: float) -> UnsavedWork:
    """What the workspace holds, also what is found elsewhere too: all files of a plain copy, all refs of a repository
    of its own."""
    found = only_here(host, record, ignored_max_mb=ignored_max_mb)
    if record.workspace.repo is None:
        return found._replace(changed=differing_files(record.workspace.work_dir, "", skip=host.dir))
    if record.workspace.transfer == WORKTREE or not own_repository(record):
        return found
    refs = _own_refs(copy_git.of(host, record))
    return found._replace(refs=tuple(sorted((name, tip) for name, (tip, _) in refs.items())))


def own_repository(record: Record) -> bool:
    """Whether git works in the agent's workspace with the repository it was made with. A worktree that the agent turned
    into a repository of its own has another one."""
    if record.workspace.repo is None or not has_repository(record.workspace.work_dir):
        return False
    return record.workspace.transfer != WORKTREE or os.path.isfile(os.path.join(record.workspace.work_dir, ".git"))


def has_repository(directory: str) -> bool:
    """Whether git works in a directory with a repository that is right there, and not with one further up."""
    return os.path.isfile(os.path.join(worktree_entry(directory) or os.path.join(directory, ".git"), "HEAD"))


def is_repository(directory: str) -> bool:
    """Whether this is where a repository is kept, as `Repo.home` says it: bare ones too."""
    bare = all(os.path.exists(os.path.join(directory, name)) for name in ("HEAD", "objects", "refs"))
    return bare or has_repository(directory)


def differing_files(directory: str, source: str, *, skip: str) -> tuple[str, ...]:
    """Paths whose content is not the same in both directories; a repository inside counts as one path. An absent
    source makes every file a difference."""
    here, there = _files(directory, skip), _files(source, skip) if os.path.isdir(source) else {}
    differing = (path for path in here.keys() | there.keys() if not _same(directory, source, path, here, there))
    return tuple(sorted({_of_repository(path) for path in differing}))


def _of_repository(path: str) -> str:
    """The outermost repository that holds this path of its `.git`, or the path itself."""
    parts = path.split("/")
    if parts[0] == ".git":
        return ".git"
    return "/".join(parts[: parts.index(".git")]) if ".git" in parts else path


def _worktree_commits(git: Git, record: Record) -> UnsavedWork:
    """A worktree's refs are the repository's own, so only its own branch and a detached HEAD can be alone."""
    head = git.commit_of("HEAD")
    if head is None:
        return UnsavedWork()
    branch = (
        f"refs/heads/{record.workspace.branch}" if record.workspace.created_branch and record.workspace.branch else None
    )
    tip = git.commit_of(branch) if branch else None
    own = [f"--exclude={record.workspace.branch}"] if branch else []
    commits = git.count(
        head, *([tip] if tip else []), "--not", *_base(record), *own, "--branches", "--remotes", "--tags"
    )
    return UnsavedWork(commits=commits, refs=((branch, tip),) if branch and tip and tip != head else ())


def _own_commits(git: Git, record: Record) -> UnsavedWork:
    """Of a repository of its own every ref counts, the stash included, unless the source or a remote holds it."""
    assert record.workspace.repo is not None
    source = Git.of_user(record.workspace.repo) if is_repository(record.workspace.repo) else None
    there = _refs(source) if source else {}
    refs = _own_refs(git)
    known = {tip for tip, _ in there.values()} | {record.workspace.base_commit}
    tips = dict(refs.values())
    if head := git.commit_of("HEAD"):
        tips[head] = "commit"
    alone = [tip for tip in tips if tip not in known and not (source and source.is_shared(tip))]
    return UnsavedWork(
        commits=git.count(*alone, "--not", *(tip for tip in tips if tip not in alone), *_base(record), "--remotes")
        if alone
        else 0,
        tags=sum(tips[tip] == "tag" for tip in alone),
        refs=tuple(sorted((name, tip) for name, (tip, _) in refs.items() if there.get(name, ("",))[0] != tip)),
    )


def _own_refs(git: Git) -> dict[str, tuple[str, str]]:
    """Branches, tags, and each entry of the stash as `stash/N`."""
    refs = {name: fact for name, fact in _refs(git).items() if not name.startswith(("refs/remotes/", "refs/mngr/"))}
    if refs.pop("refs/stash", None):
        stashes = git.must("stash", "list", "--format=%H").split("\n")
        refs.update({f"stash/{number}": (commit, "commit") for number, commit in enumerate(stashes)})
    return refs


def _refs(git: Git) -> dict[str, tuple[str, str]]:
    """Every ref with what it points to and the kind of that."""
    lines = git.must("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)").split("\n")
    return {name: (tip, kind) for name, tip, kind in (line.split(" ") for line in lines if line)}


def _base(record: Record) -> list[str]:
    return [record.workspace.base_commit] if record.workspace.base_commit else []


def _files(directory: str, skip: str) -> dict[str, os.stat_result]:
    found = {}
    git_dir = os.path.join(directory, ".git")
    if os.path.isdir(git_dir) and (seen := uncommitted_files.look(git_dir)):
        found[".git"] = seen
    for root, directories, names in os.walk(directory):
        directories[:] = [
            name
            for name in directories
            if os.path.join(root, name) not in (skip, os.path.join(directory, ".mngr", "task"), git_dir)
        ]
        links = [name for name in directories if os.path.islink(os.path.join(root, name))]
        for name in names + links:
            path = os.path.join(root, name)
            if path != git_dir and (seen := uncommitted_files.look(path)):
                found[os.path.relpath(path, directory)] = seen
    return found


def _same(
    directory: str, source: str, path: str, here: dict[str, os.stat_result], there: dict[str, os.stat_result]
) -> bool:
    if path not in here or path not in there:
        return False
    one, two = here[path], there[path]
    if one.st_mode != two.st_mode or one.st_size != two.st_size:
        return False
    if one.st_mtime_ns == two.st_mtime_ns:
        return True
    first, second = os.path.join(directory, path), os.path.join(source, path)
    import filecmp

    try:
        if os.path.islink(first):
            return os.readlink(first) == os.readlink(second)
        return filecmp.cmp(first, second, shallow=False)
    except (FileNotFoundError, NotADirectoryError):
        return False  # gone by now
