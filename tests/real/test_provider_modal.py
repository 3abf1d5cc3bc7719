"""Agents on Modal: the real `mngr` and the real `modal` client against the local server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import mngr
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.providers.provider import GONE, RUNNING, STOPPED, HostRequest, Provider
from mngr.testing.modal_server import ModalServer
from tests.real.test_connect import Terminal
from tests.real.test_create import write_settings
from tests.support.modal import CANNOT_RUN
from tests.support.user import User, wait_for

pytestmark = pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)


@pytest.fixture
def server(user: User) -> Iterator[ModalServer]:
    with ModalServer() as running:
        user.env.update(running.env())
        yield running


@pytest.fixture
def provider(user: User, server: ModalServer) -> Iterator[Provider]:
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    yield fleet.hosts.provider("modal")
    fleet.close()


def create(user: User, *words: str, command: str = "sleep 9999") -> None:
    user.mngr("create", "foo@.modal", "--no-connect", "--command", command, *words, timeout=120).ok()


def running(server: ModalServer) -> list[str]:
    return [sandbox["name"] for sandbox in server.sandboxes() if sandbox["running"]]


def shell(user: User, provider: Provider, host: str, line: str) -> str:
    return user.run([*provider.opening(host).argv, line]).ok().stdout


def test_an_agent_lives_in_a_sandbox_as_it_does_on_this_machine(user: User, server: ModalServer) -> None:
    create(user, command="cat")
    [name] = running(server)
    assert name.startswith("foo-") and user.agent("foo")["state"] == "RUNNING"
    work = "echo new > file; git add file; git commit -qm new; hostname"
    assert user.mngr("exec", "foo", "--", "sh", "-c", work).ok().stdout.startswith("sb-")
    user.mngr("pull", "foo").ok()
    assert user.git("log", "-1", "--format=%s", "mngr/foo") == "new"
    user.mngr("message", "foo", "-m", "hello").ok()
    assert "hello" in user.mngr("capture", "foo").ok().stdout
    user.mngr("stop", "foo").ok()
    assert user.state("foo") == "STOPPED"
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"
    user.mngr("destroy", "foo", "--force").ok()
    assert user.agents() == []


def test_connect_attaches_a_terminal_that_follows_the_size_of_ours(user: User, server: ModalServer) -> None:
    create(user, command="while sleep 0.2; do stty size; done")
    terminal = Terminal(user, "mngr connect foo; echo left with $?")
    terminal.shows("23 100")
    user.run(["tmux", "-L", "person", "resize-window", "-t", "person", "-x", "90", "-y", "30"]).ok()
    terminal.shows("29 90")
    terminal.press("C-b", "d")
    terminal.shows("left with 0")


def test_a_stopped_host_keeps_its_files_and_starts_again(user: User, server: ModalServer, provider: Provider) -> None:
    host = provider.create(HostRequest("box"), lambda text: None).name
    assert provider.host(host).state == RUNNING and running(server) == [host]
    shell(user, provider, host, "echo kept > ~/file")
    for _ in range(2):
        provider.stop(host)
        assert provider.host(host).state == STOPPED and running(server) == []
    for _ in range(2):
        provider.start(host)
        assert provider.host(host).state == RUNNING
    assert shell(user, provider, host, "cat ~/file") == "kept\n"
    image = provider.snapshot(host, "any")
    other = provider.create(HostRequest("other", snapshot=image, env={"WHO": "other"}), lambda text: None).name
    assert shell(user, provider, other, "cat ~/file; echo $WHO") == "kept\nother\n"
    for name in (host, other, host):
        provider.destroy(name)
        assert provider.host(name).state == GONE
    assert running(server) == []
    with pytest.raises(NotFoundError):
        provider.start(host)


def test_a_command_on_a_host_carries_bytes_both_ways_and_its_exit_code(user: User, provider: Provider) -> None:
    host = provider.create(HostRequest("box"), lambda text: None).name
    data = os.urandom(1 << 20)
    argv = provider.opening(host).argv
    user.run(["sh", "-c", '"$@" > back', "sh", *argv, "cat"], input=data).ok()
    assert Path(user.repo, "back").read_bytes() == data
    assert user.run([*argv, "echo bad >&2; exit 3"]).failed(3).stderr == "bad\n"
    assert "Modal does not have this" in user.run([*provider.opening("no-such").argv, "true"]).failed(255).stderr


def test_options_reach_the_sandbox_and_unknown_ones_are_refused(user: User, server: ModalServer) -> None:
    write_settings(user, '[providers.modal]\noptions = ["cpu=0.5", "memory=512", "max_hosts=1"]\n')
    create(user)
    [sandbox] = server.sandboxes()
    assert (sandbox["cpu"], sandbox["memory"]) == (0.5, 512)
    refused = user.mngr("create", "bar@.modal", "--no-connect", "--command", "cat").failed(1)
    assert "`max_hosts` allows no more" in refused.stderr and len(server.sandboxes()) == 1
    provider = mngr.Fleet(environ=user.env, cwd=str(user.repo)).hosts.provider("modal")
    for option in ("speed=9", "cpu", "cpu=many"):
        with pytest.raises(UsageError, match=option):
            provider.create(HostRequest("bar", start_args=(option,)), lambda text: None)


def test_each_reason_why_modal_cannot_be_used_is_a_clear_error(user: User, server: ModalServer, tmp_path: Path) -> None:
    def refused(**env: str) -> str:
        words = ("create", "foo@.modal", "--no-connect", "--command", "cat")
        stderr = user.mngr(*words, env=env, timeout=120).failed(int(env.pop("CODE", "1"))).stderr
        assert user.agents() == [] and running(server) == []
        return stderr

    server.fail("SandboxCreate*", "RESOURCE_EXHAUSTED", "the quota is used up")
    assert "Modal's limit is reached: the quota is used up" in refused()
    text = refused(MODAL_TOKEN_SECRET="as-wrong")
    assert "Modal refused the login" in text and "`modal token new`" in text
    text = refused(MODAL_TOKEN_ID="", MODAL_TOKEN_SECRET="")
    assert "Modal refused the login: Token missing" in text
    (tmp_path / "modal.py").write_text("raise ModuleNotFoundError('No module named modal', name='modal')\n")
    text = refused(PYTHONPATH=str(tmp_path), MODAL_PROFILE="other")
    assert "`modal` is not installed" in text and "pip install 'mngr[modal]'" in text


def test_a_preempted_host_is_unknown_to_list_and_gone_to_its_provider(user: User, server: ModalServer) -> None:
    create(user)
    assert user.state("foo") == "RUNNING"
    [sandbox] = server.sandboxes()
    server.preempt(sandbox["id"])
    listed = user.mngr("list", "--format", "json", timeout=120)
    assert [agent["state"] for agent in listed.json["agents"]] == ["UNKNOWN"]
    assert sandbox["name"] in listed.json["errors"][0]["error"]
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    assert fleet.hosts.provider("modal").host(sandbox["name"]).state == GONE


def test_the_helper_ends_when_its_socket_is_removed(user: User, provider: Provider) -> None:
    assert provider.hosts() == []
    [socket] = [path for path in (user.host_dir / "hosts" / "modal").iterdir() if path.is_socket()]

    def helpers() -> list[int]:
        return [pid for pid in user.processes() if b"modal.helper" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    assert len(helpers()) == 1
    socket.unlink()
    wait_for(lambda: not helpers(), "the helper to end")
    with pytest.raises(MngrError):
        provider.snapshot("no-such", "any")
