"""Names in a run: of its tasks, of its agents, and the labels by which a later orchestrator knows them again. Pure."""

from __future__ import annotations

from mngr.names import LONGEST_NAME, check_name

RUN, TASK, ATTEMPT, ROLE = "mngr-run", "mngr-task", "mngr-attempt", "mngr-role"
MAP, INTEGRATE, OPINION = "map", "integrate", "opinion"
LONGEST_RUN = 18


def agent_name(run: str, slug: str, number: int) -> str:
    return check_name(f"{run}-{slug}-{number}"[:LONGEST_NAME])


def labels(run: str, slug: str, number: int, role: str = MAP) -> dict[str, str]:
    return {RUN: run, TASK: slug, ATTEMPT: str(number), ROLE: role}
