"""Reads the files of a repository itself, for what git would only tell after it has read the settings in there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from mngr.system import inside
from mngr.system.git import worktree_entry

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST = 1 << 26  # bytes of one file: a reflog with 300,000 lines


def is_repository(directory: str) -> bool:
    """Whether this is where a repository is kept, as `Repo.home` says it: bare ones too."""
    bare = all(os.path.exists(os.path.join(directory, name)) for name in ("HEAD", "objects", "refs"))
    return bare or has_repository(directory)


def has_repository(directory: str) -> bool:
    """Whether git works in a directory with a repository that is right there, and not with one further up."""
    return os.path.isfile(os.path.join(git_dir_of(directory), "HEAD"))


def git_dir_of(directory: str) -> str:
    """Where git keeps what belongs to this work tree alone."""
    return worktree_entry(directory) or os.path.join(directory, ".git")


def common_dir_of(directory: str) -> str:
    """Where the objects and the branches of this work tree, or bare repository, are."""
    git_dir = git_dir_of(directory)
    if not os.path.isdir(git_dir):
        return directory
    shared = os.fsdecode(content(git_dir, "commondir")).removesuffix("\n")
    return os.path.normpath(os.path.join(git_dir, shared)) if shared else git_dir


def content(git_dir: str, path: str) -> bytes:
    """The end of a file; nothing for what is missing, or not a file."""
    try:
        return inside.read(git_dir, path, _MOST, tail=True) or b""
    except inside.UnsafePath:
        return b""


def below(git_dir: str, path: str) -> Iterator[str]:
    """The files at and below a path, by their paths in the git directory."""
    waiting = [path]
    while waiting:
        path = waiting.pop()
        full = os.path.join(git_dir, path)
        if os.path.isdir(full) and not os.path.islink(full):
            waiting += [f"{path}/{name}" for name in os.listdir(full)]
        elif os.path.exists(full) and not os.path.islink(full):
            yield path


def refs(git_dir: str) -> dict[str, str]:
    """Every ref of a repository with what it points to, and HEAD where it is a commit."""
    found = {}
    for line in content(git_dir, "packed-refs").decode(errors="surrogateescape").split("\n"):
        tip, _, name = line.partition(" ")
        if name.startswith("refs/"):
            found[name] = tip
    for path in ("HEAD", *below(git_dir, "refs")):
        tip = content(git_dir, path).decode(errors="replace").strip()
        if tip and not tip.startswith("ref:"):
            found[path] = tip
    return found


def is_commit(text: str) -> bool:
    """Whether it is the whole id of an object."""
    return bool(_ID.fullmatch(text))


def head_commit(directory: str) -> str:
    """The commit that is checked out in a repository; empty if there is none."""
    git_dir = git_dir_of(directory)
    head = content(git_dir, "HEAD").decode(errors="surrogateescape").strip()
    return refs(common_dir_of(directory)).get(head[4:].strip(), "") if head.startswith("ref:") else head
