"""The one true state of an agent, from its process, its session and its own words."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from mngr.actions import create, message
from mngr.fleet.fleet import Fleet
from mngr.programs import kind as kinds
from mngr.system.state_dir import StateDir
from mngr.system.tmux import Session, Tmux
from tests.support.timing import best_of
from tests.support.user import User, wait_for


def child_of(pid: int) -> int:
    """The command that an agent's launch script runs."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return int(wait_for(lambda: children.read_text().split(), "the agent's command")[0])


def scripted(user: User, name: str, script: str) -> None:
    path = user.root / f"{name}.script"
    path.write_text(script)
    user.mngr("create", name, "scripted", "--no-connect", "--", str(path)).ok()


def test_a_live_process_is_running(user: User) -> None:
    agent = user.create("foo")
    assert (agent["state"], agent["state_reason"], agent["exit_code"], agent["signal"]) == ("RUNNING", "", None, None)
    assert Path(f"/proc/{agent['pid']}").exists()
    assert agent["runtime_seconds"] >= 0 and agent["idle_seconds"] >= 0


def test_exit_code_0_is_done(user: User) -> None:
    user.create("foo", command="true")
    agent = user.wait_for_state("foo", "DONE", "FAILED")
    assert (agent["state"], agent["exit_code"], agent["pid"]) == ("DONE", 0, None)


def test_another_exit_code_is_failed_and_known(user: User) -> None:
    for code in (1, 3, 127):
        user.create(f"a{code}", command=f"exit {code}")
        agent = user.wait_for_state(f"a{code}", "DONE", "FAILED")
        assert (agent["state"], agent["exit_code"], agent["state_reason"]) == ("FAILED", code, f"exit code {code}")
    assert "exited" in [event["type"] for event in user.events("a3")]


def test_a_command_that_does_not_exist_is_failed(user: User) -> None:
    user.create("foo", command="no-such-program-anywhere")
    assert user.wait_for_state("foo", "FAILED")["exit_code"] == 127
    assert "not found" in user.mngr("capture", "foo").ok().stdout, "all that it wrote is there when it has ended"


def test_a_process_killed_by_a_signal_is_failed_with_its_name(user: User) -> None:
    for number, name in ((9, "SIGKILL"), (15, "SIGTERM"), (11, "SIGSEGV")):
        agent = user.create(f"a{number}", command="exec sleep 9999")
        os.kill(child_of(agent["pid"]), number)
        ended = user.wait_for_state(f"a{number}", "FAILED")
        assert (ended["signal"], ended["state_reason"]) == (number, f"killed by {name}")


def test_a_killed_launch_script_is_failed(user: User) -> None:
    agent = user.create("foo")
    os.kill(agent["pid"], signal.SIGKILL)
    ended = user.wait_for_state("foo", "FAILED")
    assert ended["exit_code"] in (None, 137)
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"


def test_a_process_that_exits_at_once_keeps_its_exit_code(user: User) -> None:
    for code in range(1, 21):
        user.mngr("create", f"a{code}", "--no-connect", "--transfer", "none", "--command", f"exit {code}").ok()
    wait_for(lambda: {agent["state"] for agent in user.agents()} == {"FAILED"}, "all to end")
    assert {agent["name"]: agent["exit_code"] for agent in user.agents()} == {f"a{code}": code for code in range(1, 21)}


def test_the_exit_code_survives_the_end_of_the_tmux_server(user: User) -> None:
    user.create("foo", command="exit 3")
    user.create("bar", command="true")
    user.wait_for_state("foo", "FAILED")
    user.wait_for_state("bar", "DONE")
    user.tmux("kill-server")
    assert (user.agent("foo")["state"], user.agent("foo")["exit_code"]) == ("FAILED", 3)
    assert user.state("bar") == "DONE"


