"""Commands that are ended in the middle, or meet another one: all or nothing, and nothing lost."""

import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_waiting_interrupted import watches_files
from tests.support import leftovers
from tests.support.user import MNGR, User, wait_for

CREATE = ("create", "foo", "--no-connect", "--command", "sleep 9999")


def some(times: int) -> Any:
    """As long as all of it takes on a busy machine."""
    return pytest.param(times, marks=pytest.mark.timeout(600))


def soak(times: int) -> Any:
    """The same many times over, in `make soak`."""
    return pytest.param(times, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])


def slow_checkout(user: User) -> tuple[Path, Path]:
    """Make git stand still before it writes `slow.txt`. Returns a file that exists once it has come there, and one that
    lets it go on."""
    begun, go = user.root / "begun", user.root / "go"
    user.git("config", "--global", "filter.slow.smudge", f"touch {begun}; until [ -e {go} ]; do sleep 0.05; done; cat")
    user.git("config", "--global", "filter.slow.clean", "cat")
    (user.repo / ".gitattributes").write_text("slow.txt filter=slow\n")
    for name in ("a.txt", "slow.txt", "z.txt"):
        (user.repo / name).write_text(name)
    user.git("add", ".")
    user.git("commit", "-q", "-m", "slow")
    return begun, go


def end(child: "subprocess.Popen[bytes]", number: int, timeout: float = 60) -> tuple[int, str]:
    os.kill(child.pid, number)
    _, stderr = child.communicate(timeout=timeout)
    return child.returncode, stderr.decode()


def before_our_time(code: int, said: str) -> bool:
    """Whether the interpreter itself, or the console script before its first line of ours, was interrupted: that alone
    shows a traceback. It may end with another error, which Python makes of one that comes while it makes a class."""
    return code == 1 and ("Fatal Python error" in said or "KeyboardInterrupt" in said.splitlines())


def time_of(user: User, *words: str) -> float:
    """How long a command takes that is started as the ones that will be ended are."""
    started = time.monotonic()
    user.run([MNGR, *words]).ok()
    return time.monotonic() - started


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_during_checkout_takes_everything_back(user: User, transfer: str, number: int, exit_code: int) -> None:
    begun, _ = slow_checkout(user)
    child = user.popen(*CREATE, "--transfer", transfer)
    wait_for(begun.exists, "the checkout to begin")
    assert user.state("foo") == "STARTING"
    code, said = end(child, number)
    assert code == exit_code, said
    assert "Traceback" not in said
    assert leftovers.found(user) == []
    wait_for(lambda: not _named(user, "git"), "git to end")


def test_a_second_ctrl_c_does_not_stop_the_cleaning_up(user: User) -> None:
    begun, _ = slow_checkout(user)
    child = user.popen(*CREATE)
    wait_for(begun.exists, "the checkout to begin")
    for _ in range(5):
        os.kill(child.pid, signal.SIGINT)
        time.sleep(0.003)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert leftovers.found(user) == []


def test_ctrl_c_during_a_copy_with_rsync_takes_it_back(user: User) -> None:
    slow = user.root / "bin"
    slow.mkdir()
    (slow / "rsync").write_text(f"#!/bin/sh\ntouch {user.root}/begun\nexec sleep 9999\n")
    (slow / "rsync").chmod(0o755)
    child = user.popen(*CREATE, "--transfer", "rsync", env={"PATH": f"{slow}:{user.env['PATH']}"})
    wait_for((user.root / "begun").exists, "the copy to begin")
    assert end(child, signal.SIGINT)[0] == 130
    assert leftovers.found(user) == []


