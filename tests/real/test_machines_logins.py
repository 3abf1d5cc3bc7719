"""Machines whose login, shell, disk or programs are not as one would wish: each works, or says what is the matter."""

import time
from collections.abc import Iterator

import pytest

from mngr.actions import create, destroy, execute, find
from mngr.errors import UNREACHED, MngrError
from mngr.programs.kind import Kind
from mngr.providers.ssh import explain
from mngr.remote.channel import Channel, Opening, Unreached
from tests.support.containers import Containers
from tests.support.far import REPOSITORY, call, create_one, use
from tests.support.net_hosts import NetHosts
from tests.support.sshd import Sshd
from tests.support.user import User


@pytest.fixture(scope="module")
def far() -> Iterator[User]:
    made = User()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def box(far: User) -> Iterator[Sshd]:
    with Sshd(far, banner="Authorized use only\nAll is recorded\n") as made:
        yield made


@pytest.fixture(scope="module")
def hosts() -> Iterator[NetHosts]:
    with NetHosts(["odd", "poor"]) as made:
        made["odd"].run(["sh", "-c", REPOSITORY]).ok()
        yield made


def refused(opening: Opening) -> MngrError:
    with pytest.raises(MngrError) as raised:
        Channel(opening)
    assert raised.value.exit_code == UNREACHED
    return explain(opening.host, raised.value)


@pytest.mark.parametrize(
    "bashrc",
    [
        "echo Welcome; echo oops >&2; printf '\\033[31m\\007'",
        "head -c 60000 /dev/urandom",
        "sleep 0.7",
        "if then fi",
        "set -eu; umask 777; cd /; ulimit -n 30; trap '' INT TERM HUP",
        "stty -echo; mesg n; exec 2>&-",
    ],
)
def test_an_odd_login_does_no_harm(box, bashrc):
    box.set_bashrc(bashrc)
    channel = Channel(box.opening())
    assert call(channel, find.listing) == ([], [])
    channel.close()


@pytest.mark.parametrize(("mask", "there"), [("022", "0022"), ("002", "0002"), ("027", "0027"), ("777", "0077")])
def test_what_agents_write_gets_the_mode_of_the_user_there_if_he_can_read_it(box, far, mask, there):
    box.set_bashrc(f"umask {mask}")
    for _ in range(2):  # at first contact, and when our program is there
        channel = Channel(box.opening()._replace(state_dir=f"~/.state-{mask}"))
        record = create_one(
            channel,
            create.CreateRequest(
                name="foo", kind=Kind("command"), rest=("sh", "-c", "umask >m; sleep 99"), source=str(far.repo)
            ),
        )
        shown = call(
            channel, execute.execute, record.id, "until [ -s m ]; do sleep 0.05; done; cat m; umask", timeout=60
        )
        assert shown.stdout.decode().split() == [there, there]
        call(channel, destroy.destroy, record.id, force=True)
        channel.close()
    assert (far.home / f".state-{mask}").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("bashrc", "seen"),
    [
        ("exit 3", "Authorized use only"),
        ("echo come back tomorrow; exec false", "come back tomorrow"),
        ("PATH=/nonexistent", "sh: not found"),
        ("exec() { echo not here; }", "not here"),
    ],
)
def test_what_a_login_that_ends_printed_is_shown(box, bashrc, seen):
    box.set_bashrc(bashrc)
    error = refused(box.opening())
    assert error.message == "`box` cannot be reached"
    assert seen in error.details
    assert error.hint == "see what the login does: `ssh box 'echo ok'`"


@pytest.mark.parametrize("bashrc", ["sleep 50", "read line", "while :; do sleep 0.1; done"])
def test_a_login_that_takes_too_long_is_an_error_when_the_time_is_over(box, bashrc):
    box.set_bashrc(bashrc)
    began = time.monotonic()
    error = refused(box.opening(seconds=1.5))
    assert error.message == "`box` did not answer within 1.5 s"
    assert time.monotonic() - began < 10