def test_a_program_that_closes_its_terminal_still_runs(user: User) -> None:
    agent = user.create("foo", command="exec sleep 9999 < /dev/null > log 2>&1")
    child = child_of(agent["pid"])
    assert user.state("foo") == "RUNNING"
    os.kill(child, signal.SIGTERM)
    assert user.wait_for_state("foo", "FAILED")["signal"] == 15


def test_stopped_says_by_what(user: User) -> None:
    user.create("foo")
    user.mngr("stop", "foo").ok()
    agent = user.agent("foo")
    assert (agent["state"], agent["state_reason"], agent["pid"]) == ("STOPPED", "stopped by `mngr stop`", None)


def test_a_session_killed_by_hand_is_failed_and_can_be_started(user: User) -> None:
    user.create("foo")
    user.tmux("kill-session", "-t", "=mngr-foo").ok()
    agent = user.wait_for_state("foo", "FAILED")
    assert agent["state_reason"] != ""
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"


def test_a_killed_tmux_server_is_told_and_all_can_be_started(user: User) -> None:
    for name in ("a1", "a2"):
        user.create(name)
    user.tmux("kill-server").ok()
    states = {agent["name"]: (agent["state"], agent["state_reason"]) for agent in user.agents()}
    assert set(states) == {"a1", "a2"}
    assert all(state == "FAILED" and reason for state, reason in states.values())
    user.mngr("start", "--all").ok()
    assert {agent["state"] for agent in user.agents()} == {"RUNNING"}
    user.mngr("destroy", "--all").ok()


def test_a_server_that_is_about_to_end_has_no_panes_and_another_one_starts(user: User) -> None:
    """A client that comes in its last moment, which is most of these times, gets no answer."""
    host = StateDir(str(user.host_dir))
    host.prepare()
    tmux = Tmux(user.env, host)
    for _ in range(15):
        tmux.start(Session("a", ["sleep", "9999"], str(user.root), {}, {"agent": "a"}))
        assert [pane.session for pane in tmux.panes()] == ["a"]
        user.tmux("kill-server").ok()
    assert tmux.panes() == []


@pytest.mark.parametrize(("verb", "seen"), [("stop", ["STOPPED"]), ("destroy", [])])
def test_an_agent_that_is_ended_between_two_looks_has_not_failed(user: User, verb: str, seen: list[str]) -> None:
    """Its record was read before, its session is looked for afterwards."""
    user.create("foo")
    fake = user.root / "bin"
    fake.mkdir()
    end = f"mkdir {fake}/done 2> /dev/null && PATH='{user.env['PATH']}' mngr {verb} foo > /dev/null"
    (fake / "tmux").write_text(
        f'#!/bin/sh\ncase "$*" in *list-panes*) {end} ;; esac\nexec {shutil.which("tmux")} "$@"\n'
    )
    (fake / "tmux").chmod(0o755)
    ran = user.mngr("list", "--format", "json", env={"PATH": f"{fake}:{user.env['PATH']}"}).ok().json
    assert (fake / "done").exists()
    assert [agent["state"] for agent in ran["agents"]] == seen and ran["errors"] == []


def test_a_tmux_server_that_does_not_answer_makes_states_unknown_and_nothing_is_destroyed(user: User) -> None:
    user.create("foo")
    server = int(user.tmux("display-message", "-p", "#{pid}").stdout)
    fake = user.root / "bin"
    fake.mkdir()
    (fake / "tmux").write_text("#!/bin/sh\necho 'server exploded' >&2\nexit 1\n")
    (fake / "tmux").chmod(0o755)
    env = {"PATH": f"{fake}:{user.env['PATH']}"}
    ran = user.mngr("list", "--format", "json", env=env).ok().json
    assert ran["agents"][0]["state"] == "UNKNOWN"
    assert "did not answer" in ran["errors"][0]["error"]
    for verb in ("destroy", "stop", "start"):
        assert "not known" in user.mngr(verb, "foo", env=env).failed().stderr
    assert Path(f"/proc/{server}").exists()
    assert user.state("foo") == "RUNNING"


