"""What is answered to one request, before it takes the form of an API. Pure."""

from __future__ import annotations

import json

from mngr.records import TYPE_CHECKING, NamedTuple
from mngr.testing.model_server.request import Asked, working_directory
from mngr.testing.model_server.script import Part, Response
from mngr.testing.model_server.tools import ToolCall, plainest, tool_call, wait_call

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PIECE_SECONDS = 0.1


class Usage(NamedTuple):
    """Tokens as the answer reports them, in the meaning of its API: OpenAI counts cached tokens as input too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Answer(NamedTuple):
    """`id` makes the ids of the answer unique on this server."""

    id: str
    model: str
    parts: tuple[Part, ...]
    call: ToolCall | None
    usage: Usage

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


class Piece(NamedTuple):
    """Bytes of a stream, and the pause before them."""

    data: bytes
    pause_seconds: float = 0.0


def answer(id: str, asked: Asked, step: Response, size: int) -> Answer:
    """The step as an answer to this request of so many bytes."""
    call = tool_call(step.call, asked.tools, working_directory(asked.system)) if step.call else None
    usage = _usage(size, step.text + (call.input if call else ""), step.usage)
    return Answer(id, asked.model, step.parts, call, usage)


def wait_answer(id: str, asked: Asked, size: int) -> Answer:
    """A call that waits for the command of the step before."""
    call = wait_call(asked.running, asked.tools)
    return Answer(id, asked.model, (), call, _usage(size, call.input, None))


def side_answer(id: str, asked: Asked, size: int) -> Answer:
    """A plain answer to what the program asks for itself: a title, a summary, whether the key works."""
    text = json.dumps(plainest(asked.schema)) if asked.schema else "scripted"
    return Answer(id, asked.model, (Part(text),), None, _usage(size, text, None))


def _usage(size: int, text: str, given: Mapping[str, int] | None) -> Usage:
    return Usage(max(1, size // 4), max(1, len(text) // 4))._replace(**(given or {}))


def deltas(parts: tuple[Part, ...]) -> list[tuple[str, float]]:
    """The text in the pieces in which it is streamed, each with the pause before it. Together they are the text."""
    found: list[tuple[str, float]] = []
    for number, part in enumerate(parts):
        text = part.text if number == len(parts) - 1 else part.text + "\n"
        count = max(1, min(len(text), round(part.seconds / PIECE_SECONDS) or 2))
        size = -(-len(text) // count) or 1
        cut = [text[at : at + size] for at in range(0, len(text), size)] or [""]
        found += [(piece, part.seconds / len(cut)) for piece in cut]
    return found


def event(name: str, value: Mapping[str, Any], pause_seconds: float = 0.0) -> Piece:
    """One server-sent event with a name."""
    return Piece(f"event: {name}\ndata: {json.dumps(value)}\n\n".encode(), pause_seconds)
