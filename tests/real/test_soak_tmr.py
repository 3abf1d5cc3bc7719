"""Fifty kills of the orchestrator of `mngr tmr`, over several runs: `make soak`. Three are in `test_tmr_run.py`."""

import os
import random
import re
import subprocess
from collections import Counter

import pytest

from tests.support.tmr import NO_CHANGE, TESTS, Project
from tests.support.user import MNGR, User

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3500)]

KILLS = int(os.environ.get("SOAK_KILLS") or 50)
# Fails in one of ten runs.
FLAKY = """

def test_flaky():
    import random
    assert random.random() > 0.1
"""
KILLS_OF_ONE_RUN = 8


def go_on(project: Project, words: list[str], chance: random.Random, entries: int, *, spare: bool) -> str | None:
    """Run `mngr` with a kill somewhere on its way: at a line of the ledger, just before one, or at some moment. Returns
    where it was killed, None when it came to its end before. One that is to be spared gets to its end."""
    at = chance.choice([f"{chance.randint(1, entries)}", f"{chance.randint(1, entries)}.5", "moment"])
    at = "" if spare else at
    env = {} if at == "moment" else {"MNGR_TEST_KILL_AT": at}
    running = subprocess.Popen(
        [MNGR, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=project.repo,
        env={**project.user.env, **env},
    )
    try:
        said = running.communicate(timeout=chance.uniform(0.2, 15) if at == "moment" else 300)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        return at
    assert running.returncode in (0, -9), said.decode()
    return at if running.returncode == -9 else None


def branch(user: User, run: str) -> tuple[str, str]:
    """Its tree, and what its commits say but for the names of agents, which differ from run to run."""
    said = user.git("log", "--format=%s", f"main..tmr/{run}")
    return user.git("rev-parse", f"tmr/{run}^{{tree}}"), re.sub(r"agent \S+", "agent", said)


def check(project: Project, run: str, expected: tuple[str, str]) -> None:
    user = project.user
    assert branch(user, run) == expected
    entries = project.ledger(run)
    attempts = Counter((entry["task"], entry["number"]) for entry in entries if entry["type"] == "attempt")
    assert set(attempts.values()) == {1}, attempts
    measured = Counter(entry["key"] for entry in entries if entry["type"] == "measured" and not entry["lost"])
    assert set(measured.values()) == {1}, f"measured twice: {[key for key in measured if measured[key] > 1]}"
    agents = [agent for agent in user.agents() if agent["labels"].get("mngr-run") == run]
    made = Counter((agent["labels"]["mngr-task"], agent["labels"]["mngr-attempt"]) for agent in agents)
    assert set(made.values()) == {1}, f"an agent was made twice for one attempt: {made}"
    assert {agent["labels"]["mngr-role"] for agent in agents} == {"map"}, "jobs of a killed orchestrator are gone"
    for agent in agents:
        started = [event for event in user.events(agent["name"]) if event["type"] == "started"]
        assert len(started) == 1, f"{agent['name']} was started {len(started)} times"
    for task in project.status(run)["rows"]:
        kept = user.git("for-each-ref", "--format=%(objectname)", f"refs/mngr/runs/{run}/{task['slug']}")
        assert kept, f"the commit of {task['slug']} is missing"
    assert {agent["state"] for agent in agents} == {"STOPPED"}


def test_fifty_kills_end_as_none_does(user: User) -> None:
    seed = int(os.environ.get("SOAK_SEED") or random.randrange(10**6))
    chance = random.Random(seed)
    project = Project(user, tests=TESTS + FLAKY)
    project.script("test_flaky", NO_CHANGE)
    project.tmr(name="calm", timeout=300).ok()
    expected = branch(user, "calm")
    entries = len(project.ledger("calm"))
    done: list[str] = []
    number = 0
    while len(done) < KILLS:
        number += 1
        run, points = f"k{number}", list[str]()
        words = project.words(name=run)
        while at := go_on(project, words, chance, entries, spare=len(points) == KILLS_OF_ONE_RUN):
            points.append(at)
            # Killed before its first line, it is no run yet.
            begun = (project.repo / ".mngr/runs" / run / "ledger.jsonl").exists() and project.ledger(run)
            words = ["tmr", "resume", run] if begun else words
        try:
            check(project, run, expected)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, run {run}, killed at {points}: {error}") from error
        done += points
        print(f"{run}: {len(points)} kills, {len(done)} of {KILLS}")
    assert not [agent for agent in user.agents() if agent["labels"].get("mngr-role") == "job"]
