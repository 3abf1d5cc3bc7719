"""Agents on a Ray cluster: the real `mngr` and the real Ray, with each node in a network of its own."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import UNREACHED
from tests.real.test_connect import Terminal
from tests.real.test_create import write_settings
from tests.support.ray_cluster import CANNOT_RUN, RayCluster
from tests.support.user import MNGR, Ran, User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster(3, cpus=2) as running:
        yield running


class Person:
    """A user whose commands run on the head of the cluster."""

    def __init__(self, user: User, cluster: RayCluster) -> None:
        self.user, self.cluster = user, cluster
        self.settings("cpus = 1")

    def settings(self, *lines: str, address: str = "") -> None:
        text = "\n".join(["[providers.ray]", f'address = "{address or self.cluster.address}"', *lines])
        write_settings(self.user, f"{text}\n")

    def mngr(self, *words: str, **env: str) -> Ran:
        return self.user.run([*self.cluster.enter(cwd=self.user.repo), MNGR, *words], env=env, timeout=240)

    def popen(self, *words: str) -> "subprocess.Popen[bytes]":
        argv = [*self.cluster.enter(cwd=self.user.repo), MNGR, *words]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(argv, env=self.user.env, cwd=self.user.repo, **options)

    def create(self, name: str, command: str = "cat", *words: str) -> None:
        self.mngr("create", f"{name}@.ray", "--no-connect", "--command", command, *words).ok()

    def hosts(self) -> dict[str, dict[str, Any]]:
        """By the name of the agent that each was made for."""
        found = self.mngr("host", "list", "--format", "json").json["hosts"]
        return {host["name"].rpartition("-")[0] or host["name"]: host for host in found}

    def state(self, name: str) -> str:
        return str(self.hosts().get(name, {}).get("state"))

    def agent(self, name: str) -> dict[str, Any]:
        found = self.mngr("list", "--format", "json").json["agents"]
        return {agent["name"]: agent for agent in found}[name]

    def destroy(self, *names: str) -> None:
        hosts = self.hosts()
        for name in names:
            self.mngr("host", "destroy", f"{hosts[name]['name']}.ray", "--force", "--discard-work").ok()


@pytest.fixture
def person(user: User, cluster: RayCluster) -> Iterator[Person]:
    found = Person(user, cluster)
    yield found
    found.destroy(*found.hosts())
    assert cluster.processes() == [] and cluster.files() == []


def test_an_agent_lives_on_a_node_as_it_does_on_this_machine(
    person: Person, cluster: RayCluster, tmp_path: Path
) -> None:
    person.create("foo")
    person.create("bar")
    assert person.agent("foo")["state"] == "RUNNING" and len(cluster.files()) == 2
    work = "echo new > file; git add file; git commit -qm new; echo $HOME"
    home = person.mngr("exec", "foo", "--", "sh", "-c", work).ok().stdout
    assert home != person.mngr("exec", "bar", "--", "sh", "-c", "echo $HOME").ok().stdout
    (tmp_path / "ray.py").write_text("raise AssertionError('only one process has Ray, for git and rsync too')\n")
    person.mngr("pull", "foo", PYTHONPATH=str(tmp_path)).ok()
    person.mngr("pull", "foo:file", "got", PYTHONPATH=str(tmp_path)).ok()
    assert person.user.git("log", "-1", "--format=%s", "mngr/foo") == "new"
    person.mngr("message", "foo", "-m", "hello").ok()
    assert "hello" in person.mngr("capture", "foo").ok().stdout
    person.mngr("stop", "foo").ok()
    assert person.agent("foo")["state"] == "STOPPED"
    person.mngr("start", "foo").ok()
    assert person.agent("foo")["state"] == "RUNNING"
    terminal = Terminal(
        person.user, f"{shlex.join(cluster.enter(cwd=person.user.repo))} mngr connect foo; echo left with $?"
    )
    terminal.shows("detach: C-b d")
    terminal.type("typed here")
    terminal.shows("typed here")
    terminal.press("C-b", "d")
    terminal.shows("left with 0")


def test_a_cluster_is_reached_through_its_client_port_too(person: Person, cluster: RayCluster) -> None:
    person.settings(address=f"ray://{cluster.ip('n1')}:10001")
    person.create("foo")
    person.mngr("exec", "foo", "--", "sh", "-c", "echo new > file; git add file; git commit -qm new").ok()
    person.mngr("pull", "foo").ok()
    assert person.user.git("log", "-1", "--format=%s", "mngr/foo") == "new"


def test_what_does_not_fit_is_queued_and_starts_when_there_is_room(person: Person, cluster: RayCluster) -> None:
    for name in ("one", "two"):
        person.create(name, "cat", "-s", "cpus=2")
    words = ("create", "late@.ray", "--no-connect", "--command", "cat")
    with person.popen(*words) as creating:
        assert creating.stderr is not None and b"is QUEUED until a node" in creating.stderr.readline()
        assert person.state("late") == "QUEUED" and creating.poll() is None
        person.destroy("one")
        assert creating.wait(120) == 0
    assert person.agent("late")["state"] == "RUNNING"


def test_an_interrupted_create_leaves_no_queued_host_and_a_killed_one_is_destroyed(
    person: Person, cluster: RayCluster
) -> None:
    for name in ("one", "two"):
        person.create(name, "cat", "-s", "cpus=2")
    words = ("create", "late@.ray", "--no-connect", "--command", "cat")
    with person.popen(*words) as creating:
        wait_for(lambda: person.state("late") == "QUEUED", "a host to be queued", 60)
        os.kill(_child(creating.pid), signal.SIGINT)
        assert creating.wait(60) == 130
    assert person.state("late") == "None"
    with person.popen(*words) as creating:
        wait_for(lambda: person.state("late") == "QUEUED", "a host to be queued", 60)
        os.kill(_child(creating.pid), signal.SIGKILL)
    person.destroy("late")
    assert person.state("late") == "None"


def _child(pid: int) -> int:
    """`nsenter` forks when it enters a namespace of processes."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found[0]) if found else pid


