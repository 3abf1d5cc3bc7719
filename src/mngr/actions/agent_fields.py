"""An agent in JSON: a contract with scripts, and the source of its schema. Imported only for that."""

from __future__ import annotations

from mngr.named_tuples import TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class HostFields(TypedDict):
    id: str
    name: str
    provider: str
    provider_name: str
    state: str
    tags: dict[str, str]
    ssh: Any
    snapshots: list[Any]


class LimitFields(TypedDict):
    idle_seconds: float | None
    idle_mode: str
    run_seconds: float | None


class AgentFields(TypedDict):
    """What is not known is null."""

    id: str
    name: str
    type: str
    command: str
    state: str
    state_reason: str
    state_since: str | None
    exit_code: int | None
    signal: int | None
    work_dir: str
    transfer: str
    repo: str | None
    initial_branch: str | None
    base_branch: str | None
    base_commit: str | None
    create_time: str
    start_time: str | None
    archived_at: str | None
    runtime_seconds: float | None
    idle_seconds: float | None
    pid: int | None
    session: str
    attached: bool
    labels: dict[str, str]
    limits: LimitFields
    project: str
    index: int
    host: HostFields
