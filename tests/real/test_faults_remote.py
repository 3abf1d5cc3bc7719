"""Other machines that fail in the middle of a verb: a named error, nothing half-made, and all as before afterwards."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
