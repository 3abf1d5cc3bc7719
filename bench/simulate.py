"""What the scheduler, the ledger and the report of a run cost with thousands of simulated hosts: `make simulate`.

Each size is a process of its own, in simulated time. Then a hundred real channels that do nothing are watched."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # as a script it would be this folder

from bench import channels  # noqa: E402
from bench.simulated_clock import SimulatedClock  # noqa: E402
from bench.simulated_fleet import SimulatedFleet, SimulatedRecipe, SimulatedSite, Troubles  # noqa: E402
from bench.simulated_pool import SimulatedHosts, SimulatedPool  # noqa: E402
from mngr.mapreduce import run as runs  # noqa: E402
from mngr.mapreduce.engine import Engine, EngineResult  # noqa: E402
from mngr.mapreduce.limits import RunLimits  # noqa: E402
from mngr.mapreduce.recipe import Task  # noqa: E402
from mngr.mapreduce.run import Run  # noqa: E402

# Tasks, hosts, and whether the pool of the run makes the hosts.
SIZES = tuple((*size, pooled) for pooled in (False, True) for size in ((1000, 1000), (3000, 1000), (10_000, 1000)))
# A thousand agents are started, collected and stopped in less time than they work.
LIMITS = RunLimits(max_launching=50, max_collecting=16, max_checking=8)


class Simulation(NamedTuple):
    """How it went: `cpu` is that of the engine together with what simulates its agents."""

    result: EngineResult
    run: Run
    site: SimulatedSite
    recipe: SimulatedRecipe
    cpu: float
    seconds: float
    turns: int

    def problems(self) -> list[str]:
        """Every task is settled, by exactly one outcome or for a reason that is final."""
        tasks = self.result.state.tasks
        found = [f"`{task.id}` is {task.status}" for task in tasks.values() if task.status != "settled"]
        for task in tasks.values():
            times = self.recipe.accepted[task.id]
            done = task.last is not None and task.last.ended == "outcome"
            if times != int(done):
                found.append(f"`{task.id}` has {times} outcomes and ended: {task.last.ended if task.last else 'never'}")
        return found

    def endings(self) -> Counter[str]:
        return Counter(one.ended for task in self.result.state.tasks.values() for one in task.attempts)


def simulate(
    directory: str, *, tasks: int, hosts: int, seed: int, per_host: int = 1, pooled: bool = False
) -> Simulation:
    """`pooled` has the hosts made by the pool of the run, as those of a provider."""
    clock, troubles = SimulatedClock(), Troubles()
    site = SimulatedSite(clock, directory, seed, 0 if pooled else hosts, per_host, troubles)
    run = runs.new(directory, id="r", directory=f"{directory}/run", clock=clock, base="b" * 40)
    recipe = SimulatedRecipe()
    limits = LIMITS._replace(max_agents=hosts * per_host)
    site.plan_troubles(max(600.0, tasks / (hosts * per_host) * troubles.work_seconds), hosts)
    far = SimulatedHosts(site)
    pool = SimulatedPool(run, far, hosts, per_host) if pooled else None
    engine = Engine(run, recipe, SimulatedFleet(site), limits, pool=pool)
    began, cpu = clock.now, time.process_time()
    with run.locked():
        result = engine.go([Task(f"tests/test_{n // 50}.py::test_{n}", f"t{n}") for n in range(tasks)])
        far.close()
    spent = time.process_time() - cpu
    return Simulation(result, run, site, recipe, spent, clock.now - began, clock.turns)


def measured(tasks: int, hosts: int, seed: int, pooled: bool) -> dict[str, Any]:
    """All figures of one size."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None  # no disk to wait for
    with tempfile.TemporaryDirectory(dir=place, prefix="mngr-simulate-") as directory:
        before = _megabytes()
        done = simulate(directory, tasks=tasks, hosts=hosts, seed=seed, pooled=pooled)
        most = _megabytes()
        problems = done.problems()
        ledger = Path(done.run.ledger.path)
        lines = ledger.read_bytes().count(b"\n")
        began = time.process_time()
        Run(done.run.directory)
        folded = time.process_time() - began
        return {
            "tasks": tasks,
            "hosts": hosts,
            "who": "the pool makes" if pooled else "the site has",
            "why": done.result.why,
            "problems": [*problems[:5], f"{len(problems)} problems"] if problems else [],
            "hours": done.seconds / 3600,
            "turns": done.turns,
            "cpu_ms_per_task": done.cpu / tasks * 1000,
            "cpu_percent": done.cpu / done.seconds * 100,
            "megabytes": most - before,
            "ledger_bytes_per_task": ledger.stat().st_size / tasks,
            "ledger_lines_per_task": lines / tasks,
            "fold_seconds": folded,
            "endings": dict(done.endings()),
            "troubles": dict(done.site.counts),
            **_report(done.run),
        }


def _report(run: Run) -> dict[str, Any]:
    from mngr.report import tmr

    began = time.process_time()
    tmr.write(run)
    seconds = time.process_time() - began
    pages = [path for path in Path(run.directory, tmr.PAGES).rglob("*") if path.is_file()]
    return {
        "report_seconds": seconds,
        "report_files": len(pages),
        "report_megabytes": sum(path.stat().st_size for path in pages) / 1e6,
        "report_json_megabytes": Path(run.directory, "report.json").stat().st_size / 1e6,
    }


def _megabytes() -> float:
    """The most that this process ever held."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1024)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--channels", action="store_true", help="the channels only")
    parser.add_argument("--one", nargs=3, type=int, metavar=("TASKS", "HOSTS", "POOLED"), help="one size, as JSON")
    args = parser.parse_args()
    if args.one:
        tasks, hosts, pooled = args.one
        print(json.dumps(measured(tasks, hosts, args.seed, bool(pooled))))
        return 0
    failed = False
    for tasks, hosts, pooled in () if args.channels else SIZES:
        command = [sys.executable, __file__, "--seed", str(args.seed), "--one", *map(str, (tasks, hosts, int(pooled)))]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        failed |= bool(found["problems"]) or found["why"] != "settled"
        print(_shown(found), flush=True)
    if not os.path.isdir("/proc/self"):
        print("not measured: channels on which nothing happens (no /proc)")
        return int(failed)
    held = channels.measured()
    print(channels.shown(held))
    return int(failed or not channels.is_within(held))


_SHOWN = """\
{tasks} tasks on {hosts} hosts that {who}: {why}, {verdict}
  simulated {hours:.2f} h in {turns} turns; attempts ended: {endings}
  troubles: {troubles}
  engine: {cpu_ms_per_task:.2f} ms of CPU per task ({cpu_percent:.1f} % of a core), {megabytes:.0f} MB more than before
  ledger: {ledger_bytes_per_task:.0f} bytes, {ledger_lines_per_task:.1f} entries per task; read in {fold_seconds:.1f} s
  report: {report_seconds:.1f} s, {report_files} files, {report_megabytes:.1f} MB; JSON {report_json_megabytes:.1f} MB\
"""


def _shown(found: dict[str, Any]) -> str:
    return _SHOWN.format(**found, verdict="; ".join(found["problems"]) or "every task exactly once")


if __name__ == "__main__":
    raise SystemExit(main())
