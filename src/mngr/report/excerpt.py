"""The few lines of a patch that a reader should see first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST_LINES = 14
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class Excerpt(NamedTuple):
    """Lines of a patch as git writes them; `left` is how many lines of change are not among them."""

    path: str
    lines: tuple[str, ...]
    left: int


def excerpt(patch: str, paths: Sequence[str] = (), line: int | None = None) -> Excerpt | None:
    """From the first of these files that is in the patch, otherwise from its first file: around a line of the new file,
    otherwise its first changes. None when the patch shows no change."""
    files = [found for part in re.split(r"(?m)^(?=diff --git )", patch) if (found := _file(part)) is not None]
    if not files:
        return None
    path, body = next(((path, body) for wanted in paths for path, body in files if path == wanted), files[0])
    shown = _around(body, line)
    changes = sum(_changes(body) for _, body in files)
    return Excerpt(path, tuple(shown), changes - _changes(shown))


def _file(part: str) -> tuple[str, list[str]] | None:
    lines = part.rstrip("\n").split("\n")
    start = next((at for at, text in enumerate(lines) if text.startswith("@@")), None)
    if start is None:
        return None
    name = re.match(r'diff --git "?a/.*? "?b/(.*?)"?$', lines[0])
    return (name[1] if name else lines[0], lines[start:])


def _around(body: Sequence[str], line: int | None) -> list[str]:
    """The hunk with the line, or the first one; from one line before its first change or before the wanted line."""
    hunks: list[list[str]] = []
    for text in body:
        if text.startswith("@@"):
            hunks.append([])
        elif hunks:
            hunks[-1].append(text)
    heads = [text for text in body if text.startswith("@@")]
    wanted = next((at for at, head in enumerate(heads) if line is not None and _covers(head, line)), 0)
    hunk = hunks[wanted]
    changed = [at for at, text in enumerate(hunk) if text[:1] in ("+", "-")]
    first = changed[0] if changed else 0
    if line is not None and (at := _position(heads[wanted], hunk, line)) is not None and at - first > MOST_LINES - 3:
        first = at - 2
    end = min(changed[-1] + 2 if changed else len(hunk), first + MOST_LINES - 1)
    shown = hunk[max(0, first - 1) : end]
    while shown and not shown[-1].strip():
        shown.pop()
    return shown


def _covers(head: str, line: int) -> bool:
    found = _HUNK.match(head)
    if found is None:
        return False
    start, count = int(found[1]), int(found[2] or 1)
    return start <= line < start + max(count, 1)


def _position(head: str, hunk: Sequence[str], line: int) -> int | None:
    found = _HUNK.match(head)
    number = int(found[1]) - 1 if found else 0
    for at, text in enumerate(hunk):
        number += not text.startswith("-")
        if number == line and not text.startswith("-"):
            return at
    return None


def _changes(lines: Iterable[str]) -> int:
    return sum(text[:1] in ("+", "-") for text in lines)
