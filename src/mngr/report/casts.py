"""A recording made fit for a page: checked line by line, bounded in length and in size of the screen."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.system import inside

MOST_BYTES = 4_000_000
_MOST_CELLS = 1000
_LONGEST = 1e9  # seconds
_LEAVES_FULL_SCREEN = ("\x1b[?1049l", "\x1b[?47l", "\x1b[?1047l")


class PageCast(NamedTuple):
    """`text` is asciicast v2 without torn or foreign lines. `poster` is the second that shows most: the end, or the
    last moment of a full-screen program. `problem` says why there is nothing to play."""

    text: str = ""
    columns: int = 80
    rows: int = 24
    seconds: float = 0.0
    poster: float = 0.0
    bytes: int = 0
    note: str = ""
    problem: str = ""

    def facts(self) -> dict[str, Any]:
        """What the pages say of it, without its content."""
        return {name: value for name, value in self._asdict().items() if name != "text"}


def read(root: str, path: str, most: int = MOST_BYTES) -> PageCast:
    """A recording at a path below a directory."""
    try:
        facts, data = inside.facts(root, path), inside.read(root, path, most)
    except (MngrError, OSError) as error:
        return PageCast(problem=getattr(error, "strerror", None) or "it cannot be read")
    if data is None or facts is None:
        return PageCast(problem="there is no such file")
    return shortened(data, most, facts.st_size)


def shortened(data: bytes, most: int = MOST_BYTES, size: int | None = None) -> PageCast:
    """At most this much of a recording of this size; `data` has a byte more if the recording is longer."""
    if len(data) <= most:
        return clean(data)._replace(bytes=len(data))
    whole = f" of {size / 1e6:.1f} MB" if size else ""
    note = f"Only the first {most / 1e6:.1f} MB{whole} are shown."
    return clean(data[: data.rfind(b"\n") + 1])._replace(bytes=size or len(data), note=note)


def clean(data: bytes) -> PageCast:
    """The events that a player can be given. The header keeps only what the pages use."""
    head, *lines = data.decode("utf-8", "replace").split("\n")
    header = _parsed(head)
    if not isinstance(header, dict):
        return PageCast(problem="it has no header (is it still empty?)")
    if header.get("version") != 2:
        return PageCast(problem="it is not asciicast version 2")
    columns, rows = _cells(header.get("width"), 80), _cells(header.get("height"), 24)
    kept = [json.dumps({"version": 2, "width": columns, "height": rows})]
    last = drawn = 0.0
    poster: float | None = None
    for line in lines:
        event = _event(line, last)
        if event is None:
            continue
        at, code, text = event
        if code == "o" and any(mark in text for mark in _LEAVES_FULL_SCREEN):
            poster = drawn
        elif code == "o":
            drawn = at
        kept.append(line if at > last else json.dumps([at, code, text]))
        last = at
    if len(kept) == 1:
        return PageCast(columns=columns, rows=rows, problem="nothing was shown in it")
    return PageCast("\n".join(kept) + "\n", columns, rows, last, last if poster is None else poster)


def _event(line: str, earliest: float) -> tuple[float, str, str] | None:
    value = _parsed(line)
    if not (isinstance(value, list) and len(value) == 3 and isinstance(value[1], str) and isinstance(value[2], str)):
        return None
    at, code, text = value
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < _LONGEST or code not in ("o", "r"):
        return None
    if code == "r":
        columns, _, rows = text.partition("x")
        if not (_is_size(columns) and _is_size(rows)):
            return None
    return max(float(at), earliest), code, text


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5 and 0 < int(text) <= _MOST_CELLS


def _cells(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_CELLS else default


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
