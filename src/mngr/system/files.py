"""The one door to writing state: atomic writes, locks, JSON lines. Everything is private to the user."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat

from mngr.errors import MngrError, TimedOut
from mngr.system.interrupts import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# How long a lock can outlive its killed holder.
_LOCK_GRACE_SECONDS = 5.0
# The most that is read of one file at once; no file of ours grows to that size.
MOST_BYTES = 1 << 26
# JSON nested deeper than this is not printed, sent or compared safely: each of these takes a call for each level.
_DEEPEST = 40


def make_private_dir(path: str) -> None:
    os.makedirs(path, mode=0o700, exist_ok=True)


def write_atomic(path: str, data: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    """Replace the file whole or not at all; a reader never sees half of it. With `durable` that also holds after a
    power cut, and the disk has the new file on return."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.draft"
    with held():
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(draft, path)
            if durable:
                _sync_directory(os.path.dirname(path))
        except OSError as error:
            _unlink(draft)
            error.filename, error.filename2 = path, None
            raise
        except BaseException:
            _unlink(draft)
            raise


def _sync_directory(path: str) -> None:
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_new(path: str, data: bytes, mode: int = 0o600) -> None:
    """Make a file that nobody else knows yet. One that exists is an error."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """JSON as UTF-8, readable; text that UTF-8 cannot carry (odd bytes of file names) makes it plain ASCII."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).encode() + b"\n"