@pytest.mark.parametrize("times", [some(15), soak(250)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_moment_leaves_all_or_nothing(user: User, number: int, times: int) -> None:
    user.create("warm")  # the tmux server and the state directory are there
    user.mngr("destroy", "warm").ok()
    whole = time_of(user, *CREATE)
    user.mngr("destroy", "foo").ok()
    codes = []
    for _ in range(times):
        child = user.popen(*CREATE)
        time.sleep(random.uniform(0, whole * 1.1))
        code, said = end(child, number)
        codes.append(code)
        # Before our own handler is in place Python's or the system's ends the process.
        assert code in (0, 128 + number, -number) or before_our_time(code, said), said
        left = leftovers.found(user)
        if left:
            assert "agent foo is RUNNING" in left, f"after {codes}: {said}"
            user.mngr("destroy", "foo").ok()
            left = leftovers.found(user)
        assert left == [], f"after {codes}: {said}"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_a_creation_that_was_killed_is_said_and_destroyed_without_a_trace(user: User, transfer: str) -> None:
    begun, _ = slow_checkout(user)
    child = user.popen(*CREATE, "--transfer", transfer)
    wait_for(begun.exists, "the checkout to begin")
    end(child, signal.SIGKILL)
    agent = user.agent("foo")
    assert (agent["state"], agent["state_reason"]) == ("FAILED", "its creation was interrupted")
    assert "was not fully created" in user.mngr("start", "foo").failed().stderr
    user.mngr("destroy", "foo").ok()
    assert leftovers.found(user) == []
    user.git("config", "--global", "filter.slow.smudge", "cat")
    user.mngr(*CREATE).ok()


@pytest.mark.parametrize("times", [some(9), soak(150)])
def test_a_creation_killed_at_any_moment_can_be_destroyed(user: User, times: int) -> None:
    whole = time_of(user, *CREATE)
    user.mngr("destroy", "foo").ok()
    for _ in range(times):
        child = user.popen(*CREATE)
        time.sleep(random.uniform(0, whole * 1.1))
        end(child, signal.SIGKILL)
        wait_for(lambda: not orphans(user), "git and tmux, which outlived it, to be through")
        if user.agents():
            user.mngr("destroy", "foo").ok()
        left = [line for line in leftovers.found(user) if not line.startswith(("lock", "state", "draft"))]
        assert left == []


@pytest.mark.parametrize("times", [some(5), soak(80)])
@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_many_creations_ended_at_any_moment_leave_whole_agents_only(
    user: User, transfer: str, number: int, times: int
) -> None:
    words = ("create", "foo", "--count", "6", "--no-connect", "--transfer", transfer, "--command", "sleep 9999")
    whole = time_of(user, *words)
    user.mngr("destroy", "--all").ok()
    for _ in range(times):
        child = user.popen(*words)
        time.sleep(random.uniform(whole * 0.2, whole))
        end(child, number)
        wait_for(lambda: not orphans(user), "git and tmux, which outlived it, to be through")
        agents = user.agents()
        if number == signal.SIGINT:
            assert {agent["state"] for agent in agents} <= {"RUNNING"}
        assert {agent["state_reason"] for agent in agents} <= {"", "its creation was interrupted"}
        if agents:
            user.mngr("destroy", "--all").ok()
        left = leftovers.found(user)
        if number == signal.SIGKILL:
            left = [line for line in left if not line.startswith(("lock", "state", "draft"))]
        assert left == []


def test_destroy_waits_for_a_creation_in_progress(user: User) -> None:
    begun, go = slow_checkout(user)
    child = user.popen(*CREATE)
    wait_for(begun.exists, "the checkout to begin")
    lock = user.host_dir / "locks" / user.agent("foo")["id"]
    waits = user.popen("destroy", "foo")
    wait_for(lambda: _has_open(waits.pid, lock), "the other command to come to the lock")
    go.touch()
    said = [waiting.communicate(timeout=60)[1].decode() for waiting in (child, waits)]
    assert (child.returncode, waits.returncode) == (0, 0), said
    assert leftovers.found(user) == []


def test_five_creations_of_one_name_give_one_agent(user: User) -> None:
    children = [user.popen(*CREATE) for _ in range(5)]
    said = [child.communicate(timeout=60)[1].decode() for child in children]
    assert sorted(child.returncode for child in children) == [0, 1, 1, 1, 1], said
    assert all("an agent named `foo` exists already" in text for text in said if text), said
    assert user.state("foo") == "RUNNING"
    user.mngr("destroy", "foo").ok()
    assert leftovers.found(user) == []


def test_five_first_creations_share_one_new_state_directory(user: User) -> None:
    children = [
        user.popen("create", f"a{number}", "--no-connect", "--command", "sleep 9999", "--transfer", "none")
        for number in range(5)
    ]
    said = [child.communicate(timeout=60)[1].decode() for child in children]
    assert [child.returncode for child in children] == [0] * 5, said
    assert len({agent["index"] for agent in user.agents()}) == 5


def test_four_destroys_of_one_agent_remove_it_once(user: User) -> None:
    agent = user.create("foo")
    (Path(agent["work_dir"]) / "new.txt").write_text("x")
    children = [user.popen("destroy", "foo", "--force") for _ in range(4)]
    said = [child.communicate(timeout=60)[1].decode() for child in children]
    assert sorted(child.returncode for child in children) == [0, 1, 1, 1], said
    assert not [text for text in said if "bug" in text], said
    assert len(user.mngr("saved", "list", "--format", "json").ok().json["saved"]) == 1
    assert [line for line in leftovers.found(user) if "refs/mngr/saved" not in line] == []


def test_stops_and_starts_at_once_end_in_one_true_state(user: User) -> None:
    user.create("foo")
    children = [user.popen(verb, "foo") for verb in ("stop", "start") * 3]
    said = [child.communicate(timeout=60)[1].decode() for child in children]
    assert [child.returncode for child in children] == [0] * 6, said
    agent = user.agent("foo")
    assert agent["state"] in ("RUNNING", "STOPPED")
    if agent["state"] == "RUNNING":  # its shell may still be about to become it
        wait_for(lambda: _named(user, "sleep"), "the process of the agent")
    assert len(_named(user, "sleep")) == (1 if agent["state"] == "RUNNING" else 0)


@pytest.mark.timeout(600)
def test_ctrl_c_during_destroy_leaves_no_half_of_a_workspace(user: User) -> None:
    for _ in range(6):
        user.mngr(*CREATE).ok()
        (user.work_dir("foo") / "new.txt").write_text("x")
        child = user.popen("destroy", "foo", "--force")
        time.sleep(random.uniform(0.03, 0.15))
        code, said = end(child, signal.SIGINT)
        assert code in (0, 130, -2) or before_our_time(code, said), said
        if user.agents():
            assert (user.work_dir("foo") / "new.txt").read_text() == "x"
            assert (user.work_dir("foo") / "README.md").read_text() == "hello\n"
            user.mngr("destroy", "foo", "--force").ok()
        saved = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
        assert saved and saved[0]["uncommitted"] == ["new.txt"]
        assert [line for line in leftovers.found(user) if "refs/mngr/saved" not in line] == []


def test_a_session_that_was_renamed_behind_our_back_is_found_by_its_mark(user: User) -> None:
    user.create("foo")
    user.tmux("rename-session", "-t", "=mngr-foo", "elsewhere")
    assert user.state("foo") == "RUNNING"
    user.mngr("rename", "foo", "bar").ok()
    assert user.tmux("list-sessions", "-F", "#{session_name}").stdout == "mngr-bar\n"
    user.mngr("destroy", "bar").ok()
    assert leftovers.found(user) == []


def test_wait_ends_with_the_code_of_the_signal(user: User) -> None:
    user.create("foo")
    for number in (signal.SIGINT, signal.SIGTERM):
        child = user.popen("wait", "foo", "DONE")
        wait_for(partial(watches_files, child.pid), "the command to wait")
        assert end(child, number)[0] == 128 + number


def test_an_ignored_hangup_stays_ignored(user: User) -> None:
    begun, go = slow_checkout(user)
    command = f"trap '' HUP; exec {MNGR} {' '.join(CREATE[:-1])} 'sleep 9999'"
    child = subprocess.Popen(
        ["sh", "-c", command], cwd=user.repo, env=user.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(begun.exists, "the checkout to begin")
    os.kill(child.pid, signal.SIGHUP)
    go.touch()
    said = child.communicate(timeout=60)[1].decode()
    assert child.returncode == 0, said
    assert user.state("foo") == "RUNNING"


def test_a_killed_tmux_server_is_a_fact_and_agents_start_again(user: User) -> None:
    agents = [user.create(name) for name in ("foo", "bar")]
    (Path(agents[0]["work_dir"]) / "new.txt").write_text("x")
    server = int(user.tmux("display-message", "-p", "#{pid}").stdout)
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{server}").exists(), "the server to be gone")
    listing = user.mngr("list", "--format", "json").ok().json
    assert {a["name"]: (a["state"], a["state_reason"]) for a in listing["agents"]} == dict.fromkeys(
        ("foo", "bar"), ("FAILED", "its tmux session is gone")
    )
    assert listing["errors"] == []
    assert "is FAILED" in user.mngr("message", "foo", "-m", "hello").failed().stderr
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"
    assert (user.work_dir("foo") / "new.txt").read_text() == "x"
    user.mngr("stop", "foo", "bar").ok()
    user.mngr("destroy", "foo", "bar", "--force").ok()
    assert [line for line in leftovers.found(user) if "refs/mngr/saved" not in line] == []
    wait_for(lambda: not _named(user, "sleep"), "the agents to end")


def _named(user: User, command: str) -> list[int]:
    return [pid for pid in user.processes() if _facts(pid)[0] == command]


def orphans(user: User) -> list[int]:
    """Processes outside the tmux server: after the death of the command that started them, what they still do is done
    behind the back of whoever looks now."""
    return [pid for pid in user.processes() if not _in_tmux(pid)]


def _in_tmux(pid: int) -> bool:
    while pid > 1:
        command, pid = _facts(pid)
        if command == "tmux: server":
            return True
    return False


def _facts(pid: int) -> tuple[str, int]:
    """The name of a process and its parent; of one that has ended meanwhile, nothing."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")
        return name, int(rest.split()[1])
    except OSError:
        return "", 0


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(Path(f"/proc/{pid}/fd/{name}").readlink() == path for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
