"""Reads what Codex writes about a conversation, its rollout: JSON lines, one file for each thread. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from mngr.agents.kinds import failing
from mngr.agents.kinds.driver import Spent
from mngr.agents.reasons import LOGIN, RATE_LIMIT
from mngr.agents.record import seconds_of
from mngr.agents.state import BLOCKED, RUNNING, WAITING
from mngr.process import join
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

# Inside of a string every quote is escaped, so these bytes are never part of what somebody wrote.
_MARKS = tuple(b'"payload":{"type":"%s"' % name for name in (b"task_started", b"task_complete", b"turn_aborted"))
_QUESTION = b'"name":"request_user_input"'
_ANSWER = b'"payload":{"type":"function_call_output"'
_KINDS = {"usage_limit_exceeded": RATE_LIMIT, "unauthorized": LOGIN}


class Fact(NamedTuple):
    """What the program's own record says, and the point in time at which it was written; empty when it says nothing."""

    state: str
    reason: str
    timestamp: str


def last_fact(tail: bytes) -> Fact | None:
    """The state that the end of a rollout tells; None when it is empty. A turn ends with a mark, so where there is none
    it goes on."""
    last = _line_at(tail, len(tail.rstrip(b"\n")) - 1)
    if last is None:
        return None
    at = max(tail.rfind(mark) for mark in _MARKS)
    line = _line_at(tail, at) if at >= 0 else None
    if line is None:
        return Fact(RUNNING, "", _text(last.get("timestamp")))
    payload, written = _mapping(line.get("payload")), _text(line.get("timestamp"))
    kind = payload.get("type")
    if kind == "task_started":
        question = _open_question(tail)
        return Fact(BLOCKED, f"question: {question}", written) if question else Fact(RUNNING, "", written)
    if kind == "turn_aborted":
        return Fact(WAITING, _text(payload.get("reason")), written)
    return Fact(*ending(payload.get("error"), written), written)


def ending(error: object, written: str) -> tuple[str, str]:
    """The state after a turn that ended with this error, if any, and when that was written down."""
    if not isinstance(error, dict):
        return WAITING, ""
    message, about = _text(error.get("message")) or "the turn failed", error.get("codex_error_info")
    status = next((one.get("http_status_code") for one in _mapping(about).values() if isinstance(one, dict)), None)
    known = status if isinstance(status, int) else None
    blocked = failing.reason(message, seconds_of(written), known, _KINDS.get(str(about), ""))
    return (BLOCKED, blocked) if blocked else (WAITING, message)


def _open_question(tail: bytes) -> str:
    """What the model asks the user with its tool for that, if it waits for the answer."""
    at = tail.rfind(_QUESTION)
    if at < 0 or at < tail.rfind(_ANSWER):
        return ""
    call = _mapping((_line_at(tail, at) or {}).get("payload"))
    try:
        asked = json.loads(_text(call.get("arguments")))["questions"]
        return " / ".join(str(one["question"]) for one in asked)
    except (ValueError, KeyError, TypeError):
        return "it asks for an answer"


def _line_at(data: bytes, at: int) -> dict[str, Any] | None:
    """The JSON object of the line in which this byte is; the line before it when that one is half-written."""
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        try:
            value = json.loads(data[start : end if end >= 0 else len(data)])
            if isinstance(value, dict):
                return value
        except (ValueError, RecursionError):
            pass
        at = start - 2
    return None


def root_thread(line: Mapping[str, Any]) -> str:
    """The thread that began what a rollout with this first line is part of: another one for those of sub-agents."""
    return _text(_mapping(line.get("payload")).get("session_id"))


def origin(line: bytes) -> tuple[str, object]:
    """The thread of a rollout with this first line, and what began it: `cli`, `exec`, or of which it is a part."""
    payload = _mapping((_line_at(line, len(line) - 1) or {}).get("payload"))
    return _text(payload.get("id")), payload.get("source")


