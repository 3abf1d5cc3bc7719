"""The lines of a transcript as the page wants them: known fields only, of the right type, and not without end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mngr.e2e.artifacts import seconds

MOST_OUTPUT = 1_000_000
_TEXTS = {
    "command": ("command", "comment", "cwd"),
    "spawn": ("command", "comment", "recording"),
    "output": ("stream", "text"),
    "exit": (),
    "keys": ("keys",),
    "expect": ("text",),
    "note": ("text",),
}


def events_of(raw: Iterable[Mapping[str, Any]], started_at: float, most: int = MOST_OUTPUT) -> list[dict[str, Any]]:
    """The events, with output beyond `most` characters replaced by a line that says how much it was."""
    found: list[dict[str, Any]] = []
    left = most
    missing: dict[int | None, int] = {}
    for event in raw:
        made = _event(event, started_at)
        if made is None:
            continue
        if made["type"] == "output":
            text = made["text"]
            made["text"] = text[:left]
            if len(text) > left:
                missing[made["number"]] = missing.get(made["number"], 0) + len(text) - left
            left = max(0, left - len(text))
            if not made["text"]:
                continue
        found.append(made)
    for number, characters in missing.items():
        text = f"{characters:,} more characters of output are not on this page; `transcript.txt` has them."
        found.append({"type": "cut", "time": started_at, "number": number, "text": text})
    return found


def _event(event: Mapping[str, Any], started_at: float) -> dict[str, Any] | None:
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _TEXTS:
        return None
    time = seconds(event.get("time"))
    made: dict[str, Any] = {"type": kind, "time": started_at if time is None else time, "number": None}
    number = event.get("number")
    if isinstance(number, int) and not isinstance(number, bool):
        made["number"] = number
    for name in _TEXTS[kind]:
        made[name] = _text(event.get(name))
    if kind == "exit":
        made["exit_code"] = event["exit_code"] if isinstance(event.get("exit_code"), int) else None
        made["duration"] = seconds(event.get("duration"))
        made["timed_out"] = event.get("timed_out") is True
    if kind == "expect":
        made["passed"] = event.get("passed") is True
    return made


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
