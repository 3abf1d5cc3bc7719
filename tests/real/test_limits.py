"""Idle and time limits: agents that stop by themselves, with their work saved, and nobody watching from outside."""

import math
import os
import pty
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from mngr.agent.record import seconds_of
from tests.support.timing import best_of
from tests.support.user import MNGR, User, wait_for

# Uncommitted work, some output, then silence. `quiet` holds a moment right before the last output.
BUSY_THEN_QUIET = (
    "echo half > notes; for i in 1 2 3; do echo $i; sleep 0.5; done; date +%s.%N > quiet; echo; sleep 9999"
)
HALF = ("--extra-provision-command", "echo half > notes")  # there from the start, however late the agent gets going


def stopped(user: User, name: str) -> float:
    """Wait until the agent is stopped and return when that was."""
    user.wait_for_state(name, "STOPPED")
    return time.time()


def watchers(user: User) -> list[int]:
    """The process ids of all watchers."""
    lines = user.tmux("list-panes", "-a", "-F", "#{@mngr_limits} #{pane_pid}").stdout.splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("agent-")]


@pytest.mark.timeout(300)
def test_an_idle_agent_stops_three_to_six_seconds_after_its_last_output(user: User) -> None:
    def idle(number: int) -> float:
        name = f"foo-{number}"
        user.create(name, "--idle-timeout", "3", command=BUSY_THEN_QUIET)
        work_dir = user.work_dir(name)
        seconds = stopped(user, name) - float((work_dir / "quiet").read_text())
        assert seconds >= 3
        assert re.fullmatch(r"idle for \d+ s \(limit 3 s\)", user.agent(name)["state_reason"])
        assert "(limit 3 s)" in user.mngr("list").ok().stdout
        assert (work_dir / "notes").read_text() == "half\n"
        assert not watchers(user)
        wait_for(lambda: not user.processes(), "all processes to end")
        return seconds

    best_of(10, 6, idle)


def test_the_work_of_an_agent_that_a_limit_stopped_is_saved(user: User) -> None:
    user.create("foo", *HALF, "--idle-timeout", "1s")
    stopped(user, "foo")
    (entry,) = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
    assert (entry["reason"], entry["uncommitted"]) == ("idle limit", ["notes"])
    target = user.root / "recovered"
    user.mngr("saved", "restore", entry["id"], "--to", str(target)).ok()
    assert (target / "notes").read_text() == "half\n"
    event = next(event for event in user.events("foo") if event["type"] == "limit_reached")
    assert event["saved"] == entry["id"]


@pytest.mark.timeout(300)
def test_a_busy_agent_stops_when_its_time_is_over(user: User) -> None:
    def ran(number: int) -> float:
        name = f"foo-{number}"
        before = time.time()
        user.create(name, *HALF, "--timeout", "2", command="while :; do echo busy; sleep 0.1; done")
        seconds = stopped(user, name) - before
        assert seconds >= 2
        assert re.fullmatch(r"ran for \d+ s \(limit 2 s\)", user.agent(name)["state_reason"])
        assert user.mngr("saved", "list", "--format", "json").ok().json["saved"][0]["reason"] == "time limit"
        return seconds

    best_of(10, 6, ran)


@pytest.mark.timeout(300)
def test_a_busy_agent_does_not_stop(user: User) -> None:
    def idle(number: int) -> float:
        """The longest time between two outputs: an agent that is stopped was not busy all the time."""
        name = f"foo-{number}"
        loop = "i=0; while [ $i -lt 25 ]; do i=$((i + 1)); date +%s.%N >> busy; echo busy; sleep 0.3; done; exit 5"
        user.create(name, "--idle-timeout", "3", command=loop)
        ended = user.wait_for_state(name, "STOPPED", "FAILED")
        moments = [float(line) for line in (Path(ended["work_dir"]) / "busy").read_text().split()]
        longest = max([3.0, *(after - before for before, after in pairwise(moments))])
        return longest if ended["exit_code"] == 5 else math.inf

    best_of(6, 30, idle)


