"""Ctrl-C during a verb on several agents: it ends at once, with all it started, and says what was done."""

import fcntl
import json
import signal
import subprocess
from pathlib import Path

from tests.real.test_waiting_interrupted import watches_files
from tests.support.user import User, wait_for


def interrupted(child: "subprocess.Popen[bytes]") -> tuple[str, str]:
    """Send one Ctrl-C; what the command said by its end, on both streams."""
    try:
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 130, errors
    return output.decode(), errors.decode()


def test_destroy_keeps_what_was_done_and_counts_what_is_left(user: User) -> None:
    """One is stopped and has been waiting to be saved, one waits for its lock, one is gone."""
    user.mngr("create", "-n", "a", "-n", "b", "-n", "c", "--no-connect", "--command", "sleep 9999").ok()
    agents = {agent["name"]: agent for agent in user.agents()}
    (Path(agents["b"]["work_dir"]) / "notes").write_text("half\n")
    git = user.root / "bin" / "git"
    git.parent.mkdir()
    git.write_text(
        '#!/bin/sh\ncase "$*" in *commit-tree*) echo $$ > "$HOME/saving"; exec sleep 9997;; esac\n'
        'PATH=${PATH#*:} exec git "$@"\n'
    )
    git.chmod(0o755)
    with (user.host_dir / "locks" / agents["c"]["id"]).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env = {"PATH": f"{git.parent}:{user.env['PATH']}"}
        child = user.popen("destroy", "--all", "--force", "--format", "json", env=env)
        wait_for((user.home / "saving").exists, "the work of b to be saved")
        wait_for(lambda: not Path(agents["a"]["work_dir"]).exists(), "a to be destroyed")
        output, errors = interrupted(child)
    assert '"interrupted: 1 destroyed, 2 not done"' in errors
    rows = {row["name"]: row for row in json.loads(output)}
    assert [rows[name]["ok"] for name in "abc"] == [True, False, False]
    assert rows["b"]["error"] == rows["c"]["error"] == "interrupted"
    left = {agent["name"]: (agent["state"], agent["state_reason"]) for agent in user.agents()}
    assert left == {"b": ("STOPPED", "stopped by `mngr destroy`"), "c": ("RUNNING", "")}
    assert (Path(agents["b"]["work_dir"]) / "notes").read_text() == "half\n"
    user.mngr("destroy", "--all", "--force").ok()
    assert user.agents() == []


def test_message_does_not_wait_for_replies_any_longer(user: User) -> None:
    script = user.root / "long.script"
    script.write_text("wait\nthink 9999\n")
    for name in ("a", "b"):
        user.mngr("create", name, "scripted", "--no-connect", "--", str(script)).ok()
    child = user.popen("message", "a", "b", "-m", "hello", "--wait-reply")
    wait_for(lambda: watches_files(child.pid) and user.state("a") == user.state("b") == "RUNNING", "both to work")
    assert interrupted(child) == ("", "interrupted: 0 answered, 2 not done\n")


def test_exec_ends_the_commands_that_it_started(user: User) -> None:
    """A second Ctrl-C, while they are ending, does not leave them behind."""
    user.mngr("create", "-n", "a", "-n", "b", "--no-connect", "--command", "sleep 9999").ok()
    places = [user.work_dir("a"), user.work_dir("b")]
    slow = "trap 'echo ending > ending' TERM; echo $$ > pid.part; mv pid.part pid; while :; do sleep 0.1; done"
    child = user.popen("exec", "a", "b", slow)
    wait_for(lambda: all((place / "pid").exists() for place in places), "both commands to run")
    pids = [int((place / "pid").read_text()) for place in places]
    child.send_signal(signal.SIGINT)
    wait_for(lambda: all((place / "ending").exists() for place in places), "both to be asked to end")
    assert interrupted(child) == ("", "interrupted: 0 done, 2 not done\n")
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_create_names_the_agents_that_did_not_get_their_message(user: User) -> None:
    """A type that never gets ready for one."""
    user.host_dir.mkdir(mode=0o700)
    slow = """command = "sh -c 'while :; do echo busy; sleep 0.3; done'"\nready = '^never'\n"""
    (user.host_dir / "settings.toml").write_text(f"[agent_types.slow]\n{slow}")
    child = user.popen("create", "-n", "a", "-n", "b", "--type", "slow", "--no-connect", "-m", "hello")
    locks = user.host_dir / "locks"
    wait_for(lambda: len(list(locks.glob("*.message"))) == 2, "both messages to be on their way")
    output, errors = interrupted(child)
    assert output == "" and errors.endswith("interrupted: 0 delivered, 2 not done\n")
    for name in ("a", "b"):
        assert f"warning: {name}: the agent runs, but did not get the message\n" in errors
    assert [agent["state"] for agent in user.agents()] == ["STARTING", "STARTING"]
