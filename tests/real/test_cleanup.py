"""`mngr cleanup`: many agents at once, by age, idleness and state, never without a yes."""

import os
import pty
import subprocess

import pytest

from tests.support.records import edit_record
from tests.support.user import MNGR, User, wait_for


def names(user: User) -> list[str]:
    return sorted(agent["name"] for agent in user.agents())


def test_agents_are_stopped_by_state(user: User) -> None:
    user.create("done", command="true")
    user.create("busy")
    user.wait_for_state("done", "DONE")
    assert user.mngr("cleanup", "--state", "done", "--yes").ok().stdout == "stopped done\n"
    assert (user.state("done"), user.state("busy")) == ("DONE", "RUNNING")
    assert user.mngr("cleanup", "--state", "done", "--yes").ok().stdout == "done is already stopped\n"
    user.mngr("cleanup", "--state", "running", "--yes").ok()
    assert user.agent("busy")["state_reason"] == "stopped by `mngr cleanup`"
    assert user.mngr("cleanup", "--state", "STOPPED", "--yes").ok().stdout == "No agents found\n"


def test_agents_are_chosen_by_idleness(user: User) -> None:
    """So long that nothing but an agent that is idle is silent for it, be the machine ever so busy."""
    idle = ("--idle", "15s")
    user.create("quiet", command="sleep 9999")
    user.create("busy", command="while :; do echo busy; sleep 0.3; done")

    def rows() -> list[tuple[str, str]]:
        found = user.mngr("cleanup", *idle, "--dry-run", "--format", "json").ok().json
        return [(row["name"], row["action"]) for row in found]

    wait_for(lambda: user.agent("quiet")["idle_seconds"] >= 15, "an idle agent")
    assert rows() == [("quiet", "stop")]
    user.mngr("cleanup", *idle, "--yes").ok()
    assert (user.state("quiet"), user.state("busy")) == ("STOPPED", "RUNNING")


def test_agents_are_chosen_by_age(user: User) -> None:
    record = user.host_dir / "agents" / user.create("old")["id"] / "agent.json"
    edit_record(record, created_at="2026-01-01T00:00:00.000000Z")
    user.create("young")
    user.mngr("cleanup", "--older-than", "1h", "--destroy", "--yes").ok()
    assert names(user) == ["young"]


def test_all_that_is_said_must_hold(user: User) -> None:
    user.create("done", command="true")
    user.create("busy")
    user.wait_for_state("done", "DONE")
    words = ("--destroy", "--yes", "--state", "DONE", "--state", "RUNNING", "--include", 'name == "done"')
    user.mngr("cleanup", *words).ok()
    assert names(user) == ["busy"]


def test_agents_with_work_are_refused_unless_forced(user: User) -> None:
    user.create("full")
    user.create("clean")
    user.mngr("exec", "full", "echo half > notes").ok()
    dry = user.mngr("cleanup", "--destroy", "--all", "--dry-run").failed(3)
    assert "would destroy clean" in dry.stdout and "full" not in dry.stdout
    ran = user.mngr("cleanup", "--destroy", "--all", "--yes").failed(3)
    assert "`full` has work that is found nowhere else: 1 uncommitted file" in ran.stderr
    assert names(user) == ["full"]
    assert user.state("full") == "RUNNING"
    assert "full-1" in user.mngr("cleanup", "--destroy", "--all", "--yes", "--force").ok().stdout
    assert names(user) == []
    assert user.mngr("saved", "list", "--format", "json").ok().json["saved"][0]["uncommitted"] == ["notes"]


def test_nobody_to_ask_is_exit_5_and_changes_nothing(user: User) -> None:
    user.create("foo")
    for words in (["--destroy"], []):
        ran = user.mngr("cleanup", "--all", *words).failed(5)
        assert "`--yes`" in ran.stderr and "`foo`" in ran.stderr
    assert user.state("foo") == "RUNNING"


@pytest.mark.parametrize(("answer", "state"), [("y", "STOPPED"), ("n", "RUNNING")])
def test_on_a_terminal_they_are_shown_and_asked_for(user: User, answer: str, state: str) -> None:
    user.create("foo")
    main, side = pty.openpty()
    running = subprocess.Popen(
        [MNGR, "cleanup", "--all"], stdin=side, stdout=side, stderr=side, env=user.env, cwd=user.repo
    )
    os.close(side)
    seen = b""
    try:
        while b"[y/N]" not in seen:
            seen += os.read(main, 4096)
        os.write(main, answer.encode() + b"\n")
        wait_for(lambda: running.poll() is not None, "the command to end")
    finally:
        running.kill()
        running.wait()
        os.close(main)
    assert b"would stop foo (RUNNING, created " in seen and b"Stop 1 agent (1 running)? [y/N]" in seen
    assert user.state("foo") == state
    assert running.returncode == (0 if answer == "y" else 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no agents were selected"),
        (("--all", "--force"), "`--force` requires `--destroy`"),
        (("--state", "SLEEPY"), "invalid state"),
        (("--idle", "soon"), "is not a length of time"),
        (("--all", "--stop", "--destroy"), "cannot be used together"),
    ],
)
def test_what_makes_no_sense_is_refused(user: User, words: tuple[str, ...], said: str) -> None:
    assert said in user.mngr("cleanup", *words, "--yes").failed(2).stderr
