"""The engine with real agents: how attempts end, what is retried, what stops a run."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import mngr
from mngr.agent.record import seconds_of
from mngr.mapreduce import decide, orders, task_names
from mngr.mapreduce import run as runs
from mngr.mapreduce.engine import Engine, EngineResult
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.mapreduce.work_threads import WorkThreads
from tests.real.test_docs import blocks
from tests.support.orchestrator import QUICK, Scripts, tasks_of, work
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
OUTCOME = 'outcome <<END\n{"schema": 1, "task": "{task}", "status": "done", "summary": "well"}\nEND\n'
DONE = "write made.txt <<END\nby the agent\nEND\ncommit Work of {task}\n" + OUTCOME


class World:
    """A user with a run and the scripts of its tasks. Every agent writes its task and attempt to `log` when it runs."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
        self.log = user.root / "log"
        self.run = runs.new(str(user.repo), id="r")

    def scripts(self, **texts: str) -> dict[str, str]:
        found = {}
        for name, text in texts.items():
            path = self.user.root / f"{name}.script"
            path.write_text(f'run echo "$MNGR_RUN $MNGR_TASK $MNGR_ATTEMPT" >> {self.log}\n{text}')
            found[name] = str(path)
        return found

    def go(self, scripts: Mapping[str, str], *, data: Mapping[str, Any] | None = None, **limits: Any) -> EngineResult:
        return work(self.fleet, self.run, tasks_of(scripts, **(data or {})), QUICK._replace(**limits))

    def task(self, name: str) -> TaskState:
        return self.run.state.tasks[name]

    def last(self, name: str) -> Attempt:
        found = self.task(name).last
        assert found is not None
        return found

    def began(self) -> list[str]:
        return sorted(self.log.read_text().splitlines()) if self.log.exists() else []

    def entries(self, type: str) -> list[dict[str, Any]]:
        return [entry for entry in self.run.ledger.entries() if entry["type"] == type]

    def states(self) -> dict[str, str]:
        return {agent.name: agent.state for agent in self.fleet.list().agents}

    def wait_until_running(self, *names: str) -> None:
        """Until the orchestrator knows that they run: before that, they are being made."""

        def known() -> bool:
            tasks = self.run.refresh().tasks
            return all(name in tasks and tasks[name].status == "running" for name in names)

        wait_for(known, f"the run to know that {names} run")

    def wait_for_files(self, name: str, count: int) -> None:
        """Until so many agents have the file."""

        def made() -> list[str]:
            return [
                a.name
                for a in self.fleet.list().agents
                if os.path.exists(os.path.join(a.record.workspace.work_dir, name))
            ]

        wait_for(lambda: len(made()) == count, f"{count} agents to write {name}")


@pytest.fixture
def world(user: User) -> World:
    return World(user)


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def orchestrator(world: World, scripts: Mapping[str, str], kill_at: str = "", **limits: Any) -> "subprocess.Popen[str]":
    """A process of its own that works on the run."""
    spec = world.user.root / "spec.json"
    spec.write_text(json.dumps({"root": str(world.user.repo), "run": "r", "scripts": dict(scripts), "limits": limits}))
    env = {**world.user.env, "PYTHONPATH": str(ROOT), "MNGR_TEST_KILL_AT": kill_at}
    command = [sys.executable, "-m", "tests.support.orchestrator", str(spec)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT)


def test_tasks_are_done_collected_checked_and_their_agents_stopped(world: World) -> None:
    usage = "usage input=100 output=10 cache_read=7 cost=0.25\n"
    gone = world.go(world.scripts(one=usage + DONE, two=DONE + usage + "exit\n"))
    assert (gone.why, gone.state.counts()["settled"]) == (decide.SETTLED, 2)
    assert world.began() == ["r one 1", "r two 1"]
    for name in ("one", "two"):
        last = world.last(name)
        assert (last.ended, last.verdict) == ("outcome", {"done": True})
        assert last.collected is not None
        assert json.loads(last.collected["outcome"])["task"] == name
        assert last.collected["git"][0] == f"Work of {name}"
        assert last.usage._asdict() == {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_read_tokens": 7,
            "cost_usd": 0.25,
            "unpriced": 0,
        }
    assert set(world.states().values()) <= {"STOPPED", "DONE"}
    agent = world.fleet.find("r-one-1")
    assert agent.record.spec.labels == task_names.labels("r", "one", 1)
    assert runs.find(str(world.user.repo)).state == world.run.state
    assert world.user.git("status", "--porcelain") == ""


