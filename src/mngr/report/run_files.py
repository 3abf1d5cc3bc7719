"""Files of a run as a page may show them: plain files inside the run's directory only, and a bounded part of each.

Agents wrote some of them. A link is never followed, and what is cut says so.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any, NamedTuple

from mngr.system import inside
from mngr.system.inside import UnsafePath

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
    if not _are_names(parts):
        return None
    try:
        return inside.read(root, "/".join(parts), most, tail=end)
    except (UnsafePath, OSError):
        return None


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
    left: list[tuple[str, ...]] = [()] if _are_names(parts) else []
    while left and len(found) < MOST_FILES:
        inner = left.pop(0)
        for name, facts in sorted((_entries(root, *parts, *inner) or {}).items()):
            if stat.S_ISREG(facts.st_mode):
                found.append(Listed((*inner, name), facts.st_size))
            elif stat.S_ISDIR(facts.st_mode) and len(inner) < _MOST_DEPTH:
                left.append((*inner, name))
    return found[:MOST_FILES]


def is_plain(root: str, *parts: str, most: int = 20 * MOST_FILES) -> bool:
    """Whether this is a directory inside the run with plain files and directories alone, and not too many of them."""
    left = [parts] if _are_names(parts) else []
    seen = 0
    while left:
        inner = left.pop()
        entries = _entries(root, *inner)
        if entries is None:
            return False
        seen += len(entries)
        folders = [(*inner, name) for name, facts in entries.items() if stat.S_ISDIR(facts.st_mode)]
        plain = sum(stat.S_ISREG(facts.st_mode) for facts in entries.values())
        if seen > most or plain + len(folders) < len(entries):
            return False
        left += folders
    return seen > 0


def _entries(root: str, *parts: str) -> dict[str, os.stat_result] | None:
    try:
        return inside.entries(root, "/".join(parts))
    except (UnsafePath, OSError):
        return None


def _are_names(parts: tuple[str, ...]) -> bool:
    """Whether each part is the name of one file, and not a path or a way up."""
    return bool(parts) and not any(part in ("", ".", "..") or "/" in part for part in parts)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count // 1000} kB"
