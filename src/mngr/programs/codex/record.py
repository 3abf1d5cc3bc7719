"""Reads what Codex writes about a conversation: its rollout, JSON lines, one file for each thread; and its log, which
alone says that it waits, and how long, before it asks its model again. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mngr.agent import reasons
from mngr.agent.reasons import LOGIN, RATE_LIMIT
from mngr.agent.record import seconds_of
from mngr.agent.state import BLOCKED, RUNNING, WAITING, Status
from mngr.json_values import count, loads, objects, string, table
from mngr.named_tuples import NamedTuple
from mngr.programs.driver import ModelUsage
from mngr.system.process import join

# Inside of a string every quote is escaped, so these bytes are never part of what somebody wrote.
_MARKS = tuple(b'"payload":{"type":"%s"' % name for name in (b"task_started", b"task_complete", b"turn_aborted"))
_QUESTION = b'"name":"request_user_input"'
_ANSWER = b'"payload":{"type":"function_call_output"'
_KINDS = {"usage_limit_exceeded": RATE_LIMIT, "unauthorized": LOGIN}

# Of the log.
LOG = "codex-tui.log"
_MARK = b"codex_core::responses_retry: "
_RETRY = re.compile(r"^(\S+Z) .*\((\d+)/\d+ in ([0-9.]+)(ns|µs|ms|s)\)\.\.\. .*?sampling_error=(.*)")
_UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
# How long an answer may take that refuses a login again.
_ASKED_SECONDS = 10.0


class TurnFact(NamedTuple):
    """The state by the program's own record, and when the record was written."""

    state: str
    reason: str
    timestamp: str


def last_fact(tail: bytes) -> TurnFact | None:
    """The state by the end of a rollout; None when it is empty. A turn without an end mark is still running."""
    last = _line_at(tail, len(tail.rstrip(b"\n")) - 1)
    if last is None:
        return None
    at = max(tail.rfind(mark) for mark in _MARKS)
    line = _line_at(tail, at) if at >= 0 else None
    if line is None:
        return TurnFact(RUNNING, "", string(last.get("timestamp")))
    payload, written = table(line.get("payload")), string(line.get("timestamp"))
    kind = payload.get("type")
    if kind == "task_started":
        question = _open_question(tail)
        return TurnFact(BLOCKED, f"question: {question}", written) if question else TurnFact(RUNNING, "", written)
    if kind == "turn_aborted":
        return TurnFact(WAITING, string(payload.get("reason")), written)
    return TurnFact(*ending(payload.get("error"), written), written)


def ending(error: object, written: str) -> tuple[str, str]:
    """State and reason after a turn that ended with this error, if any, at the time `written`."""
    if not isinstance(error, dict):
        return WAITING, ""
    message, about = string(error.get("message")) or "the turn failed", error.get("codex_error_info")
    status = next((one.get("http_status_code") for one in table(about).values() if isinstance(one, dict)), None)
    known = status if isinstance(status, int) else None
    blocked = reasons.of_error(message, seconds_of(written), known, _KINDS.get(str(about), ""))
    return (BLOCKED, blocked) if blocked else (WAITING, message)


def _open_question(tail: bytes) -> str:
    """The question of the model's tool for questions, while it waits for the answer."""
    at = tail.rfind(_QUESTION)
    if at < 0 or at < tail.rfind(_ANSWER):
        return ""
    call = loads(string(table((_line_at(tail, at) or {}).get("payload")).get("arguments")))
    questions = [string(one.get("question")) for one in objects(call.get("questions"))]
    return " / ".join(filter(None, questions)) or "it asks for an answer"


def _line_at(data: bytes, at: int) -> dict[str, Any] | None:
    """The JSON object in the line with this byte; of a half-written line, the line before it."""
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        if value := loads(data[start : end if end >= 0 else len(data)]):
            return value
        at = start - 2
    return None


def root_thread(line: Mapping[str, Any]) -> str:
    """The main thread to which a rollout with this first line belongs. A sub-agent's rollout names its parent here."""
    return string(table(line.get("payload")).get("session_id"))


def origin(line: bytes) -> tuple[str, object]:
    """The thread of a rollout with this first line, and what began it: `cli`, `exec`, or another thread."""
    payload = table((_line_at(line, len(line) - 1) or {}).get("payload"))
    return string(payload.get("id")), payload.get("source")


