"""The append-only log of one agent, `events.jsonl`: what happened, in the order it happened."""

from __future__ import annotations

from mngr.agent.record import timestamp
from mngr.names import new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "events.jsonl"


def new_event(source: str, type: str, **fields: Any) -> dict[str, Any]:
    return {"event_id": new_id("evt"), "timestamp": timestamp(), "source": source, "type": type, **fields}
