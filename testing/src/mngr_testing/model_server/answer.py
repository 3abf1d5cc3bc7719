"""What is answered to one request, before it takes the form of an API. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr_testing.model_server.request import ModelRequest, working_directory
from mngr_testing.model_server.script import Response, TextPart
from mngr_testing.model_server.tools import ToolCall, plainest, tool_call, wait_call

PIECE_SECONDS = 0.1


class TokenCounts(NamedTuple):
    """Tokens as the answer reports them, in the meaning of its API: OpenAI counts cached tokens as input too."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class ModelAnswer(NamedTuple):
    """`id` makes the ids of the answer unique on this server."""

    id: str
    model: str
    parts: tuple[TextPart, ...]
    call: ToolCall | None
    usage: TokenCounts

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


class StreamPiece(NamedTuple):
    """Bytes of a stream, and the pause before them."""

    data: bytes
    pause_seconds: float = 0.0


def answer(id: str, asked: ModelRequest, step: Response, size: int) -> ModelAnswer:
    """The step as an answer to this request, whose body has `size` bytes."""
    call = tool_call(step.call, asked.tools, working_directory(asked.system)) if step.call else None
    usage = _usage(size, step.text + (call.input if call else ""), step.usage)
    return ModelAnswer(id, asked.model, step.parts, call, usage)


def wait_answer(id: str, asked: ModelRequest, size: int) -> ModelAnswer:
    """A call that waits for the command of the step before."""
    call = wait_call(asked.running, asked.tools)
    return ModelAnswer(id, asked.model, (), call, _usage(size, call.input, None))


def side_answer(id: str, asked: ModelRequest, size: int) -> ModelAnswer:
    """A plain answer to what the program asks for itself: a title, a summary, whether the key works."""
    text = json.dumps(plainest(asked.schema)) if asked.schema else "scripted"
    return ModelAnswer(id, asked.model, (TextPart(text),), None, _usage(size, text, None))


def _usage(size: int, text: str, given: Mapping[str, int] | None) -> TokenCounts:
    return TokenCounts(max(1, size // 4), max(1, len(text) // 4))._replace(**(given or {}))


def deltas(parts: tuple[TextPart, ...]) -> list[tuple[str, float]]:
    """The text in the pieces in which it is streamed, each with the pause before it. Together they are the text."""
    found: list[tuple[str, float]] = []
    for number, part in enumerate(parts):
        text = part.text if number == len(parts) - 1 else part.text + "\n"
        count = max(1, min(len(text), round(part.seconds / PIECE_SECONDS) or 2))
        size = -(-len(text) // count) or 1
        cut = [text[at : at + size] for at in range(0, len(text), size)] or [""]
        found += [(piece, part.seconds / len(cut)) for piece in cut]
    return found


def halves(text: str) -> tuple[str, str]:
    """The arguments of a call in the pieces in which they are streamed."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def event(name: str, value: Mapping[str, Any], pause_seconds: float = 0.0) -> StreamPiece:
    """One server-sent event with a name."""
    return StreamPiece(f"event: {name}\ndata: {json.dumps(value)}\n\n".encode(), pause_seconds)
