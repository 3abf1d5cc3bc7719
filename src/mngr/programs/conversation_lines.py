"""Reads a conversation that an agent program records as JSON lines of chat messages, in the forms that many programs
use. Lines of any other form are skipped. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mngr.agent.record import timestamp
from mngr.json_values import count, table
from mngr.programs.driver import ModelUsage

_ROLES = ("user", "assistant")
_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("toolCall", "tool_call", "tool_use", "function_call")
_RESULTS = ("toolResult", "tool_result", "tool")
_TOKENS = {
    "input_tokens": ("input", "input_tokens"),
    "output_tokens": ("output", "output_tokens"),
    "cache_read_tokens": ("cacheRead", "cache_read", "cache_read_input_tokens"),
    "cache_write_tokens": ("cacheWrite", "cache_write", "cache_creation_input_tokens"),
}


def transcript(lines: Iterable[Mapping[str, Any]], roles: Sequence[str] = _ROLES) -> list[dict[str, Any]]:
    """What the messages of these roles say, and all tool calls and results, in the common form."""
    tools: dict[str, str] = {}
    return [entry for line in lines for entry in _entries(line, roles, tools)]


def usage(lines: Iterable[Mapping[str, Any]]) -> list[ModelUsage]:
    """What each answer cost. An answer may be in several lines with the same id; the last line counts."""
    return list(usage_by_id(lines).values())


def usage_by_id(lines: Iterable[Mapping[str, Any]]) -> dict[str, ModelUsage]:
    found: dict[str, ModelUsage] = {}
    for number, line in enumerate(lines):
        message = _message(line)
        if isinstance(message.get("usage"), dict):
            name = message.get("responseId") or message.get("id") or number
            found[str(name)] = _usage(line, message, message["usage"])
    return found


def _message(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return table(line.get("message")) or line


def _entries(line: Mapping[str, Any], roles: Sequence[str], tools: dict[str, str]) -> Iterator[dict[str, Any]]:
    """`tools` are the names of the tools that were called so far, by the id of the call."""
    message = _message(line)
    role, at = message.get("role"), _moment(line, message)
    if role in _RESULTS:
        yield _result(at, message, message.get("toolName") or message.get("name"))
        return
    if role not in roles:
        return
    content = message.get("content")
    texts: list[str] = []
    parts: list[Any] = content if isinstance(content, list) else [content]
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        kind = table(part).get("type")
        if kind in _TEXTS:
            texts.append(str(part.get("text") or ""))
        elif kind in _CALLS + _RESULTS:
            yield from _text(at, str(role), texts)
            texts = []
            if kind in _CALLS:
                tools[str(part.get("id"))] = str(part.get("name") or "")
                yield {"timestamp": at, **called(part.get("name"), part.get("arguments", part.get("input")))}
            else:
                yield _result(at, part, part.get("name") or tools.get(str(part.get("tool_use_id"))))
    yield from _text(at, str(role), texts)


def _text(at: str, role: str, texts: list[str]) -> Iterator[dict[str, Any]]:
    if (text := "".join(texts)).strip():
        yield {"timestamp": at, "role": role, "text": text}


def called(tool: object, given: object) -> dict[str, Any]:
    """A tool call in the common form. The input of a shell tool is its command."""
    if isinstance(given, dict):
        command = given.get("command")
        given = command if isinstance(command, str) else json.dumps(given, ensure_ascii=False)
    return {"role": "tool_call", "text": "", "tool": str(tool or ""), "input": str(given or "")}


def _result(at: str, part: Mapping[str, Any], tool: object) -> dict[str, Any]:
    content = part.get("content")
    pieces = content if isinstance(content, list) else [content]
    text = "".join(str(piece.get("text") or "") if isinstance(piece, dict) else str(piece or "") for piece in pieces)
    failed = bool(part.get("isError", part.get("is_error")))
    result = {"timestamp": at, "role": "tool_result", "text": text, "tool": str(tool or "")}
    return {**result, "exit_code": int(failed)}


def _usage(line: Mapping[str, Any], message: Mapping[str, Any], spent: Mapping[str, Any]) -> ModelUsage:
    counts = {
        field: next((count(spent[name]) for name in names if name in spent), 0) for field, names in _TOKENS.items()
    }
    cost = spent.get("cost")
    cost = cost.get("total") if isinstance(cost, dict) else cost
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e9
    at, model = _moment(line, message), str(message.get("model") or "")
    return ModelUsage(at, model, **counts, cost_usd=cost if known else None)


def _moment(line: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """As text, or in milliseconds since 1970."""
    for at in (line.get("timestamp"), message.get("timestamp")):
        if isinstance(at, str) and at:
            return at
        if isinstance(at, int | float) and 0 < at < 1e14:
            return timestamp(at / 1000)
    return ""
