"""What git keeps of one work tree beside branches, tags and stash: commits of an operation that is not finished, of
private refs, and those that only a reflog still names."""

from __future__ import annotations

import os
import re

from mngr.named_tuples import NamedTuple
from mngr.workspace.work.git_files import below, content

# An operation that is not finished. Whoever continues it needs all of these.
_OPERATION = re.compile(
    r"(?:rebase-merge|rebase-apply|sequencer)/.+|BISECT_[A-Z]+|(?:MERGE|CHERRY_PICK|REVERT|REBASE|SQUASH)_[A-Z]+|AUTO_MERGE"
)
# Of these, what would move the branch that it began on, also when it continues on another one.
OF_A_BRANCH = ("rebase-merge/", "rebase-apply/", "BISECT_", "refs/bisect/")
_PRIVATE_REF = re.compile(r"refs/(?:worktree|bisect|rewritten)/.+")
# What only says where something was.
_PAST = re.compile(r"ORIG_HEAD|logs/HEAD|logs/refs/(?:heads|stash|worktree|bisect|rewritten)(?:/.+)?")
_COMMIT = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
_PARTS = (
    *("rebase-merge", "rebase-apply", "sequencer", "refs/worktree", "refs/bisect", "refs/rewritten"),
    *("logs/HEAD", "logs/refs/heads", "logs/refs/stash", "logs/refs/worktree", "logs/refs/bisect"),
)


class GitState(NamedTuple):
    """`tips` are commits that an operation or a private ref names, `past` those that only a reflog names, and `files`
    where all of that is written, below the git directory. `unfinished`: there is an operation to continue."""

    tips: frozenset[str] = frozenset()
    past: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    unfinished: bool = False


def read(git_dir: str) -> GitState:
    """The state of the work tree of this git directory, and of other work trees that are registered in it."""
    found = _read(git_dir, "")
    for name in _worktrees(git_dir):
        found = _add(found, _read(git_dir, f"worktrees/{name}/"))
    return found


def read_worktree(git_dir: str, directory: str) -> GitState:
    """The state of a worktree, and of others of the same repository that were made inside its directory."""
    found, common = _read(git_dir, ""), os.path.join(git_dir, "..", "..")
    inner = f"{os.path.realpath(directory)}/"
    for name in _worktrees(common):
        place = os.path.dirname(os.fsdecode(content(common, f"worktrees/{name}/gitdir")))
        if place.startswith(inner):
            found = _add(found, _read(common, f"worktrees/{name}/"))
    return found


def _worktrees(git_dir: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(git_dir, "worktrees")))
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_operation(path: str) -> bool:
    """Whether a file below a git directory belongs to an operation of its work tree that is not finished."""
    return bool(_OPERATION.fullmatch(path))


def restorable(path: str) -> bool:
    """Whether a file can be given back to another git directory: nothing that says what git is to run."""
    return bool(is_operation(path) or _PRIVATE_REF.fullmatch(path) or path in ("ORIG_HEAD", "logs/HEAD"))


def _read(git_dir: str, above: str) -> GitState:
    tips: set[str] = set()
    past: set[str] = set()
    files: list[str] = []
    unfinished = False
    top = os.path.join(git_dir, above)
    for path in (found for part in (*_names(top), *_PARTS) for found in below(top, part)):
        operation = is_operation(path)
        later = bool(_PAST.fullmatch(path))
        head = bool(above) and path == "HEAD"  # of the agent's own work tree, git says what it is
        if operation or later or head or _PRIVATE_REF.fullmatch(path):
            names = {name.decode() for name in _COMMIT.findall(content(top, path)) if name.strip(b"0")}
            (past if later else tips).update(names)
            files.append(above + path)
            unfinished = unfinished or operation
    return GitState(frozenset(tips), frozenset(past), tuple(files), unfinished and not above)


def _names(git_dir: str) -> list[str]:
    """The files in a git directory itself."""
    return sorted(entry.name for entry in os.scandir(git_dir) if entry.is_file(follow_symlinks=False))


def _add(one: GitState, other: GitState) -> GitState:
    return GitState(one.tips | other.tips, one.past | other.past, one.files + other.files, one.unfinished)
