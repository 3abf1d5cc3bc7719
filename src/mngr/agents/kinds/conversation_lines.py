"""Reads a conversation that an agent program keeps as JSON lines of chat messages, in the spellings that are common
among such programs. What has none of these forms is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from mngr.agents.kinds.driver import Spent
from mngr.agents.record import timestamp
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("toolCall", "tool_call", "tool_use", "function_call")
_RESULTS = ("toolResult", "tool_result", "tool")
_TOKENS = {
    "input_tokens": ("input", "input_tokens"),
    "output_tokens": ("output", "output_tokens"),
    "cache_read_tokens": ("cacheRead", "cache_read", "cache_read_input_tokens"),
    "cache_write_tokens": ("cacheWrite", "cache_write", "cache_creation_input_tokens"),
}


def transcript(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [entry for line in lines for entry in _entries(line)]


def usage(lines: Iterable[Mapping[str, Any]]) -> list[Spent]:
    """What each answer cost; one that is told twice, by the same id, counts once."""
    found: dict[object, Spent] = {}
    for number, line in enumerate(lines):
        message = _message(line)
        spent = message.get("usage")
        if isinstance(spent, dict):
            name = message.get("responseId") or message.get("id") or number
            found[name if isinstance(name, str | int) else number] = _spent(line, message, spent)
    return list(found.values())


def _message(line: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = line.get("message")
    return inner if isinstance(inner, dict) else line


def _entries(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = _message(line)
    role, at = message.get("role"), _moment(line, message)
    if role in _RESULTS:
        yield _result(at, message, message.get("toolName") or message.get("name"))
        return
    if role not in ("user", "assistant"):
        return
    content = message.get("content")
    texts = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type") in _TEXTS:
            texts.append(str(part.get("text") or ""))
        elif isinstance(part, dict) and part.get("type") in _CALLS + _RESULTS:
            if text := "".join(texts):
                yield {"timestamp": at, "role": role, "text": text}
            texts = []
            yield _call(at, part) if part["type"] in _CALLS else _result(at, part, part.get("name"))
    if text := "".join(texts):
        yield {"timestamp": at, "role": role, "text": text}


def _call(at: str, part: Mapping[str, Any]) -> dict[str, Any]:
    given = part.get("arguments", part.get("input"))
    if isinstance(given, dict):
        command = given.get("command")
        given = command if isinstance(command, str) else json.dumps(given, ensure_ascii=False)
    return {
        "timestamp": at,
        "role": "tool_call",
        "text": "",
        "tool": str(part.get("name") or ""),
        "input": str(given or ""),
    }


def _result(at: str, part: Mapping[str, Any], tool: object) -> dict[str, Any]:
    content = part.get("content")
    pieces = content if isinstance(content, list) else [content]
    text = "".join(str(piece.get("text") or "") if isinstance(piece, dict) else str(piece or "") for piece in pieces)
    failed = bool(part.get("isError", part.get("is_error")))
    return {
        "timestamp": at,
        "role": "tool_result",
        "text": text,
        "tool": str(tool or ""),
        "exit_code": int(failed),
    }


def _spent(line: Mapping[str, Any], message: Mapping[str, Any], spent: Mapping[str, Any]) -> Spent:
    counts = {
        field: next((_whole(spent[name]) for name in names if name in spent), 0) for field, names in _TOKENS.items()
    }
    cost = spent.get("cost")
    cost = cost.get("total") if isinstance(cost, dict) else cost
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < 1e9
    return Spent(_moment(line, message), str(message.get("model") or ""), **counts, cost_usd=cost if known else None)


def _moment(line: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """As text, or in milliseconds since 1970."""
    for at in (line.get("timestamp"), message.get("timestamp")):
        if isinstance(at, str) and at:
            return at
        if isinstance(at, int | float) and 0 < at < 1e14:
            return timestamp(at / 1000)
    return ""


def _whole(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and abs(value) < 1e15 else 0
