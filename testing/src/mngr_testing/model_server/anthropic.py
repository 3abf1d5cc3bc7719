"""The Messages API of Anthropic. Pure: parsed JSON in, events or JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.json_values import objects, string, table
from mngr_testing.model_server.answer import ModelAnswer, StreamPiece, TokenCounts, deltas, event, halves
from mngr_testing.model_server.request import ModelRequest, Tool, blocks, real_text

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def parse(body: Mapping[str, Any]) -> ModelRequest:
    texts, step = [], 0
    for message in objects(body.get("messages")):
        content = message.get("content")
        if message.get("role") == "assistant":
            step += any(block.get("type") == "tool_use" for block in objects(content))
        elif message.get("role") == "user":
            text = real_text(blocks(content, ("text",)))
            if text:
                texts.append(text)
                step = 0
    tools = tuple(
        Tool(string(tool.get("name")), table(tool.get("input_schema"))) for tool in objects(body.get("tools"))
    )
    form = table(table(body.get("output_config")).get("format")) or table(body.get("output_format"))
    return ModelRequest(
        model=string(body.get("model")) or "scripted",
        stream=body.get("stream") is True,
        tools=tools,
        texts=tuple(texts),
        step=step,
        session=string(table(body.get("metadata")).get("user_id")),
        system="\n".join([*blocks(body.get("system"), ("text",)), *_first_texts(body)]),
        schema=table(form.get("schema")) or None,
    )


def _first_texts(body: Mapping[str, Any]) -> list[str]:
    """Where the program may describe its surroundings, besides the system prompt."""
    return [
        text
        for message in list(objects(body.get("messages")))[:2]
        for text in blocks(message.get("content"), ("text",))
    ]


def whole(answer: ModelAnswer) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.parts:
        content.append({"type": "text", "text": answer.text})
    if answer.call:
        content.append({**_tool_use(answer), "input": answer.call.arguments})
    message = _message(answer, _usage(answer.usage))
    return {**message, "content": content, "stop_reason": _stop_reason(answer)}


def stream(answer: ModelAnswer) -> list[StreamPiece]:
    start = _message(answer, {**_usage(answer.usage), "output_tokens": 1})
    pieces = [event("message_start", {"type": "message_start", "message": start})]
    index = 0
    if answer.parts:
        pieces += _block(index, {"type": "text", "text": ""}, "text_delta", "text", deltas(answer.parts))
        index += 1
    if answer.call:
        opened = {**_tool_use(answer), "input": {}}
        texts = [(half, 0.0) for half in ("", *halves(answer.call.input))]
        pieces += _block(index, opened, "input_json_delta", "partial_json", texts)
    ended = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    pieces.append(event("message_delta", {"type": "message_delta", "delta": ended, "usage": _usage(answer.usage)}))
    pieces.append(event("message_stop", {"type": "message_stop"}))
    return pieces


def error(status: int, message: str, id: str) -> dict[str, Any]:
    kind = ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": f"req_{id}"}


def _message(answer: ModelAnswer, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _tool_use(answer: ModelAnswer) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{answer.id}", "name": answer.call.name if answer.call else ""}


def _block(
    index: int, opened: dict[str, Any], kind: str, field: str, texts: list[tuple[str, float]]
) -> list[StreamPiece]:
    delta = "content_block_delta"
    return [
        event("content_block_start", {"type": "content_block_start", "index": index, "content_block": opened}),
        *(
            event(delta, {"type": delta, "index": index, "delta": {"type": kind, field: text}}, pause)
            for text, pause in texts
        ),
        event("content_block_stop", {"type": "content_block_stop", "index": index}),
    ]


def _stop_reason(answer: ModelAnswer) -> str:
    return "tool_use" if answer.call else "end_turn"


def _usage(usage: TokenCounts) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
