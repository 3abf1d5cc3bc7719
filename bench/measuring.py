"""What measuring costs where a copy of the code takes long to make ready: a run of `mngr tmr` with scripted agents in a
project whose `prepare` sleeps. `python -m bench.measuring [--tasks 40] [--seconds 20] [--mngr PATH]`"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from bench.world import OURS, World

# Makes something that the tests need, and notes where it ran: the copy of a measurement or that of an agent.
_PREPARE = """\
sleep {seconds}; mkdir -p .deps; cat requirements.txt >.deps/ready.py; \
if [ -d .mngr/task/job ]; then echo job; else echo agent; fi >>{log}"""
_SETTINGS = """\
[tmr]
test_command = "{python} -m pytest -q -p no:cacheprovider"
prepare = {prepare}
max_jobs = 2

[tmr.env]
PYTEST_DISABLE_PLUGIN_AUTOLOAD = "1"
PYTHONPATH = ".:.deps"
"""
_FIX = """\
wait
replace m{number}.py <<END
    return a - b - 1
====
    return a - b
END
commit Subtract what is asked
outcome <<END
{{"schema": 1, "task": "{{task}}", "status": "done", "summary": "one too few",
 "changes": [{{"kind": "implementation", "commit": "{{head}}", "summary": "Subtract", "importance": 1}}]}}
END
"""


class Cost(NamedTuple):
    """Of a whole run: `by` counts the copies that were made ready by whom, `seconds` are of its phases, `jobs` those of
    all measurements together, by what they were for."""

    by: Counter[str]
    seconds: dict[str, float]
    jobs: dict[str, list[float]]
    verdicts: Counter[str]


def measured(world: World, tasks: int, seconds: float) -> Cost:
    log = world.root / "prepared.log"
    scripts = world.root / "scripts"
    scripts.mkdir()
    prepare = json.dumps(_PREPARE.format(seconds=seconds, log=log))
    _write(world.repo / ".mngr/settings.toml", _SETTINGS.format(python=sys.executable, prepare=prepare))
    _write(world.repo / ".gitignore", ".deps/\n__pycache__/\n.mngr/runs/\n")
    _write(world.repo / "requirements.txt", "READY = True\n")
    _write(world.repo / "tests/test_ready.py", "import ready\n\n\ndef test_ready():\n    assert ready.READY\n")
    for number in range(tasks):
        _write(world.repo / f"m{number}.py", "def take(a, b):\n    return a - b - 1\n")
        _write(
            world.repo / f"tests/test_m{number}.py",
            f"import ready\nimport m{number}\n\n\ndef test_{number}():\n    assert m{number}.take({number}, 1) == "
            f"{number - 1} and ready.READY\n",
        )
        (scripts / f"test_{number}.script").write_text(_FIX.format(number=number))
    for words in (["add", "-A"], ["commit", "-q", "-m", "a project"]):
        world.run("git", *words)
    world.run(world.mngr, "config", "trust", "--yes")
    words = ["tmr", "--name", "r", "--type", "scripted", "--failing", "--integrator", "none", "--no-record"]
    words += ["--max-agents", str(max(2, min(8, tasks))), "--", f"{scripts}/{{name}}.script"]
    world.run(world.mngr, *words)
    place = world.repo / ".mngr/runs/r/ledger.jsonl"
    return _cost([json.loads(line) for line in place.read_text().splitlines()], log)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _cost(ledger: list[dict[str, Any]], log: Path) -> Cost:
    jobs: dict[str, list[float]] = {}
    for entry in ledger:
        if entry["type"] == "measured":
            jobs.setdefault(entry["label"].partition("-")[0], []).append(entry["seconds"])
    begun, seconds = {}, {}
    for entry in ledger:
        at = time.mktime(time.strptime(entry["at"][:19], "%Y-%m-%dT%H:%M:%S"))
        if entry["type"] == "phase" and entry["status"] == "began":
            begun[entry["name"]] = at
        elif entry["type"] == "phase" and entry["name"] in begun:
            seconds[entry["name"]] = at - begun[entry["name"]]
    verdicts = Counter(entry["data"]["verdict"] for entry in ledger if entry["type"] == "verdict")
    return Cost(Counter(log.read_text().split()), seconds, jobs, verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--mngr", default=OURS)
    given = parser.parse_args()
    world = World(given.mngr)
    try:
        began = time.monotonic()
        cost = measured(world, given.tasks, given.seconds)
        whole = time.monotonic() - began
    finally:
        world.close()
    count = sum(map(len, cost.jobs.values()))
    spent = sum(map(sum, cost.jobs.values()))
    print(f"{given.tasks} tasks, `prepare` of {given.seconds:g} s: {whole:.0f} s, {dict(cost.verdicts)}")
    print(f"copies made ready: {cost.by['job']} of {count} measurements, {cost.by['agent']} of agents")
    print(f"measuring: {spent:.0f} s, {spent / given.tasks:.1f} s per task")
    print("phases:", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in cost.seconds.items()))
    for name, each in sorted(cost.jobs.items()):
        print(f"  {name:10} {len(each):4} x {sum(each) / len(each):6.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
