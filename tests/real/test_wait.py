"""Wait and watch: told at once, by events, and never for ever when it cannot come."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.test_states import child_of, scripted
from tests.real.test_waiting_interrupted import watches_files
from tests.support.timing import best_of
from tests.support.user import User, wait_for


def waiting(user: User, *words: str) -> "subprocess.Popen[bytes]":
    """A `mngr` in the background that has begun to wait."""
    process = user.popen(*words)
    wait_for(lambda: process.poll() is not None or watches_files(process.pid), "the command to wait")
    return process


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("code", "state"), [(0, "DONE"), (3, "FAILED")])
def test_wait_returns_within_300_ms_of_the_end(user: User, code: int, state: str) -> None:
    def late(number: int) -> float:
        name = f"foo-{number}"
        user.create(name, command=f"until [ -e go ]; do sleep 0.01; done; date +%s.%N > ended; exit {code}")
        process = waiting(user, "wait", name, state, "--format", "json")
        go = user.work_dir(name) / "go"
        go.touch()
        output, _ = process.communicate(timeout=60)
        returned = time.time()
        assert process.returncode == 0
        row = json.loads(output)["agents"][0]
        assert (row["name"], row["state"], row["exit_code"]) == (name, state, code)
        return returned - float(go.with_name("ended").read_text())

    best_of(20, 0.3, late)


def test_wait_returns_at_once_when_it_is_there_already(user: User) -> None:
    user.create("foo")
    assert user.mngr("wait", "foo", "RUNNING").ok().stdout == "foo is RUNNING\n"


def test_a_state_that_never_comes_fails_at_once(user: User) -> None:
    user.create("foo", command="exit 3")
    user.wait_for_state("foo", "FAILED")
    ran = user.mngr("wait", "foo", "DONE").failed()
    assert "`foo` is FAILED (exit code 3), and will not become DONE by itself" in ran.stderr
    user.create("bar")
    user.mngr("stop", "bar").ok()
    user.mngr("wait", "bar", "RUNNING").failed()


def test_a_wait_that_can_no_longer_come_true_ends_when_that_is_known(user: User) -> None:
    agent = user.create("foo", command="exec sleep 9999")
    process = waiting(user, "wait", "foo", "DONE")
    os.kill(child_of(agent["pid"]), signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and b"killed by SIGTERM" in errors


def test_the_time_limit_has_an_exit_code_of_its_own(user: User) -> None:
    user.create("foo")
    start = time.monotonic()
    ran = user.mngr("wait", "foo", "DONE", "--timeout", "0.3s").failed(4)
    assert time.monotonic() - start >= 0.3
    assert "`foo` is RUNNING" in ran.stderr
    error = user.mngr("wait", "foo", "DONE", "--timeout", "0.1s", "--format", "json").failed(4).json
    assert error["exit_code"] == 4


def test_any_returns_the_first_and_all_waits_for_the_last(user: User) -> None:
    user.create("quick", command="until [ -e go ]; do sleep 0.01; done")
    user.create("slow", command="until [ -e go ]; do sleep 0.01; done")
    first = waiting(user, "wait", "quick", "slow", "DONE", "--any")
    every = waiting(user, "wait", "quick", "slow", "DONE", "--all")
    (user.work_dir("quick") / "go").touch()
    output, _ = first.communicate(timeout=60)
    assert (first.returncode, output) == (0, b"quick is DONE\n")
    assert every.poll() is None
    (user.work_dir("slow") / "go").touch()
    output, _ = every.communicate(timeout=60)
    assert (every.returncode, output) == (0, b"quick is DONE\nslow is DONE\n")


def test_any_goes_on_while_one_can_still_get_there(user: User) -> None:
    user.create("bad", command="exit 1")
    user.create("good", command="until [ -e go ]; do sleep 0.01; done")
    user.wait_for_state("bad", "FAILED")
    process = waiting(user, "wait", "bad", "good", "DONE", "--any")
    (user.work_dir("good") / "go").touch()
    assert process.communicate(timeout=60)[0] == b"good is DONE\n"
    assert "`bad` is FAILED" in user.mngr("wait", "bad", "good", "DONE").failed().stderr


def test_without_a_state_it_waits_until_the_work_stops(user: User) -> None:
    scripted(user, "foo", "think 0.2\nask why?\n")
    ran = user.mngr("wait", "foo", "--timeout", "50s").ok()
    assert ran.stdout == "foo is BLOCKED: question: why?\n"


def test_names_come_from_stdin_too(user: User) -> None:
    for name in ("a1", "a2"):
        user.create(name, command="true")
    ids = user.mngr("list", "--ids", "--sort", "name").ok().stdout
    assert user.mngr("wait", "-", "DONE", input=ids).ok().stdout == "a1 is DONE\na2 is DONE\n"


def test_a_stop_and_a_destroy_end_the_wait(user: User) -> None:
    user.create("foo")
    user.create("bar")
    stopped = waiting(user, "wait", "foo", "STOPPED")
    destroyed = waiting(user, "wait", "bar", "DONE")
    user.mngr("stop", "foo").ok()
    assert stopped.communicate(timeout=60)[0].startswith(b"foo is STOPPED")
    user.mngr("destroy", "bar").ok()
    _, errors = destroyed.communicate(timeout=60)
    assert destroyed.returncode == 1 and b"bar" in errors


def test_an_agent_that_is_being_stopped_is_never_seen_as_failed(user: User) -> None:
    stubborn = "setsid sh -c 'trap \"\" TERM HUP; echo > up; sleep 9998; :' & sleep 9999"
    user.create("foo", command=stubborn)
    wait_for((user.work_dir("foo") / "up").exists, "the stubborn child")
    process = user.popen("stop", "foo")
    seen = set()
    while process.poll() is None:
        seen.add(user.state("foo"))
    process.communicate()
    assert seen <= {"RUNNING", "STOPPED"}
    assert user.state("foo") == "STOPPED"


def test_a_session_killed_by_hand_is_seen_by_those_who_wait(user: User) -> None:
    user.create("foo")
    process = waiting(user, "wait", "foo")
    user.tmux("kill-session", "-t", "=mngr-foo").ok()
    assert process.communicate(timeout=60)[0].startswith(b"foo is FAILED")


def test_a_wrong_name_or_nothing_is_an_error(user: User) -> None:
    user.create("foo")
    assert "`foo`" in user.mngr("wait", "fooo", "DONE").failed().stderr
    user.mngr("wait", "DONE").failed(2)


def test_watch_prints_each_change_without_a_terminal(user: User) -> None:
    log = user.root / "watched"
    user.create("foo", command="until [ -e go ]; do sleep 0.01; done; exit 3")
    process = user.popen("list", "--watch", "--format", "{name} {state} {exit_code}")
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    seen: list[str] = []

    def lines() -> list[str]:
        assert process.stdout is not None
        seen.extend((process.stdout.read() or b"").decode().splitlines())
        return seen

    try:
        wait_for(lambda: "foo RUNNING " in lines(), f"the first line ({log})")
        (user.work_dir("foo") / "go").touch()
        wait_for(lambda: lines()[-1] == "foo FAILED 3", "the change")
        user.mngr("destroy", "foo", "--force").ok()
        assert seen[0] == "foo RUNNING "
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_follow_prints_events_as_they_come(user: User) -> None:
    user.create("foo")
    process = waiting(user, "event", "foo", "--follow", "--format", "jsonl")
    user.mngr("label", "foo", "a=b").ok()
    user.mngr("destroy", "foo").ok()
    output, _ = process.communicate(timeout=60)
    types = [json.loads(line)["type"] for line in output.splitlines()]
    assert types[:3] == ["created", "started", "labeled"]
    assert process.returncode == 0
    assert Path(user.host_dir / "agents").exists()
