"""What is on the disk. What cannot be read is an error, never absent."""

from __future__ import annotations

import os
import stat

from mngr.errors import MngrError


class UnreadableDirectory(MngrError):
    """A directory that cannot be read, so nobody can say what is in it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"`{path}` cannot be read, so it is not known whether there is work in it",
            hint="make it readable for you, or move it out of the work dir",
        )


def look(path: str) -> os.stat_result | None:
    """What is there, a link as itself; None when it is gone."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def size_of(path: str) -> int:
    """The bytes of all files at and below a path."""
    found = look(path)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return found.st_size if found else 0
    return sum(size_of(os.path.join(path, name)) for name in entries(path))


def entries(directory: str) -> list[str]:
    """The names in a directory, none if it is gone. Raises UnreadableDirectory."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        raise UnreadableDirectory(directory) from None
