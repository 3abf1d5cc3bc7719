"""A day in the life of a run with the real Claude Code: limits, an overloaded server, a dropped stream, a machine that
sleeps, kills, and agents that end their turns oddly. Every test gets its verdict, and nothing is paid for twice."""

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mngr.mapreduce import run as runs
from mngr_testing.model_server import ModelServer
from tests.support.day import RETRIES, TROUBLES, UNCHANGED, Day, expected, program_below, requests, waited
from tests.support.programs import program, with_program
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(600)
LIMIT_SECONDS = 90
STALL_SECONDS = 15
LIMITS = {
    "first_agents": 12,
    "max_launching": 12,
    "stall_seconds": STALL_SECONDS,
    "gap_seconds": 5,
    "limit_seconds": 5,
    "limit_grace_seconds": 5,
    "long_limit_seconds": 5,
    "backoff_seconds": 1,
}


def settings() -> str:
    return "[tmr]\n" + "".join(
        f"{key} = {json.dumps(value)}\n"
        for key, value in {
            "test_command": f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider",
            "env.PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "env.PYTHONPATH": ".",
            "env.PYTHONDONTWRITEBYTECODE": "1",
            "baseline_repeats": 1,
            "effect_runs": 0,
            "max_jobs": 2,
        }.items()
    )


class Run:
    """`mngr tmr` on the project of a day."""

    def __init__(self, user: User, name: str) -> None:
        self.user, self.name = user, name

    def words(self, kind: str, *args: str) -> list[str]:
        words = [
            "tmr",
            "--name",
            self.name,
            "--type",
            kind,
            "--max-agents",
            "12",
            "--no-record",
            "--integrator",
            "none",
        ]
        return [*words, *(["--permissions", "bypass"] if kind == "claude" else []), *args]

    def entries(self, type: str) -> list[dict[str, Any]]:
        path = self.user.repo / ".mngr" / "runs" / self.name / "ledger.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        return [entry for entry in found if entry["type"] == type]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.user.mngr("tmr", "status", self.name, "--format", "json").ok().json
        return found

    def tree(self) -> str:
        return self.user.git("rev-parse", f"tmr/{self.name}^{{tree}}")

    def send(self, number: signal.Signals, test: str) -> None:
        """A signal to the program of this test's agent."""
        rows = {row["task"].rpartition("::test_")[2]: row["agent"] for row in self.status()["rows"]}
        os.kill(program_below(self.user.agent(rows[test])["pid"], "claude"), number)


@pytest.fixture
def started() -> Iterator[list[Any]]:
    found: list[Any] = []
    yield found
    for one in found:
        if one.poll() is None:
            one.kill()
        one.communicate()


def test_a_day_of_faults_ends_like_a_quiet_one_and_no_attempt_is_paid_twice(user: User, started: list[Any]) -> None:
    day = Day(user, LIMIT_SECONDS)
    (user.repo / ".mngr").mkdir()
    (user.repo / ".mngr" / "settings.toml").write_text(settings())
    user.git("add", "-A")
    user.git("commit", "-q", "-m", "a shop")
    user.trust()
    with_program(program("claude"), user.env, user.root / "bin")
    user.env["CLAUDE_CODE_MAX_RETRIES"] = str(RETRIES)
    run, quiet = Run(user, "day"), Run(user, "quiet")
    with ModelServer(day.rules()) as server:
        user.env.update(server.env("claude"))
        begun = user.mngr(*run.words("claude"), env={"MNGR_TEST_KILL_AT": "2"})
        assert begun.exit_code == -signal.SIGKILL, begun
        runs.find(str(user.repo), "day").override(limits=LIMITS)
        started.append(user.popen("tmr", "resume", "day"))
        sleep_and_wake(day, run, started[0])
        started[0].kill()
        started[0].communicate()
        run.send(signal.SIGKILL, "lost")
        started.append(user.popen("tmr", "resume", "day"))

        # The limits take a while.
        script = user.root / "quiet.script"
        script.write_text(day.script())
        user.mngr(*quiet.words("scripted", "--", str(script)), timeout=400).ok()
        out, err = started[1].communicate(timeout=400)
        assert started[1].returncode == 0, f"{out.decode()}\n{err.decode()}"
        assert requests(server) == expected()
        assert waited(server, "limited") >= LIMIT_SECONDS
    rows = {row["task"].rpartition("::test_")[2]: row for row in run.status()["rows"]}
    assert {name: (row["verdict"], row["attempts"]) for name, row in rows.items()} == {
        name: ("unchanged" if name == UNCHANGED else "fixed", 1) for name in TROUBLES
    }
    assert [run.entries(type) for type in ("stirred", "warned", "decision")] == [[], [], []]
    assert run.tree() == quiet.tree()


def sleep_and_wake(day: Day, run: Run, orchestrator: Any) -> None:
    """An agent is killed in mid-turn. Then the machine sleeps: the orchestrator, and an agent in mid-turn."""
    day.held("killed")
    day.held("asleep")
    run.send(signal.SIGKILL, "killed")
    run.send(signal.SIGSTOP, "asleep")
    orchestrator.send_signal(signal.SIGSTOP)
    slept_at = time.time()
    wait_for(lambda: time.time() > slept_at + STALL_SECONDS + 2, "longer than an agent may say nothing")
    orchestrator.send_signal(signal.SIGCONT)
    wait_for(lambda: run.entries("gap"), "the gap to be noted")
    run.send(signal.SIGCONT, "asleep")
    day.free("asleep")
    wait_for(lambda: run.entries("waits"), "the limit to be noted", 120)
    said = day.user.mngr("tmr", "status", "day").ok()
    assert " wait until " in said.stdout + said.stderr
