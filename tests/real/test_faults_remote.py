"""Other machines that fail in the middle of a verb: a named error, nothing half-made, and all as before afterwards."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.test_connect import Terminal
from tests.support.net_hosts import NetHosts
from tests.support.sshd import Sshd
from tests.support.user import User, wait_for

SOURCE = Path(__file__).parents[2] / "src"
UNREACHED = 6
PROGRAM = "import sys; from mngr.cli.main import main; sys.exit(main())"


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    yield made
    made.close()


def test_a_link_that_is_cut_in_the_middle_of_verbs_and_a_reboot(user: User) -> None:
    with NetHosts(1) as hosts:
        user.env.update(hosts.client.env(user.env))
        user.mngr("create", "foo@h1", "--no-connect", "--command", "cat").ok()
        user.mngr("exec", "foo", "echo two > two; git add two; git commit -qm two; head -c 900000 /dev/zero > big").ok()
        running = user.popen("exec", "foo", "echo begun > begun; sleep 9999")
        wait_for(lambda: user.mngr("exec", "foo", "cat begun").exit_code == 0, "the command to run")
        hosts.cut("h1")
        cut = [
            running,
            user.popen("message", "foo", "-m", "lost"),
            user.popen("pull", "foo"),
            user.popen("pull", "foo:big", "../got"),
            user.popen("create", "bar@h1", "--no-connect", "--command", "cat"),
            user.popen("stop", "foo"),
        ]
        for child in cut:
            _, errors = child.communicate(timeout=150)
            assert (child.returncode, b"`h1`" in errors) == (UNREACHED, True), errors
        assert not (user.root / "got").exists()
        hosts.mend("h1")
        assert [(agent["name"], agent["state"]) for agent in user.agents()] == [("foo", "RUNNING")]
        user.mngr("pull", "foo").ok()
        user.mngr("pull", "foo:big", "../got").ok()
        assert (user.root / "got").stat().st_size == 900000
        user.mngr("create", "bar@h1", "--no-connect", "--command", "cat").ok()
        hosts.reboot("h1")
        assert {agent["state"] for agent in user.agents()} == {"STOPPED"}
        user.mngr("start", "foo").ok()
        assert user.state("foo") == "RUNNING"
        assert user.mngr("exec", "foo", "cat two").ok().stdout == "two\n"


@pytest.mark.parametrize("moment", ["agents", "clones", "running"])
def test_a_near_process_that_is_killed_leaves_nothing_half_made(user: User, far: User, moment: str) -> None:
    with Sshd(far) as box:
        user.env.update(box.client.env(user.env))
        user.mngr("create", "first@box", "--no-connect", "--command", "cat").ok()
        before = {room: set(os.listdir(far.host_dir / room)) for room in ("agents", "clones")}
        child = user.popen("create", "foo@box", "--no-connect", "--command", "cat")
        if moment == "running":
            wait_for(lambda: foo_runs(far), "the agent to run")
        else:
            wait_for(lambda: set(os.listdir(far.host_dir / moment)) > before[moment], "the create to begin")
        child.kill()
        child.communicate()
        wait_for(lambda: {agent["state"] for agent in user.agents()} == {"RUNNING"}, "the agent to be whole or gone")
        names = sorted(agent["name"] for agent in user.agents())
        assert names in (["first"], ["first", "foo"])
        wait_for(lambda: len(os.listdir(far.host_dir / "clones")) == len(names), "no copy of the code to be left")
        if names == ["first"]:
            user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
        assert user.mngr("exec", "foo", "git log --format=%s").ok().stdout == "init\n"


def foo_runs(far: User) -> bool:
    return "mngr-foo" in far.tmux("list-sessions").stdout


def test_two_machines_of_different_versions_share_a_host(user: User, far: User) -> None:
    other = User()
    try:
        shutil.copytree(SOURCE, other.root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        with (other.root / "src" / "mngr" / "actions" / "find.py").open("a") as file:
            file.write("\n# another version\n")
        old = {"PYTHONPATH": str(other.root / "src")}
        with Sshd(far) as box:
            for one in (user, other):
                one.env.update(box.client.env(one.env))
            user.mngr("create", "mine@box", "--no-connect", "--command", "cat").ok()
            words = [sys.executable, "-P", "-c", PROGRAM]
            other.run([*words, "create", "theirs@box", "--no-connect", "--command", "cat"], env=old).ok()
            assert len(os.listdir(far.host_dir / "lib")) == 2
            assert [agent["name"] for agent in user.agents()] == ["mine", "theirs"]
            other.run([*words, "exec", "mine", "echo x > x"], env=old).ok()
            assert user.mngr("exec", "mine@box", "cat x").ok().stdout == "x\n"
            user.mngr("stop", "theirs").ok()
            assert "STOPPED" in other.run([*words, "list"], env=old).ok().stdout
    finally:
        other.close()


ODD = "o'd d\"ü$x"


def test_odd_names_on_both_ends(user: User, far: User) -> None:
    home = far.root / ODD
    home.mkdir()
    shutil.copy(far.home / ".gitconfig", home / ".gitconfig")
    repo = user.root / ODD
    shutil.copytree(user.repo, repo)
    with Sshd(far, environ={"HOME": str(home).replace("'", "'\\''")}) as box:
        user.env.update(box.client.env(user.env))
        branch = "feature/ü'x"
        words = ("--no-connect", "--branch", f":{branch}", "--command", "cat")
        user.mngr("create", "foo@box", *words, cwd=repo).ok()
        assert (home / ".mngr" / "agents").is_dir()
        user.mngr("exec", "foo", 'git commit -q --allow-empty -m two; mkdir -p "a b/ü\'"; echo 1 > "a b/ü\'/-x"').ok()
        user.mngr("pull", "foo", cwd=repo).ok()
        assert user.git("log", "-1", "--format=%s", branch, cwd=repo) == "two"
        user.mngr("pull", "foo:a b", "got it/", cwd=repo).ok()
        assert (repo / "got it" / "ü'" / "-x").read_text() == "1\n"
        user.mngr("push", "foo:back ü", "got it", cwd=repo).ok()
        assert user.mngr("exec", "foo", 'cat "back ü/ü\'/-x"').ok().stdout == "1\n"
        user.mngr("destroy", "foo", "--force", cwd=repo).ok()


def test_creates_at_the_same_moment_send_the_same_code(user: User, far: User) -> None:
    with Sshd(far) as box:
        user.env.update(box.client.env(user.env))
        words = ("--no-connect", "--command", "cat")
        started = [user.popen("create", f"a{number}@box", *words) for number in range(4)]
        for child in started:
            _, errors = child.communicate(timeout=180)
            assert child.returncode == 0, errors
        assert [agent["state"] for agent in user.agents()] == ["RUNNING"] * 4


# Stands in for a program of the host that sends or takes the first bytes, says so, and then nothing until the end.
_STUCK = """#!/bin/sh
[ -e {place}/stuck ] || exec {program} "$@"
echo $$ > {place}/begun
{program} "$@" | head -c 40
sleep 9999
"""


def stuck(far: User, *names: str) -> dict[str, str]:
    """The environment of logins in which such programs hang in the middle as long as `stuck` exists."""
    place = far.root / "slow"
    place.mkdir()
    for name in names:
        path = shutil.which(name)
        assert path is not None
        (place / name).write_text(_STUCK.format(place=place, program=path))
        (place / name).chmod(0o755)
    return {"PATH": f"{place}:{far.env['PATH']}"}


def test_a_connection_that_is_lost_in_the_middle_of_a_copy(user: User, far: User) -> None:
    """Whatever is on its way, and whichever way: a named error, nothing half-made, and the same again succeeds."""
    with Sshd(far, environ=stuck(far, "git-upload-pack", "git-receive-pack", "rsync")) as box:
        user.env.update(box.client.env(user.env))
        slow = far.root / "slow"
        user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
        user.mngr("exec", "foo", "echo two > two; git add two; git commit -qm two; mkdir d; echo 3 > d/three").ok()
        (user.repo / "mine").write_text("mine\n")
        user.git("add", ".")
        user.git("commit", "-qm", "mine")
        plain = user.root / "plain"
        plain.mkdir()
        (plain / "one").write_text("1\n")
        branches, before = user.git("for-each-ref"), far_files(far)
        for words in (
            ("pull", "foo"),
            ("pull", "foo:d", "../got"),
            ("push", "foo"),
            ("push", "foo:sent", "../plain"),
            ("create", "bar@box", "--no-connect", "--command", "cat"),
            ("create", "baz@box", "--no-connect", "--command", "cat", "--transfer", "rsync", "--from", str(plain)),
            ("clone", "foo", "copy@local", "--no-connect"),
            ("migrate", "foo", "@local"),
        ):
            (slow / "stuck").touch()
            child = user.popen(*words)
            wait_for((slow / "begun").exists, f"{words[:2]} to begin", timeout=60)
            box.drop()
            (slow / "stuck").unlink()
            _, errors = child.communicate(timeout=60)
            (slow / "begun").unlink()
            assert child.returncode == UNREACHED, (words, errors)
            assert b"the connection to `box` was lost: " in errors and b"hint: " in errors, (words, errors)
            assert user.git("for-each-ref") == branches, words
            assert not (user.root / "got").exists()
            wait_for(lambda: far_files(far) == before, f"nothing of {words[:2]} to be left", timeout=60)
            assert [(agent["name"], agent["state"]) for agent in user.agents()] == [("foo", "RUNNING")], words
        user.mngr("pull", "foo").ok()
        user.mngr("pull", "foo:d", "../got").ok()
        assert (user.root / "got" / "three").read_text() == "3\n"
        user.mngr("push", "foo:sent", "../plain").ok()
        user.mngr("migrate", "foo", "@local").ok()
        assert user.mngr("exec", "foo", "cat two d/three sent/one").ok().stdout == "two\n3\n1\n"


def far_files(far: User) -> list[str]:
    """What a host keeps of agents and of what is on its way to them."""
    rooms = ("agents", "clones", "snapshots", "saved", "files")
    found = [str(path) for room in rooms for path in sorted((far.host_dir / room).glob("*"))]
    return [path for path in found if not path.endswith((".git", ".lock"))]


def test_connect_is_there_again_after_the_connection_was_lost(user: User, far: User) -> None:
    with Sshd(far) as box:
        user.env.update(box.client.env(user.env))
        user.mngr("create", "foo@box", "--no-connect", "--command", "while read x; do echo got $x; done").ok()
        terminal = Terminal(user, "mngr connect foo; echo left with $?")
        attached = wait_for(lambda: clients(far), "the terminal to be attached")
        for word in ("first", "second"):
            terminal.type(word)
            terminal.shows(f"got {word}")
            box.drop()
            attached = wait_for(lambda: clients(far) - attached, "the terminal to be attached again")  # noqa: B023
        terminal.type("third")
        terminal.shows("got third")
        box.close()
        terminal.shows("the connection to `box` was lost; `foo` keeps running")
        terminal.press("C-c")
        terminal.shows("left with 130")
        terminal.type("echo $((6 * 7))")
        terminal.shows("42")


def clients(far: User) -> set[str]:
    """The processes of those who look at an agent there."""
    return set(far.tmux("list-clients", "-F", "#{client_pid}").stdout.split())
