"""Compare plain files, a copy with what it was copied from. A repository among them is one path."""

from __future__ import annotations

import os
import stat

from mngr.workspace.work.disk import entries, look
from mngr.workspace.work.files import OWN_MARK

Found = dict[str, os.stat_result]


def differing_files(directory: str, source: str, *, skip: str, copied_at: float | None = None) -> tuple[str, ...]:
    """Paths whose content is not the same in both directories. An absent source makes every file a difference. A file
    that was not touched after `copied_at` and has the size and the time of its source is not read. Raises
    UnreadableDirectory."""
    here, there = find_files(directory, skip), find_files(source, skip) if os.path.isdir(source) else {}
    at = copied_at if copied_at is not None else _copied_at(directory)
    differing = (path for path in here.keys() | there.keys() if not same(directory, source, path, here, there, at))
    return tuple(sorted({_of_repository(path) for path in differing}))


def _copied_at(directory: str) -> float:
    """When the copy was complete: the last file that is made for it is ours."""
    found = look(os.path.join(directory, OWN_MARK))
    return found.st_ctime if found else 0.0


def _of_repository(path: str) -> str:
    """The outermost repository that holds this path of its `.git`, or the path itself."""
    parts = path.split("/")
    if parts[0] == ".git":
        return ".git"
    return "/".join(parts[: parts.index(".git")]) if ".git" in parts else path


def find_files(directory: str, skip: str) -> Found:
    """All files below a directory, by their path there, and `.git` of the directory itself as one."""
    found: Found = {}
    own = {os.path.join(directory, ".git"), os.path.join(directory, OWN_MARK)}
    waiting = [directory]
    while waiting:
        root = waiting.pop()
        for name in entries(root):
            path = os.path.join(root, name)
            seen = look(path) if path != skip else None
            if seen is None or (path in own and not (name == ".git" and stat.S_ISDIR(seen.st_mode))):
                continue
            if stat.S_ISDIR(seen.st_mode) and path not in own:
                waiting.append(path)
            else:
                found[os.path.relpath(path, directory)] = seen
    return found


def same(directory: str, source: str, path: str, here: Found, there: Found, copied_at: float) -> bool:
    """Whether a path is the same in both. What went away since it was found is not."""
    if path not in here or path not in there:
        return False
    one, two = here[path], there[path]
    if one.st_mode != two.st_mode or one.st_size != two.st_size:
        return False
    if one.st_mtime_ns == two.st_mtime_ns and one.st_ctime <= copied_at:
        return True
    first, second = os.path.join(directory, path), os.path.join(source, path)
    import filecmp

    try:
        if os.path.islink(first):
            return os.readlink(first) == os.readlink(second)
        return stat.S_ISREG(one.st_mode) and filecmp.cmp(first, second, shallow=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
