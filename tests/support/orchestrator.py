"""A small map-reduce for tests, in this process or in one of its own that can be killed.

A task is a script for the scripted agent. What is collected: its outcome, its commits and the files it left. What is
checked: whether the outcome says `done`.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mngr
from mngr.mapreduce import run as runs
from mngr.mapreduce.engine import Engine, EngineResult
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.recipe import AgentLaunch, Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState

# Quick enough for tests, with agents that are quick themselves.
QUICK = RunLimits(rest_seconds=0.3, vanished_seconds=3, backoff_seconds=0.2, timeout_seconds=250, warn_seconds=5)


class Scripts(Recipe):
    def __init__(self, fleet: mngr.Fleet, **more: Any) -> None:
        self.fleet, self.more = fleet, more

    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        found = {"type": "scripted", "args": (task.data["script"],), "message": task.data.get("message")}
        return AgentLaunch(**{**found, **self.more})

    def collect(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> Mapping[str, Any]:
        outcome = agent.outcome()
        git = agent.exec("git log --format=%s -n 1; git status --porcelain", timeout=60)
        return {"outcome": outcome.decode() if outcome is not None else None, "git": git.text.split("\n")}

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return {"done": json.loads(collected["outcome"])["status"] == "done"}
        except (KeyError, TypeError, ValueError):
            return {"done": False}


def tasks_of(scripts: Mapping[str, str], **data: Any) -> list[Task]:
    """A task for each script file, called like it."""
    return [Task(name, name.replace("_", "-"), {"script": path, **data}) for name, path in scripts.items()]


def work(fleet: mngr.Fleet, run: Run, tasks: list[Task], limits: RunLimits) -> EngineResult:
    with run.locked():
        if run.state.tasks:
            run.resume()
        return Engine(run, Scripts(fleet), fleet, limits).go(tasks)


def main(spec: Mapping[str, Any]) -> None:
    root, name = spec["root"], spec["run"]
    place = Path(root) / ".mngr" / "runs" / name
    run = runs.find(root, name) if (place / "ledger.jsonl").exists() else runs.new(root, id=name)
    limits = QUICK._replace(**spec["limits"])
    gone = work(mngr.Fleet(cwd=root), run, tasks_of(spec["scripts"]), limits)
    print(json.dumps({"why": gone.why, "because": gone.because}))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = json.load(file)
    os.chdir(found["root"])
    main(found)
