"""Agents on Modal: the real `mngr` and the real `modal` client against the local server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import mngr
from mngr.errors import MngrError, NotFoundError
from mngr.providers.provider import GONE, RUNNING, STOPPED, HostRequest, Provider
from mngr_testing.modal_server import ModalServer
from tests.real.test_connect import Terminal
from tests.real.test_create import write_settings
from tests.support.modal import CANNOT_RUN, client
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


def test_an_agent_goes_back_to_a_snapshot_and_hosts_start_from_one(user: User, server: ModalServer) -> None:
    create(user)
    user.mngr("exec", "foo", "--", "sh", "-c", "echo one > file; echo prepared > ~/tool").ok()
    user.mngr("snapshot", "create", "foo", "before").ok()
    user.mngr("exec", "foo", "--", "sh", "-c", "echo two > file").ok()
    user.mngr("snapshot", "restore", "before").ok()
    assert user.mngr("exec", "foo", "--", "cat", "file").ok().stdout == "one\n"
    [name] = running(server)
    kept = user.mngr("host", "prepare", f"{name}.modal", "--snapshot", "any", "--format", "json").ok().json["snapshot"]
    words = ("create", "bar@.modal", "--snapshot", kept, "--no-connect", "--command", "cat")
    user.mngr(*words, timeout=120).ok()
    assert user.mngr("exec", "bar", "--", "sh", "-c", "cat ~/tool").ok().stdout == "prepared\n"
    assert [one["image"] for one in server.sandboxes() if one["name"].startswith("bar-")] == [kept]


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


def test_a_stopped_host_and_a_snapshot_do_not_expire(user: User, server: ModalServer, provider: Provider) -> None:
    host = provider.create(HostRequest("box"), lambda text: None).name
    shell(user, provider, host, "echo kept > ~/file")
    image = provider.snapshot(host, "any")
    provider.stop(host)
    server.pass_time(400 * 86400)
    provider.start(host)  # at once: the name of the old sandbox has to be free
    assert shell(user, provider, host, "cat ~/file") == "kept\n"
    other = provider.create(HostRequest("other", snapshot=image), lambda text: None).name
    assert shell(user, provider, other, "cat ~/file") == "kept\n"


@pytest.mark.parametrize("lines", ["", 'ENTRYPOINT ["/bin/false"]\n', 'CMD ["/bin/true"]\n'])
def test_an_image_runs_our_command_whatever_its_own_is(user: User, provider: Provider, lines: str) -> None:
    (user.repo / "Dockerfile").write_text(f"FROM debian:12\n{lines}")
    host = provider.create(HostRequest("box", image="./Dockerfile"), lambda text: None).name
    assert shell(user, provider, host, "echo there") == "there\n"


def test_a_host_sees_nothing_of_what_is_kept_of_another(user: User, server: ModalServer, provider: Provider) -> None:
    for name in ("one", "two"):
        provider.create(HostRequest(name), lambda text: None)
        shell(user, provider, name, "echo mine > /mnt/mngr-kept/mine")
    assert shell(user, provider, "two", "rm /mnt/mngr-kept/mine; ls -A /mnt/mngr-kept; ls /mnt") == "mngr-kept\n"
    assert shell(user, provider, "one", "cat /mnt/mngr-kept/mine") == "mine\n"


def test_the_longest_name_of_an_agent_gives_a_name_that_modal_takes(user: User, server: ModalServer) -> None:
    name = "a" * 63
    user.mngr("create", f"{name}@.modal", "--no-connect", "--command", "cat", timeout=120).ok()
    assert user.state(name) == "RUNNING" and len(running(server)[0]) < 64


@pytest.mark.parametrize(("status", "code"), [("INVALID_ARGUMENT", 1), ("NOT_FOUND", 1), ("INTERNAL", 6)])
def test_only_an_error_of_the_network_is_to_be_tried_again(
    user: User, server: ModalServer, status: str, code: int
) -> None:
    server.fail("SandboxCreate*", status, "for some reason", times=20)
    failed = user.mngr("create", "foo@.modal", "--no-connect", "--command", "cat", timeout=120).failed(code)
    assert "for some reason" in failed.stderr and user.agents() == []


def test_a_command_on_a_host_carries_bytes_both_ways_and_its_exit_code(
    user: User, provider: Provider, tmp_path: Path
) -> None:
    host = provider.create(HostRequest("box"), lambda text: None).name
    data = os.urandom(1 << 20)
    argv = provider.opening(host).argv
    user.run(["sh", "-c", '"$@" > back', "sh", *argv, "cat"], input=data).ok()
    assert Path(user.repo, "back").read_bytes() == data
    assert user.run([*argv, "echo bad >&2; exit 3"]).failed(3).stderr == "bad\n"
    (tmp_path / "modal.py").write_text("raise SystemExit('git and rsync need no package')\n")
    assert user.run([*argv, "echo there"], env={"PYTHONPATH": str(tmp_path)}).ok().stdout == "there\n"
    assert "Modal runs no sandbox `no-such`" in user.run([*provider.opening("no-such").argv, "true"]).failed(255).stderr


def test_every_option_reaches_modal(user: User, server: ModalServer) -> None:
    (user.repo / "Dockerfile").write_text("FROM debian:12\nRUN echo prepared\n")
    user.git("add", ".")
    user.git("commit", "-qm", "an image")
    options = ["cpu=0.5", "memory=512", "region=us-east", "timeout=900", "volume=cache:/cache", "secret=keys"]
    options += ["cidr=10.0.0.0/8", "cidr=192.168.1.0/24", "domain=api.example.com"]
    write_settings(user, f"[providers.modal]\nimage = './Dockerfile'\noptions = {options}\n")
    client(server, "modal.Secret.objects.create('keys', {'TOKEN': 'given'})")
    create(user, "--start-arg", "timeout=800")
    [sandbox] = server.sandboxes()
    sent = sandbox["definition"]
    assert (sandbox["cpu"], sandbox["memory"], sent["timeout_secs"]) == (0.5, 512, 800)
    assert sent["scheduler_placement"]["regions"] == ["us-east"]
    assert sent["network_access"]["allowed_cidrs"] == ["10.0.0.0/8", "192.168.1.0/24"]
    assert sent["network_access"]["allowed_domains"] == ["api.example.com"]
    assert sorted(mount["mount_path"] for mount in sent["volume_mounts"]) == ["/cache", "/mnt/mngr-kept"]
    assert "FROM debian:12\nRUN echo prepared\n" in ["\n".join(one["dockerfile_commands"]) for one in server.images()]
    assert user.mngr("exec", "foo", "--", "sh", "-c", "echo $TOKEN").ok().stdout == "given\n"
    write_settings(user, '[providers.modal]\noptions = ["gpu=T4", "block_network=yes"]\n')
    user.mngr("create", "bar@.modal", "--no-connect", "--command", "cat", timeout=120).ok()
    [sandbox] = [one for one in server.sandboxes() if one["name"].startswith("bar-")]
    assert sandbox["gpu"] == "T4" and sandbox["definition"]["network_access"]["network_access_type"] == "BLOCKED"
    assert user.mngr("exec", "bar", "--", "cat", "/proc/net/dev").ok().stdout.count(":") == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('options = ["speed=9"]', "Modal has no option `speed=9`"),
        ('options = ["cpu"]', "Modal has no option `cpu`"),
        ('options = ["cpu=0"]', "`cpu` is a number of cores"),
        ('options = ["memory=4g"]', "`memory` is a number of MiB"),
        ('options = ["timeout=90000"]', "`timeout` is a number of seconds, at most 86400"),
        ('options = ["gpu="]', "invalid option of Modal: `gpu=`"),
        ('options = ["block_network=true"]', "`block_network` is `yes` or `no`"),
        ('options = ["cidr=10.0.0.1/8"]', "10.0.0.1/8 has host bits set"),
        ('options = ["block_network=yes", "cidr=10.0.0.0/8"]', "exclude each other"),
        ('options = ["volume=cache:relative"]', "`NAME:PATH` with an absolute path"),
        ('image = "./no-such"', "there is no Dockerfile `./no-such`"),
        ("cpus = 2", "`providers.modal.cpus` is not a setting"),
        ("max_hours = 25", "Modal ends a sandbox after 24 hours"),
        ('max_hours = 1\noptions = ["timeout=3601"]', "`timeout=3601` is longer than `max_hours` allows"),
    ],
)
def test_a_wrong_value_is_an_error_before_modal_is_asked(user: User, settings: str, said: str) -> None:
    write_settings(user, f"[providers.modal]\n{settings}\n")
    refused = user.mngr("create", "foo@.modal", "--no-connect", "--command", "cat").failed(2)
    assert said in refused.stderr
    assert user.agents() == [] and list((user.host_dir / "hosts").rglob("foo*")) == []


def test_no_more_hosts_are_made_than_the_settings_allow_also_at_the_same_time(user: User, server: ModalServer) -> None:
    write_settings(user, "[providers.modal]\nmax_hosts = 2\n")
    server.delay("SandboxCreateV2", 1.0, times=4)
    words = [("create", f"a{n}@.modal", "--no-connect", "--command", "cat") for n in range(4)]
    children = [user.popen(*some) for some in words]
    said = [child.communicate(timeout=120)[1].decode() for child in children]
    assert sorted(child.returncode for child in children) == [0, 0, 1, 1]
    assert sum("2 sandboxes of this machine run already, and `max_hosts` allows no more" in text for text in said) == 2
    assert len(server.sandboxes()) == 2


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
    assert "no login of Modal was found" in text and "`modal token new`" in text
    server.fail("AppGetOrCreate", "PERMISSION_DENIED", "the workspace is closed")
    assert "Modal does not allow this: the workspace is closed" in refused(MODAL_PROFILE="another")
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
    made = user.host_dir / "hosts" / "modal" / f"{sandbox['name']}.made"
    os.utime(made, (0, 0))
    assert "it is gone, with foo" in user.mngr("gc", timeout=120).ok().stdout
    assert not made.exists() and user.agents() == []


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


def test_a_host_that_is_not_used_saves_its_files_and_ends_by_itself(user: User, server: ModalServer) -> None:
    write_settings(user, "[providers.modal]\nidle_stop_minutes = 0.1\n")
    create(user, "--host-env", "WHO=me", "--start-arg", "memory=300", command="cat")
    user.mngr("exec", "foo", "--", "sh", "-c", "echo kept > file; echo $WHO > ~/who").ok()
    [name] = running(server)
    user.mngr("stop", "foo").ok()
    wait_for(lambda: running(server) == [], "the sandbox to end")
    [listed] = user.mngr("host", "list", "--format", "json").ok().json["hosts"]
    assert (listed["name"], listed["state"]) == (name, "STOPPED")
    write_settings(user, "")
    user.mngr("host", "start", f"{name}.modal", timeout=120).ok()
    [sandbox] = [one for one in server.sandboxes() if one["running"]]
    assert sandbox["memory"] == 300
    user.mngr("start", "foo", timeout=120).ok()
    assert user.mngr("exec", "foo", "--", "sh", "-c", "cat file ~/who; echo $WHO").ok().stdout == "kept\nme\nme\n"
    user.mngr("destroy", "foo", "--force", timeout=120).ok()
    assert user.agents() == [] and running(server) == []
    assert user.mngr("host", "list", "--format", "json").ok().json["hosts"] == []


@pytest.mark.soak
def test_a_host_at_its_greatest_age_saves_the_work_of_its_agents(user: User, server: ModalServer) -> None:
    write_settings(user, "[providers.modal]\nmax_hours = 0.02\n")
    create(user, command="echo made > file; sleep 9999")
    [name] = running(server)
    wait_for(lambda: running(server) == [], "the sandbox to end", 120)
    write_settings(user, "")
    user.mngr("host", "start", f"{name}.modal", timeout=120).ok()
    assert user.state("foo") in ("STOPPED", "FAILED")
    user.mngr("start", "foo", timeout=120).ok()
    assert user.mngr("exec", "foo", "--", "cat", "file").ok().stdout == "made\n"


def test_a_sandbox_that_nobody_waits_for_any_more_is_ended(user: User, server: ModalServer) -> None:
    server.delay("SandboxCreateV2", 2.0)
    child = user.popen("create", "foo@.modal", "--no-connect", "--command", "cat")
    wait_for(lambda: server.calls("ImageGetOrCreate"), "the sandbox to be asked for")
    child.kill()
    child.communicate()
    wait_for(lambda: server.sandboxes() and not running(server), "the sandbox to be ended")


def test_gc_finds_what_was_left_behind(user: User, server: ModalServer, provider: Provider) -> None:
    provider.create(HostRequest("left"), lambda text: None)
    assert "left.modal" in user.mngr("gc", "--provider", "modal", timeout=120).ok().stdout
    assert running(server) == []
