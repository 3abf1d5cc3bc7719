"""An agent as it was seen at one moment: its record, its state and its terminal."""

from __future__ import annotations

import time

from mngr.agents.record import Record, seconds_of
from mngr.agents.state import Status
from mngr.errors import MngrError
from mngr.records import TYPE_CHECKING, NamedTuple
from mngr.tools.tmux import Pane

if TYPE_CHECKING:
    from typing import Any


class Agent(NamedTuple):
    record: Record
    status: Status
    pane: Pane | None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def state(self) -> str:
        return self.status.state

    def as_json(self, now: float | None = None) -> dict[str, Any]:
        """The stable, documented form of `list --format json`. What is not known is null."""
        now = time.time() if now is None else now
        record, status, pane = self.record, self.status, self.pane
        started = seconds_of(record.started_at) if record.started_at else None
        ended = now if status.alive else status.since
        alive = status.alive and pane is not None
        return {
            "id": record.id,
            "name": record.name,
            "type": record.kind,
            "command": record.command_shown or record.command,
            "state": status.state,
            "state_reason": status.reason,
            "state_since": _text(status.since),
            "exit_code": status.exit_code,
            "signal": status.signal,
            "work_dir": record.work_dir,
            "transfer": record.transfer,
            "repo": record.repo,
            "initial_branch": record.branch,
            "base_branch": record.base_branch,
            "base_commit": record.base_commit,
            "create_time": record.created_at,
            "start_time": record.started_at,
            "archived_at": record.archived_at,
            "runtime_seconds": round(max(0.0, ended - started), 3) if started and ended else None,
            "idle_seconds": round(max(0.0, now - pane.active_at), 3) if alive and pane is not None else None,
            "pid": pane.pid if alive and pane is not None else None,
            "session": record.session,
            "attached": pane.attached if pane is not None else False,
            "labels": {**record.labels, "project": record.project},
            "limits": {"idle_seconds": None, "idle_mode": "output", "run_seconds": None, **record.limits},
            "project": record.project,
            "index": record.number,
            "host": {
                "id": record.host,
                "name": record.host,
                "provider": "local",
                "provider_name": "local",
                "state": "RUNNING",
                "tags": {},
                "ssh": None,
                "snapshots": [],
            },
        }


class Listing(NamedTuple):
    """All agents that could be seen, and what could not be."""

    agents: list[Agent]
    errors: list[MngrError]


def _text(seconds: float) -> str | None:
    from mngr.agents.record import timestamp

    return timestamp(seconds) if seconds else None
