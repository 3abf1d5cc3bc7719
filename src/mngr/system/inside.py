"""The one door to a path below a directory that an agent or a repository writes: a copy of the code, `.mngr`, a run.

Whatever is there can be a link, a pipe or a device, and can become one between two looks. So a path is opened part by
part from its root, and no part is followed; `resolve` gives the path without links of one that may have some. Refuses
what leads out of the root, and reads nothing but regular files. The root itself is trusted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from mngr.errors import MngrError
from mngr.system.interrupts import held

_FOLLOWED = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY = _FOLLOWED | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnsafePath(MngrError):
    """The path leads out of its root, or what is there is a link or of another kind than it has to be."""


def resolve(root: str, path: str) -> str:
    """Return the path relative to the root and without links; `.` is the root. Raise UnsafePath if it leads out."""
    top = os.path.realpath(root)
    try:
        target = os.path.realpath(os.path.join(root, path))
    except ValueError:
        raise UnsafePath(f"{path!r} is not a path") from None
    if target != top and not target.startswith(top.rstrip("/") + "/"):
        raise UnsafePath(f"`{path}` leads out of `{root}`, to `{target}`")
    return os.path.relpath(target, top)


@contextmanager
def directory(root: str, path: str, *, make: int | None = None) -> Iterator[int]:
    """A descriptor of a directory, to be used as `dir_fd`. With `make`, missing directories are made with that mode.
    Raises FileNotFoundError, and UnsafePath for a link on the way or what is not a directory."""
    fd = _open_directory(root, _parts(path), make)
    try:
        yield fd
    finally:
        os.close(fd)


def make_directory(root: str, path: str, mode: int = 0o777) -> None:
    """Make a directory and those above it, as far as they are missing."""
    os.close(_open_directory(root, _parts(path), mode))


def facts(root: str, path: str) -> os.stat_result | None:
    """What is there, a link itself and not what it leads to; None if nothing is."""
    with _parent(root, path) as (fd, name):
        try:
            return os.stat(name, dir_fd=fd, follow_symlinks=False) if fd >= 0 else None
        except FileNotFoundError:
            return None


def entries(root: str, path: str) -> dict[str, os.stat_result]:
    """What is in a directory: the facts of each name in it, without following. Raises like `directory`."""
    found = {}
    with directory(root, path) as fd:
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
        try:
            for name in os.listdir(listed):
                try:
                    found[name] = os.stat(name, dir_fd=listed, follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed a moment ago
        finally:
            os.close(listed)
    return found


def read(root: str, path: str, most: int, *, tail: bool = False) -> bytes | None:
    """The first `most` bytes of a regular file and one more, or the last ones; None if there is no such file."""
    with _parent(root, path) as (fd, name):
        if fd < 0:
            return None
        try:
            file = os.open(name, _FILE | os.O_NOFOLLOW, dir_fd=fd)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise _refused(error, root, path, "is not a regular file") from None
    return _content(file, os.path.join(root, path), most, tail)


def write(root: str, path: str, data: bytes, mode: int = 0o600) -> None:
    """Replace a file whole or not at all, and a link by the file. Its directory has to exist."""
    *above, name = _parts(path)
    draft = f".mngr-{os.urandom(8).hex()}.draft"
    with directory(root, "/".join(above)) as fd, held():
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=fd), "wb") as to:
                to.write(data)
            os.rename(draft, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException as error:
            try:
                os.unlink(draft, dir_fd=fd)
            except FileNotFoundError:
                pass
            if isinstance(error, OSError):
                error.filename, error.filename2 = os.path.join(root, path), None
            raise


def link(root: str, path: str, target: str) -> None:
    """Make a link. Its directory has to exist, and nothing may be in its place."""
    *above, name = _parts(path)
    with directory(root, "/".join(above)) as fd:
        os.symlink(target, name, dir_fd=fd)


def remove(root: str, path: str) -> None:
    """Remove a file, a link or a whole directory. Twice is safe."""
    with _parent(root, path) as (fd, name):
        try:
            if fd >= 0:
                os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        except IsADirectoryError:
            import shutil

            shutil.rmtree(name, dir_fd=fd)


def remove_links(root: str, path: str, *, below: str = "") -> None:
    """Remove the first part of the path that is a link, or not a directory, if one is: of those below `below`, where
    nothing is anybody's work."""
    parts = _parts(path)
    for count in range(len(_parts(below)) + 1, len(parts) + 1):
        found = facts(root, "/".join(parts[:count]))
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            with directory(root, "/".join(parts[: count - 1])) as fd:
                os.unlink(parts[count - 1], dir_fd=fd)
            return


def for_programs(fd: int, path: str) -> str:
    """An open directory as a path for a program that is started while it is open: on Linux one that stays the same
    directory whatever becomes of its name, elsewhere the path that is given."""
    own = f"/proc/{os.getpid()}/fd/{fd}"
    return own if os.path.exists(own) else path


@contextmanager
def _parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """The directory that a path is in and its last part; -1 if that directory is missing."""
    *above, name = _parts(path) or ["."]
    try:
        fd = _open_directory(root, above, None)
    except FileNotFoundError:
        yield -1, name
        return
    try:
        yield fd, name
    finally:
        os.close(fd)


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise UnsafePath(f"{path!r} is not a path below a directory")
    return parts


def _open_directory(root: str, parts: list[str], make: int | None) -> int:
    fd = os.open(root, _FOLLOWED)
    try:
        for number, part in enumerate(parts):
            try:
                if make is not None:
                    _make(part, make, fd)
                inner = os.open(part, _DIRECTORY, dir_fd=fd)
            except OSError as error:
                raise _refused(error, root, "/".join(parts[: number + 1]), "is not a directory") from None
            os.close(fd)
            fd = inner
    except BaseException:
        os.close(fd)
        raise
    return fd


def _make(name: str, mode: int, fd: int) -> None:
    try:
        os.mkdir(name, mode, dir_fd=fd)
    except FileExistsError:
        pass


def _refused(error: OSError, root: str, path: str, why: str) -> Exception:
    """What an error of `open` means: UnsafePath for what is of another kind, the error with its full path otherwise."""
    full = os.path.join(root, path)
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EISDIR):
        error.filename = full
        return error
    try:
        return UnsafePath(f"`{full}` is a link to `{os.readlink(full)}`, which is not followed")
    except OSError:
        return UnsafePath(f"`{full}` {why}")


def _content(file: int, path: str, most: int, tail: bool) -> bytes:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        os.close(file)
        raise UnsafePath(f"`{path}` is not a regular file")
    with open(file, "rb") as source:
        if tail and found.st_size > most:
            source.seek(found.st_size - most - 1)
        return source.read(most + 1)
