"""What our plugin in OpenCode records: one line for a session, a message or a part of one, again when it changed.
Pure: takes lines, gives the conversation, its cost, and the form that OpenCode itself imports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from mngr.agents.kinds.driver import Spent
from mngr.agents.record import timestamp
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any


class _Known(NamedTuple):
    """By id, in the order of first mention. Of each, the last form."""

    sessions: dict[str, dict[str, Any]]
    messages: dict[str, dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    times: dict[str, str]

    def main(self, message: Mapping[str, Any]) -> bool:
        """Not of a subagent."""
        return not self.sessions.get(str(message.get("sessionID")), {}).get("parentID")

    def parts_by_message(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in self.messages}
        for part in self.parts.values():
            found.setdefault(str(part.get("messageID")), []).append(part)
        return found


def _known(lines: Iterable[Mapping[str, Any]], *, with_removed: bool = False) -> _Known:
    known = _Known({}, {}, {}, {})
    for line in lines:
        for kind, found in (("session", known.sessions), ("message", known.messages), ("part", known.parts)):
            value = line.get(kind)
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                found[value["id"]] = value
                known.times[value["id"]] = str(line.get("timestamp") or "")
        if isinstance(line.get("removed"), str) and not with_removed:
            for found in known[:3]:
                found.pop(line["removed"], None)
    return known


def session(lines: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The one that was talked to last; before the first prompt, the one that was made last."""
    known = _known(lines)
    main = {name: value for name, value in known.sessions.items() if not value.get("parentID")}
    used = [str(message.get("sessionID")) for message in known.messages.values() if message.get("role") == "user"]
    for name in (*reversed(used), *reversed(main)):
        if name in main:
            return main[name]
    return None


def exported(lines: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A session as `opencode import` takes it. A tool that was at work has to have an end there."""
    known = _known(lines)
    parts = known.parts_by_message()
    own = [message for message in known.messages.values() if message.get("sessionID") == wanted["id"]]
    return {
        "info": dict(wanted),
        "messages": [{"info": one, "parts": [_ended(part) for part in parts[one["id"]]]} for one in own],
    }


def _ended(part: dict[str, Any]) -> dict[str, Any]:
    state = part.get("state")
    if not isinstance(state, dict) or state.get("status") != "running":
        return part
    start = state.get("time", {}).get("start", 0)
    ended = {"status": "error", "input": state.get("input", {}), "error": "interrupted"}
    return {**part, "state": {**ended, "time": {"start": start, "end": start}}}


def transcript(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    known = _known(lines)
    parts, found = known.parts_by_message(), []
    for message in known.messages.values():
        if known.main(message):
            for part in parts[message["id"]]:
                found += _entries(message, part, known.times[part["id"]])
            if failure := _failure(message):
                found.append({"timestamp": known.times[message["id"]], "role": "assistant", "text": failure})
    return sorted(found, key=lambda entry: str(entry["timestamp"]))  # a prompt may come in the middle of an answer


def _failure(message: Mapping[str, Any]) -> str:
    error = message.get("error")
    if not isinstance(error, dict):
        return ""
    data = error.get("data")
    return f"[{error.get('name')}: {data.get('message') if isinstance(data, dict) else ''}]"


def _entries(message: Mapping[str, Any], part: Mapping[str, Any], at: str) -> list[dict[str, Any]]:
    if part.get("type") == "text":
        text = str(part.get("text") or "")
        if not text or part.get("synthetic"):
            return []
        return [{"timestamp": _began(part) or at, "role": message.get("role"), "text": text}]
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return []
    tool = str(part.get("tool") or "")
    called: dict[str, Any] = {"timestamp": _began(state) or at, "role": "tool_call", "text": "", "tool": tool}
    entries = [{**called, "input": _input(state.get("input"))}]
    if state.get("status") in ("completed", "error"):
        metadata = state.get("metadata")
        code = metadata.get("exit") if isinstance(metadata, dict) else None
        failed = state["status"] == "error"
        text = str(state.get("error" if failed else "output") or "")
        done: dict[str, Any] = {"timestamp": at, "role": "tool_result", "text": text, "tool": tool}
        entries.append({**done, "exit_code": code if isinstance(code, int) else int(failed)})
    return entries


def _began(value: Mapping[str, Any]) -> str:
    at = value.get("time", {}).get("start") if isinstance(value.get("time"), dict) else None
    return timestamp(at / 1000 + 5e-7) if isinstance(at, int | float) and at > 0 else ""


def _input(given: object) -> str:
    if isinstance(given, dict) and isinstance(given.get("command"), str):
        return str(given["command"])
    return json.dumps(given, ensure_ascii=False)


def usage(lines: Iterable[Mapping[str, Any]]) -> list[Spent]:
    """One for every answer of a model, also to subagents, and also when it was taken back. OpenCode calls a cost that
    it does not know 0."""
    known = _known(lines, with_removed=True)
    found = []
    for part in known.parts.values():
        tokens = part.get("tokens")
        if part.get("type") == "step-finish" and isinstance(tokens, dict):
            message = known.messages.get(str(part.get("messageID")), {})
            cache = tokens.get("cache")
            cache = cache if isinstance(cache, dict) else {}
            cost = part.get("cost")
            spent = Spent(
                known.times[part["id"]],
                str(message.get("modelID") or ""),
                _whole(tokens.get("input")),
                _whole(tokens.get("output")) + _whole(tokens.get("reasoning")),
                _whole(cache.get("read")),
                _whole(cache.get("write")),
                float(cost) if isinstance(cost, int | float) and cost > 0 else None,
            )
            found.append(spent)
    return found


def _whole(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and abs(value) < 1e15 else 0
