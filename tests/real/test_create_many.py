"""Create many: by count, by name, in parallel; each is made whole or not at all."""

import json
import os
import signal
from pathlib import Path

import pytest

import mngr
from tests.support.terminals import on_a_terminal
from tests.support.trees import tree
from tests.support.user import User, wait_for

SLEEP = ("--no-connect", "--command", "sleep 9999")


def traces(user: User, name: str) -> list[str]:
    """What is left of an agent that was not made."""
    found = [str(path) for path in user.host_dir.glob(f"*/{name}-*")]
    found += user.git("for-each-ref", "--format=%(refname)", f"refs/heads/mngr/{name}").split()
    found += [line for line in user.git("worktree", "list", "--porcelain").split("\n") if f"/{name}-" in line]
    found += [agent["name"] for agent in user.agents() if agent["name"] == name]
    found += [line for line in user.tmux("list-sessions", "-F", "#S").stdout.split() if line == f"mngr-{name}"]
    return found


def command_line(pid: int) -> bytes:
    """Of a process that has ended meanwhile, nothing."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.timeout(300)
def test_a_count_makes_numbered_agents_each_with_a_worktree_of_its_own(user: User) -> None:
    ran = user.mngr("create", "w", "--count", "25", *SLEEP, timeout=120).ok()
    names = [f"w-{number}" for number in range(1, 26)]
    assert ran.stdout.splitlines() == [f"created {name} on branch mngr/{name}" for name in names]
    agents = user.agents()
    assert {agent["name"] for agent in agents} == set(names)
    assert {agent["state"] for agent in agents} == {"RUNNING"}
    assert len({agent["index"] for agent in agents}) == len({agent["pid"] for agent in agents}) == 25
    assert user.git("fsck", "--no-dangling") == ""
    listed = user.git("worktree", "list", "--porcelain")
    for agent in agents:
        assert f"worktree {agent['work_dir']}\nHEAD {agent['base_commit']}\nbranch refs/heads/mngr/" in listed
        assert user.git("status", "--porcelain", cwd=agent["work_dir"]) == ""
        assert tree(agent["work_dir"]) == tree(user.repo)
    assert user.git("worktree", "prune", "--dry-run", "--verbose") == ""
    user.mngr("destroy", "--all", timeout=120).ok()
    assert user.git("branch", "--format=%(refname:short)") == "main"
    assert not (user.repo / ".git" / "worktrees").exists()


def test_mirrors_by_count_are_whole_repositories_of_their_own(user: User) -> None:
    user.git("tag", "v1")
    user.git("branch", "other")
    hook = user.home / "template" / "hooks" / "pre-push"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    user.git("config", "--global", "init.templateDir", str(hook.parent.parent))
    user.mngr("create", "m", "--count", "4", "--transfer", "git-mirror", *SLEEP).ok()
    for number in range(1, 5):
        place = user.work_dir(f"m-{number}")
        assert tree(place) == tree(user.repo)
        assert user.git("status", "--porcelain", "--branch", cwd=place) == f"## mngr/m-{number}"
        assert user.git("fsck", "--no-dangling", cwd=place) == ""
        assert set(user.git("for-each-ref", "--format=%(refname)", cwd=place).split()) >= {
            "refs/heads/main", "refs/heads/other", "refs/tags/v1", f"refs/heads/mngr/m-{number}",
        }  # fmt: skip
        assert os.access(place / ".git" / "hooks" / "pre-push", os.X_OK)
        (place / "new").write_text(f"{number}")
        user.git("add", "new", cwd=place)
        user.git("commit", "-q", "-m", f"by {number}", cwd=place)
        user.git("gc", "-q", cwd=place)
    subjects = {user.git("log", "-1", "--format=%s", cwd=user.work_dir(f"m-{number}")) for number in range(1, 5)}
    assert subjects == {"by 1", "by 2", "by 3", "by 4"}
    assert user.git("log", "--format=%s", "--all") == "init"


def test_names_come_from_options_and_from_standard_input(user: User) -> None:
    user.mngr("create", "-n", "a", "-n", "b", *SLEEP).ok()
    user.mngr("create", "-", *SLEEP, input="c\nd\n").ok()
    assert {agent["name"] for agent in user.agents()} == {"a", "b", "c", "d"}
    user.mngr("create", "--count", "2", *SLEEP).ok()
    assert len(user.agents()) == 6


def test_a_second_word_still_is_the_type(user: User) -> None:
    user.mngr("create", "foo", "command", "--no-connect", "--", "sleep", "9999").ok()
    assert [(agent["name"], agent["type"]) for agent in user.agents()] == [("foo", "command")]


def test_a_name_or_branch_that_is_taken_leaves_out_that_one_only(user: User) -> None:
    user.create("w-2")
    user.git("branch", "mngr/w-3")
    ran = user.mngr("create", "w", "--count", "4", *SLEEP, "--format", "json").failed(3)
    rows = {row["name"]: row for row in ran.json}
    assert [rows[f"w-{number}"]["ok"] for number in range(1, 5)] == [True, False, False, True]
    assert "an agent named `w-2` exists already" in rows["w-2"]["error"]
    assert "a branch called `mngr/w-3` exists already" in rows["w-3"]["error"]
    assert {agent["name"] for agent in user.agents()} == {"w-1", "w-2", "w-4"}
    assert user.git("rev-parse", "mngr/w-3") == user.git("rev-parse", "main")
    user.mngr("create", "-n", "w-1", "-n", "w-2", *SLEEP).failed(1)


def test_one_that_fails_is_taken_back_alone(user: User) -> None:
    for transfer in ("git-worktree", "git-mirror", "rsync"):
        check = 'echo "no $MNGR_AGENT_NAME here"; test "$MNGR_AGENT_NAME" != w-2'
        words = ("create", "w", "--count", "3", "--transfer", transfer, "--extra-provision-command", check, *SLEEP)
        ran = user.mngr(*words).failed(3)
        assert ran.stdout.splitlines() == ["created w-1 on branch mngr/w-1", "created w-3 on branch mngr/w-3"]
        assert "w-2" in ran.stderr and "no w-2 here" in ran.stderr and "no w-1 here" not in ran.stderr
        assert traces(user, "w-2") == []
        user.mngr("destroy", "--all").ok()


def test_an_interrupt_takes_back_those_that_do_not_run_yet(user: User) -> None:
    slow = 'test "$MNGR_AGENT_NAME" = w-2 || sleep 9998'
    child = user.popen("create", "w", "--count", "4", "--extra-provision-command", slow, *SLEEP)
    wait_for(lambda: [a for a in user.agents() if a["name"] == "w-2" and a["state"] == "RUNNING"], "w-2 to run")
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert (child.returncode, stderr.decode()) == (130, "interrupted\n")
    assert {agent["name"]: agent["state"] for agent in user.agents()} == {"w-2": "RUNNING"}
    for name in ("w-1", "w-3", "w-4"):
        assert traces(user, name) == []
    assert len(list((user.host_dir / "agents").iterdir())) == 1
    assert not [pid for pid in user.processes() if b"sleep\x009998" in command_line(pid)]


def test_two_commands_at_once_do_not_get_in_each_others_way(user: User) -> None:
    children = [user.popen("create", name, "--count", "6", *SLEEP) for name in ("a", "b")]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    for child in children:
        child.communicate()
    agents = user.agents()
    assert len(agents) == len({agent["index"] for agent in agents}) == 12
    assert {agent["state"] for agent in agents} == {"RUNNING"}


def test_a_count_works_in_a_repository_with_a_configuration_per_worktree(user: User) -> None:
    user.git("config", "extensions.worktreeConfig", "true")
    user.mngr("create", "w", "--count", "3", *SLEEP).ok()
    assert {agent["state"] for agent in user.agents()} == {"RUNNING"}
    assert user.git("status", "--porcelain", cwd=user.work_dir("w-3")) == ""


def test_uncommitted_changes_go_into_all_of_them(user: User) -> None:
    (user.repo / "README.md").write_text("changed\n")
    user.mngr("create", "w", "--count", "2", *SLEEP).failed(1)
    user.mngr("create", "w", "--count", "2", "--include-unclean", *SLEEP).ok()
    for name in ("w-1", "w-2"):
        assert (user.work_dir(name) / "README.md").read_text() == "changed\n"
        assert user.git("status", "--porcelain", cwd=user.work_dir(name)) == ""
    assert user.git("diff", "--name-only") == "README.md"
    user.mngr("destroy", "--all").ok()


def test_copies_and_the_directory_itself_can_be_counted_too(user: User) -> None:
    user.mngr("create", "c", "--count", "2", "--transfer", "rsync", *SLEEP).ok()
    user.mngr("create", "p", "--count", "2", "--transfer", "none", *SLEEP).ok()
    assert {str(user.work_dir(name)) for name in ("p-1", "p-2")} == {str(user.repo)}
    assert user.work_dir("c-1") != user.work_dir("c-2")


def test_each_gets_the_first_message(user: User) -> None:
    user.mngr("create", "w", "--count", "3", "--no-connect", "--command", "cat", "-m", "hello there").ok()
    for number in range(1, 4):
        name = f"w-{number}"
        wait_for(lambda: "hello there" in user.mngr("capture", name).stdout, "the message")  # noqa: B023


def test_a_session_name_of_somebody_else_is_gone_round(user: User) -> None:
    user.tmux("new-session", "-d", "-s", "mngr-w-2", "sleep 9999")
    user.mngr("create", "w", "--count", "3", *SLEEP).ok()
    agents = {agent["name"]: agent for agent in user.agents()}
    assert {agent["state"] for agent in agents.values()} == {"RUNNING"}
    assert agents["w-2"]["session"] != "mngr-w-2"


def test_a_dry_run_of_many_makes_nothing(user: User) -> None:
    user.create("w-1")
    ran = user.mngr("create", "w", "--count", "2", *SLEEP, "--dry-run", "--format", "jsonl").failed(3)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(row["name"], row["ok"]) for row in rows] == [("w-1", False), ("w-2", True)]
    assert rows[1]["branch"] == "mngr/w-2" and rows[1]["dry_run"]
    assert [agent["name"] for agent in user.agents()] == ["w-1"]
    assert traces(user, "w-2") == []


def test_what_many_cannot_share_is_refused_before_anything_is_made(user: User) -> None:
    for words, said in (
        (["w:/tmp/x", "--count", "2"], "cannot share one target path"),
        (["w", "--count", "0"], "between 1 and 1000"),
        (["w", "--count", "1001"], "between 1 and 1000"),
        (["w", "--count", "2", "--branch", ":fixed"], "--branch ':fixed-*'"),
        (["-n", "a", "-n", "b", "--count", "2"], "numbers one name"),
        (["-n", "a", "-n", "b.c"], "is not an agent name"),
        (["-"], "holds no names"),
    ):
        ran = user.mngr("create", *words, *SLEEP).failed(2)
        assert said in ran.stderr
    assert user.agents() == []
    assert not (user.repo / ".git" / "worktrees").exists()


def test_a_terminal_shows_one_live_line(user: User) -> None:
    shown = on_a_terminal(user, "create", "w", "--count", "3", "--connect", "--command", "sleep 9999").ok().stdout
    assert "creating agents: 0 of 3" in shown and "creating agents: 3 of 3" in shown
    assert "not connected, since there are 3: `mngr connect w-1` attaches to one" in shown
    assert shown.rpartition("\x1b[K")[2].splitlines()[0] == "created w-1 on branch mngr/w-1"


def test_the_python_api_makes_many_too(user: User) -> None:
    user.create("b")
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    a, b, c = fleet.create_many(["a", "b", "c"], command="cat", labels={"team": "x"})
    assert isinstance(a, mngr.Agent) and isinstance(c, mngr.Agent) and isinstance(b, mngr.MngrError)
    assert (a.name, a.state, c.name, c.record.spec.labels) == ("a", "RUNNING", "c", {"team": "x"})
    assert fleet.create_many([], command="cat") == []
