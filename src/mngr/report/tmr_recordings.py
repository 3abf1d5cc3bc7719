"""The recordings of a task: its agent's terminal, attempt by attempt, and what it left among its artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mngr.files import read_lines
from mngr.mapreduce.state import Attempt, TaskState
from mngr.report import casts, run_files
from mngr.report.source import key

_MOST = 8
_AGENT = "agent"
_FILE = "agent.cast"


class _Read(NamedTuple):
    facts: dict[str, Any]
    text: str


class Recordings:
    """Those of the task asked for last are kept: its page and each of its recordings are asked for one by one."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._stamp: object = None
        self._kept: list[_Read] = []

    def of(self, task: TaskState) -> list[dict[str, Any]]:
        """What the pages say of them, without their content."""
        return [one.facts for one in self._read(task)]

    def text(self, task: TaskState, id: str) -> str | None:
        return next((one.text for one in self._read(task) if one.facts["id"] == id), None)

    def _read(self, task: TaskState) -> list[_Read]:
        found = [
            (attempt, path, stamp)
            for attempt in reversed(task.attempts)
            for path in self._paths(task, attempt)
            if (stamp := run_files.stamp(self._root, *path)) is not None
        ][:_MOST]
        stamps = (task.slug, len(task.attempts), [(path, stamp) for _, path, stamp in found])
        if stamps != self._stamp:
            self._stamp = stamps
            self._kept = [made for attempt, path, _ in found if (made := self._made(task, attempt, path)) is not None]
        return self._kept

    def _paths(self, task: TaskState, attempt: Attempt) -> list[tuple[str, ...]]:
        place = ("tasks", task.slug, str(attempt.number))
        inner = [one.parts for one in run_files.listed(self._root, *place, "artifacts")]
        return [(*place, _FILE), *((*place, "artifacts", *parts) for parts in inner if parts[-1].endswith(".cast"))]

    def _made(self, task: TaskState, attempt: Attempt, path: Sequence[str]) -> _Read | None:
        data = run_files.read(self._root, *path, most=casts.MOST_BYTES)
        if data is None:
            return None
        found = casts.shortened(data)
        return _Read(_facts(task, attempt, path, found, _began(data)), found.text)


def _facts(
    task: TaskState, attempt: Attempt, path: Sequence[str], found: casts.PageCast, began: float | None
) -> dict[str, Any]:
    inner = "/".join(path[4:])
    title = inner or "terminal"
    return {
        "id": f"cast/{key(task.slug)}/{attempt.number}/{key(inner) if inner else _AGENT}",
        "name": "/".join(path[3:]),
        "title": f"{title} (attempt {attempt.number})" if len(task.attempts) > 1 else title,
        "started_at": began or attempt.started_at or attempt.intended_at,
        "ended_at": attempt.ended_at,
        "exit_code": None,
        **found.facts(),
    }


def _began(data: bytes) -> float | None:
    header = next(iter(read_lines(data.partition(b"\n")[0])), {})
    at = header.get("timestamp")
    return float(at) if isinstance(at, int | float) and not isinstance(at, bool) and 0 < at < 1e11 else None