class _Overlap(Scripts):
    """Counts how many threads bring home the work of an agent at the same time."""

    def __init__(self, fleet: mngr.Fleet) -> None:
        super().__init__(fleet)
        self.at_work, self.most, self.checkpoints = 0, 0, 0
        self.slow = threading.Event()

    def _visit(self) -> None:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        self.slow.wait(1.0)
        self.at_work -= 1

    def checkpoint(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> None:
        self.checkpoints += 1
        self._visit()

    def collect(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> Mapping[str, Any]:
        self._visit()
        return {"outcome": None}


def test_a_checkpoint_and_the_collection_of_an_agent_take_turns(world: World) -> None:
    agent = world.fleet.create("r-one-1", command="sleep 9999")
    about = {"task": "one", "number": 1}
    world.run.note("task", task="one", slug="one", data={})
    world.run.note("attempt", **about, agent=agent.name)
    world.run.note("started", **about, agent_id=agent.id)
    recipe = _Overlap(world.fleet)
    threads = WorkThreads(world.run, recipe, world.fleet, QUICK, task_names.MAP)
    threads.checkpoint("one", 1)
    wait_for(lambda: recipe.at_work, "the checkpoint to begin")
    world.run.note("ended", **about, reason="outcome", because="done", retry=False, retry_at=0.0)
    threads.do([orders.Order(orders.COLLECT, "one", 1, agent.id)])
    threads.close(abandon=False)
    assert (recipe.checkpoints, recipe.most) == (1, 1)
    assert world.last("one").collected == {"outcome": None}


def test_one_that_rests_without_an_outcome_is_asked_for_it_three_times(world: World) -> None:
    script = f"wait\nif-message outcome.file <<MORE\n{OUTCOME}MORE\n"
    gone = world.go(world.scripts(late=script, never="say done\n", gone="exit\n"))
    assert gone.why == decide.SETTLED
    assert (world.last("late").ended, world.last("late").verdict) == ("outcome", {"done": True})
    assert world.last("late").nudged_at is not None
    assert (world.last("never").ended, len(world.task("never").attempts)) == ("no-outcome", 1)
    prompts = [event for event in world.fleet.find("r-never-1").events() if event["type"] == "prompt"]
    assert len(prompts) == 3
    assert (world.last("gone").ended, world.last("gone").nudged_at) == ("no-outcome", None)


def test_after_a_crash_the_same_agent_is_started_again_then_another_one(world: World) -> None:
    scripts = world.scripts(
        recovers="run! test -e left.txt || { touch left.txt; exit 1; }\n" + DONE,
        second="run! test $MNGR_ATTEMPT -gt 1\n" + DONE,
        never="crash SEGV\n",
    )
    world.go(scripts)
    (only,) = world.task("recovers").attempts
    assert (only.ended, only.restarts, only.verdict) == ("outcome", 1, {"done": True})
    assert only.earlier is not None and only.earlier["git"][1] == "?? left.txt", "collected before it was started again"
    assert [(a.ended, a.restarts) for a in world.task("second").attempts] == [("crash", 1), ("outcome", 0)]
    assert [(a.ended, a.restarts, a.retry, a.because) for a in world.task("never").attempts] == [
        ("crash", 1, True, "killed by SIGSEGV"),
        ("crash", 0, False, "killed by SIGSEGV"),
    ]
    assert world.last("never").verdict == {"done": False}
    assert Counter(world.began()) == {
        "r never 1": 2,
        "r never 2": 1,
        "r recovers 1": 2,
        "r second 1": 2,
        "r second 2": 1,
    }


def test_one_that_takes_too_long_is_warned_then_collected_and_stopped(world: World) -> None:
    busy = "write half.txt <<END\nhalf\nEND\nthink 600\n"
    heeds = f"wait\nif-message ends.in <<MORE\n{OUTCOME}MORE\n"
    gone = world.go(world.scripts(heeds=heeds), timeout_seconds=102, warn_seconds=100, rest_seconds=100)
    assert gone.why == decide.SETTLED
    assert (world.last("heeds").ended, world.last("heeds").nudged_at) == ("outcome", None)
    gone = world.go(world.scripts(busy=busy), timeout_seconds=17, warn_seconds=15)
    assert gone.why == decide.SETTLED
    last = world.last("busy")
    assert (last.ended, last.retry, last.because) == ("timeout", False, "it did not finish within 17 s")
    assert last.warned_at is not None and last.started_at is not None and last.ended_at is not None
    assert last.started_at + 2 <= last.warned_at < last.ended_at and last.ended_at - last.started_at >= 17
    assert last.collected is not None and "?? half.txt" in last.collected["git"]
    assert [event["type"] for event in world.fleet.find("r-busy-1").events()].count("prompt") == 1
    assert set(world.states().values()) == {"STOPPED"}


def test_one_that_hangs_is_stalled_and_one_that_asks_is_blocked(world: World) -> None:
    world.go(world.scripts(asks="ask Which colour?\n", may="permission rm -r\n"))
    world.go(world.scripts(hangs="hang-ignoring-signals\n"), stall_seconds=5)
    assert [(world.last(name).ended, len(world.task(name).attempts)) for name in ("hangs", "asks", "may")] == [
        ("stalled", 1),
        ("blocked", 1),
        ("blocked", 1),
    ]
    assert world.last("asks").because == "question: Which colour?"
    assert set(world.states().values()) == {"STOPPED"}


def test_a_blocked_one_can_be_started_answered_and_collected_again(world: World) -> None:
    scripts = world.scripts(asks="ask Which colour?\n" + DONE)
    world.go(scripts)
    assert world.last("asks").ended == "blocked"
    assert world.states() == {"r-asks-1": "STOPPED"}
    world.fleet.find("r-asks-1").start()
    world.fleet.wait(["r-asks-1"], ("BLOCKED",), timeout=60)
    world.fleet.find("r-asks-1").message("blue")
    world.fleet.wait(["r-asks-1"], ("WAITING",), timeout=60)
    with world.run.locked():
        Engine(world.run, Scripts(world.fleet), world.fleet, QUICK).collect_again(["asks"])
    assert (world.last("asks").ended, world.last("asks").verdict) == ("blocked", {"done": True})
    assert set(world.began()) == {"r asks 1"}


def test_a_rate_limit_is_waited_for_and_makes_the_run_careful(world: World) -> None:
    # The run is quiet for 30 s then. The other one holds its place until that has begun.
    noted = f"run until grep -q 'is rate-limited' {world.run.ledger.path}; do sleep 0.1; done\n"
    scripts = world.scripts(limited="rate-limit 25\n" + DONE, other=noted + DONE, third=DONE)
    world.go(scripts, first_agents=2)
    assert [world.last(name).ended for name in scripts] == ["outcome", "outcome", "outcome"]
    changes = [(entry["limit"], entry["because"]) for entry in world.entries("concurrency")]
    assert changes[0] == (2, "none to 2: the run begins with a few")
    assert changes[1][0] == 1
    assert "2 to 1: an agent is rate-limited" in changes[1][1]
    cut = world.entries("concurrency")[1]
    limited = [entry for entry in world.entries("state") if "rate limit" in entry["reason"]]
    assert [entry["task"] for entry in limited] == ["limited"]
    third = next(entry for entry in world.entries("attempt") if entry["task"] == "third")
    assert third["at"] > cut["at"]


class Reader(Scripts):
    def unreadable(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> str:
        try:
            json.loads(agent.outcome() or b"")
        except ValueError as error:
            return f"not JSON: {error}"
        return ""


def test_the_same_agent_continues_after_a_limit_a_login_and_an_outcome_that_cannot_be_read(world: World) -> None:
    scripts = world.scripts(
        limited="block rate limit: usage limit, try again in 1 second\n" + DONE,
        odd="outcome-raw <<E\nnot json\nE\nwait\n" + OUTCOME,
        never="repeat 4 <<R\noutcome-raw <<E\nno\nE\nwait\nR\n",
        locked="block login: token expired\n" + DONE,
    )
    tasks, limits = tasks_of(scripts), QUICK._replace(limit_grace_seconds=0.5)
    with world.run.locked():
        gone = Engine(world.run, Reader(world.fleet), world.fleet, limits).go(tasks)
    assert (gone.why, gone.because) == (decide.PAUSED, "login: token expired")
    assert [entry["because"] for entry in world.entries("paused")] == ["login: token expired"]
    assert (world.last("limited").verdict, world.last("limited").continues) == ({"done": True}, 1)
    assert (world.last("odd").verdict, world.last("odd").returns) == ({"done": True}, 1)
    assert (world.last("never").ended, world.last("never").returns) == ("outcome", 2)
    told = [event["text"] for event in world.fleet.find("r-odd-1").events() if event["type"] == "message_queued"]
    assert len(told) == 1 and "not JSON" in told[0]
    assert world.states()["r-locked-1"] == "BLOCKED", "it is left as it is"
    with world.run.locked():
        world.run.resume()
        gone = Engine(world.run, Reader(world.fleet), world.fleet, limits).go(tasks)
    assert gone.why == decide.SETTLED and world.last("locked").verdict == {"done": True}
    assert world.began() == ["r limited 1", "r locked 1", "r never 1", "r odd 1"], "nobody was paid twice"


def test_an_orchestrator_that_was_stopped_for_long_calls_nobody_stalled(world: World, processes: list[Any]) -> None:
    marker = world.user.root / "go-on"
    scripts = world.scripts(one=f"run until test -e {marker}; do sleep 0.2; done\n" + DONE)
    processes.append(orchestrator(world, scripts, stall_seconds=12, gap_seconds=4))
    world.wait_until_running("one")
    processes[0].send_signal(signal.SIGSTOP)
    asleep = time.time()
    wait_for(lambda: time.time() > asleep + 14, "longer than an agent may say nothing", timeout=60)
    processes[0].send_signal(signal.SIGCONT)
    wait_for(lambda: world.entries("gap"), "the gap to be noted")
    marker.touch()
    out, err = processes[0].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.SETTLED, err
    world.run.refresh()
    assert [a.ended for a in world.task("one").attempts] == ["outcome"]
    since, until = world.run.state.gaps[0]
    assert until - since > 9
    asked = [seconds_of(entry["at"]) for entry in world.entries("stirred")]
    assert all(at > until + 5 for at in asked), "at once it would have been for the time in which nobody looked"


class Sleeper(Scripts):
    """Reading the outcome of `one` takes long, as if the machine slept then; meanwhile `two` is done."""

    def unreadable(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> str:
        if task.id == "one":
            began = time.time()
            self.fleet.find("r-two-1").message("finish")
            wait_for(lambda: self.fleet.find("r-two-1").outcome(), "the outcome of `two`")
            wait_for(lambda: self.fleet.find("r-two-1").state == "WAITING" and time.time() > began + 5, "two to rest")
        return ""


def test_nothing_is_decided_from_what_was_seen_before_a_gap(world: World) -> None:
    marker = world.user.root / "rests"
    scripts = world.scripts(
        one=f"run until test -e {marker}; do sleep 0.1; done\nthink 0.5\n" + DONE,
        two=f"run touch {marker}\nwait\n" + DONE,
    )
    limits = QUICK._replace(gap_seconds=2, rest_seconds=4)
    with world.run.locked():
        gone = Engine(world.run, Sleeper(world.fleet), world.fleet, limits).go(tasks_of(scripts))
    assert gone.why == decide.SETTLED and world.entries("gap")
    assert not world.entries("nudged"), "`two` was seen at rest without an outcome, before the gap"


def test_a_message_is_told_once_the_agent_is_ready_and_one_that_ends_first_is_judged_by_that(world: World) -> None:
    script = f"if-message hello <<MORE\n{OUTCOME}MORE\n"
    wait_first = "wait\n" + script
    world.go(world.scripts(told=wait_first, quick=DONE + "exit\n", crashes="crash\n"), data={"message": "hello"})
    assert (world.last("told").ended, world.last("quick").ended) == ("outcome", "outcome")
    assert [attempt.ended for attempt in world.task("crashes").attempts] == ["crash"] * 2
    assert world.last("told").told_at is not None
    assert world.last("told").nudged_at is None


def test_what_cannot_be_made_is_tried_again_and_then_reported(world: World) -> None:
    with world.run.locked():
        recipe = Scripts(world.fleet, type="no-such-agent")
        limits = QUICK._replace(max_attempts=2)
        gone = Engine(world.run, recipe, world.fleet, limits).go(tasks_of({"one": "x", "two": "y"}))
    assert gone.why == decide.SETTLED
    assert [(a.ended, a.retry) for a in world.task("one").attempts] == [("launch", True), ("launch", False)]
    assert "`no-such-agent`" in world.last("one").because
    assert world.states() == {}


class Broken(Scripts):
    """Nothing can be collected while the disk is full, and checking never works."""

    full = True

    def collect(self, task: TaskState, attempt: Attempt, agent: mngr.Agent) -> Mapping[str, Any]:
        if self.full:
            raise mngr.MngrError(f"the disk of `{agent.name}` is full", details="no space")
        return super().collect(task, attempt, agent)

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"odd": collected["not there"]}


def test_what_could_not_be_collected_or_checked_is_tried_again_and_never_final(world: World) -> None:
    tasks = tasks_of(world.scripts(one=DONE))
    recipe = Broken(world.fleet)
    with world.run.locked():
        gone = Engine(world.run, recipe, world.fleet, QUICK).go(tasks)
    assert gone.why == decide.SETTLED
    last = world.last("one")
    assert (world.task("one").status, last.collect_tries, last.collected) == ("collecting", 4, None)
    assert last.collect_error == "the disk of `r-one-1` is full: no space"
    assert world.states() == {"r-one-1": "WAITING"}, "it is not stopped before its work is here"
    recipe.full = False
    with world.run.locked():
        world.run.resume()
        Engine(world.run, recipe, world.fleet, QUICK).go(tasks)
    last = world.last("one")
    assert last.collected is not None and last.collected["git"][0] == "Work of one"
    assert (world.task("one").status, last.check_tries, last.check_error) == ("checking", 2, "KeyError: 'not there'")
    assert "not there" in (Path(world.run.task_dir("one")) / "error-check-1.txt").read_text()
    assert world.states() == {"r-one-1": "STOPPED"}
    assert world.go({"one": ""}).why == decide.SETTLED
    assert (world.last("one").verdict, world.began()) == ({"done": True}, ["r one 1"])


def test_many_that_fail_alike_open_the_breaker_and_resume_tries_them_again(world: World) -> None:
    marker = world.user.root / "fixed"
    script = f"run! test -e {marker}\n" + DONE
    scripts = world.scripts(**{f"t{number}": script for number in range(6)})
    gone = world.go(scripts, breaker_tasks=3, max_attempts=1, first_agents=3, max_agents=3)
    assert gone.why == decide.BREAKER
    # Three, and those that failed too before it was seen.
    assert re.search("[345] tasks failed in the same way: crash: exit code 1", gone.because), gone.because
    assert gone.state.counts()["waiting"] > 0
    failed = sum(bool(task.attempts) for task in gone.state.tasks.values())
    marker.touch()
    gone = world.go(scripts, breaker_tasks=3, max_attempts=1)
    assert gone.why == decide.SETTLED
    assert {world.last(name).ended for name in scripts} == {"outcome"}
    assert len(world.task("t0").attempts) == 2
    assert len(world.began()) == 6 + failed


def test_when_the_budget_is_spent_nothing_more_begins_until_there_is_more(world: World) -> None:
    script = "usage input=900 output=100 cost=1\n" + DONE
    scripts = world.scripts(**{f"t{number}": script for number in range(5)})
    # One after the other: what agents used that work at the same time is known when they end.
    gone = world.go(scripts, budget_usd=2.0, first_agents=1, max_agents=1)
    assert (gone.why, gone.because) == (decide.BUDGET, "$2.00 of $2.00 are spent")
    assert gone.state.counts()["waiting"] == 3
    gone = world.go(scripts, budget_tokens=3000, first_agents=1, max_agents=1)
    assert (gone.why, gone.because) == (decide.BUDGET, "3000 of 3000 tokens are used")
    assert world.go(scripts).why == decide.SETTLED
    assert len(world.began()) == 5


def test_an_agent_that_somebody_destroys_or_stops_is_not_made_again(world: World, processes: list[Any]) -> None:
    scripts = world.scripts(one="think 600\n", two="think 600\n", three=DONE)
    # Who destroys an agent ends its session first, and may take a while until nothing of it is left.
    processes.append(orchestrator(world, scripts, vanished_seconds=200))
    wait_for(lambda: len(world.began()) == 3, "the agents to run")
    world.wait_until_running("one", "two")
    world.fleet.find("r-one-1").destroy(force=True)
    world.fleet.find("r-two-1").stop()
    out, err = processes[0].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.SETTLED, err
    world.run.refresh()
    ((ended, because),) = [
        (a.ended, a.because) for a in world.task("one").attempts
    ]  # seen before it was gone, or after
    assert ended == "stopped" and because in ("stopped by `mngr destroy`", "its agent was destroyed")
    assert [a.ended for a in world.task("two").attempts] == ["stopped"]


def test_agents_whose_tmux_server_is_killed_are_started_again(world: World, processes: list[Any]) -> None:
    scripts = world.scripts(one="run test -e begun || { touch begun; sleep 600; }\n" + DONE)
    processes.append(orchestrator(world, scripts))
    wait_for(lambda: world.began() == ["r one 1"], "the agent to run")
    world.wait_for_files("begun", 1)
    world.user.tmux("kill-server")
    out, err = processes[0].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.SETTLED, err
    world.run.refresh()
    assert [(attempt.ended, attempt.restarts) for attempt in world.task("one").attempts] == [("outcome", 1)]
    assert world.began() == ["r one 1", "r one 1"]


def test_a_second_orchestrator_is_refused_with_the_process_of_the_first(world: World, processes: list[Any]) -> None:
    processes.append(orchestrator(world, world.scripts(one="think 600\n")))
    wait_for(lambda: len(world.began()) == 1, "the agent to run")
    with pytest.raises(mngr.MngrError, match=rf"worked on by process {processes[0].pid}"), world.run.locked():
        pass
    assert world.run.orchestrator() == processes[0].pid
    processes[0].kill()
    processes[0].wait()
    # A program that it was just starting may have its open files for a moment.
    wait_for(lambda: world.run.orchestrator() is None, "the lock to be free")
    with world.run.locked():
        assert world.run.orchestrator() is not None


def test_a_run_that_is_stopped_saves_all_work_and_goes_on_when_it_is_resumed(
    world: World, processes: list[Any]
) -> None:
    marker = world.user.root / "go-on"
    working = f"write half.txt <<END\nhalf\nEND\nrun until test -e {marker}; do sleep 0.1; done\n" + DONE
    scripts = world.scripts(**{f"t{number}": working for number in range(4)})
    processes.append(orchestrator(world, scripts, max_agents=2))
    world.wait_for_files("half.txt", 2)
    world.run.ask_to_stop()
    out, err = processes[0].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.STOPPED, err
    state = world.run.refresh()
    stopped = [task.last for task in state.tasks.values() if task.last is not None]
    assert [(a.ended, a.collected is not None and "?? half.txt" in a.collected["git"]) for a in stopped] == [
        ("stopped", True)
    ] * 2
    assert set(world.states().values()) == {"STOPPED"}
    assert state.counts()["waiting"] == 4
    marker.touch()
    assert world.go(scripts).why == decide.SETTLED
    assert {world.last(name).ended for name in scripts} == {"outcome"}
    assert world.began() == ["r t0 1", "r t0 1", "r t1 1", "r t1 1", "r t2 1", "r t3 1"], "by the same agents"
    assert [task.tries for task in world.run.state.tasks.values()] == [1, 1, 1, 1], "a stop costs no try"


def test_a_run_without_an_orchestrator_can_be_stopped_too(world: World, processes: list[Any]) -> None:
    scripts = world.scripts(one="write half.txt <<END\nhalf\nEND\nthink 600\n")
    processes.append(orchestrator(world, scripts))
    world.wait_for_files("half.txt", 1)
    processes[0].kill()
    processes[0].wait()
    assert world.states() == {"r-one-1": "RUNNING"}
    with world.run.locked():
        gone = Engine(world.run, Scripts(world.fleet), world.fleet, QUICK).stop()
    assert gone.why == decide.STOPPED
    last = world.last("one")
    assert last.ended == "stopped"
    assert last.collected is not None and "?? half.txt" in last.collected["git"]
    assert world.states() == {"r-one-1": "STOPPED"}


def test_an_interrupt_leaves_the_agents_to_the_next_orchestrator(world: World, processes: list[Any]) -> None:
    marker = world.user.root / "go-on"
    script = f"run until test -e {marker}; do sleep 0.1; done\n" + DONE
    scripts = world.scripts(one=script, two=script)
    processes.append(orchestrator(world, scripts))
    wait_for(lambda: len(world.began()) == 2, "the agents to run")
    world.wait_until_running("one", "two")
    processes[0].send_signal(signal.SIGINT)
    _, err = processes[0].communicate(timeout=200)
    assert "KeyboardInterrupt" in err
    assert set(world.states().values()) == {"RUNNING"}
    marker.touch()
    assert world.go(scripts).why == decide.SETTLED
    assert world.began() == ["r one 1", "r two 1"]


def counted(world: World, scripts: Mapping[str, str]) -> None:
    """Every task done once, every agent made once, and run again only after it crashed; no commit missing."""
    state = Run(world.run.directory).state
    attempts = {f"r {task.id} {a.number}": 1 + a.restarts for task in state.tasks.values() for a in task.attempts}
    assert Counter(world.began()) == attempts
    assert {name: state.tasks[name].status for name in scripts} == dict.fromkeys(scripts, "settled")
    for name in scripts:
        last = state.tasks[name].last
        assert last is not None and last.verdict == {"done": True}, last
        assert last.collected is not None and last.collected["git"][0] == f"Work of {name}"
        assert world.user.git("log", "-1", "--format=%s", f"mngr/{last.agent}") == f"Work of {name}"
    agents = world.fleet.list().agents
    labels = [(agent.record.spec.labels["mngr-task"], agent.record.spec.labels["mngr-attempt"]) for agent in agents]
    assert len(labels) == len(set(labels))
    assert {agent.state for agent in agents} <= {"STOPPED", "DONE"}


def test_the_map_reduce_of_the_guide_runs_and_prints_what_it_says(user: User) -> None:
    guide = (ROOT / "docs" / "guides" / "map-reduce.md").read_text()
    (script,) = [block for block in blocks(guide) if block.kind == "python"]
    for name, text in (("a.txt", "one  \ntwo\n"), ("b.txt", "clean\n")):
        (user.repo / name).write_text(text)
    user.git("add", ".")
    user.git("commit", "-q", "-m", "texts")
    ran = user.run([sys.executable, "-c", "\n".join(script.lines)], timeout=200).ok()
    assert ran.stdout in guide.replace("261116-120000-c0de", runs.find(str(user.repo)).id)


KILLED = {
    "one": DONE,
    "two": "run! test -e begun || { touch begun; exit 1; }\n" + DONE,
    "three": "think 0.3\n" + DONE + "exit\n",
}


@pytest.mark.parametrize("kill_at", ["3", "6.5", "8", "10", "14.5", "19", "23.5", "28"])
def test_a_run_killed_at_a_point_of_its_ledger_is_resumed_to_the_same_result(
    world: World, processes: list[Any], kill_at: str
) -> None:
    scripts = world.scripts(**KILLED)
    processes.append(orchestrator(world, scripts, kill_at))
    processes[0].communicate(timeout=200)
    assert processes[0].returncode == -9
    processes.append(orchestrator(world, scripts))
    out, err = processes[1].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.SETTLED, err
    counted(world, scripts)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("every", ["3", "3.5"])
def test_a_run_whose_every_orchestrator_is_killed_soon_still_comes_to_its_end(
    world: World, processes: list[Any], every: str
) -> None:
    scripts = world.scripts(**KILLED)
    for _ in range(100):
        process = orchestrator(world, scripts, every)
        processes.append(process)
        _, err = process.communicate(timeout=200)
        if process.returncode == 0:
            break
        assert process.returncode == -9, err
    else:
        pytest.fail("no end after 100 orchestrators")
    counted(world, scripts)


@pytest.mark.parametrize("seed", range(3))
def test_orchestrators_killed_at_any_moment_leave_nothing_undone_and_nothing_done_twice(
    world: World, processes: list[Any], seed: int
) -> None:
    chance = random.Random(seed)
    scripts = world.scripts(**{f"t{number}": KILLED[chance.choice(sorted(KILLED))] for number in range(8)})
    for _ in range(6):
        process = orchestrator(world, scripts, max_agents=6, first_agents=3)
        processes.append(process)
        try:
            process.wait(timeout=chance.uniform(0.3, 2.5))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    processes.append(orchestrator(world, scripts, max_agents=6))
    out, err = processes[-1].communicate(timeout=200)
    assert json.loads(out)["why"] == decide.SETTLED, err
    counted(world, scripts)
