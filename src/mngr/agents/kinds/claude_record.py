"""What Claude Code writes down: its conversation, what it cost, what it asks for, how a turn failed. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from mngr.agents.kinds import failing
from mngr.agents.kinds.driver import Spent
from mngr.agents.reasons import CREDIT, LOGIN, MODEL, RATE_LIMIT
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

SYNTHETIC = "<synthetic>"  # the "model" of what the program itself says in place of an answer
LONGEST_REASON = 300
_KINDS = {
    "rate_limit": RATE_LIMIT,
    "authentication_failed": LOGIN,
    "oauth_org_not_allowed": LOGIN,
    "billing_error": CREDIT,
    "model_not_found": MODEL,
}
_STATUS = r"API Error: (\d{3})\b"
_QUESTION = "AskUserQuestion"


def transcript(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines of one conversation. Each is there once, also when it was resumed elsewhere, with copies."""
    found: list[dict[str, Any]] = []
    seen: set[object] = set()
    tools: dict[object, str] = {}
    for line in map(_unwrapped, lines):
        if line.get("type") not in ("user", "assistant") or line.get("isMeta") or line.get("uuid") in seen:
            continue
        seen.add(line.get("uuid") or len(seen))
        found += _entries(line, tools)
    return found


def usage(lines: Iterable[Mapping[str, Any]]) -> dict[str, Spent]:
    """What each answer cost, by its id. One answer is several lines, each with what was counted up to then."""
    found: dict[str, Spent] = {}
    for line in lines:
        message = line.get("message")
        if line.get("type") != "assistant" or not isinstance(message, dict) or message.get("model") == SYNTHETIC:
            continue
        spent, name = message.get("usage"), message.get("id")
        if isinstance(spent, dict) and isinstance(name, str):
            found[name] = Spent(
                str(line.get("timestamp") or ""),
                str(message.get("model") or ""),
                _count(spent.get("input_tokens")),
                _count(spent.get("output_tokens")),
                _count(spent.get("cache_read_input_tokens")),
                _count(spent.get("cache_creation_input_tokens")),
            )
    return found


def waiting(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many messages are in its queue."""
    count = 0
    for line in lines:
        if line.get("type") == "queue-operation":
            change = line.get("operation")
            count = count + 1 if change == "enqueue" else 0 if change == "popAll" else max(0, count - 1)
    return count


def _unwrapped(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message that came in mid-turn is an attachment to a step of the turn."""
    given = line.get("attachment")
    if not isinstance(given, dict) or given.get("type") != "queued_command":
        return line
    return {**line, "type": "user", "origin": given.get("origin"), "message": {"content": given.get("prompt")}}


def asked(payload: object) -> str:
    """What a request for permission is about, as a reason."""
    if not isinstance(payload, dict):
        return "permission: it asks for something"
    tool, given = str(payload.get("tool_name") or "a tool"), payload.get("tool_input")
    given = given if isinstance(given, dict) else {}
    if tool == _QUESTION:
        questions = given.get("questions")
        first = questions[0] if isinstance(questions, list) and questions else {}
        return _short(f"question: {first.get('question') if isinstance(first, dict) else ''}")
    for name in ("command", "file_path", "notebook_path", "url", "pattern", "path", "plan"):
        if isinstance(given.get(name), str):
            return _short(f"permission: {tool}: {given[name]}")
    return _short(f"permission: {tool}" + (f": {json.dumps(given, ensure_ascii=False)}" if given else ""))


def failure(payload: object, said_at: float) -> tuple[bool, str]:
    """How a turn failed, and whether it takes a person, or time, to go on."""
    payload = payload if isinstance(payload, dict) else {}
    kind, text = payload.get("error"), str(payload.get("last_assistant_message") or payload.get("error") or "it failed")
    status = re.search(_STATUS, text)
    blocked = failing.reason(text, said_at, int(status[1]) if status else None, _KINDS.get(str(kind), ""))
    return (True, blocked) if blocked else (False, _short(text))


def retry(line: Mapping[str, Any]) -> tuple[float, str]:
    """For how many seconds the program waits before it asks the model again, and why. Who serves the model may limit
    one user, or, being overloaded, all. A login that is refused twice will be refused again."""
    data = line.get("data")
    data = data if isinstance(data, dict) else {}
    response = data.get("response")
    status = response.get("status") if isinstance(response, dict) else None
    kind = str(data.get("error_kind") or data.get("api_error_type") or data.get("connection_code") or "no answer")
    if status in (401, 403) and _count(data.get("attempt")) > 1:
        return _count(data.get("delay_ms")) / 1000, f"{LOGIN}: the model's server refuses it (HTTP {status})"
    why = RATE_LIMIT if status == 429 else f"{RATE_LIMIT}: overloaded" if status == 529 else kind.replace("_", " ")
    return _count(data.get("delay_ms")) / 1000, why


def _entries(line: Mapping[str, Any], tools: dict[object, str]) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    message = message if isinstance(message, dict) else {}
    content, at = message.get("content"), str(line.get("timestamp") or "")
    origin = line.get("origin")
    notice = isinstance(origin, dict) and origin.get("kind") not in (None, "human")
    role = "system" if notice else str(line["type"])
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and str(part.get("text") or "").strip():
            yield {"timestamp": at, "role": role, "text": str(part["text"])}
        elif kind == "tool_use":
            tools[part.get("id")] = str(part.get("name") or "")
            given = _input(part.get("input"))
            yield {"timestamp": at, "role": "tool_call", "text": "", "tool": tools[part.get("id")], "input": given}
        elif kind == "tool_result":
            tool, failed = tools.get(part.get("tool_use_id"), ""), int(bool(part.get("is_error")))
            text = _text(part.get("content"))
            yield {"timestamp": at, "role": "tool_result", "text": text, "tool": tool, "exit_code": failed}


def _input(given: object) -> str:
    if isinstance(given, dict):
        command = given.get("command")
        return command if isinstance(command, str) else json.dumps(given, ensure_ascii=False)
    return str(given or "")


def _text(content: object) -> str:
    pieces = content if isinstance(content, list) else [content]
    return "".join(str(piece.get("text") or "") if isinstance(piece, dict) else str(piece or "") for piece in pieces)


def _count(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else 0


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}..."
