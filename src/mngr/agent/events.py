"""The append-only log of one agent, `events.jsonl`: what happened, in the order it happened."""

from __future__ import annotations

from typing import Any

from mngr.agent.record import timestamp
from mngr.names import new_id

FILE = "events.jsonl"


def new_event(source: str, type: str, **fields: Any) -> dict[str, Any]:
    return {"event_id": new_id("evt"), "timestamp": timestamp(), "source": source, "type": type, **fields}