def login(hosts: NetHosts, name: str, shell: str) -> None:
    """A user of the host `odd` with this shell and a repository, known by the user's name."""
    key = hosts.client.public_key()
    lines = [
        f"useradd --create-home --password '*' --shell {shell} {name} && cd /home/{name} && mkdir .ssh",
        f"echo '{key}' > .ssh/authorized_keys && cp -a /root/repo /root/.gitconfig . && chown -R {name}: .",
    ]
    hosts["odd"].run(["sh", "-e", "-c", "\n".join(lines)]).ok()
    hosts.client.add(name, hosts["odd"].address, login=name)


@pytest.mark.parametrize("shell", ["/bin/tcsh", "/usr/bin/fish", "/usr/bin/zsh"])
def test_an_agent_lives_with_any_login_shell(hosts, far, shell):
    name = shell.rpartition("/")[2]
    login(hosts, name, shell)
    channel = Channel(hosts.opening(name, env=far.env))
    assert use(channel, f"/home/{name}/repo").splitlines()[::2] == [f"/home/{name}", "init"]
    channel.close()


@pytest.mark.parametrize(
    ("shell", "seen", "hint"),
    [
        ("/bin/rbash", "restricted", "mngr needs a login shell that is not restricted"),
        ("/usr/sbin/nologin", "This account is currently not available", "see what the login does"),
        ("/bin/false", "`ssh` ended with exit code 1 and printed nothing", "see what the login does"),
    ],
)
def test_a_shell_that_runs_nothing_is_an_error_that_shows_what_it_says(hosts, far, shell, seen, hint):
    name = shell.rpartition("/")[2]
    login(hosts, name, shell)
    error = refused(hosts.opening(name, env=far.env))
    assert error.message == f"`{name}` cannot be reached"
    assert seen in error.details
    assert hint in error.hint


OLD_PYTHON = """\
mv /usr/bin/python3.11 /usr/bin/python
rm /usr/bin/python3
cat > /usr/bin/python3 <<'END'
#!/bin/sh
for last; do :; done
exec /usr/bin/python -c 'import sys; sys.version_info = (3, 8, 10); exec(sys.argv[1])' "$last"
END
chmod 755 /usr/bin/python3
"""


def test_what_a_host_lacks_is_named_one_after_the_other(hosts, far):
    host, opening = hosts["poor"], hosts.opening("poor", env=far.env)
    for line, lacking in [
        ("mv /usr/bin/tmux /usr/bin/git /opt", "`tmux`"),
        ("mv /opt/tmux /usr/bin", "`git`"),
        ("mv /opt/git /usr/bin\n" + OLD_PYTHON, "Python 3.10 or newer"),
        ("rm /usr/bin/python3", "Python 3.10 or newer"),
    ]:
        host.run(["sh", "-e", "-c", line]).ok()
        error = refused(opening)
        assert error.message == f"`poor` has no {lacking} on its PATH"
        assert error.hint.startswith("install it there: `apt-get install -y ")
        assert not (host.root / "root/.mngr").exists()
    host.run(["mv", "/usr/bin/python", "/usr/bin/python3.11"]).ok()
    Channel(opening).close()


def test_programs_that_only_a_login_shell_finds_are_found_and_files_get_the_mode_of_the_user(hosts, far):
    """As tmux from Homebrew, or claude from nvm; the shell of a connection reads no profile."""
    host, tools = hosts["odd"], "/root/tools of mine/bin"
    before = host.run(["sh", "-c", "cat /root/.profile 2>/dev/null"]).stdout
    host.run(["sh", "-c", f"mkdir -p '{tools}' && mv /usr/bin/tmux /usr/bin/git '{tools}'"]).ok()
    profile = f"echo Welcome\numask 027\nPATH=$PATH:'{tools}'\n"
    (host.root / "root/.profile").write_text(profile)
    try:
        channel = Channel(hosts.opening("odd", env=far.env, state_dir="~/.found"))
        use(channel, "/root/repo")
        channel.close()
        kept = next((host.root / "root/.found/lib").glob("*/path")).read_text()
        assert tools in kept
        (host.root / "root/.profile").write_text("exit 1\n")  # asked once
        channel = Channel(hosts.opening("odd", env=far.env, state_dir="~/.found"))
        use(channel, "/root/repo")
        channel.close()
    finally:
        host.run(["sh", "-c", f"mv '{tools}'/* /usr/bin"]).ok()
        (host.root / "root/.profile").write_text(before)


