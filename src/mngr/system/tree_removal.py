"""Directories with all that is in them: removed whole, or emptied."""

from __future__ import annotations

import errno
import os
import stat
import sys

from mngr.errors import MngrError

# A process that is about to end may still be writing there for a moment, or another one removing it too.
_TRIES = 100


class Mounted(MngrError):
    """Something is mounted where a tree was to be removed. Nothing was removed."""


def refuse_mounts(path: str) -> None:
    """Raise `Mounted` if another directory or file system is mounted at this path or below it. Does nothing where the
    system has no list of mounts (not Linux)."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return
    top = os.fsencode(os.path.realpath(path))
    for line in filter(None, lines):
        point = line.split(b" ", 5)[4]
        for code, byte in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
            point = point.replace(code, byte)
        if point == top or point.startswith(top + b"/"):
            from mngr.system.process import quote

            place = os.fsdecode(point)
            raise Mounted(
                f"`{place}` is mounted, so `{path}` was not removed", hint=f"unmount it: `umount {quote(place)}`"
            )


def remove_tree(path: str) -> None:
    """Delete a file or a whole tree, read-only parts included. Absent is fine. Deletes nothing if something is mounted
    there; otherwise everything that can be deleted, and then raises the first error."""
    if not os.path.isdir(path) or os.path.islink(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return
    refuse_mounts(path)
    import shutil

    again: list[OSError] = []
    final: list[OSError] = []

    def note(_function: object, failed: str, error: BaseException) -> None:
        if not isinstance(error, OSError):
            raise error
        error.filename = failed  # shutil knows only the last part
        passing = error.errno in (errno.ENOTEMPTY, errno.ENOENT)
        passing = passing or (error.errno == errno.EACCES and _opened(path, failed))
        (again if passing else final).append(error)

    for _ in range(_TRIES):
        again.clear()
        try:
            if sys.version_info >= (3, 12):
                shutil.rmtree(path, onexc=note)
            else:
                shutil.rmtree(path, onerror=lambda function, failed, info: note(function, failed, info[1]))
        except RecursionError:  # thousands of directories in each other
            from mngr.system import process

            process.run(["rm", "-rf", "--", path], timeout=600)
        if final or not os.path.isdir(path):
            break
    if errors := final or (again if os.path.lexists(path) else []):
        raise errors[0]


def _opened(top: str, path: str) -> bool:
    """Give the owner all rights to the directory at `path` and to the one around it, as far as they are in the tree
    `top`. False when nothing was to be changed: the error had another cause."""
    changed = False
    for directory in (os.path.dirname(path), path):
        try:
            mode = os.lstat(directory).st_mode
            if f"{directory}/".startswith(f"{top}/") and stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                os.chmod(directory, 0o700)
                changed = True
        except OSError:
            continue
    return changed


def empty_directory(path: str) -> None:
    """Delete all that is in a directory, and keep the directory."""
    for name in os.listdir(path):
        remove_tree(os.path.join(path, name))
