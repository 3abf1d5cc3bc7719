"""Faults and races, repeated: `make soak`. The same behaviours have short tests elsewhere."""

import random
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_no_exit_code_is_lost_when_hundreds_end_at_once(user: User) -> None:
    for turn in range(10):
        names = [f"r{turn}-{number}" for number in range(20)]
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(lambda name: user.create(name, command="sleep 0.5; exit 3"), names))
        user.mngr("wait", *names, "FAILED", "--timeout", "60").ok()
        codes = {agent["name"]: agent["exit_code"] for agent in user.agents()}
        assert {name: codes[name] for name in names if codes[name] != 3} == {}
        user.mngr("destroy", *names).ok()


def test_interrupts_at_any_moment_leave_an_agent_or_nothing(user: User) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    for number in range(150):
        name = f"i{number}"
        running = user.popen("create", name, "--no-connect", "--command", "sleep 9999")
        try:
            running.wait(chance.random() * 0.25)
        except subprocess.TimeoutExpired:
            running.send_signal(chance.choice([signal.SIGINT, signal.SIGTERM]))
        running.communicate(timeout=60)
        there = [agent["state"] for agent in user.agents() if agent["name"] == name]
        assert there in ([], ["RUNNING"]), f"seed {seed}, {name}: {there}"
        if there:
            user.mngr("destroy", name).ok()
    assert user.git("worktree", "list").count("\n") == 0
    assert user.git("branch", "--list", "mngr/*") == ""
    wait_for(lambda: not user.processes(), f"no process to be left (seed {seed})")


def test_many_users_of_one_state_directory(user: User) -> None:
    def live(number: int) -> int:
        name = f"p{number}"
        codes = [
            user.mngr("create", name, "--no-connect", "--command", "cat", timeout=120).exit_code,
            user.mngr("message", name, "-m", "hello", timeout=120).exit_code,
            user.mngr("stop", name, timeout=120).exit_code,
            user.mngr("start", name, timeout=120).exit_code,
            user.mngr("destroy", name, timeout=120).exit_code,
        ]
        return sum(codes)

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(live, range(120))) == 0
    assert user.agents() == []
