"""The result of `create` and `clone`, and of their dry runs: for scripts and for people."""

from __future__ import annotations

from typing import Any, NamedTuple

from mngr.actions.agent import Agent
from mngr.actions.create import CreateRequest


class NewAgent(NamedTuple):
    """What was made, and where."""

    agent_id: str
    name: str
    host_id: str
    host_name: str
    work_dir: str
    branch: str | None
    session: str


class Reused(NamedTuple):
    reused: bool


class WouldCreate(NamedTuple):
    name: str
    type: str
    command: str
    transfer: str
    source: str
    branch: str | None
    base_branch: str | None
    base_commit: str | None
    dry_run: bool


class WouldReuse(NamedTuple):
    name: str
    reused: bool
    dry_run: bool


def dry_run_row(request: CreateRequest) -> WouldCreate:
    plan = request.planned
    return WouldCreate(
        name=request.name,
        type=request.kind.name,
        command=request.command_shown,
        transfer=plan.transfer,
        source=plan.source,
        branch=plan.branch,
        base_branch=plan.base_branch,
        base_commit=plan.start,
        dry_run=True,
    )


def dry_run_text(request: CreateRequest) -> str:
    plan = request.planned
    where = f"{plan.transfer} of {plan.source}" + (
        f", branch {plan.branch} from {(plan.start or '')[:10]}" if plan.branch else ""
    )
    return f"would create {request.name}: {where}\nrunning: {request.command_shown}"


def new_agent(agent: Agent) -> NewAgent:
    record, host = agent.record, agent.site.name
    return NewAgent(record.id, record.name, host, host, record.work_dir, record.branch, record.session)


def row(agent: Agent, reused: bool = False) -> dict[str, Any]:
    return {**new_agent(agent)._asdict(), "reused": reused}


def line(agent: Agent, reused: bool = False) -> str:
    where = "" if agent.site.is_near else f" at {agent.site.name}"
    if reused:
        return f"using existing agent {agent.name}{where}"
    branch = agent.record.branch
    return f"created {agent.name}{where}" + (f" on branch {branch}" if branch else "")