def test_a_new_supervisor_has_the_agents_of_one_that_was_killed(person: Person, cluster: RayCluster) -> None:
    person.create("foo", "echo once; cat")
    [pid] = _supervisors(cluster)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not _supervisors(cluster), "the supervisor to end")
    assert any("tmux" in line for line in cluster.processes())
    agent = wait_for(lambda: a if (a := person.agent("foo"))["state"] == "RUNNING" else None, "the agent again", 60)
    assert agent["name"] == "foo" and len(_supervisors(cluster)) == 1
    assert person.mngr("capture", "foo").ok().stdout.count("once") == 1


def _supervisors(cluster: RayCluster) -> list[int]:
    found = []
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        try:
            ours = f"HOME={cluster.place}/".encode() in Path(f"/proc/{pid}/environ").read_bytes()
            if ours and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Supervisor"):
                found.append(pid)
        except OSError:
            continue
    return found


def test_each_reason_why_ray_cannot_be_used_is_a_clear_error(person: Person, tmp_path: Path) -> None:
    def refused(code: int, *words: str, **env: str) -> str:
        stderr = (
            person.mngr("create", "foo@.ray", "--no-connect", "--command", "cat", *words, **env).failed(code).stderr
        )
        assert person.mngr("list", "--format", "json").json["agents"] == []
        return stderr

    text = refused(1, "-s", "cpus=64")
    assert "no node of the Ray cluster can ever have cpus=64" in text and "one node has is cpus=2" in text
    assert "can ever have builder=1" in refused(1, "-s", "builder=1")
    person.settings("max_hosts = 0")
    assert "`max_hosts` allows no more" in refused(1)
    person.settings(address="127.0.0.1:9")
    assert "no Ray cluster at `127.0.0.1:9`: Connection refused" in refused(UNREACHED)
    person.settings(address="127.0.0.1:8")
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('No module named ray', name='ray')\n")
    text = refused(1, PYTHONPATH=str(tmp_path))
    assert "`ray` is not installed" in text and "pip install 'mngr[ray]'" in text
    person.settings()


def test_a_lost_node_is_known_in_seconds_and_its_agents_are_back_with_it(person: Person, cluster: RayCluster) -> None:
    person.create("foo", "echo once; cat")
    [place] = cluster.files()
    node = place.relative_to(cluster.place).parts[0]
    cluster.cut(node)
    cut_at = time.monotonic()
    wait_for(lambda: person.state("foo") == "GONE", "the host to be gone", 60)
    assert time.monotonic() - cut_at < 45
    cluster.mend(node)
    wait_for(lambda: cluster.ended(node), "Ray on the lost node to end", 120)
    cluster.start(node)
    assert person.state("foo") == "RUNNING" and person.agent("foo")["state"] == "RUNNING"
    assert person.mngr("capture", "foo").ok().stdout.count("once") == 1


def test_what_is_on_a_node_that_was_lost_is_removed_when_it_is_back(person: Person, cluster: RayCluster) -> None:
    person.create("foo")
    [place] = cluster.files()
    node = place.relative_to(cluster.place).parts[0]
    cluster.cut(node)
    wait_for(lambda: person.state("foo") == "GONE", "the host to be gone", 60)
    person.destroy("foo")
    assert cluster.files() == [place] and cluster.processes() != []
    cluster.mend(node)
    wait_for(lambda: cluster.ended(node), "Ray on the lost node to end", 120)
    cluster.start(node)
    assert "destroyed while out of reach" in person.mngr("gc").ok().stdout
    assert cluster.files() == [] and cluster.processes() == []
