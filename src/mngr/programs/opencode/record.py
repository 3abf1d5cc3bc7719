"""Reads what our plugin in OpenCode records: a line for each session, message or part of a message, and another line
when it changes. Pure: from lines to the conversation, its cost, and the form that OpenCode itself imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mngr.agent.record import timestamp
from mngr.json_values import count, table
from mngr.named_tuples import NamedTuple
from mngr.programs.conversation_lines import called
from mngr.programs.driver import ModelUsage


class _Known(NamedTuple):
    """The last form of each object, by id, in the order of first mention."""

    sessions: dict[str, dict[str, Any]]
    messages: dict[str, dict[str, Any]]
    parts: dict[str, dict[str, Any]]
    times: dict[str, str]

    def main(self, message: Mapping[str, Any]) -> bool:
        """Whether the message belongs to the agent itself and not to a sub-agent."""
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
    """The session with the last prompt; before the first prompt, the newest session."""
    known = _known(lines)
    main = {name: value for name, value in known.sessions.items() if not value.get("parentID")}
    used = [str(message.get("sessionID")) for message in known.messages.values() if message.get("role") == "user"]
    for name in (*reversed(used), *reversed(main)):
        if name in main:
            return main[name]
    return None


def exported(lines: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A session as `opencode import` takes it. A running tool call gets an end."""
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
    error = table(message.get("error"))
    return f"[{error.get('name')}: {table(error.get('data')).get('message', '')}]" if error else ""


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
    entries = [{"timestamp": _began(state) or at, **called(tool, state.get("input"))}]
    if state.get("status") in ("completed", "error"):
        code = table(state.get("metadata")).get("exit")
        failed = state["status"] == "error"
        text = str(state.get("error" if failed else "output") or "")
        done: dict[str, Any] = {"timestamp": at, "role": "tool_result", "text": text, "tool": tool}
        entries.append({**done, "exit_code": code if isinstance(code, int) else int(failed)})
    return entries


def _began(value: Mapping[str, Any]) -> str:
    at = table(value.get("time")).get("start")
    return timestamp(at / 1000 + 5e-7) if isinstance(at, int | float) and at > 0 else ""


def usage(lines: Iterable[Mapping[str, Any]]) -> list[ModelUsage]:
    """One for every answer of a model, including answers to sub-agents and reverted ones. OpenCode reports an unknown
    cost as 0."""
    known = _known(lines, with_removed=True)
    found = []
    for part in known.parts.values():
        tokens = part.get("tokens")
        if part.get("type") == "step-finish" and isinstance(tokens, dict):
            message = known.messages.get(str(part.get("messageID")), {})
            cache, cost = table(tokens.get("cache")), part.get("cost")
            spent = ModelUsage(
                known.times[part["id"]],
                str(message.get("modelID") or ""),
                count(tokens.get("input")),
                count(tokens.get("output")) + count(tokens.get("reasoning")),
                count(cache.get("read")),
                count(cache.get("write")),
                float(cost) if isinstance(cost, int | float) and cost > 0 else None,
            )
            found.append(spent)
    return found
