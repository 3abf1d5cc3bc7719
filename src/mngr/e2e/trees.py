"""What is below a directory, and what changed there: files, directories and links, with content. Follows no link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

# Of the directory of a session: what the session itself writes, and sockets.
_OWN = frozenset({"artifacts", "t"})


class Node(NamedTuple):
    """A path as a command left it: `data` is the content of a file or the target of a link; None for a directory."""

    mode: int
    data: bytes | None


class Change(NamedTuple):
    """What a command did to one path below one of the roots; without a node it removed the path."""

    root: int
    path: str
    node: Node | None


# What tells whether a path was changed, without reading it: mode, size, time and inode.
Seen = tuple[int, int, int, int]
Look = Sequence[Mapping[str, Seen]]


def look(roots: Sequence[str]) -> Look:
    """All paths below each root, relative to it."""
    return [dict(_walk(root, "")) for root in roots]


def changes(roots: Sequence[str], before: Look, after: Look) -> list[Change]:
    """In the order in which they can be made: removed ones first, the deepest of them first."""
    found: list[Change] = []
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        found += [Change(number, path, None) for path in sorted(old.keys() - new.keys(), reverse=True)]
        for path in sorted(new):
            if old.get(path) == new[path] or (path in old and stat.S_ISDIR(old[path][0] & new[path][0])):
                continue
            node = read(os.path.join(roots[number], path))
            if node is not None:
                found.append(Change(number, path, node))
    return found


def read(path: str) -> Node | None:
    """None for what is neither file, directory nor link, and for what cannot be read."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return Node(mode, os.fsencode(os.readlink(path)))
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                return Node(mode, file.read())
    except OSError:
        return None
    return Node(mode, None) if stat.S_ISDIR(mode) else None


def apply(path: str, node: Node | None) -> None:
    """Make a path as a node says. What is in the way is removed."""
    if node is None or stat.S_ISLNK(node.mode):
        _remove(path)
    if node is None:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISLNK(node.mode):
        os.symlink(os.fsdecode(node.data or b""), path)
    elif node.data is None:
        os.makedirs(path, exist_ok=True)
    else:
        if os.path.islink(path) or os.path.isdir(path) or not os.access(path, os.W_OK):
            _remove(path)
        with open(path, "wb") as file:
            file.write(node.data)
            os.fchmod(file.fileno(), stat.S_IMODE(node.mode))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        try:
            os.rmdir(path)
        except OSError:  # the test itself put something there
            return
    elif os.path.lexists(path):
        os.unlink(path)


def _walk(root: str, below: str) -> Iterator[tuple[str, Seen]]:
    try:
        entries = list(os.scandir(os.path.join(root, below)))
    except OSError:
        return
    for entry in entries:
        if not below and entry.name in _OWN:
            continue
        path = os.path.join(below, entry.name)
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield path, (facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if stat.S_ISDIR(facts.st_mode):
            yield from _walk(root, path)
