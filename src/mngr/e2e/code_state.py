"""Which code a run of tests was about: the commit and the uncommitted changes, and what has changed since."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.system.git import Git

_LEFT_BY_TESTS = frozenset(("__pycache__", ".pytest_cache", ".hypothesis", ".coverage"))


class CodeState(NamedTuple):
    """`changed` has git's id for the content of each file with uncommitted changes, None for one that is deleted."""

    commit: str
    changed: Mapping[str, str | None]

    def as_json(self) -> dict[str, Any]:
        return {"commit": self.commit, "dirty": bool(self.changed), "changed": dict(self.changed)}


class Since(NamedTuple):
    """The commit now, and the files that are not what they were: those that are committed as they are now, and those
    with uncommitted changes. `known` is false if the repository does not have the commit of then."""

    commit: str
    committed: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    known: bool = True


def from_json(data: Mapping[str, Any]) -> CodeState | None:
    commit, changed = data.get("commit"), data.get("changed")
    if not isinstance(commit, str) or not commit or not isinstance(changed, dict):
        return None
    return CodeState(commit, {path: id if isinstance(id, str) else None for path, id in changed.items()})


def look(directory: str) -> CodeState | None:
    """The state of the repository around a directory; None if there is none, or no commit, or git does not work."""
    try:
        found = _look(directory)
    except (MngrError, OSError):
        return None
    return found[1] if found else None


def since(directory: str, then: CodeState) -> Since | None:
    """What has changed in the repository around a directory, by content: what was uncommitted then and is committed now
    has not. Files are named from the directory. None if there is no repository."""
    found = _look(directory)
    if found is None:
        return None
    git, now = found
    if not git.ok("cat-file", "-e", f"{then.commit}^{{commit}}"):
        return Since(now.commit, known=False)
    before, after = _files(git, then.commit), _files(git, now.commit)
    old, new = {**before, **then.changed}, {**after, **now.changed}
    here = os.path.realpath(directory)
    changes = Since(now.commit)
    for path in sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path)):
        name = os.path.relpath(os.path.join(git.directory, path), here)
        if is_left_by_tests(path):
            continue
        # A file that never was in a commit, and is gone now, is as uncommitted as one that is there.
        if path in now.changed or (path not in before and path not in after):
            changes = changes._replace(uncommitted=(*changes.uncommitted, name))
        else:
            changes = changes._replace(committed=(*changes.committed, name))
    return changes


def _look(directory: str) -> tuple[Git, CodeState] | None:
    """Git at the top of the work tree, and the state there."""
    asked = Git.of_user(directory, cautious=True).run("rev-parse", "--show-toplevel", "--verify", "HEAD^{commit}")
    if not asked.ok:
        return None
    top, commit = asked.text.rsplit("\n", 1)
    git = Git.of_user(top)
    paths = [path for path in git.changed_paths() if not is_left_by_tests(path) and "\n" not in path]
    changed: dict[str, str | None] = {path: None for path in paths if not os.path.lexists(os.path.join(top, path))}
    there = [path for path in paths if os.path.isfile(os.path.join(top, path))]
    if there:
        names = "\n".join(there).encode(errors="surrogateescape")
        changed.update(zip(there, git.must("hash-object", "--stdin-paths", input=names).split("\n"), strict=True))
    return git, CodeState(commit, changed)


def _files(git: Git, commit: str) -> dict[str, str | None]:
    """The id of every file of the commit."""
    listed = git.must("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")
    return {path: words.split(" ")[2] for words, _, path in (line.partition("\t") for line in listed if line)}


def is_left_by_tests(path: str) -> bool:
    return not _LEFT_BY_TESTS.isdisjoint(path.split("/"))
