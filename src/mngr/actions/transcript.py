"""The conversation of an agent in one common form, whatever its kind: what was said by whom, and which tools ran."""

from __future__ import annotations

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

# `system` is what a program itself tells its model in between, such as the end of a command in the background.
ROLES = ("user", "assistant", "system", "tool_call", "tool_result")


class Transcript(NamedTuple):
    """`kept` says that the agent writes it itself; without, it is only what was sent to it."""

    entries: list[dict[str, Any]]
    kept: bool


def read(fleet: Fleet, agent: Agent) -> Transcript:
    """All entries, oldest first: `timestamp`, `role` and `text`, with `tool`, `input` and `exit_code` for tools."""
    from mngr.agents.kinds import driver

    known = driver.of(agent.record)
    lines = (known or driver.find("reporting")).transcript(fleet.place(agent.record))
    if not lines:
        return Transcript(_messages(fleet.store.events(agent.id)), kept=known is not None)
    return Transcript([_entry(line) for line in lines], kept=True)


def _entry(line: dict[str, Any]) -> dict[str, Any]:
    """In one order of keys; what else a kind writes comes after."""
    first = {name: str(line.get(name) or "") for name in ("timestamp", "role", "text")}
    return {**first, **{name: value for name, value in line.items() if name not in first}}


def _messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that reached its terminal, at the moment they did."""
    texts = {event.get("message_id"): event.get("text") for event in events if event.get("type") == "message_queued"}
    return [
        {"timestamp": event["timestamp"], "role": "user", "text": texts[event["message_id"]]}
        for event in events
        if event.get("type") == "message_delivered" and event.get("message_id") in texts
    ]
