"""Which files change below some directories: inotify through ctypes, a comparison of file times where it is missing."""

from __future__ import annotations

import ctypes
import os
import select
import sys
from collections.abc import Iterator

_MODIFY, _MOVED, _CREATE, _DELETE, _SELF = 0x2, 0xC0, 0x100, 0x200, 0xC00
_OVERFLOW, _IGNORED, _DIRECTORY = 0x4000, 0x8000, 0x40000000
_MASK = _MODIFY | _MOVED | _CREATE | _DELETE | _SELF
_HEADER = 16


def watch(paths: list[str]) -> FileWatch:
    """Watch all files below these paths from now on. Symbolic links are not followed; a path that is missing is not
    watched."""
    try:
        return _Inotify(paths)
    except (AttributeError, OSError):  # no inotify (macOS), or none left for this user
        return _Comparison(paths)


class _Inotify:
    def __init__(self, paths: list[str]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._roots, self._directories = paths, dict[int, str]()
        try:
            for path in paths:
                self._add(path)
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Whether something changed within this time."""
        return bool(self._poll.poll(seconds * 1000))

    def changed(self) -> set[str]:
        """The paths that changed since the last call."""
        found: set[str] = set()
        while True:
            try:
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                number, mask, length = (int.from_bytes(data[at + i : at + i + 4], sys.byteorder) for i in (0, 4, 12))
                name = data[at + _HEADER : at + _HEADER + length].rstrip(b"\0")
                found |= self._event(number, mask, os.fsdecode(name))
                at += _HEADER + length

    def close(self) -> None:
        os.close(self._fd)

    def _event(self, number: int, mask: int, name: str) -> set[str]:
        if mask & _OVERFLOW:
            return {path for root in self._roots for path in (root, *self._add_late(root))}
        directory = self._directories.get(number)
        if mask & _IGNORED or directory is None:
            self._directories.pop(number, None)
            return set()
        path = os.path.join(directory, name) if name else directory
        if mask & _DIRECTORY and mask & (_CREATE | _MOVED):
            return {path, *self._add_late(path)}  # files may have been written there before we watched it
        return {path}

    def _add_late(self, path: str) -> list[str]:
        try:
            return self._add(path)
        except OSError:
            return []

    def _add(self, path: str) -> list[str]:
        """Watch a file or a directory with all below it; the paths below it. Raises OSError when no more directories
        can be watched."""
        number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _MASK)
        if number < 0:
            if (code := ctypes.get_errno()) in _OUT_OF_WATCHES:
                raise OSError(code, os.strerror(code), path)
            return []  # it is gone, or not ours to read
        self._directories[number] = path
        found = []
        for entry in _entries(path):
            found.append(entry.path)
            if entry.is_dir(follow_symlinks=False):
                found += self._add(entry.path)
        return found


class _Comparison:
    def __init__(self, paths: list[str]) -> None:
        self._roots = paths
        self._seen = self._now = self._times()

    def wait(self, seconds: float) -> bool:
        select.select([], [], [], min(seconds, 0.05))
        self._now = self._times()
        return self._now != self._seen

    def changed(self) -> set[str]:
        before, self._seen = self._seen, self._now
        return {path for path, _ in before.items() ^ self._seen.items()}

    def close(self) -> None:
        pass

    def _times(self) -> dict[str, tuple[int, int]]:
        found = {}
        waiting = [*self._roots]
        while waiting:
            for entry in _entries(waiting.pop()):
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                found[entry.path] = (facts.st_mtime_ns, facts.st_size)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        return found


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            yield from found
    except OSError:
        return


FileWatch = _Inotify | _Comparison
_OUT_OF_WATCHES = (24, 28)  # EMFILE, ENOSPC