def test_a_stopped_agent_gets_its_time_again_when_it_is_started(user: User) -> None:
    user.create("foo", "--timeout", "4", command="sleep 9999")
    stopped(user, "foo")
    first = user.agent("foo")["start_time"]
    user.mngr("start", "foo").ok()
    wait_for(lambda: len(ends := moments(user, "foo", "limit_reached")) == 2 and ends, "the second end")
    stopped(user, "foo")
    begun, (_, end) = user.agent("foo")["start_time"], moments(user, "foo", "limit_reached")
    assert begun > first and end - seconds_of(begun) >= 4


def moments(user: User, name: str, type: str) -> list[float]:
    """When events of a type happened."""
    return [seconds_of(event["timestamp"]) for event in user.events(name) if event["type"] == type]


def test_a_watcher_that_was_killed_is_started_again(user: User) -> None:
    user.create("foo", "--timeout", "1h")
    (first,) = watchers(user)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not watchers(user), "the watcher to be gone")
    assert "not enforced: its watcher was ended; `mngr start foo`" in user.mngr("list", "--explain", "foo").ok().stdout
    assert "foo is already running" in user.mngr("start", "foo").ok().stdout
    (second,) = watchers(user)
    assert second != first
    user.mngr("start", "foo").ok()
    assert watchers(user) == [second]
    user.mngr("stop", "foo").ok()
    assert not watchers(user)
    user.mngr("start", "foo").ok()
    assert len(watchers(user)) == 1
    user.mngr("destroy", "foo", "--force").ok()
    wait_for(lambda: not user.processes(), "all processes to end")


def test_a_watcher_that_cannot_run_our_program_any_more_says_so(user: User) -> None:
    """As after an upgrade that removed the Python that the agent was made with."""
    agent = user.create("foo", "--timeout", "1h")
    script = user.host_dir / "agents" / agent["id"] / "limits.sh"
    text = re.sub(r"^ends=.*", "ends=1", script.read_text(), flags=re.M)
    script.write_text(text.replace(sys.executable, "/nonexistent/python"))
    lines = user.tmux("list-panes", "-a", "-F", "#{@mngr_limits} #{pane_id}").stdout.splitlines()
    (pane,) = [line.split()[1] for line in lines if line.startswith("agent-")]
    user.tmux("respawn-pane", "-k", "-t", pane).ok()
    wait_for(lambda: "limit_failed" in [event["type"] for event in user.events("foo")], "the event")
    why = "not enforced: mngr cannot be run (exit code 127); `mngr start foo`"
    wait_for(lambda: why in user.mngr("limit", "foo").ok().stdout, "the mark of the watcher")
    assert why in user.mngr("list", "--explain", "foo").ok().stdout
    user.mngr("start", "foo").ok()
    assert "not before" in user.mngr("list", "--explain", "foo").ok().stdout
    assert user.agent("foo")["pid"] == agent["pid"]


def test_new_limits_hold_for_an_agent_that_runs(user: User) -> None:
    user.create("foo")
    assert user.mngr("limit", "foo").ok().stdout == "foo: no limits\n"
    assert not watchers(user)
    user.mngr("limit", "foo", "--timeout", "1h").ok()
    assert len(watchers(user)) == 1
    assert user.agent("foo")["limits"] == {"idle_seconds": None, "idle_mode": "output", "run_seconds": 3600}
    user.mngr("limit", "foo", "--idle-timeout", "1h", "--timeout", "off").ok()
    assert len(watchers(user)) == 1
    assert user.agent("foo")["limits"] == {"idle_seconds": 3600, "idle_mode": "output", "run_seconds": None}
    user.mngr("limit", "foo", "--idle-timeout", "2").ok()
    stopped(user, "foo")
    user.mngr("limit", "foo", "--idle-timeout", "off").ok()
    user.mngr("start", "foo").ok()
    assert not watchers(user)


def test_limits_off_end_the_watcher(user: User) -> None:
    user.create("foo", "--idle-timeout", "1h")
    assert len(watchers(user)) == 1
    user.mngr("limit", "foo", "--idle-timeout", "off").ok()
    assert not watchers(user)
    assert user.mngr("limit", "foo").ok().stdout == "foo: no limits\n"


