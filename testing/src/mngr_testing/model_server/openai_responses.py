"""The Responses API of OpenAI. Pure: parsed JSON in, events or JSON out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mngr.json_values import objects, string, table
from mngr_testing.model_server.answer import ModelAnswer, StreamPiece, TokenCounts, deltas, event, halves
from mngr_testing.model_server.request import ModelRequest, Tool, blocks, real_text
from mngr_testing.model_server.tools import WAITER

ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")


def parse(body: Mapping[str, Any]) -> ModelRequest:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(objects(given))
    texts, step, system = [], 0, [string(body.get("instructions"))]
    tools = list(_tools(body.get("tools")))
    for item in items:
        if item.get("type") in CALLS:
            step += not _waits(item)
        elif item.get("type") == "additional_tools":
            tools += _tools(item.get("tools"))
        elif item.get("type", "message") == "message":
            found = blocks(item.get("content"), ("input_text", "text"))
            text = real_text(found) if item.get("role") == "user" else ""
            if text:
                texts.append(text)
                step = 0
            else:
                system += found
    form = table(table(body.get("text")).get("format"))
    return ModelRequest(
        model=string(body.get("model")) or "scripted",
        stream=body.get("stream") is True,
        tools=tuple(tools),
        texts=tuple(texts),
        step=step,
        session=string(body.get("prompt_cache_key")),
        system="\n".join(system),
        schema=table(form.get("schema")) or None,
        running=_running(items[-1]) if items else "",
    )


def _waits(item: Mapping[str, Any]) -> bool:
    """Whether the call only waits for the command of the call before."""
    if item.get("name") == WAITER:
        return '"chars": ""' in string(item.get("arguments"))
    return item.get("type") == "custom_tool_call" and f"tools.{WAITER}(" in string(item.get("input"))


def _running(item: Mapping[str, Any]) -> str:
    """The session of a command that Codex left running in the background, from the output of its call."""
    output = item.get("output")
    if item.get("type") == "function_call_output":
        found = _SESSION.match(string(output))
    elif item.get("type") == "custom_tool_call_output":
        found = _SESSION_OF_SCRIPT.match("".join(blocks(output, ("input_text", "text"))[1:2]))
    else:
        found = None
    return found[1] if found else ""


_SESSION = re.compile(r"(?:Chunk ID: .*\n)?Wall time: .*\nProcess running with session ID ([0-9]+)\n")
_SESSION_OF_SCRIPT = re.compile(r'\{"chunk_id":"[^"]*","wall_time_seconds":[0-9.]+,"session_id":([0-9]+)[,}]')


def _tools(value: Any, namespace: str = "") -> Iterator[Tool]:
    for tool in objects(value):
        name, kind = string(tool.get("name")), tool.get("type")
        if kind == "namespace":
            yield from _tools(tool.get("tools"), "" if name == "functions" else name)
        elif kind in ("function", "custom"):
            yield Tool(name, table(tool.get("parameters")), kind == "custom", namespace)


def whole(answer: ModelAnswer) -> dict[str, Any]:
    return _response(answer, "completed", _items(answer))


def stream(answer: ModelAnswer) -> list[StreamPiece]:
    bare = _response(answer, "in_progress", [])
    pieces: list[tuple[str, dict[str, Any], float]] = [
        ("response.created", {"response": bare}, 0.0),
        ("response.in_progress", {"response": bare}, 0.0),
    ]
    for index, item in enumerate(_items(answer)):
        at = {"item_id": item["id"], "output_index": index}
        pieces.append(("response.output_item.added", {"output_index": index, "item": _begun(item)}, 0.0))
        if item["type"] == "message":
            pieces += _text_events(answer, at)
        else:
            pieces += _call_events(item, at)
        pieces.append(("response.output_item.done", {"output_index": index, "item": item}, 0.0))
    pieces.append(("response.completed", {"response": whole(answer)}, 0.0))
    return [
        event(name, {"type": name, "sequence_number": number, **value}, pause)
        for number, (name, value, pause) in enumerate(pieces)
    ]


def error(status: int, message: str, id: str) -> dict[str, Any]:
    kind, code = ERRORS.get(
        status, ("server_error", "server_error") if status >= 500 else ("invalid_request_error", None)
    )
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _text_events(answer: ModelAnswer, at: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], float]]:
    at = {**at, "content_index": 0}
    yield "response.content_part.added", {**at, "part": _text_part("")}, 0.0
    for text, pause in deltas(answer.parts):
        yield "response.output_text.delta", {**at, "delta": text, "logprobs": []}, pause
    yield "response.output_text.done", {**at, "text": answer.text, "logprobs": []}, 0.0
    yield "response.content_part.done", {**at, "part": _text_part(answer.text)}, 0.0


def _call_events(item: dict[str, Any], at: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], float]]:
    if item["type"] == "custom_tool_call":
        name, field = "response.custom_tool_call_input", "input"
    else:
        name, field = "response.function_call_arguments", "arguments"
    for half in halves(item[field]):
        yield f"{name}.delta", {**at, "delta": half}, 0.0
    yield f"{name}.done", {**at, field: item[field]}, 0.0


def _items(answer: ModelAnswer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.parts:
        items.append(
            {
                "id": f"msg_{answer.id}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [_text_part(answer.text)],
            }
        )
    call = answer.call
    if call:
        item: dict[str, Any] = {"status": "completed", "call_id": f"call_{answer.id}", "name": call.name}
        if call.namespace:
            item["namespace"] = call.namespace
        if call.custom:
            items.append({"id": f"ctc_{answer.id}", "type": "custom_tool_call", **item, "input": call.input})
        else:
            items.append({"id": f"fc_{answer.id}", "type": "function_call", **item, "arguments": call.input})
    return items


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """The item before its content came."""
    empty: dict[str, Any] = {
        name: value for name, value in (("content", []), ("arguments", ""), ("input", "")) if name in item
    }
    return {**item, **empty, "status": "in_progress"}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(answer: ModelAnswer, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(answer.usage) if status == "completed" else None,
    }


def _usage(usage: TokenCounts) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }
