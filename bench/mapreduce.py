"""The rows of `mngr tmr`: a whole run beside the git and pytest commands in it, and the weight of its orchestrator."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, NamedTuple

from bench.works import PYTHON, Work
from bench.world import CommandFailed, World
from mngr.tmr.measure import measurement

_AGENTS = 100
_JOBS_AT_ONCE = 2
_AGENTS_AT_ONCE = 20
_TESTS_IN_A_FILE = 10
_SETTINGS = f"""\
[tmr]
test_command = "{sys.executable} -m pytest -q -p no:cacheprovider"
max_jobs = {_JOBS_AT_ONCE}

[tmr.env]
PYTEST_DISABLE_PLUGIN_AUTOLOAD = "1"
PYTHONPATH = "."

[agent_types.sleeper]
command = "sleep"
"""
_STRONGER = """\
wait
replace tests/test_{file}.py <<END
add({file}, {test}) is not None
====
add({file}, {test}) == {sum}
END
commit Look closer
outcome <<END
{{"schema": 1, "task": "{{task}}", "status": "done", "summary": "closer",
 "changes": [{{"kind": "test", "commit": "{{head}}", "summary": "Look closer", "importance": 1}}]}}
END
"""
# A fix and a better test in one: it takes all four measurements, and what its tests notice before and after.
_FIX = """\
wait
replace twice_{file}_{test}.py <<END
return a * 2 + 1
====
return a + a
END
replace tests/test_{file}.py <<END
twice_{file}_{test}.twice(4) == 8
====
[twice_{file}_{test}.twice(a) for a in (0, 4)] == [0, 8]
END
commit Double
outcome <<END
{{"schema": 1, "task": "{{task}}", "status": "done", "summary": "doubles",
 "changes": [{{"kind": "implementation", "commit": "{{head}}", "summary": "Double", "importance": 3}},
             {{"kind": "test", "commit": "{{head}}", "summary": "Look at more", "importance": 1}}]}}
