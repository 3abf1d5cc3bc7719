"""The Chat Completions API of OpenAI, which most other programs speak. Pure: parsed JSON in, events or JSON out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mngr.json_values import objects, string, table
from mngr_testing.model_server.answer import ModelAnswer, StreamPiece, TokenCounts, deltas, halves
from mngr_testing.model_server.openai_responses import error
from mngr_testing.model_server.request import ModelRequest, Tool, blocks, real_text

__all__ = ["error", "parse", "stream", "whole"]


def parse(body: Mapping[str, Any]) -> ModelRequest:
    texts, step, system = [], 0, []
    for message in objects(body.get("messages")):
        found = blocks(message.get("content"), ("text",))
        role = message.get("role")
        if role == "assistant":
            step += bool(message.get("tool_calls"))
        elif role == "user":
            text = real_text(found)
            if text:
                texts.append(text)
                step = 0
        elif role in ("system", "developer"):
            system += found
    functions = [table(tool.get("function")) for tool in objects(body.get("tools"))]
    form = table(table(body.get("response_format")).get("json_schema"))
    return ModelRequest(
        model=string(body.get("model")) or "scripted",
        stream=body.get("stream") is True,
        tools=tuple(Tool(string(one.get("name")), table(one.get("parameters"))) for one in functions),
        texts=tuple(texts),
        step=step,
        session=string(body.get("prompt_cache_key")) or string(body.get("user")),
        system="\n".join(system),
        schema=table(form.get("schema")) or None,
        include_usage=table(body.get("stream_options")).get("include_usage") is True,
    )


def whole(answer: ModelAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if answer.parts else None, "refusal": None}
    if answer.call:
        message["tool_calls"] = [_tool_call(answer)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer)}
    return {**_top(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}


def stream(answer: ModelAnswer, include_usage: bool = True) -> list[StreamPiece]:
    pieces = [_chunk(answer, {"role": "assistant", "content": ""}, include_usage=include_usage)]
    if answer.parts:
        pieces += [
            _chunk(answer, {"content": text}, pause=pause, include_usage=include_usage)
            for text, pause in deltas(answer.parts)
        ]
    if answer.call:
        call = _tool_call(answer)
        function = {**call["function"], "arguments": ""}
        begun = {"index": 0, **call, "function": function}
        pieces.append(_chunk(answer, {"tool_calls": [begun]}, include_usage=include_usage))
        for half in halves(answer.call.input):
            more = {"index": 0, "function": {"arguments": half}}
            pieces.append(_chunk(answer, {"tool_calls": [more]}, include_usage=include_usage))
    pieces.append(_chunk(answer, {}, finish_reason=_finish_reason(answer), include_usage=include_usage))
    if include_usage:
        last = {**_top(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer.usage)}
        pieces.append(_data(json.dumps(last)))
    return [*pieces, _data("[DONE]")]


def _chunk(
    answer: ModelAnswer,
    delta: dict[str, Any],
    *,
    include_usage: bool,
    finish_reason: str | None = None,
    pause: float = 0.0,
) -> StreamPiece:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    value: dict[str, Any] = {**_top(answer, "chat.completion.chunk"), "choices": [choice]}
    if include_usage:
        value["usage"] = None
    return _data(json.dumps(value), pause)


def _data(text: str, pause: float = 0.0) -> StreamPiece:
    return StreamPiece(f"data: {text}\n\n".encode(), pause)


def _top(answer: ModelAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": 0, "model": answer.model}


def _tool_call(answer: ModelAnswer) -> dict[str, Any]:
    call = answer.call
    function = {"name": call.name, "arguments": call.input} if call else {}
    return {"id": f"call_{answer.id}", "type": "function", "function": function}


def _finish_reason(answer: ModelAnswer) -> str:
    return "tool_calls" if answer.call else "stop"


def _usage(usage: TokenCounts) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
