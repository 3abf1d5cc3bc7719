"""Names in a run: of its tasks, of its agents, and the labels by which a later orchestrator knows them again. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from mngr.names import LONGEST_NAME, check_name

RUN, TASK, ATTEMPT, ROLE = "mngr-run", "mngr-task", "mngr-attempt", "mngr-role"
MAP, JOB, INTEGRATE, OPINION = "map", "job", "integrate", "opinion"
LONGEST_RUN = 18
LONGEST_SLUG = 40


def slug_of(task: str, taken: Collection[str] = ()) -> str:
    """A short word for a task that is a good file name and part of an agent's name: always the same for the same task,
    unless another has taken it; then, or when it had to be cut, with a digest of the task."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in task.lower())
    words = "-".join(filter(None, plain.split("-")))
    if 0 < len(words) <= LONGEST_SLUG and words not in taken:
        return words
    digest = hashlib.sha256(task.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(6, len(digest)):
        kept = words[-(LONGEST_SLUG - length - 1) :].strip("-")
        slug = f"{kept}-{digest[:length]}" if kept else f"task-{digest[:length]}"
        if slug not in taken:
            return slug
    raise AssertionError("two tasks with one digest are the same task")


def agent_name(run: str, slug: str, number: int) -> str:
    return check_name(f"{run}-{slug}-{number}"[:LONGEST_NAME])


def labels(run: str, slug: str, number: int, role: str = MAP) -> dict[str, str]:
    return {RUN: run, TASK: slug, ATTEMPT: str(number), ROLE: role}
