"""An agent as its site sees it."""

from __future__ import annotations

import time

from mngr.agent.record import Record, seconds_of, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.tmux import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.actions.agent_fields import AgentFields
    from mngr.agent.state import Status


class AgentView(NamedTuple):
    """An agent as its site saw it at one moment: plain data."""

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

    def require_known(self) -> None:
        """Raise when it cannot be seen whether it runs."""
        if self.state == "UNKNOWN":
            raise MngrError(
                f"whether `{self.name}` runs is not known: {self.status.reason}",
                hint=self.status.hint or "`mngr doctor` looks into it",
            )

    def as_json(self, now: float | None = None) -> dict[str, Any]:
        """The stable, documented form of `list --format json`. What is not known is null."""
        now = time.time() if now is None else now
        record, status, pane = self
        started = seconds_of(record.life.started_at) if record.life.started_at else None
        ended = now if status.alive else status.since
        live_pane = pane if status.alive else None
        fields: AgentFields = {
            "id": record.id,
            "name": record.name,
            "type": record.spec.kind,
            "command": record.spec.command_shown or record.spec.command,
            "state": status.state,
            "state_reason": status.reason,
            "state_since": timestamp(status.since) if status.since else None,
            "exit_code": status.exit_code,
            "signal": status.signal,
            "work_dir": record.workspace.work_dir,
            "transfer": record.workspace.transfer,
            "repo": record.workspace.repo,
            "initial_branch": record.workspace.branch,
            "base_branch": record.workspace.base_branch,
            "base_commit": record.workspace.base_commit,
            "create_time": record.life.created_at,
            "start_time": record.life.started_at,
            "archived_at": record.life.archived_at,
            "runtime_seconds": round(max(0.0, ended - started), 3) if started and ended else None,
            "idle_seconds": round(max(0.0, now - live_pane.active_at), 3) if live_pane else None,
            "pid": live_pane.pid if live_pane else None,
            "session": record.life.session,
            "attached": pane.attached if pane is not None else False,
            "labels": {**record.spec.labels, "project": record.spec.project},
            "limits": {
                "idle_seconds": record.spec.limits.get("idle_seconds"),
                "idle_mode": record.spec.limits.get("idle_mode", "output"),
                "run_seconds": record.spec.limits.get("run_seconds"),
            },
            "project": record.spec.project,
            "index": record.life.number,
            "host": {
                "id": record.life.host,
                "name": record.life.host,
                "provider": "local",
                "provider_name": "local",
                "state": "RUNNING",
                "tags": {},
                "ssh": None,
                "snapshots": [],
            },
        }
        return {**fields}
