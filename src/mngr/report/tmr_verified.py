"""The verified run of a task's test: transcript, recordings and result as they were measured, from the e2e artifacts.

The code that wrote them is the agent's: a directory with links or other odd files in it is not read at all.
"""

from __future__ import annotations

import os
from typing import Any

from mngr.e2e import artifacts
from mngr.e2e.artifacts import RunInfo, TestInfo
from mngr.mapreduce.state import TaskState
from mngr.report import casts, e2e_runs, run_files
from mngr.report.source import key

_PAGE = "verified"


class VerifiedRuns:
    """The e2e artifacts of the verified run of tasks, below one run's directory."""

    def __init__(self, root: str) -> None:
        self._root = root

    def document(self, task: TaskState) -> dict[str, Any] | None:
        """What the page of a test shows, with recordings under addresses of this task; None without artifacts."""
        place, note = self._place(task)
        if not place:
            return {"note": note} if note else None
        found = self._test(place, task)
        if found is None:
            return None
        run, test = found
        made = e2e_runs.test_document(run, key(test.slug), test)
        for one in made["recordings"]:
            one["id"] = f"cast/{key(task.slug)}/{_PAGE}/{key(one['name'])}"
        return {**made, "note": ""}

    def cast(self, task: TaskState, id: str) -> str | None:
        kind, _, wanted = id.partition("/")[2].partition("/")[2].partition("/")
        place, _ = self._place(task)
        found = self._test(place, task) if kind == _PAGE and place else None
        if found is None:
            return None
        paths = [one.path for one in found[1].recordings() if key(one.name) == wanted]
        return casts.read(paths[0]).text if paths else None

    def ids(self, task: TaskState) -> list[str]:
        found = self.document(task) or {}
        return [str(one["id"]) for one in found.get("recordings", ())]

    def _place(self, task: TaskState) -> tuple[str, str]:
        """The directory, if it is inside the run and holds nothing but plain files; and why it is not read."""
        found = task.verdict
        named = str(found.get("e2e") or (os.path.join(str(found["log"]), "e2e") if found.get("log") else ""))
        path = os.path.normpath(os.path.join(self._root, named)) if named else ""
        if not path or not path.startswith(self._root + os.sep):
            return "", ""
        parts = path[len(self._root) + 1 :].split(os.sep)
        if not os.path.isdir(path):
            return "", ""
        if not run_files.is_plain(self._root, *parts):
            return "", "The artifacts of the verified run are not shown: they hold links or too many files."
        return path, ""

    def _test(self, place: str, task: TaskState) -> tuple[RunInfo, TestInfo] | None:
        """The task's own test, or its first case; the directory is one run, or holds runs."""
        one = artifacts.run(place)
        for run in [one] if one is not None else artifacts.runs(place):
            tests = run.tests()
            own = [test for test in tests if test.node_id == task.id or test.node_id.startswith(f"{task.id}[")]
            failed = [test for test in own if test.outcome != "passed"]
            if own:
                return run, (failed or own)[0]
        return None
