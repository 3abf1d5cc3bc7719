"""What Claude Code records: its conversation, what it cost, what it asks for, how a turn failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mngr.agent import reasons
from mngr.agent.reasons import CREDIT, LOGIN, MODEL, RATE_LIMIT, shortened
from mngr.json_values import count, string, table
from mngr.programs import conversation_lines
from mngr.programs.driver import ModelUsage

SYNTHETIC = "<synthetic>"  # the "model" of what the program itself says in place of an answer
_KINDS = {
    "rate_limit": RATE_LIMIT,
    "authentication_failed": LOGIN,
    "oauth_org_not_allowed": LOGIN,
    "billing_error": CREDIT,
    "model_not_found": MODEL,
}
_STATUS = r"API Error: (\d{3})\b"


def transcript(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines of one conversation. A resumed conversation has copies of earlier lines: each counts once."""
    found: dict[object, Mapping[str, Any]] = {}
    for line in lines:
        given = table(line.get("attachment"))
        if given.get("type") == "queued_command":  # a message that came in mid-turn is attached to a step of the turn
            line = {**line, "type": "user", "origin": given.get("origin"), "message": {"content": given.get("prompt")}}
        if line.get("type") not in ("user", "assistant") or line.get("isMeta"):
            continue
        notice = table(line.get("origin")).get("kind") not in (None, "human")
        message = {**table(line.get("message")), "role": "system" if notice else line["type"]}
        found.setdefault(
            string(line.get("uuid")) or len(found), {"timestamp": line.get("timestamp"), "message": message}
        )
    return conversation_lines.transcript(found.values(), ("user", "assistant", "system"))


def usage(lines: Iterable[Mapping[str, Any]]) -> dict[str, ModelUsage]:
    """What each answer cost, by its id. An answer is several lines, each with the tokens counted so far."""

    def answered(line: Mapping[str, Any]) -> bool:
        message = table(line.get("message"))
        named = isinstance(message.get("id"), str) and message.get("model") != SYNTHETIC
        return line.get("type") == "assistant" and named

    return conversation_lines.usage_by_id(filter(answered, lines))


def waiting(lines: Iterable[Mapping[str, Any]]) -> int:
    """How many messages are in its queue."""
    queued = 0
    for line in lines:
        if line.get("type") == "queue-operation":
            change = line.get("operation")
            queued = queued + 1 if change == "enqueue" else 0 if change == "popAll" else max(0, queued - 1)
    return queued


def failure(payload: object, said_at: float) -> tuple[bool, str]:
    """Whether the failed turn needs a person or time before it can continue, and why it failed."""
    failed = table(payload)
    text = str(failed.get("last_assistant_message") or failed.get("error") or "it failed")
    status = re.search(_STATUS, text)
    kind = _KINDS.get(string(failed.get("error")), "")
    blocked = reasons.of_error(text, said_at, int(status[1]) if status else None, kind)
    return (True, blocked) if blocked else (False, shortened(text))


def retry(line: Mapping[str, Any]) -> tuple[float, str]:
    """How many seconds the program waits before it asks the model again, and why. The server may limit one user, or be
    overloaded. A login that was refused twice will be refused again."""
    data = table(line.get("data"))
    status, seconds = table(data.get("response")).get("status"), count(data.get("delay_ms")) / 1000
    kind = str(data.get("error_kind") or data.get("api_error_type") or data.get("connection_code") or "no answer")
    if status in (401, 403) and count(data.get("attempt")) > 1:
        return seconds, f"{LOGIN}: the model's server refuses it (HTTP {status})"
    why = RATE_LIMIT if status == 429 else f"{RATE_LIMIT}: overloaded" if status == 529 else kind.replace("_", " ")
    return seconds, why
