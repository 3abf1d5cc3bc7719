"""Drives programs that speak our own form: they write their states, prompts, usage and transcript to their agent's
state directory themselves. The scripted kind does, and kinds of plugins may."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.agents import events
from mngr.agents.kinds import driver
from mngr.agents.kinds.driver import Launch, Place, Program, Spent, Wording
from mngr.agents.record import Record
from mngr.agents.state import Status
from mngr.files import read_lines
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

TRANSCRIPT = "transcript.jsonl"


class Reporting:
    program = Program(name="", install="", oldest="", tried="")
    ready_seconds = 60.0
    dialogs: Sequence[tuple[str, str]] = ()
    conversation: Sequence[str] = ()

    def takes_prompt(self, record: Record) -> bool:
        return record.one_shot

    def prepare(self, place: Place, *, prompted: bool) -> Launch:
        if not place.record.one_shot:
            return Launch(place.record.command)
        return Launch(driver.one_shot(place, place.record.rules["one_shot"]))

    def look(self, place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        return status

    def wording(self, text: str) -> Wording:
        return Wording(text, _digest(text))

    def mark(self, place: Place) -> object:
        return len(_events(place))

    def received(self, place: Place, mark: object) -> list[str]:
        """Such programs tell a prompt by its digest."""
        since = mark if isinstance(mark, int) else 0
        return [str(event.get("text_sha256")) for event in _events(place)[since:] if event.get("type") == "prompt"]

    def occupied(self, screen: str) -> str:
        return ""

    def deliver(self, place: Place, text: str) -> bool:
        return False

    def transcript(self, place: Place) -> list[dict[str, Any]]:
        return _lines(place, TRANSCRIPT)

    def usage(self, place: Place) -> list[Spent]:
        return [_spent(event) for event in _events(place) if event.get("type") == "usage"]

    def login(self, environ: Mapping[str, str]) -> str:
        return ""


DRIVER = Reporting()


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _events(place: Place) -> list[dict[str, Any]]:
    return _lines(place, events.FILE)


def _lines(place: Place, name: str) -> list[dict[str, Any]]:
    try:
        return read_lines(place.host.read(os.path.join(place.state_dir, name)))
    except FileNotFoundError:
        return []


def _spent(event: Mapping[str, Any]) -> Spent:
    read, written, cached = (_whole(event.get(f"{name}_tokens")) for name in ("input", "output", "cache_read"))
    cost = event.get("cost_usd")
    known = isinstance(cost, int | float) and cost == cost and abs(cost) < 1e9
    return Spent(
        timestamp=str(event.get("timestamp") or ""),
        model=str(event.get("model") or ""),
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=cached,
        cache_write_tokens=_whole(event.get("cache_write_tokens")),
        cost_usd=max(0.0, float(cost)) if known and cost is not None else None,
    )


def _whole(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else 0
