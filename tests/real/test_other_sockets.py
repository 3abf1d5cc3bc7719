"""Whoever has another `TMUX_TMPDIR`, as cron, systemd, sudo and editors do, sees the same agents. What tmux does not
show is not taken for ended while its processes run."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.user import User, wait_for


@pytest.fixture
def second(user: User) -> dict[str, str]:
    """The variables of a shell with another `TMUX_TMPDIR`."""
    place = user.root / "second"
    place.mkdir()
    return {"TMUX_TMPDIR": str(place)}


def pid(user: User, name: str) -> int:
    return int(user.agent(name)["pid"])


def test_every_verb_reaches_an_agent_that_was_started_with_another_tmux_tmpdir(
    user: User, second: dict[str, str]
) -> None:
    user.create("foo", command="cat")
    before = pid(user, "foo")
    listed = user.mngr("list", "--format", "json", env=second).ok().json["agents"]
    assert [(agent["state"], agent["pid"]) for agent in listed] == [("RUNNING", before)]
    user.mngr("start", "foo", env=second).ok()
    assert pid(user, "foo") == before
    user.mngr("message", "foo", "-m", "hello", env=second).ok()
    wait_for(lambda: "hello" in user.mngr("capture", "foo", env=second).ok().stdout, "the message on the screen")
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 9999", env=second).ok()
    assert user.state("bar") == "RUNNING"
    assert list((user.root / "second").iterdir()) == []  # no second server
    user.mngr("rename", "foo", "baz", env=second).ok()
    user.mngr("stop", "baz", env=second).ok()
    assert user.state("baz") == "STOPPED"
    user.mngr("start", "baz", env=second).ok()
    assert user.state("baz") == "RUNNING"
    user.mngr("destroy", "--all", "--force", env=second).ok()
    assert user.tmux("list-sessions").stdout == ""


def test_agents_of_a_state_directory_from_before_are_found_again(user: User, second: dict[str, str]) -> None:
    user.create("foo")
    shutil.rmtree(user.host_dir / "machines")  # as an earlier mngr left it
    assert user.state("foo") == "RUNNING"
    before = pid(user, "foo")
    agents = user.mngr("list", "--format", "json", env=second).ok().json["agents"]
    assert [agent["state"] for agent in agents] == ["UNKNOWN"]
    assert str(user.tmux_dir) in agents[0]["state_reason"]
    for verb in ("start", "stop"):
        assert "is not known" in user.mngr(verb, "foo", env=second).failed().stderr
    assert pid(user, "foo") == before
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 9999", env=second).ok()
    assert (user.state("foo"), user.state("bar")) == ("RUNNING", "RUNNING")
    agents = user.mngr("list", "--format", "json", env=second).ok().json["agents"]
    assert [agent["state"] for agent in agents] == ["RUNNING", "RUNNING"]


def test_a_deleted_socket_is_not_the_end_of_its_agents(user: User) -> None:
    user.create("foo")
    before = user.agent("foo")
    socket = next(user.tmux_dir.glob("*/mngr"))
    server = int(user.tmux("display-message", "-p", "#{pid}").ok().stdout)
    shutil.rmtree(socket.parent)  # as a cleaner of temporary files does
    agent = user.agent("foo")
    assert agent["state"] == "UNKNOWN" and f"process {server}" in agent["state_reason"]
    for words in (("start", "foo"), ("stop", "foo"), ("destroy", "foo"), ("message", "foo", "-m", "x")):
        refused = user.mngr(*words)
        assert refused.exit_code != 0, words
    assert f"kill -USR1 {server}" in user.mngr("start", "foo").failed().stderr
    assert Path(f"/proc/{before['pid']}").exists()
    socket.parent.mkdir(mode=0o700)
    os.kill(server, signal.SIGUSR1)
    wait_for(lambda: user.agent("foo")["pid"] == before["pid"], "the agent to be seen again")


def test_a_session_that_was_ended_leaves_no_doubt(user: User) -> None:
    user.create("foo", command="setsid -f sleep 9998; sleep 9999")
    user.create("bar")
    wait_for(lambda: user.run(["pgrep", "-f", "sleep 9998"]).stdout, "the process that leaves")
    user.tmux("kill-session", "-t", "=mngr-foo").ok()
    assert user.state("foo") == "FAILED"
    user.tmux("kill-server").ok()
    user.wait_for_state("bar", "FAILED")
    assert user.state("foo") == "FAILED"
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"


def test_a_directory_for_sockets_that_others_could_change_is_refused(user: User) -> None:
    room = user.tmux_dir / f"tmux-{os.getuid()}"
    room.mkdir(mode=0o700)
    room.chmod(0o707)
    refused = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999").failed()
    assert "other users" in refused.stderr
    assert user.agents() == []
    room.chmod(0o700)
    user.create("foo")
    room.chmod(0o707)
    listed = user.mngr("list", "--format", "json").ok().json
    assert [agent["state"] for agent in listed["agents"]] == ["UNKNOWN"]
    assert "other users" in listed["errors"][0]["error"]
    room.chmod(0o700)
    if os.getuid() == 0:  # what stands in for the directory after a restart may be made by somebody else
        os.chown(room, 65534, 65534)
        assert "other users" in user.mngr("message", "foo", "-m", "secret").failed().stderr
        os.chown(room, 0, 0)
    assert user.state("foo") == "RUNNING"


def test_an_agent_that_cleared_its_environment_is_still_seen_to_run(user: User) -> None:
    user.create("foo", command="exec env -i sleep 9999")
    shutil.rmtree(next(user.tmux_dir.iterdir()))
    assert user.state("foo") == "UNKNOWN"


def test_a_first_start_that_fails_fixes_no_place_for_the_socket(user: User, second: dict[str, str]) -> None:
    words = ("create", "foo", "--no-connect", "--command", "sleep 9999")
    user.mngr("config", "set", "tmux.config", str(user.root / "missing.conf")).ok()
    user.mngr(*words).failed()
    user.mngr("config", "unset", "tmux.config").ok()
    user.mngr(*words, env=second).ok()
    assert list((user.root / "second").glob("*/mngr"))
    assert user.state("foo") == "RUNNING"
    user.mngr("destroy", "foo").ok()


def test_a_socket_whose_directory_went_with_a_login_is_made_elsewhere(user: User, second: dict[str, str]) -> None:
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", env=second).ok()
    user.mngr("stop", "foo").ok()
    shutil.rmtree(user.root / "second")
    assert user.state("foo") == "STOPPED"
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"
    assert list(user.tmux_dir.glob("*/mngr"))
