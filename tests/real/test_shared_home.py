"""A home that several machines have, as on the nodes of a cluster: an agent of another machine is UNKNOWN, and is
neither started a second time, nor ended, destroyed or cleaned up here."""

import os
import subprocess
from pathlib import Path

import pytest

from mngr.system.state_dir import StateDir
from tests.support.user import MNGR, Ran, User, wait_for

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="another machine is simulated with namespaces, which needs root"
)


class Node:
    """Another machine with the user's home: a name, processes, sockets and a boot of its own."""

    def __init__(self, user: User, name: str, *, kernel: str | None) -> None:
        self._user = user
        self._sockets = user.root / f"sockets-{name}"
        self._sockets.mkdir()
        script = [
            f"echo {name} > /proc/sys/kernel/hostname",
            f"mount --bind {self._sockets} {user.tmux_dir}",
        ]
        if kernel is not None:
            self._boot = user.root / f"boot-{name}"
            self._boot.write_text(f"{kernel}\n")
            script.append(f"mount --bind {self._boot} /proc/sys/kernel/random/boot_id")
        self._script = " && ".join([*script, 'exec "$@"'])

    def mngr(self, *words: str) -> Ran:
        spaces = ("unshare", "--uts", "--pid", "--fork", "--mount", "--mount-proc")
        return self._user.run([*spaces, "sh", "-c", self._script, "sh", MNGR, *words])


@pytest.fixture(params=["another kernel", "another container"])
def node(request: pytest.FixtureRequest, user: User) -> Node:
    if os.major(os.stat(user.root).st_dev) != 0 and request.param == "another kernel":
        pytest.skip("the files of this test are on a disk, which no other machine has mounted")
    kernel = "11111111-2222-3333-4444-555555555555" if request.param == "another kernel" else None
    return Node(user, "node-b", kernel=kernel)


def here() -> str:
    return StateDir("/nowhere").machine


def test_an_agent_of_another_machine_is_left_alone(user: User, node: Node) -> None:
    agent = user.create("foo")
    listed = node.mngr("list", "--format", "json").ok().json["agents"]
    assert [found["state"] for found in listed] == ["UNKNOWN"]
    assert f"another machine, `{here()}`" in listed[0]["state_reason"]
    for words in (
        ("start", "foo"),
        ("stop", "foo"),
        ("destroy", "foo"),
        ("destroy", "foo", "--force"),
        ("message", "foo", "-m", "x"),
        ("message", "foo", "-m", "x", "--start"),
        ("archive", "foo"),
        ("rename", "foo", "bar"),
        ("limit", "foo", "--timeout", "1h"),
    ):
        refused = node.mngr(*words)
        assert refused.exit_code == 1 and here() in refused.stderr, (words, refused)
    assert f"machines/{here()}" in node.mngr("start", "foo").failed().stderr
    node.mngr("gc").ok()
    node.mngr("cleanup", "--state", "FAILED", "--destroy", "--force")
    node.mngr("cleanup", "--state", "STOPPED", "--destroy", "--force")
    now = user.agent("foo")
    assert (now["state"], now["pid"]) == ("RUNNING", agent["pid"])
    assert Path(now["work_dir"]).is_dir()


def test_what_is_ended_for_certain_belongs_to_every_machine(user: User, node: Node) -> None:
    user.create("stopped")
    user.mngr("stop", "stopped").ok()
    user.create("done", command="true")
    user.wait_for_state("done", "DONE")
    states = {one["name"]: one["state"] for one in node.mngr("list", "--format", "json").ok().json["agents"]}
    assert states == {"stopped": "STOPPED", "done": "DONE"}
    node.mngr("destroy", "--all").ok()
    assert user.agents() == []


def test_a_creation_on_another_machine_is_not_taken_for_interrupted(user: User, node: Node) -> None:
    provision = f"touch {user.root}/begun; while [ ! -e {user.root}/go ]; do sleep 0.05; done"
    words = ("create", "foo", "--no-connect", "--command", "sleep 9999", "--extra-provision-command", provision)
    creating = user.popen(*words)
    try:
        wait_for((user.root / "begun").exists, "the creation to be in the middle")
        listed = node.mngr("list", "--format", "json").ok().json["agents"]
        assert [found["state"] for found in listed] == ["UNKNOWN"]
        assert "foo" not in node.mngr("gc").ok().stdout
    finally:
        (user.root / "go").touch()
        _, err = creating.communicate(timeout=60)
    assert creating.returncode == 0, err
    assert user.state("foo") == "RUNNING"


def test_a_machine_that_is_gone_for_good_can_be_said_to_be(user: User, node: Node) -> None:
    user.create("foo")
    user.tmux("kill-server").ok()
    (user.host_dir / "machines" / here()).unlink()
    listed = node.mngr("list", "--format", "json").ok().json["agents"]
    assert [(found["state"], found["state_reason"]) for found in listed] == [("STOPPED", "the machine restarted")]
    node.mngr("destroy", "foo").ok()


def test_a_machine_that_restarted_is_the_same_machine(user: User) -> None:
    user.create("foo")
    user.tmux("kill-server").ok()
    name = subprocess.run(["uname", "-n"], capture_output=True, text=True, check=True).stdout.strip()
    again = Node(user, name, kernel="11111111-2222-3333-4444-555555555555")
    listed = again.mngr("list", "--format", "json").ok().json["agents"]
    assert [(found["state"], found["state_reason"]) for found in listed] == [("STOPPED", "the machine restarted")]
