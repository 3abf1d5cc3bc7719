"""The provider `ssh` against a real sshd: pools, shared connections, and every way in which a login can fail."""

import os
import select
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.support.pods import add_settings
from tests.support.sshd import Sshd, keys, new_key, program
from tests.support.user import MNGR, User, wait_for


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    yield made
    made.close()


@pytest.fixture
def server(user: User, far: User) -> Iterator[Sshd]:
    with Sshd(far) as made:
        user.env.update(made.client.env(user.env))
        yield made


def test_each_failed_login_is_a_named_error_with_a_hint(user: User, server: Sshd) -> None:
    client, login = server.client, ["User nobody-here"]
    client.add("refused", "127.0.0.1", port=1)
    client.add("stranger", "127.0.0.1", port=server.port, more=[*login, f"IdentityFile {new_key(user.root / 'key')}"])
    client.add("unresolved", "no-such-host.invalid")
    expected = {
        "refused": "`refused` refuses connections",
        "stranger": "`stranger` refused the login",
        "unresolved": "no host is called `unresolved`",
    }
    for host, message in expected.items():
        failed = user.mngr("create", f"foo@{host}", "--no-connect", "--command", "cat").failed(6)
        assert message in failed.stderr and "hint: " in failed.stderr
    client.trust("127.0.0.1", port=server.port, key=new_key(user.root / "other"))
    failed = user.mngr("host", "prepare", "box").failed(6)
    assert "the host key of `box` has changed" in failed.stderr
    assert f"ssh-keygen -l -F '[127.0.0.1]:{server.port}' -f {client.known_hosts}" in failed.stderr
    client.known_hosts.write_text("")
    failed = user.mngr("host", "prepare", "box").failed(6)
    assert "the host key of `box` is not known yet" in failed.stderr and "mngr host prepare box" in failed.stderr
    assert user.mngr("host", "list", "--format", "json").ok().json["hosts"] == []


def test_connections_are_shared_and_end_when_the_host_is_forgotten(user: User, server: Sshd) -> None:
    user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
    before = server.log().count("Accepted publickey")
    user.mngr("exec", "foo", "true").ok()
    user.mngr("list").ok()
    assert server.log().count("Accepted publickey") == before == 1
    user.mngr("host", "forget", "box").ok()
    wait_for(lambda: not server.connections(), "the shared connection to end")
    assert user.agents() == []


def test_a_server_that_allows_one_session_for_each_connection_works(user: User, far: User) -> None:
    with Sshd(far, extra=["MaxSessions 1"]) as server:
        user.env.update(server.client.env(user.env))
        user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
        user.mngr("exec", "foo", "echo x > x; git add x; git commit -qm x").ok()
        user.mngr("pull", "foo").ok()
        assert server.log().count("Accepted publickey") > 1


def test_a_pool_takes_the_least_loaded_host_that_answers_up_to_its_limit(user: User, server: Sshd) -> None:
    """Two names of one machine, with a state directory each, and a host that is down."""
    server.client.add("twin", "127.0.0.1", port=server.port)
    server.client.add("down", "127.0.0.1", port=1)
    pool = '[providers.farm]\ntype = "ssh"\nhosts = ["down", "box", "twin"]\nhost_dir = "~/m-{host}"\nmax_agents = 1\n'
    add_settings(user, pool)
    for name in ("a", "b"):
        user.mngr("create", f"{name}@.farm", "--no-connect", "--command", "cat").ok()
    listed = {host["name"]: host for host in user.mngr("host", "list", "--format", "json").ok().json["hosts"]}
    assert {name: (host["state"], host["agents"]) for name, host in listed.items()} == {
        "box": ("RUNNING", 1),
        "twin": ("RUNNING", 1),
        "down": ("UNKNOWN", None),
    }
    full = user.mngr("create", "c@.farm", "--no-connect", "--command", "cat").failed(1)
    assert "every host of `farm` that answers runs 1 agents already" in full.stderr
    assert "does not support `stop`" in user.mngr("host", "stop", "box.farm").failed(2).stderr


def asked_on_a_terminal(user: User, question: str, answer: str, *words: str) -> str:
    """What `mngr` shows on a terminal that is its own, where the answer is typed after the question."""
    ours, theirs = os.openpty()
    argv = [program("setsid"), "--ctty", "--wait", MNGR, *words]
    child = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=user.repo, env=user.env)
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 60
    try:
        while child.poll() is None or select.select([ours], [], [], 0)[0]:
            assert time.monotonic() < deadline, shown.decode(errors="replace")
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            before, shown = shown, shown + os.read(ours, 65536)
            if question.encode() in shown and question.encode() not in before:
                os.write(ours, answer.encode())
    except OSError:  # how Linux says that the other side is closed
        pass
    finally:
        os.close(ours)
    assert child.wait(60) == 0, shown.decode(errors="replace")
    return shown.decode(errors="replace")


def test_in_a_terminal_ssh_asks_for_the_passphrase(user: User, server: Sshd) -> None:
    locked = user.root / "locked"
    locked.write_bytes(keys().user.read_bytes())
    locked.chmod(0o600)
    user.run([program("ssh-keygen"), "-q", "-p", "-P", "", "-N", "sesame", "-f", str(locked)]).ok()
    config = server.client.config
    config.write_text(config.read_text().replace(str(keys().user), str(locked)))
    failed = user.mngr("host", "prepare", "box").failed(6)
    assert "in a terminal: `mngr host prepare box`" in failed.stderr
    shown = asked_on_a_terminal(user, "passphrase", "sesame\n", "host", "prepare", "box")
    assert "ready: box.ssh" in shown
    user.mngr("host", "prepare", "box").ok()