def transcript(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    calls: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        payload = _mapping(line.get("payload"))
        item = payload.get("item")
        if payload.get("type") == "function_call":
            calls[_text(payload.get("call_id"))] = payload
        for entry in _refused(calls.get(_text(payload.get("call_id")), {}), payload):
            yield {"timestamp": _text(line.get("timestamp")), **entry}
        if payload.get("type") == "item_completed" and isinstance(item, dict):
            for entry in _entries(item):
                yield {"timestamp": _text(line.get("timestamp")), **entry}
        elif payload.get("type") == "task_complete" and isinstance(payload.get("error"), dict):
            text = _text(payload["error"].get("message"))
            yield {"timestamp": _text(line.get("timestamp")), "role": "assistant", "text": text, "error": True}


def _refused(call: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A call that the program did not run, by its rules or because it could not. Of all others it completes an item."""
    name, output = _text(call.get("name")), _text(answer.get("output"))
    if answer.get("type") == "function_call_output" and name and output.startswith(f"{name} failed"):
        given = _text(call.get("arguments"))
        try:
            given = _text(_mapping(json.loads(given)).get("cmd")) or given
        except (ValueError, RecursionError):
            pass
        yield {"role": "tool_call", "tool": name, "input": given}
        yield {"role": "tool_result", "tool": name, "text": output, "exit_code": 1}


def _entries(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = _text(item.get("type"))
    if kind in ("UserMessage", "AgentMessage"):
        content = item.get("content")
        parts = [_text(_mapping(part).get("text")) for part in (content if isinstance(content, list) else ())]
        yield {"role": "user" if kind == "UserMessage" else "assistant", "text": "".join(parts)}
    elif kind == "CommandExecution":
        yield {"role": "tool_call", "tool": "exec_command", "input": _command(item.get("command"))}
        result = {"role": "tool_result", "tool": "exec_command", "text": _text(item.get("aggregated_output"))}
        yield {**result, "exit_code": item.get("exit_code")}
    elif kind == "FileChange":
        changed = _mapping(item.get("changes"))
        yield {"role": "tool_call", "tool": "apply_patch", "input": json.dumps(changed, ensure_ascii=False)}
        text = _text(item.get("stdout")) + _text(item.get("stderr"))
        done = item.get("status") == "completed"
        yield {"role": "tool_result", "tool": "apply_patch", "text": text, "exit_code": 0 if done else 1}
    elif kind and kind != "Reasoning":
        name = _text(item.get("tool")) or kind
        rest = {key: value for key, value in item.items() if key not in ("type", "id", "tool")}
        yield {"role": "tool_call", "tool": name, "input": json.dumps(rest, ensure_ascii=False)}


def _command(words: object) -> str:
    """The line that the model gave; the program runs it as `SHELL -lc LINE`."""
    found = [str(word) for word in words] if isinstance(words, list) else []
    return found[2] if len(found) == 3 and found[1] in ("-c", "-lc") else join(found)


def usage(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Spent]]:
    """What each answer cost, with its id. The program counts cached tokens as input too, and reasoning as output."""
    model = ""
    for line in lines:
        payload = _mapping(line.get("payload"))
        if line.get("type") == "turn_context":
            model = _text(payload.get("model")) or model
        elif line.get("type") == "token_usage_record":
            spent = _mapping(payload.get("usage"))
            read, written = _number(spent, "cached_input_tokens"), _number(spent, "cache_write_input_tokens")
            yield (
                _text(payload.get("response_id")) or _text(line.get("timestamp")),
                Spent(
                    timestamp=_text(line.get("timestamp")),
                    model=model,
                    input_tokens=max(0, _number(spent, "input_tokens") - read - written),
                    output_tokens=_number(spent, "output_tokens"),
                    cache_read_tokens=read,
                    cache_write_tokens=written,
                ),
            )


def asked(payload: object) -> str:
    """What a request for permission is about, in one line."""
    told = _mapping(payload)
    given = _mapping(told.get("tool_input"))
    subject = _text(given.get("command")) or _text(given.get("description")) or json.dumps(given, ensure_ascii=False)
    subject = " ".join(subject.split())
    return f"{_text(told.get('tool_name')) or 'a tool'}: {subject[:200]}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Mapping[str, Any], name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 0
