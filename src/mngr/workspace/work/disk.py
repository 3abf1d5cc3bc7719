"""What is on the disk. What cannot be read is an error, never absent."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from mngr.errors import MngrError


class UnreadableDirectory(MngrError):
    """A directory that cannot be read, so nobody can say what is in it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"`{path[:300]}` cannot be read, so it is not known whether there is work in it",
            hint="make it readable for you, or move it out of the work dir",
        )


def look(path: str) -> os.stat_result | None:
    """What is there, a link as itself; None when it is gone."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def files_below(root: str, path: str) -> Iterator[tuple[str, int]]:
    """The files at and below a path, with their size. A repository is one path. Raises UnreadableDirectory."""
    waiting = [path]
    while waiting:
        path = waiting.pop()
        full = os.path.join(root, path)
        found = look(full)
        if found is None:
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield path, found.st_size
        elif os.path.lexists(os.path.join(full, ".git")):
            yield path, size_of(full)
        else:
            waiting += [f"{path}/{name}" for name in reversed(entries(full))]


def size_of(path: str) -> int:
    """The bytes of all files at and below a path."""
    size, waiting = 0, [path]
    while waiting:
        path = waiting.pop()
        found = look(path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            waiting += [os.path.join(path, name) for name in entries(path)]
        else:
            size += found.st_size if found else 0
    return size


def entries(directory: str) -> list[str]:
    """The names in a directory, none if it is gone. Raises UnreadableDirectory."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        raise UnreadableDirectory(directory) from None