@pytest.mark.parametrize(
    ("options", "seen", "hint"),
    [
        ("size=100k", "No space left on device", "`ssh odd df -h .` shows the disk there"),
        ("nr_inodes=20", "No space left on device", "`ssh odd df -h .` shows the disk there"),
        ("ro", "Read-only file system", "set another `host_dir`"),
    ],
)
def test_a_disk_that_takes_nothing_is_named(hosts, far, options, seen, hint):
    host = hosts["odd"]
    host.run(["sh", "-c", f"mkdir -p /disk && mount -t tmpfs -o {options} disk /disk"]).ok()
    try:
        error = refused(hosts.opening("odd", env=far.env, state_dir="/disk/mngr"))
        assert error.message == "`odd` cannot start mngr"
        assert seen in error.details
        assert hint in error.hint
        assert not list((host.root / "disk").glob("mngr/lib/*"))
    finally:
        host.run(["umount", "/disk"]).ok()


def test_a_disk_that_fills_up_while_an_agent_is_made_is_an_error_and_leaves_nothing(hosts, far):
    host = hosts["odd"]
    lines = [
        "mkdir -p /disk && mount -t tmpfs -o size=6m disk /disk",
        "cp -a /root/repo /root/large && cd /root/large && head -c 9000000 /dev/urandom > large",
        "git add . && git commit -qm large",
    ]
    host.run(["sh", "-e", "-c", "\n".join(lines)]).ok()
    try:
        channel = Channel(hosts.opening("odd", env=far.env, state_dir="/disk/mngr"))
        request = create.CreateRequest(name="foo", kind=Kind("command"), rest=("sleep 99",), source="/root/large")
        with pytest.raises(MngrError) as raised:
            create_one(channel, request)
        assert "free some space" in raised.value.hint
        assert call(channel, find.listing) == ([], [])
        assert host.run(["git", "-C", "/root/large", "branch", "--list", "mngr/*"]).ok().stdout == ""
        channel.close()
    finally:
        host.run(["umount", "--lazy", "/disk"]).ok()


def test_an_agent_lives_where_nothing_may_be_executed(hosts, far):
    host = hosts["odd"]
    host.run(["sh", "-c", "mkdir -p /plain && mount -t tmpfs -o noexec,nosuid,nodev plain /plain"]).ok()
    channel = Channel(hosts.opening("odd", env=far.env, state_dir="/plain/state of mngr"))
    use(channel, "/root/repo")
    channel.close()


def test_a_home_that_is_not_named_or_does_not_exist(far):
    with Containers() as containers:
        containers.start("one")
        opening = containers.opening("one", env=far.env)
        *before, sh, option = opening.argv
        channel = Channel(opening._replace(argv=[*before, "env", "-i", "PATH=/usr/bin:/bin", sh, option]))
        call(channel, find.listing)
        channel.close()
        containers.podman("exec", "one", "test", "-d", "/root/.mngr").ok()
        nobody = [*before, "env", "HOME=/nonexistent/home", "setpriv", "--reuid", "65534", "--clear-groups", sh, option]
        with pytest.raises(Unreached, match="`one` cannot start mngr") as raised:
            Channel(opening._replace(argv=nobody))
        assert "Permission denied" in raised.value.details