def test_limits_are_shown_and_explained(user: User) -> None:
    user.create("foo", "--idle-timeout", "30m", "--idle-mode", "user", "--timeout", "90m")
    shown = user.mngr("limit", "foo").ok().stdout
    assert shown == (
        "foo: stops when idle for 30 min (no message and no key typed), stops after running for 1 h 30 min\n"
    )
    explained = user.mngr("list", "--explain", "foo").ok().stdout
    assert "limits: stops when idle for 30 min" in explained
    assert "not before" in explained
    row = user.mngr("limit", "foo", "--format", "json").ok().json[0]
    assert row["limits"] == {"idle_seconds": 1800, "idle_mode": "user", "run_seconds": 5400}
    user.mngr("limit", "foo", "--timeout", "1s", "--dry-run").ok()
    assert user.agent("foo")["limits"]["run_seconds"] == 5400
    assert user.mngr("list", "--include", "limits.run_seconds > 5000", "--format", "{name}").ok().stdout == "foo\n"


def test_a_renamed_agent_is_still_watched(user: User) -> None:
    user.create("foo", "--idle-timeout", "2s")
    user.mngr("rename", "foo", "bar").ok()
    stopped(user, "bar")


@pytest.mark.timeout(300)
def test_a_message_counts_in_user_mode_and_output_does_not(user: User) -> None:
    chatty = "cat > /dev/null & while :; do echo busy; sleep 0.2; done"

    def idle(number: int) -> float:
        name = f"foo-{number}"
        user.create(name, "--idle-timeout", "4s", "--idle-mode", "user", command=chatty)
        time.sleep(2)
        before = time.time()
        told = user.mngr("message", name, "-m", "are you there")
        after = time.time()
        if told.exit_code:  # so busy a machine that it was stopped first
            assert "(limit 4 s)" in user.wait_for_state(name, "STOPPED")["state_reason"], told
            return math.inf
        ended = stopped(user, name)
        if moments(user, name, "message_delivered")[0] - moments(user, name, "started")[0] >= 4:
            return math.inf  # the same, only that it could still be told
        assert ended - before >= 4
        return ended - after

    best_of(10, 7.5, idle)


@pytest.mark.timeout(400)
def test_a_key_of_an_attached_person_counts_in_user_mode(user: User) -> None:
    def idle(number: int) -> float:
        """How long it lived after the last key; for ever too long if it was stopped before that, as on a machine
        so busy that four seconds pass between two keys."""
        name = f"foo-{number}"
        user.create(name, "--idle-timeout", "4s", "--idle-mode", "user", command="cat")
        main, side = pty.openpty()
        words = [MNGR, "connect", name, "--no-start"]
        person = subprocess.Popen(words, stdin=side, stdout=side, stderr=side, env=user.env, cwd=user.repo)
        os.close(side)
        os.set_blocking(main, False)
        typed = math.inf
        try:
            wait_for(lambda: (seen := user.agent(name))["attached"] or seen["state"] == "STOPPED", "the person")
            for _ in range(12):
                time.sleep(0.5)
                typed = time.time()
                if not _type(main):
                    break
            if user.state(name) == "STOPPED":
                return math.inf
            ended = stopped(user, name)
            assert ended - typed >= 4
            return ended - typed
        finally:
            person.kill()
            person.wait()
            os.close(main)

    best_of(8, 30, idle)


