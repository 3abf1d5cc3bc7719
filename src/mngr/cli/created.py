"""What is told about an agent that was made, or would be: for programs, and for people."""

from __future__ import annotations

from mngr.actions import create as creating
from mngr.actions.create import Request
from mngr.agents.record import Record
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from mngr.workspaces.plan import Plan


def dry_run_row(request: Request, plan: Plan, command: str) -> dict[str, Any]:
    return {
        "name": request.name,
        "type": request.kind.name,
        "command": creating.without_secrets(command, request),
        "transfer": plan.transfer,
        "source": plan.source,
        "branch": plan.branch,
        "base_branch": plan.base_branch,
        "base_commit": plan.start,
        "dry_run": True,
    }


def dry_run_text(request: Request, plan: Plan, command: str) -> str:
    where = f"{plan.transfer} of {plan.source}" + (
        f", branch {plan.branch} from {(plan.start or '')[:10]}" if plan.branch else ""
    )
    return f"would create {request.name}: {where}\nrunning: {creating.without_secrets(command, request)}"


def row(record: Record, reused: bool = False) -> dict[str, Any]:
    return {
        "agent_id": record.id,
        "name": record.name,
        "host_id": record.host,
        "host_name": record.host,
        "work_dir": record.work_dir,
        "branch": record.branch,
        "session": record.session,
        "reused": reused,
    }


def line(record: Record, reused: bool = False) -> str:
    if reused:
        return f"using {record.name}, which exists already"
    return f"created {record.name}" + (f" on branch {record.branch}" if record.branch else "")