def test_explain_names_the_evidence(user: User) -> None:
    user.create("foo")
    text = user.mngr("list", "--explain", "foo").ok().stdout
    assert text.startswith("foo is RUNNING\n") and "evidence: tmux: process" in text
    user.mngr("stop", "foo").ok()
    explained = user.mngr("list", "--explain", "foo", "--format", "json").ok().json
    assert explained["state"] == "STOPPED" and "stopped_at" in explained["evidence"]


def test_a_scripted_agent_runs_waits_and_is_blocked_within_a_second(user: User) -> None:
    def blocked_after(number: int) -> float:
        name = f"foo-{number}"
        go = user.root / f"go-{number}"
        scripted(user, name, f"run until test -e {go}; do sleep 0.02; done\nwait for you\nask which colour?\nexit 0\n")
        user.wait_for_state(name, "RUNNING")
        go.touch()
        assert user.wait_for_state(name, "WAITING")["state_reason"] == "for you"
        sent = time.monotonic()
        assert user.mngr("message", name, "-m", "go on").exit_code in (0, 7)  # 7 when it saw the question already
        blocked = user.wait_for_state(name, "BLOCKED")
        seconds = time.monotonic() - sent
        assert blocked["state_reason"] == "question: which colour?"
        event = next(e for e in user.events(name) if e.get("state") == "BLOCKED")
        assert event["reason"] == "question: which colour?"
        assert "events:" in user.mngr("list", "--explain", name).ok().stdout
        user.mngr("message", name, "-m", "blue").ok()
        assert user.wait_for_state(name, "DONE")["exit_code"] == 0
        return seconds

    best_of(8, 2, blocked_after)


def test_a_scripted_agent_that_crashes_is_failed(user: User) -> None:
    scripted(user, "foo", "say hello\ncrash 5\n")
    assert user.wait_for_state("foo", "FAILED")["exit_code"] == 5
    scripted(user, "bar", "crash SEGV\n")
    assert user.wait_for_state("bar", "FAILED")["signal"] == 11


def test_old_states_of_a_scripted_agent_do_not_count_after_a_restart(user: User) -> None:
    scripted(user, "foo", "ask really?\n")
    user.wait_for_state("foo", "BLOCKED")
    user.mngr("stop", "foo").ok()
    assert user.state("foo") == "STOPPED"
    user.mngr("start", "foo").ok()
    assert user.wait_for_state("foo", "BLOCKED")["state_reason"] == "question: really?"


def test_a_new_agent_is_not_waiting_before_it_has_its_first_message(user: User) -> None:
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    request = create.CreateRequest(name="a", kind=kinds.resolve("scripted", fleet.local.settings), prompt="say hello")
    create.create(fleet.local, [request])
    agent = fleet.find("a")
    wait_for(lambda: "WAITING" in [event.get("state") for event in fleet.find("a").events()], "the agent to be ready")
    seen = fleet.find("a").status
    assert (seen.state, seen.reason) == ("RUNNING", "its first message is on its way")
    message.first(fleet.local, agent.id, "say hello")
    user.wait_for_state("a", "WAITING")
    assert [entry["text"] for entry in fleet.find("a").transcript().entries if entry["role"] == "assistant"] == [
        "hello"
    ]
    fleet.find("a").stop()
    fleet.find("a").start()
    user.wait_for_state("a", "WAITING")


def test_an_agent_that_failed_is_failed_after_it_was_stopped_too(user: User) -> None:
    user.create("foo", command="exit 3")
    user.wait_for_state("foo", "FAILED")
    user.mngr("stop", "foo").ok()
    agent = user.agent("foo")
    assert (agent["state"], agent["state_reason"]) == ("FAILED", "exit code 3")
    user.mngr("stop", "foo").ok()
    assert user.state("foo") == "FAILED"
