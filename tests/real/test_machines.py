"""The machines that tests use for other machines: a real sshd, hosts in namespaces, containers; and verbs on each."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.actions import create, find
from mngr.programs.kind import Kind
from mngr.remote.channel import Channel, Unreached
from tests.support.containers import IMAGE, Containers
from tests.support.far import REPOSITORY, call, create_one, use
from tests.support.net_hosts import NetHosts, cache
from tests.support.sshd import Sshd, new_key
from tests.support.user import User, wait_for

REPO = Path(__file__).parents[2]


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def hosts() -> Iterator[NetHosts]:
    with NetHosts(2) as made:
        yield made


@pytest.fixture(scope="module")
def containers() -> Iterator[Containers]:
    with Containers() as made:
        yield made


def test_an_agent_lives_over_sshd(far):
    with Sshd(far) as box:
        channel = Channel(box.opening())
        assert use(channel, str(far.repo)).splitlines()[::2] == [str(far.home), "init"]
        channel.close()
        wait_for(lambda: not box.connections(), "the connection to end")


def test_a_lost_connection_and_a_refused_one_are_errors(far):
    with Sshd(far) as box:
        channel = Channel(box.opening())
        box.drop()
        with pytest.raises(Unreached, match="connection to `box` was lost"):
            call(channel, find.listing)
        channel.close()
        Channel(box.opening()).close()
        box.close()
        with pytest.raises(Unreached, match="cannot be reached") as raised:
            Channel(box.opening())
        assert "Connection refused" in raised.value.details


def test_a_changed_host_key_is_refused(far):
    with Sshd(far) as box:
        box.client.trust("127.0.0.1", port=box.port, key=new_key(far.root / "other"))
        with pytest.raises(Unreached) as raised:
            Channel(box.opening())
        assert "Host key verification failed" in raised.value.details


def test_an_agent_lives_on_a_host_and_outlives_a_cut_link_but_not_a_reboot(hosts, far):
    host = hosts["h1"]
    host.run(["sh", "-c", REPOSITORY]).ok()
    channel = Channel(hosts.opening("h1", env=far.env))
    assert use(channel, "/root/repo").splitlines()[::2] == ["/root", "init"]
    request = create.CreateRequest(name="bar", kind=Kind("command"), rest=("sleep 9999",), source="/root/repo")
    create_one(channel, request)
    hosts.cut("h1")
    with pytest.raises(Unreached, match=r"`h1` did not answer within 0.5 s"):
        Channel(hosts.opening("h1", env=far.env, seconds=0.5))
    hosts.mend("h1")
    assert [view.state for view in call(channel, find.listing)[0]] == ["RUNNING"]
    hosts.reboot("h1")
    with pytest.raises(Unreached, match="connection to `h1` was lost"):
        call(channel, find.listing)
    channel.close()
    channel = Channel(hosts.opening("h1", env=far.env))
    (view,) = call(channel, find.listing)[0]
    assert (view.name, view.state, view.status.reason) == ("bar", "STOPPED", "the machine restarted")
    channel.close()


def test_hosts_have_their_own_names_addresses_and_processes(hosts, far):
    line = "hostname; echo $SSH_CONNECTION | cut -d' ' -f3; tty; ps -e | wc -l"
    seen = [far.run([*hosts.client.argv(name, "-tt"), line]).ok().stdout.split() for name in ("h1", "h2")]
    assert [words[:2] for words in seen] == [[name, hosts[name].address] for name in ("h1", "h2")]
    assert all(words[2].startswith("/dev/pts/") and int(words[3]) < 20 for words in seen)
    hosts.kill("h2")
    refused = far.run([*hosts.client.argv("h2"), "true"])
    assert "Connection refused" in refused.failed(255).stderr
    hosts.start("h2")
    far.run([*hosts.client.argv("h2"), "true"]).ok()


def test_an_agent_lives_in_a_container_and_is_kept_by_a_snapshot(containers, far):
    containers.start("one", "--memory", "500m", "--pids-limit", "200")
    containers.podman("exec", "one", "sh", "-c", REPOSITORY).ok()
    channel = Channel(containers.opening("one", env=far.env))
    assert use(channel, "/root/repo").splitlines()[::2] == ["/root", "init"]
    request = create.CreateRequest(name="bar", kind=Kind("command"), rest=("sleep 9999",), source="/root/repo")
    create_one(channel, request)
    channel.close()
    containers.podman("commit", "one", "localhost/kept:1").ok()
    containers.podman("kill", "one").ok()
    with pytest.raises(Unreached) as raised:
        Channel(containers.opening("one", env=far.env))
    assert "container state improper" in raised.value.details
    containers.podman("start", "one").ok()
    containers.podman("run", "--detach", "--init", "--name", "two", "localhost/kept:1", "sleep", "infinity").ok()
    # Whether another machine has the same directory or a copy cannot be seen: a person says that the first one is gone.
    gone = "rm /root/.mngr/machines/*"
    for name, command, state in (("one", "", "STOPPED"), ("two", "", "UNKNOWN"), ("two", gone, "STOPPED")):
        containers.podman("exec", name, "sh", "-c", command).ok()
        channel = Channel(containers.opening(name, env=far.env))
        assert [view.state for view in call(channel, find.listing)[0]] == [state]
        channel.close()


def test_stores_of_containers_do_not_see_each_other(containers):
    containers.start("alone")
    with Containers() as other:
        assert "alone" not in other.podman("ps", "--all").ok().stdout
        other.start("alone")
        assert other.podman("images", "--format", "{{.Repository}}:{{.Tag}}").ok().stdout.split() == [IMAGE]
    containers.podman("exec", "alone", "true").ok()


KILLED = """
import sys
from tests.support.containers import Containers
from tests.support.net_hosts import NetHosts
from tests.support.sshd import Sshd
from tests.support.user import User
hosts, box, containers = NetHosts(2), Sshd(User(sys.argv[1])), Containers()
containers.start("one")
inside = containers.podman("inspect", "--format", "{{.State.Pid}} {{.State.ConmonPid}}", "one").stdout
pids = [host.first for host in hosts.hosts.values()]
print(hosts._link, containers._place, hosts._place, *pids, box._process.pid, inside, flush=True)
sys.stdin.read()
"""


def test_nothing_is_left_of_the_machines_of_tests_that_were_killed(hosts, containers, far):
    environ = {**far.env, "TMPDIR": str(far.root), "MNGR_TEST_MACHINES": str(cache())}
    words = [sys.executable, "-c", KILLED, str(far.root)]
    with subprocess.Popen(words, cwd=REPO, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        link, place, other, *pids = child.stdout.readline().split()
        assert len(pids) == 5
        left = {b"/sys/class/net/" + link, place, other, *(b"/proc/" + pid for pid in pids)}
        assert all(map(os.path.exists, left))
        child.kill()

    def gone() -> bool:
        left.intersection_update([path for path in left if os.path.exists(path)])  # a process id may be used again
        return not left

    wait_for(gone, "the machines to be gone")
    assert os.fsdecode(place) not in Path("/proc/mounts").read_text()