def append_line(path: str, value: Any, *, durable: bool = False) -> None:
    """Append one JSON object as one line, in one write, so that lines of several writers never mix. After a line that
    was torn, by a full disk or a crash, it begins a new one. With `durable` the disk has it on return."""
    line = json_bytes(value)
    fd = open_plain(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(fd, line) != len(line):
            raise OSError(errno.ENOSPC, "only part of an event could be written")
        if durable:
            os.fsync(fd)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(fd)


def read_lines(data: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a JSONL text. Torn or foreign lines are passed over."""
    found = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and not _too_deep(line, value):
            found.append(value)
    return found


def _too_deep(line: bytes, value: Any) -> bool:
    if line.count(b"{") + line.count(b"[") <= _DEEPEST:
        return False
    level = [value]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    return bool(level)


def content(path: str) -> bytes:
    """What a file holds; empty when there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def make_file(path: str) -> None:
    """An empty file, unless there is one."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def open_plain(path: str, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """Open a file that another program may have replaced. Never waits, and raises OSError for a link (unless it may
    `follow` one), a pipe, a directory or a device."""
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        if follow and not stat.S_ISREG(os.stat(path).st_mode):  # to open a device can do something already
            raise OSError(errno.EINVAL, NOT_PLAIN, path)
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise OSError(errno.EINVAL, NOT_PLAIN, path) from None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, NOT_PLAIN, path)


NOT_PLAIN = "not a plain file"


def read_followed(path: str, most: int) -> bytes:
    """The first `most` bytes of a plain file, and one more, wherever a link leads."""
    with open(open_plain(path, follow=True), "rb") as file:
        return file.read(most + 1)


def read_plain(path: str, most: int = MOST_BYTES) -> bytes:
    """What a plain file holds. Raises OSError for anything else, and for a file of more than `most` bytes."""
    with open(open_plain(path), "rb") as file:
        data = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if data is None or len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most / 1e6:.0f} MB", path)
    return data


def read_tail(path: str, size: int) -> tuple[bytes, bool]:
    """The last `size` bytes from a line's beginning on, and whether that is the whole file. A missing file is empty.
    Raises OSError for one that is not a plain file."""
    try:
        with open(open_plain(path), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            start = max(0, end - size)
            file.seek(start)
            data = file.read(size)
    except FileNotFoundError:
        return b"", True
    return (data, True) if start == 0 else (data.partition(b"\n")[2], False)


def read_from(path: str, start: int, most: int = MOST_BYTES) -> bytes:
    """What a plain file holds from there on, at most `most` bytes of it. A missing file is empty."""
    try:
        with open(open_plain(path), "rb") as file:
            file.seek(start)
            return file.read(most)
    except FileNotFoundError:
        return b""


def last_lines(data: bytes, most: int) -> bytes:
    """The last lines of a text."""
    parts = data.rsplit(b"\n", most + 1)
    return data if len(parts) <= most + 1 else b"\n".join(parts[1:])


class locked:  # noqa: N801 (used like the function it would be with contextlib, which costs its import)
    """Hold an exclusive lock; `as` tells whether somebody else had it first. It ends with the process, so none is
    ever stale. When the path `guards` is gone at the end, the lock file is removed too."""

    def __init__(self, path: str, *, timeout: float, what: str, guards: str | None = None) -> None:
        self._path, self._timeout, self._what, self._guards = path, timeout, what, guards

    def __enter__(self) -> bool:
        waited = False
        while True:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                waited = _wait_for_lock(fd, self._path, self._timeout, self._what) or waited
                if _is_at(fd, self._path):
                    self._fd = fd
                    return waited
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # its holder removed the file: others lock the one that has the name now
            waited = True

    def __exit__(self, *_: object) -> None:
        try:
            if self._guards is not None and not os.path.lexists(self._guards):
                _unlink(self._path)
        finally:
            os.close(self._fd)


def remove_lock(path: str) -> None:
    """Remove a lock file that nobody holds. One that is held stays."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if _try_lock(fd) and _is_at(fd, path):
            _unlink(path)
    finally:
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    """Whether this open file still has that name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


class Claimed(MngrError):
    """Somebody else holds it; `pid` is who, None when that is not known."""

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(f"`{path}` is held by process {pid or 'unknown'}")
        self.pid = pid


class claimed:  # noqa: N801 (used like `locked`)
    """Hold an exclusive lock for a long time, with the holder's process id in the file. Raises Claimed at once when
    another process has it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _try_lock(self._fd) and not self._is_left_by_the_dead():
                raise Claimed(self._path, _pid_in(self._fd))
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(self._fd)
            raise

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def _is_left_by_the_dead(self) -> bool:
        """Whether the lock could be had after all. A child that was being started when its parent was killed holds a
        lock of the parent's for a moment longer, until it has become another program."""
        from mngr.system.waiting import wait_until

        def had_or_alive() -> str:
            return "had" if _try_lock(self._fd) else "alive" if _is_alive(_pid_in(self._fd)) else ""

        return wait_until(had_or_alive, timeout=_LOCK_GRACE_SECONDS, every=0.01) == "had"


def _is_alive(pid: int | None) -> bool:
    """Also one of which nothing is known."""
    try:
        os.kill(pid or os.getpid(), 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True


def claimant(path: str) -> int | None:
    """The process that holds this claim now; None when nobody does. One that is just taking it may not be named yet:
    that is process 0."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(fd) else _pid_in(fd) or 0
    finally:
        os.close(fd)


def _pid_in(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None


def _wait_for_lock(fd: int, path: str, timeout: float, what: str) -> bool:
    if _try_lock(fd):
        return False
    from mngr.system.waiting import wait_until

    if not wait_until(lambda: _try_lock(fd), timeout=timeout, every=0.01):
        raise TimedOut(
            f"{what} is locked by another `mngr` for more than {timeout:g} s",
            hint=f"see who holds it: `fuser -v {path}`",
        )
    return True


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def space_hint(path: str) -> str:
    """How little space is left where the path is; empty when there is enough. Other programs often do not say."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    found = os.statvfs(path)
    left = found.f_bavail * found.f_frsize
    return f"only {left / 1e6:.1f} MB are left on the disk of `{path}`; free some space" if left < 100e6 else ""


_NAMED = (errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO, errno.EINVAL, errno.EFBIG)


def disk_error(error: OSError) -> MngrError | None:
    """A full or read-only disk said clearly; None for any other error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return MngrError(
            f"no space left on the disk while writing `{error.filename or 'a file'}`",
            hint="free some space; `df -h` shows where",
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return MngrError(
            f"cannot use `{error.filename or 'a file'}`: {error.strerror}", hint="check its owner and permissions"
        )
    if error.filename and error.errno in _NAMED:
        return MngrError(f"cannot use `{error.filename}`: {error.strerror}", hint="`mngr doctor` checks this machine")
    return None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
