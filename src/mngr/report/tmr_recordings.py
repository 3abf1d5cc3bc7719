"""The recordings of a task: its agent's terminal, attempt by attempt; and the verified run of its test, with
transcript, recordings and result as they were measured, from the e2e artifacts.

The code that wrote those is the agent's: a directory with links or other odd files in it is not read at all.
"""

from __future__ import annotations

import os
from typing import Any

from mngr.e2e import artifacts
from mngr.e2e.artifacts import RunInfo, TestInfo
from mngr.json_values import loads
from mngr.mapreduce.state import Attempt, TaskState
from mngr.report import casts, e2e_runs, run_files
from mngr.report.source import key
from mngr.tmr.run_view import measured

_MOST = 8
_FILE = "agent.cast"
_VERIFIED = "verified"


class Recordings:
    """Those of the tasks below one run's directory."""

    def __init__(self, root: str) -> None:
        self._root = root

    def of(self, task: TaskState) -> list[dict[str, Any]]:
        """What the pages say of its agent's recordings, the latest first, without their content."""
        found = [(attempt, self._agent(task, attempt.number)) for attempt in task.attempts[: -_MOST - 1 : -1]]
        return [_facts(task, attempt, data) for attempt, data in found if data is not None]

    def verified(self, task: TaskState) -> dict[str, Any] | None:
        """What the page of its test shows, with recordings under addresses of this task; None without artifacts."""
        place, note = self._place(task)
        found = _test(place, task) if place else None
        if found is None:
            return {"note": note} if note else None
        run, test = found
        made = e2e_runs.test_document(run, test)
        for one in made["recordings"]:
            one["id"] = f"cast/{key(task.slug)}/{_VERIFIED}/{key(one['name'])}"
        return {**made, "note": ""}

    def ids(self, task: TaskState) -> list[str]:
        every = [*self.of(task), *(self.verified(task) or {}).get("recordings", ())]
        return [str(one["id"]) for one in every]

    def text(self, task: TaskState, which: str, name: str) -> str | None:
        """A recording by the last two parts of its id."""
        if which != _VERIFIED:
            data = self._agent(task, int(which)) if which.isdecimal() else None
            return None if data is None else casts.shortened(data).text
        place, _ = self._place(task)
        found = _test(place, task) if place else None
        places = [one.place for one in found[1].recordings() if key(one.name) == name] if found else []
        return casts.read(*places[0]).text if places else None

    def _agent(self, task: TaskState, number: int) -> bytes | None:
        return run_files.read(self._root, "tasks", task.slug, str(number), _FILE, most=casts.MOST_BYTES)

    def _place(self, task: TaskState) -> tuple[str, str]:
        """The directory of the verified run, if it is inside the run and holds nothing but plain files; and why it is
        not read."""
        found = measured(task).evidence.tip
        named = found.e2e or (os.path.join(found.log, "e2e") if found.log else "")
        path = os.path.normpath(os.path.join(self._root, named)) if named else ""
        if not path.startswith(self._root + os.sep) or not os.path.isdir(path):
            return "", ""
        if not run_files.is_plain(self._root, *path[len(self._root) + 1 :].split(os.sep)):
            return "", "The artifacts of the verified run are not shown: they hold links or too many files."
        return path, ""


def _facts(task: TaskState, attempt: Attempt, data: bytes) -> dict[str, Any]:
    began = loads(data.partition(b"\n")[0]).get("timestamp")
    known = isinstance(began, int | float) and 0 < began < 1e11
    return {
        "id": f"cast/{key(task.slug)}/{attempt.number}/agent",
        "name": _FILE,
        "title": f"terminal (attempt {attempt.number})" if len(task.attempts) > 1 else "terminal",
        "started_at": began if known else attempt.started_at or attempt.intended_at,
        "ended_at": attempt.ended_at,
        "exit_code": None,
        **casts.shortened(data).facts(),
    }


def _test(place: str, task: TaskState) -> tuple[RunInfo, TestInfo] | None:
    """The task's own test, or its first case that failed; the directory is one run, or holds runs."""
    one = artifacts.run(place)
    for run in [one] if one is not None else artifacts.runs(place):
        own = [test for test in run.tests() if test.node_id == task.id or test.node_id.startswith(f"{task.id}[")]
        if own:
            return run, next((test for test in own if test.outcome != "passed"), own[0])
    return None
