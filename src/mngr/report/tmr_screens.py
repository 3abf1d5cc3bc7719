"""The terminals of running agents, as they are now. Asks the fleet, at most once a second for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet
from mngr.mapreduce.state import TaskState
from mngr.report.source import digest, key, picked

MOST = 24
_SECONDS = 0.9
_MOST_TEXT = 60_000
_NO_ATTEMPT = {"agent": "", "state": "", "started_at": None}


class _ScreenText(NamedTuple):
    at: float
    text: str
    problem: str


class Screens:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._seen: dict[str, _ScreenText] = {}

    def version(self, tasks: Sequence[TaskState]) -> str:
        texts = [self._look(task) for task in tasks[:MOST]]
        return digest(*((one.text, one.problem) for one in texts))

    def document(self, tasks: Sequence[TaskState]) -> dict[str, Any]:
        """The terminals of the agents that began first, and how many there are in all."""
        return {"terminals": [self.of(task) for task in tasks[:MOST]], "running": len(tasks)}

    def of(self, task: TaskState) -> dict[str, Any]:
        last = task.last
        shown = self._look(task)
        return {
            "key": "" if "role" in task.data else key(task.slug),
            "slug": task.slug,
            "name": task.id,
            **(picked(last, "agent", "state", "started_at") if last is not None else _NO_ATTEMPT),
            **picked(shown, "text", "problem"),
        }

    def _look(self, task: TaskState) -> _ScreenText:
        last = task.last
        id = last.agent_id if last is not None else ""
        seen = self._seen.get(id)
        if seen is not None and time.monotonic() - seen.at < _SECONDS:
            return seen
        try:
            text = self._fleet.find(id).capture(colors=True) if id else ""
            shown = _ScreenText(time.monotonic(), text.rstrip()[-_MOST_TEXT:], "")
        except (MngrError, OSError) as error:
            shown = _ScreenText(time.monotonic(), "", str(error))
        self._seen[id] = shown
        return shown
