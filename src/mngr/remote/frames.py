"""Frames on a byte stream: a JSON header and a binary body, both with their length before them. Knows no verbs.

What comes from another machine is not trusted: a length over the limit or a header that is not a JSON object ends the
stream with an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mngr.errors import UNREACHED, MngrError
from mngr.named_tuples import NamedTuple

# A larger body is sent as several frames; a listing of 10,000 agents is a header of 15 MB.
PART = 1 << 20
LONGEST_HEADER = 64 << 20
LONGEST_BODY = 4 * PART
LONGEST_MESSAGE = 1 << 30
_LENGTHS = 8


class BadStream(MngrError):
    """The other end sent what is not a frame."""

    exit_code = UNREACHED


class Frame(NamedTuple):
    header: Mapping[str, Any]
    body: bytes = b""


def pack(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """The bytes of one message. `part` frames carry all of a large body but its end."""
    pieces = []
    start = 0
    while len(body) - start > PART:
        pieces.append(_frame({"id": header.get("id"), "part": True}, body[start : start + PART]))
        start += PART
    pieces.append(_frame(header, body[start:]))
    return b"".join(pieces)


def _frame(header: Mapping[str, Any], body: bytes) -> bytes:
    text = json.dumps(header).encode("ascii")
    return len(text).to_bytes(4, "big") + len(body).to_bytes(4, "big") + text + body


class FrameReader:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes. Raises BadStream."""
        self._data += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        if len(self._data) < _LENGTHS:
            return None
        header = int.from_bytes(self._data[:4], "big")
        body = int.from_bytes(self._data[4:_LENGTHS], "big")
        if header > LONGEST_HEADER or body > LONGEST_BODY:
            raise BadStream(f"a frame of {header} + {body} bytes is too long")
        end = _LENGTHS + header + body
        if len(self._data) < end:
            return None
        text, rest = bytes(self._data[_LENGTHS : _LENGTHS + header]), bytes(self._data[_LENGTHS + header : end])
        del self._data[:end]
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise BadStream(f"a frame has an invalid header: {text[:60]!r}") from None
        if not isinstance(value, dict):
            raise BadStream("the header of a frame is not a JSON object")
        return Frame(value, rest)


class MessageReader:
    """Takes bytes as they come and gives messages: frames with their `part` frames joined. A `part` frame itself comes
    without its bytes, to say that the message is on its way."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._parts: dict[object, bytearray] = {}

    def feed(self, data: bytes) -> Iterator[Frame]:
        for frame in self._frames.feed(data):
            key = frame.header.get("id")
            if frame.header.get("part") is True:
                parts = self._parts.setdefault(key if isinstance(key, int) else None, bytearray())
                parts += frame.body
                if sum(map(len, self._parts.values())) > LONGEST_MESSAGE:
                    raise BadStream("a message is too long")
                yield Frame({"id": key, "part": True})
                continue
            before = self._parts.pop(key, None) if isinstance(key, int) else None
            yield frame if before is None else Frame(frame.header, bytes(before + frame.body))