def _type(fd: int) -> bool:
    """Press a key, and read what is shown; False when nobody is at the other side any more."""
    try:
        os.write(fd, b"x")
        while os.read(fd, 65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def test_an_agent_that_waits_is_idle_in_agent_mode(user: User) -> None:
    script = user.root / "turns.script"
    script.write_text("say thinking\nthink 4\nsay thought\n")
    user.mngr(
        "create", "foo", "scripted", "--no-connect", "--idle-timeout", "2s", "--idle-mode", "agent", "--", str(script)
    ).ok()
    stopped(user, "foo")
    states = [event for event in user.events("foo") if event["type"] == "state"]
    assert [event["state"] for event in states] == ["RUNNING", "WAITING"], "it was not stopped while it thought"
    (end,) = moments(user, "foo", "limit_reached")
    assert 2 <= end - seconds_of(states[-1]["timestamp"]) < 30
    assert "(limit 2 s)" in user.agent("foo")["state_reason"]


def test_agent_mode_is_output_for_a_plain_command(user: User) -> None:
    user.create("foo", "--idle-timeout", "1s", "--idle-mode", "agent", command="echo hi; sleep 9999")
    stopped(user, "foo")


def test_an_agent_that_ended_by_itself_keeps_its_state(user: User) -> None:
    user.create("foo", "--idle-timeout", "15s", command="true")  # its watcher looks only when it could be over
    user.wait_for_state("foo", "DONE")
    wait_for(lambda: not watchers(user), "the watcher to end")
    assert user.state("foo") == "DONE"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--idle-timeout", "soon"), "is not a length of time"),
        (("--idle-timeout", "0.5"), "at least 1 s"),
        (("--timeout", "-3"), "--timeout"),
        (("--idle-timeout", "3", "--idle-mode", "sleepy"), "cannot be `sleepy`"),
        (("--idle-mode", "user"), "requires `--idle-timeout`"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_and_nothing_is_made(
    user: User, words: tuple[str, ...], said: str
) -> None:
    ran = user.mngr("create", "foo", "--no-connect", "--command", "cat", *words).failed(2)
    assert said in ran.stderr
    assert user.agents() == []


def test_a_mode_without_an_idle_limit_is_refused(user: User) -> None:
    user.create("foo")
    assert "has no idle limit" in user.mngr("limit", "foo", "--idle-mode", "user").failed(2).stderr


def test_limits_come_from_settings_and_off_overrides_them(user: User) -> None:
    user.host_dir.mkdir()
    (user.host_dir / "settings.toml").write_text('[commands.create]\nidle_timeout = "45m"\ntimeout = 7200\n')
    assert user.create("foo")["limits"] == {"idle_seconds": 2700, "idle_mode": "output", "run_seconds": 7200}
    assert user.create("bar", "--idle-timeout", "off", "--timeout", "off")["limits"]["idle_seconds"] is None


def test_enforce_stops_only_who_reached_a_limit(user: User) -> None:
    user.create("foo", "--timeout", "1h")
    user.create("bar", "--timeout", "2s")
    (row,) = user.mngr("limit", "foo", "--enforce", "--format", "json").ok().json
    assert not row["stopped"] and 3500 < row["seconds_left"] <= 3600
    os.kill(watchers(user)[-1], signal.SIGKILL)
    time.sleep(2.1)
    (row,) = user.mngr("limit", "bar", "--enforce", "--dry-run", "--format", "json").ok().json
    if user.state("bar") == "RUNNING":
        assert re.match(r"ran for \d+ s", row["reason"]) and not row["stopped"]
    user.mngr("limit", "bar", "--enforce").ok()
    assert user.state("bar") == "STOPPED"
    assert user.state("foo") == "RUNNING"


def test_the_watcher_does_not_run_a_module_of_the_work_dir(user: User) -> None:
    trap = 'mkdir mngr; echo \'open("trapped", "w")\' > mngr/__init__.py; sleep 9999'
    user.create("foo", command=trap)
    work_dir = user.work_dir("foo")
    set_trap = work_dir / "mngr" / "__init__.py"
    wait_for(lambda: set_trap.exists() and set_trap.read_text().endswith("\n"), "the trap")
    user.mngr("limit", "foo", "--idle-timeout", "1s").ok()
    stopped(user, "foo")
    assert not (work_dir / "trapped").exists() and not Path("/trapped").exists()


def test_the_window_of_the_watcher_is_not_in_the_status_line(user: User) -> None:
    user.create("foo", "--idle-timeout", "1h")
    windows = user.tmux("list-windows", "-a", "-F", "#{window_name}|#{T:window-status-format}").stdout.splitlines()
    assert "limits|" in windows
