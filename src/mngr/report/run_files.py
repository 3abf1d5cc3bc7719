"""Files of a run as a page may show them: plain files inside the run's directory only, and a bounded part of each.

Agents wrote some of them. A link is never followed, and what is cut says so.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any, NamedTuple

MOST_FILES = 200
_MOST_DEPTH = 8


class Text(NamedTuple):
    """`note` says what is missing of it; empty when it is whole."""

    text: str
    note: str = ""


class Listed(NamedTuple):
    """A file below a directory of the run; `parts` is its path from there."""

    parts: tuple[str, ...]
    bytes: int


def read(root: str, *parts: str, most: int, end: bool = False) -> bytes | None:
    """The first `most` bytes of a file of the run and one more, or the last ones; None for what is no plain file inside
    the directory."""
    if not _is_inside(root, parts):
        return None
    path = os.path.join(root, *parts)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        if end and facts.st_size > most:
            file.seek(facts.st_size - most - 1)
        return file.read(most + 1)


def text(root: str, *parts: str, most: int, end: bool = False) -> Text | None:
    """The same as text, cut at a line where it is too long."""
    data = read(root, *parts, most=most, end=end)
    if data is None:
        return None
    if len(data) <= most:
        return Text(data.decode(errors="replace"))
    kept = data[data.find(b"\n") + 1 :] if end else data[: data.rfind(b"\n", 0, most) + 1 or most]
    side = "last" if end else "first"
    return Text(kept.decode(errors="replace"), f"Only the {side} {_size(most)} are shown; `{parts[-1]}` has all.")


def document(root: str, *parts: str, most: int = 200_000_000) -> Any:
    """JSON that we wrote ourselves; None when it is not there or not whole."""
    data = read(root, *parts, most=most)
    if data is None or len(data) > most:
        return None
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None


def listed(root: str, *parts: str) -> list[Listed]:
    """The plain files below a directory of the run, at most `MOST_FILES`. Links are skipped."""
    found: list[Listed] = []
    left: list[tuple[str, ...]] = [()] if _is_inside(root, parts) else []
    while left and len(found) < MOST_FILES:
        inner = left.pop(0)
        try:
            with os.scandir(os.path.join(root, *parts, *inner)) as entries:
                sorted_entries = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in sorted_entries:
            if entry.is_file(follow_symlinks=False):
                found.append(Listed((*inner, entry.name), entry.stat(follow_symlinks=False).st_size))
            elif entry.is_dir(follow_symlinks=False) and len(inner) < _MOST_DEPTH:
                left.append((*inner, entry.name))
    return found[:MOST_FILES]


def is_plain(root: str, *parts: str, most: int = 20 * MOST_FILES) -> bool:
    """Whether this is a directory inside the run with plain files and directories alone, and not too many of them."""
    left = [os.path.join(root, *parts)] if _is_inside(root, parts) else []
    seen = 0
    while left:
        try:
            with os.scandir(left.pop()) as found:
                entries = list(found)
        except OSError:
            return False
        seen += len(entries)
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        plain = sum(entry.is_file(follow_symlinks=False) for entry in entries)
        if seen > most or plain + len(folders) < len(entries):
            return False
        left += folders
    return seen > 0


def _is_inside(root: str, parts: tuple[str, ...]) -> bool:
    """Whether no part of the path below the root leads up, or is a link."""
    path = root
    for part in parts:
        if part in ("", ".", "..") or "/" in part or "\0" in part:
            return False
        path = f"{path}/{part}"
        if os.path.islink(path):
            return False
    return bool(parts)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count // 1000} kB"
