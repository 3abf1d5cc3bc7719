"""Records of agents: made for tests that need no agent, and changed in the file of one."""

import json
from pathlib import Path
from typing import Any

from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record

CREATED = "2026-01-01T00:00:00.000000Z"


def make_record(**fields: Any) -> Record:
    """A record of an agent `a` that runs `cat` in place, with other values of these fields."""
    plain = Record(
        "agent-" + "0" * 32,
        "a",
        AgentSpec("command", "cat"),
        AgentWorkspace("/w", "none"),
        AgentLife("mngr-a", CREATED),
    )
    return plain.changed(**fields)


def edit_record(path: Path, **fields: Any) -> None:
    """Replace fields of an `agent.json` by hand, whatever mngr would say of their values."""
    path.write_text(json.dumps(edited(json.loads(path.read_bytes()), **fields)))


def edited(value: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The JSON of a record with other values of these fields, each where it belongs."""
    parts: dict[str, Any] = {"spec": AgentSpec, "workspace": AgentWorkspace, "life": AgentLife}
    for name, field in fields.items():
        part = next((part for part, kind in parts.items() if name in kind._fields), None)
        if part is None:
            value = {**value, name: field}
        elif isinstance(value[part], dict):
            value = {**value, part: {**value[part], name: field}}
    return value