def transcript(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    calls: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        payload = table(line.get("payload"))
        item = payload.get("item")
        if payload.get("type") == "function_call":
            calls[string(payload.get("call_id"))] = payload
        for entry in _refused(calls.get(string(payload.get("call_id")), {}), payload):
            yield {"timestamp": string(line.get("timestamp")), **entry}
        if payload.get("type") == "item_completed" and isinstance(item, dict):
            for entry in _entries(item):
                yield {"timestamp": string(line.get("timestamp")), **entry}
        elif payload.get("type") == "task_complete" and isinstance(payload.get("error"), dict):
            text = string(payload["error"].get("message"))
            yield {"timestamp": string(line.get("timestamp")), "role": "assistant", "text": text, "error": True}


def _refused(call: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A call that the program refused or could not run. Every other call has a completed item in the record."""
    name, output = string(call.get("name")), string(answer.get("output"))
    if answer.get("type") == "function_call_output" and name and output.startswith(f"{name} failed"):
        given = string(call.get("arguments"))
        given = string(loads(given).get("cmd")) or given
        yield {"role": "tool_call", "tool": name, "input": given}
        yield {"role": "tool_result", "tool": name, "text": output, "exit_code": 1}


def _entries(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = string(item.get("type"))
    if kind in ("UserMessage", "AgentMessage"):
        parts = [string(part.get("text")) for part in objects(item.get("content"))]
        yield {"role": "user" if kind == "UserMessage" else "assistant", "text": "".join(parts)}
    elif kind == "CommandExecution":
        yield {"role": "tool_call", "tool": "exec_command", "input": _command(item.get("command"))}
        result = {"role": "tool_result", "tool": "exec_command", "text": string(item.get("aggregated_output"))}
        yield {**result, "exit_code": item.get("exit_code")}
    elif kind == "FileChange":
        changed = table(item.get("changes"))
        yield {"role": "tool_call", "tool": "apply_patch", "input": json.dumps(changed, ensure_ascii=False)}
        text = string(item.get("stdout")) + string(item.get("stderr"))
        done = item.get("status") == "completed"
        yield {"role": "tool_result", "tool": "apply_patch", "text": text, "exit_code": 0 if done else 1}
    elif kind and kind != "Reasoning":
        name = string(item.get("tool")) or kind
        rest = {key: value for key, value in item.items() if key not in ("type", "id", "tool")}
        yield {"role": "tool_call", "tool": name, "input": json.dumps(rest, ensure_ascii=False)}


def _command(words: object) -> str:
    """The model's command line, which the program runs as `SHELL -lc LINE`."""
    found = [str(word) for word in words] if isinstance(words, list) else []
    return found[2] if len(found) == 3 and found[1] in ("-c", "-lc") else join(found)


def usage(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ModelUsage]]:
    """What each answer cost, with its id. Codex counts cached tokens as input, and reasoning as output."""
    model = ""
    for line in lines:
        payload = table(line.get("payload"))
        if line.get("type") == "turn_context":
            model = string(payload.get("model")) or model
        elif line.get("type") == "token_usage_record":
            spent = table(payload.get("usage"))
            read, written = count(spent.get("cached_input_tokens")), count(spent.get("cache_write_input_tokens"))
            yield (
                string(payload.get("response_id")) or string(line.get("timestamp")),
                ModelUsage(
                    timestamp=string(line.get("timestamp")),
                    model=model,
                    input_tokens=max(0, count(spent.get("input_tokens")) - read - written),
                    output_tokens=count(spent.get("output_tokens")),
                    cache_read_tokens=read,
                    cache_write_tokens=written,
                ),
            )


def waiting(tail: bytes, thread: str, since: float, now: float) -> Status | None:
    """What this thread waits for in the turn that began at `since`; None when the end of the log does not say so."""
    lines = [line for line in tail.split(b"\n") if _MARK in line]
    own = [line for line in lines if b"thread_id=" not in line or f"thread_id={thread}".encode() in line]
    found = _RETRY.match(own[-1].decode(errors="replace")) if own else None
    if found is None:
        return None
    try:
        refused_at = seconds_of(found[1])
    except ValueError:
        return None
    state, reason, until = _judged(found, refused_at)
    if refused_at < since or now >= until + (_ASKED_SECONDS if state == BLOCKED and reason.startswith(LOGIN) else 0.0):
        return None
    return Status(state, reason, refused_at, f"{LOG}: {_MARK.decode().rstrip(': ')}")


def _judged(found: re.Match[str], refused_at: float) -> tuple[str, str, float]:
    """State, reason and when it asks again. A login must be refused twice: a token may just have to be renewed."""
    number, text = int(found[2]), found[5].strip()
    until = refused_at + float(found[3]) * _UNITS[found[4]]
    status = _STATUS.search(text)
    why = reasons.of_error(text, refused_at, int(status[1]) if status else None)
    refused = why.startswith(LOGIN)
    if refused and number > 1:
        return BLOCKED, why, until
    if not why or refused:
        return RUNNING, f"no answer: {reasons.retry_at(until)}: {text}", until
    return BLOCKED, reasons.limited(text, until), until