END
"""
_FIXED = (3, 8)  # of the tests of a file, those that fail at the base


def make_project(world: World, tests: int) -> None:
    """A product with so many quick tests (50 ms each, as if it started a program), and for each of them an agent that
    makes it stronger, or fixes what it tests, and is done: the last one when the work of all others is verified, as it
    is where agents need minutes."""
    (world.repo / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (world.repo / ".gitignore").write_text("__pycache__/\n/.mngr/\n")
    for name in ("tests", ".mngr"):
        (world.repo / name).mkdir()
    (world.repo / ".mngr" / "settings.local.toml").write_text(_SETTINGS)
    scripts = world.root / "scripts"
    scripts.mkdir()
    files = tests // _TESTS_IN_A_FILE
    others = f'[ $(grep -c \'"type": "verdict"\' {ledger(world)}) -ge {tests - 1} ]'
    for file in range(files):
        text = "import time\n\nimport calc\n" + "".join(f"import twice_{file}_{test}\n" for test in _FIXED)
        for test in range(_TESTS_IN_A_FILE):
            text += f"\n\ndef test_{file}_{test}():\n    time.sleep(0.05)\n"
            if test in _FIXED:
                text += f"    assert twice_{file}_{test}.twice(4) == 8\n"
                script = _FIX.format(file=file, test=test)
                (world.repo / f"twice_{file}_{test}.py").write_text("def twice(a):\n    return a * 2 + 1\n")
            else:
                text += f"    assert calc.add({file}, {test + 1}) is not None\n"
                script = _STRONGER.format(file=file, test=test + 1, sum=file + test + 1)
            if (file, test) == (files - 1, _TESTS_IN_A_FILE - 1):
                script = script.replace("wait\n", f"wait\nrun until {others}; do sleep 0.2; done\n", 1)
            (scripts / f"test_{file}_{test}.script").write_text(script)
        (world.repo / "tests" / f"test_{file}.py").write_text(text)
    world.run("git", "add", ".")
    world.run("git", "commit", "-q", "-m", "a calculator")
    world.run(world.mngr, "config", "trust", "--yes")


def ledger(world: World) -> Path:
    return world.repo / ".mngr" / "runs" / "r1" / "ledger.jsonl"


def entries(world: World) -> list[dict[str, Any]]:
    path = ledger(world)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class WholeRun(Work):
    """The floor is what the run's ledger names, as parallel as it was there: for each job a clone at its commit and its
    own script, which is little but pytest; for each agent a clone, a commit and a fetch; a merge."""

    name = f"tmr, {_AGENTS} agents"
    budget = 1.5
    samples = 1
    # For the rows below: seconds from the end of the last agent to the end of the run, and of the suite; those of the
    # run and of its resumption, and of the floor.
    tail = suite = whole = necessary = 0.0

    def set_up_floor(self, world: World) -> None:
        make_project(world, _AGENTS)

    def time_floor(self, world: World, number: int) -> float:
        """Ours comes first, since the floor goes by its ledger."""
        if number == 0:
            return 0.001  # nothing to warm up
        words = ["--name", "r1", "--type", "scripted", "--integrator", "none", "--no-record"]
        words += ["--max-agents", str(_AGENTS_AT_ONCE), "--", f"{world.root}/scripts/{{name}}.script"]
        _adopt_orphans()
        before = _cpu_seconds()
        self._seconds = world.run(world.mngr, "tmr", *words)
        world.forget_agents()
        ours = _cpu_seconds() - before
        WholeRun.suite = median(_suite(world) for _ in range(3))
        found = entries(world)
        WholeRun.whole = self._seconds + _judge_again(world, found)
        ends = {entry["type"]: datetime.fromisoformat(entry["at"]) for entry in found}  # the last of each type
        WholeRun.tail = (ends["finished"] - ends["ended"]).total_seconds()
        before, began = _cpu_seconds(), time.perf_counter()
        world.timed([PYTHON])
        for step in _steps(found):
            with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool, ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as agents:
                todo = [pool.submit(_job, world, entry) for entry in step.jobs]
                todo += [agents.submit(_agent, world, at) for at in range(step.agents)]
                for one in todo:
                    one.result()
        for entry in found:
            if entry["type"] == "verdict":
                world.run("git", "merge-tree", "--write-tree", "main", "HEAD")
        seconds = time.perf_counter() - began
        WholeRun.necessary = seconds
        floor, jobs = _cpu_seconds() - before, sum(entry["type"] == "measured" for entry in found)
        self.note = f"{jobs} measurements; CPU per task {ours / _AGENTS:.2f} s, floor {floor / _AGENTS:.2f} s"
        return seconds

    def time_ours(self, world: World, number: int) -> float:
        return self._seconds if number else 0.001


class Resumed(WholeRun):
    """Killed before its first verdict and resumed with a warm cache, beside the floor of the whole run."""

    name = f"tmr, {_AGENTS} agents, resumed"
    note = ""

    def set_up(self, world: World) -> None:
        if not WholeRun.necessary:
            WholeRun.time_floor(self, world, 1)

    def time_floor(self, world: World, number: int) -> float:
        return WholeRun.necessary

    def time_ours(self, world: World, number: int) -> float:
        return WholeRun.whole


class AfterTheLast(Resumed):
    """What a person waits for once the last agent has ended: its verification and the integration of all. The floor is
    the suite, on all cores, right after the run."""

    name = f"tmr, {_AGENTS}: after the last"
    budget = 4.0

    def time_floor(self, world: World, number: int) -> float:
        return WholeRun.suite

    def time_ours(self, world: World, number: int) -> float:
        return WholeRun.tail


def _suite(world: World) -> float:
    """Seconds for one run of all tests, on all cores."""
    cores = os.cpu_count() or 1
    names = sorted(path.name for path in (world.repo / "tests").glob("test_*.py"))
    line = 'PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=. exec "$0" -m pytest -q -p no:cacheprovider "$@"'
    parts = [[f"tests/{name}" for name in names[at::cores]] for at in range(cores)]
    commands = [[["sh", "-c", line, sys.executable, *part]] for part in parts]
    began = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(lambda some: world.timed(some, may_fail=True), commands))  # some tests fail at the base
    return time.perf_counter() - began


def _judge_again(world: World, found: Sequence[dict[str, Any]]) -> float:
    """Seconds that the run needs for its verdicts and its branch when all measurements are in its ledger."""
    kept = [one for one in found if one["type"] not in ("verdict", "finished") and one.get("name") != "integrate"]
    ledger(world).write_text("".join(f"{json.dumps(one)}\n" for one in kept))
    seconds = world.run(world.mngr, "tmr", "resume", "r1")
    if again := [one["label"] for one in entries(world)[len(kept) :] if one["type"] == "measuring"]:
        raise CommandFailed(f"measured again by `resume`: {again}")
    return seconds


class _Step(NamedTuple):
    """Jobs and agents that went on side by side."""

    jobs: list[dict[str, Any]]
    agents: int


def _steps(found: Sequence[dict[str, Any]]) -> Iterator[_Step]:
    """Phase after phase; in that of integration, gate after gate."""
    phase = ""
    marked = []
    for entry in found:
        if entry["type"] == "phase" and entry["status"] == "began":
            phase = entry["name"]
        elif entry["type"] in ("measured", "started"):
            gate = "-".join(entry.get("label", "").split("-")[:2])
            marked.append(((phase, gate if phase == "integrate" else ""), entry))
    for _, group in groupby(marked, key=lambda pair: pair[0]):
        both = [entry for _, entry in group]
        yield _Step([entry for entry in both if entry["type"] == "measured"], sum(e["type"] == "started" for e in both))


def _job(world: World, entry: dict[str, Any]) -> None:
    tree, out = world.trees / entry["directory"], world.trees / f"{entry['directory']}.out"
    world.run("git", "clone", "-q", "--shared", "--no-checkout", ".", str(tree))
    world.run("git", "-C", str(tree), "checkout", "-q", entry["commit"])
    place = tree / ".mngr" / "task" / "job"
    shutil.copytree(ledger(world).parent / "jobs" / f"{entry['directory']}.job", place)
    shutil.copytree(measurement.PROBE, place / "probe", ignore=shutil.ignore_patterns("__pycache__"))
    out.mkdir()
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ".", "MNGR_ARTIFACTS_DIR": str(out)}
    done = subprocess.run(
        ["sh", ".mngr/task/job/job.sh"], cwd=tree, env={**world.env, **env}, capture_output=True, check=False
    )
    if done.returncode != 0 or not list(out.glob("*.exit")):
        raise CommandFailed(f"the job `{entry['label']}` could not be repeated: {done.stderr.decode()}")
    for path in (tree, out):
        shutil.rmtree(path)


def _agent(world: World, number: int) -> None:
    tree = world.trees / f"agent-{number}"
    world.run("git", "clone", "-q", "--local", ".", str(tree))
    world.run("git", "-C", str(tree), "commit", "-q", "--allow-empty", "-m", "Look closer")
    world.run("git", "fetch", "-q", str(tree), f"+HEAD:refs/floor/{number}")
    shutil.rmtree(tree)


class Orchestrator(Work):
    """Not a ratio: the floor is 1, and the figure is megabytes (the most it ever held), or percent of a core (with the
    commands it runs), of an orchestrator that watches two hundred agents which do nothing."""

    samples = 1
    agents = 200
    _settle, _watch = 15.0, 30.0
    _found: ClassVar[dict[str, float]] = {}  # one run serves both rows

    def __init__(self, what: str, budget: float) -> None:
        self.name = f"tmr, {self.agents} idle: {what}"
        self.budget = budget
        self._what = what

    def time_floor(self, world: World, number: int) -> float:
        return 0.001

    def time_ours(self, world: World, number: int) -> float:
        if number and not self._found:
            self._run(world)
        return self._found.get(self._what, 1.0) / 1000

    def _run(self, world: World) -> None:
        make_project(world, self.agents)
        words = ["--name", "r1", "--type", "sleeper", "--integrator", "none", "--no-record", "--no-baseline"]
        words += ["--no-canary", "--max-agents", str(self.agents), "--max-launching", "20", "--", "9999"]
        running = subprocess.Popen(
            [world.mngr, "tmr", *words],
            cwd=world.repo,
            env=world.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 900
            while sum(entry["type"] == "told" for entry in entries(world)) < self.agents:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise CommandFailed(f"{self.agents} agents did not come to run")
                time.sleep(1)
            time.sleep(self._settle)
            before = _ticks(running.pid)
            time.sleep(self._watch)
            spent = (_ticks(running.pid) - before) / os.sysconf("SC_CLK_TCK")
            lines = Path(f"/proc/{running.pid}/status").read_text().splitlines()
            most = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
            self._found.update({"MB": int(most) / 1024, "CPU %": spent / self._watch * 100})
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
            world.forget_agents()


def _cpu_seconds() -> float:
    """What all processes have used that ended below this one, also those that left their parents (a tmux server and
    what ran in it)."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _adopt_orphans() -> None:
    """Linux: make this process the parent of those below it that lose theirs."""
    if os.path.isdir("/proc/self"):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


WORKS: tuple[Work, ...] = (
    WholeRun(),
    Resumed(),
    AfterTheLast(),
    *((Orchestrator("MB", 150), Orchestrator("CPU %", 2)) if os.path.isdir("/proc/self") else ()),
)
NOT_MEASURED = () if os.path.isdir("/proc/self") else ("memory and CPU of an orchestrator (no /proc)",)
