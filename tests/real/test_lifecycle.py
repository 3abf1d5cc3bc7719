"""Stop, start, rename and label: the life of an agent between its creation and its end."""

import sys
from pathlib import Path

import pytest

import mngr
from tests.support.user import User, wait_for

PYTHON = sys.executable

# How programs leave their parents; each writes its process id to `child`.
ESCAPES = {
    "a plain background job": "sleep 9999 & echo $! > child; wait",
    "nohup": "nohup sh -c 'echo $$ > child; exec sleep 9999' >/dev/null 2>&1 & wait",
    "setsid": "setsid sh -c 'echo $$ > child; exec sleep 9999' & sleep 9999",
    "a double fork": "(setsid sh -c 'sh -c \"echo \\$\\$ > child; exec sleep 9999\" &' &); sleep 9999",
    "ignoring hangup and terminate": "setsid sh -c 'trap \"\" TERM HUP; echo $$ > child; sleep 9998; :' & sleep 9999",
}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def child_of(user: User, name: str) -> int:
    path = user.work_dir(name) / "child"
    return int(wait_for(lambda: path.read_text().strip() if path.exists() else None, "the child's process id"))


@pytest.mark.parametrize("how", ESCAPES)
def test_stop_ends_children_that_left(user: User, how: str) -> None:
    user.create("foo", command=ESCAPES[how])
    child = child_of(user, "foo")
    assert alive(child)
    user.mngr("stop", "foo").ok()
    assert not alive(child)
    assert user.state("foo") == "STOPPED"


def test_stop_ends_a_daemon_that_forgot_its_parents(user: User) -> None:
    script = user.root / "daemon.py"
    script.write_text(
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "        open('child', 'w').write(str(os.getpid()))\n"
        "        time.sleep(9999)\n"
        "    os._exit(0)\n"
        "time.sleep(9999)\n"
    )
    user.create("foo", command=f"{PYTHON} {script}")
    child = child_of(user, "foo")
    user.mngr("stop", "foo").ok()
    assert not alive(child)


def test_stop_leaves_other_agents_alone(user: User) -> None:
    first, second = user.create("foo"), user.create("foo-2")
    user.mngr("stop", "foo").ok()
    assert not alive(first["pid"])
    assert alive(second["pid"])
    assert user.state("foo-2") == "RUNNING"


def test_stop_keeps_the_worktree_and_what_was_written(user: User) -> None:
    user.create("foo", command="echo half-done > notes; sleep 9999")
    notes = user.work_dir("foo") / "notes"
    wait_for(lambda: notes.exists() and notes.read_text(), "the agent's file")
    user.mngr("stop", "foo").ok()
    assert notes.read_text() == "half-done\n"
    assert user.git("branch", "--list", "mngr/foo") != ""
    assert user.mngr("capture", "foo").ok().exit_code == 0


def test_stop_twice_is_safe(user: User) -> None:
    user.create("foo")
    assert "stopped foo" in user.mngr("stop", "foo").ok().stdout
    assert "already stopped" in user.mngr("stop", "foo").ok().stdout


def test_graceful_stop_lets_the_program_finish(user: User) -> None:
    user.create("foo", command="trap 'echo bye > bye; exit 0' TERM; echo > up; while :; do sleep 0.05; done")
    wait_for((user.work_dir("foo") / "up").exists, "the trap to be set")
    user.mngr("stop", "foo", "--graceful").ok()
    assert (user.work_dir("foo") / "bye").exists()
    assert user.state("foo") == "STOPPED"


def test_graceful_stop_ends_a_program_that_does_not_listen(user: User) -> None:
    agent = user.create("foo", command="trap '' TERM HUP; echo > up; sleep 9999 & while :; do wait; done")
    wait_for((user.work_dir("foo") / "up").exists, "the trap to be set")
    user.mngr("stop", "foo", "--graceful", "--timeout", "0.2s").ok()
    assert not alive(agent["pid"])


def test_stop_of_an_ended_agent_keeps_how_it_ended(user: User) -> None:
    for name, command, state, code in (("foo", "true", "DONE", 0), ("bar", "exit 3", "FAILED", 3)):
        user.create(name, command=command)
        user.wait_for_state(name, state)
        for _ in range(2):
            user.mngr("stop", name).ok()
            agent = user.agent(name)
            assert (agent["state"], agent["exit_code"]) == (state, code)
    user.mngr("stop", "--all").ok()
    assert {agent["name"]: agent["state"] for agent in user.agents()} == {"foo": "DONE", "bar": "FAILED"}
    assert user.tmux("list-sessions").exit_code != 0


def test_a_session_name_that_another_state_directory_has_does_not_stop_a_rename(user: User) -> None:
    other = {"MNGR_HOST_DIR": str(user.root / "other")}
    user.mngr("create", "bar", "--no-connect", "--transfer", "none", "--command", "cat", env=other).ok()
    user.create("foo")
    user.mngr("rename", "foo", "bar").ok()
    agent = user.agent("bar")
    assert agent["state"] == "RUNNING"
    names = user.tmux("list-sessions", "-F", "#{session_name}").stdout.split()
    assert sorted(names) == ["mngr-bar", f"mngr-bar-{agent['id'][6:14]}"]
    user.mngr("stop", "bar").ok()
    assert user.mngr("list", env=other).ok().stdout.count("RUNNING") == 1


def test_stop_dry_run_stops_nothing(user: User) -> None:
    agent = user.create("foo")
    assert "would stop foo" in user.mngr("stop", "foo", "--dry-run").ok().stdout
    assert alive(agent["pid"])
    assert user.state("foo") == "RUNNING"


def test_start_runs_it_again_in_the_same_place_with_its_variables(user: User) -> None:
    command = 'echo "$MNGR_AGENT_ID $COLOUR" >> runs; sleep 9999'
    before = user.create("foo", "--env", "COLOUR=dark blue", command=command)
    runs = Path(before["work_dir"]) / "runs"
    wait_for(lambda: runs.exists() and runs.read_text(), "the first run")
    user.mngr("stop", "foo").ok()
    assert "started foo" in user.mngr("start", "foo").ok().stdout
    lines = wait_for(lambda: t if len(t := runs.read_text().splitlines()) == 2 else None, "the second run")
    assert lines == [f"{before['id']} dark blue"] * 2
    after = user.agent("foo")
    assert after["state"] == "RUNNING"
    assert after["pid"] != before["pid"]
    assert after["work_dir"] == before["work_dir"]


def test_start_of_a_running_agent_leaves_it_alone(user: User) -> None:
    before = user.create("foo")
    assert "already running" in user.mngr("start", "foo").ok().stdout
    assert user.agent("foo")["pid"] == before["pid"]


def test_start_runs_a_failed_agent_again(user: User) -> None:
    user.create("foo", command="test -e again && sleep 9999; exit 3")
    user.wait_for_state("foo", "FAILED")
    (user.work_dir("foo") / "again").touch()
    user.mngr("start", "foo").ok()
    agent = user.agent("foo")
    assert (agent["state"], agent["exit_code"]) == ("RUNNING", None)


def test_start_first_ends_what_the_last_run_left_behind(user: User) -> None:
    leave = "setsid sh -c 'test -e child || { echo $$ > child; exec sleep 9999; }' &"
    user.create("foo", command=f"{leave} until [ -s child ]; do sleep 0.02; done")
    child = child_of(user, "foo")
    user.wait_for_state("foo", "DONE")
    assert alive(child)
    user.mngr("start", "foo").ok()
    assert not alive(child)


def test_a_start_that_fails_leaves_the_agent_as_it_was(user: User) -> None:
    """With the exit code of its last run, whether that was written down by its launch script or only seen by tmux."""
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    fleet.create("done", command="true")
    fleet.create("killed", command="kill -9 $PPID; sleep 9999")
    ended = {agent.name: agent for agent in fleet.wait(["done", "killed"], ("DONE", "FAILED"), timeout=60)}
    assert ended["killed"].status.exit_code == 137
    user.tmux("rename-session", "-t", "=mngr-done", "moved").ok()
    user.tmux("rename-session", "-t", "=mngr-killed", "moved-too").ok()
    for agent in ended.values():
        for session in (agent.record.life.session, f"{agent.record.life.session}-{agent.record.short_id}"):
            user.tmux("new-session", "-d", "-s", session).ok()
    config = user.host_dir / "settings.toml"
    for text, said in (('[tmux]\nconfig = "/nowhere"\n', "names `/nowhere`"), ("", "tmux has sessions called")):
        config.write_text(text)
        for name, before in ended.items():
            with pytest.raises(mngr.MngrError, match=said):
                mngr.Fleet(environ=user.env, cwd=str(user.repo)).find(name).start()
            after = fleet.find(name)
            assert (after.state, after.status.exit_code) == (before.state, before.status.exit_code)
            assert after.status.since == pytest.approx(before.status.since, abs=1)


def test_start_without_the_work_dir_says_so(user: User) -> None:
    user.create("foo")
    user.mngr("stop", "foo").ok()
    work_dir = user.work_dir("foo")
    work_dir.rename(work_dir.with_name("elsewhere"))
    ran = user.mngr("start", "foo").failed()
    assert "is gone" in ran.stderr and "mngr destroy foo" in ran.stderr


def test_many_are_stopped_and_started_at_once(user: User) -> None:
    for name in ("a1", "a2", "a3"):
        user.create(name)
    user.mngr("stop", "--all").ok()
    assert {agent["state"] for agent in user.agents()} == {"STOPPED"}
    user.mngr("start", "--include", 'name != "a2"').ok()
    assert {agent["name"]: agent["state"] for agent in user.agents()} == {
        "a1": "RUNNING",
        "a2": "STOPPED",
        "a3": "RUNNING",
    }


def test_rename_changes_name_and_session_and_nothing_else(user: User) -> None:
    before = user.create("foo")
    user.mngr("rename", "foo", "bar").ok()
    after = user.agent("bar")
    assert (after["id"], after["pid"], after["work_dir"]) == (before["id"], before["pid"], before["work_dir"])
    assert after["initial_branch"] == "mngr/foo"
    assert after["session"] == "mngr-bar"
    assert user.tmux("has-session", "-t", "=mngr-bar").exit_code == 0
    user.mngr("exec", "foo", "true").failed()
    user.mngr("stop", "bar").ok()
    user.mngr("start", "bar").ok()
    user.mngr("destroy", "bar").ok()
    assert user.git("branch", "--list", "mngr/*") == ""


def test_rename_to_a_taken_or_bad_name_is_refused(user: User) -> None:
    user.create("foo")
    user.create("bar")
    assert "exists already" in user.mngr("rename", "foo", "bar").failed().stderr
    assert "not an agent name" in user.mngr("rename", "foo", "a.b").failed(2).stderr
    user.mngr("rename", "foo", "baz", "--dry-run").ok()
    assert sorted(agent["name"] for agent in user.agents()) == ["bar", "foo"]


def test_a_name_is_free_again_after_a_rename(user: User) -> None:
    user.create("foo")
    user.mngr("rename", "foo", "bar").ok()
    ran = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999").failed()
    assert "a branch called `mngr/foo` exists already" in ran.stderr
    user.create("foo", "--branch", ":mngr/foo-2")
    assert user.agent("foo")["session"] == "mngr-foo"


def test_labels_are_set_shown_and_removed(user: User) -> None:
    user.create("foo", "--label", "team=backend")
    user.mngr("label", "foo", "urgent=yes", "note=a = b; $(c) 'd' é").ok()
    assert user.agent("foo")["labels"] == {
        "team": "backend",
        "urgent": "yes",
        "note": "a = b; $(c) 'd' é",
        "project": "repo",
    }
    user.mngr("label", "foo", "--remove", "urgent", "--remove", "note", "--remove", "never-there").ok()
    assert user.mngr("label", "foo").ok().stdout == "foo: team=backend\n"
    user.mngr("label", "foo", "team=frontend", "--dry-run").ok()
    assert user.agent("foo")["labels"] == {"team": "backend", "project": "repo"}
    assert "is not a label" in user.mngr("label", "foo", "=x").failed(2).stderr


def test_concurrent_labels_all_stay(user: User) -> None:
    user.create("foo")
    running = [user.popen("label", "foo", f"k{number}=v") for number in range(8)]
    for process in running:
        process.communicate()
    assert [process.returncode for process in running] == [0] * 8
    assert sorted(user.agent("foo")["labels"]) == [f"k{number}" for number in range(8)] + ["project"]


@pytest.mark.parametrize("redirect", ["> /dev/null 2>&1", ""])
def test_a_stop_from_inside_the_agent_ends_it(user: User, redirect: str) -> None:
    user.create("foo", command=f"mngr stop foo {redirect}; sleep 9999")
    agent = user.wait_for_state("foo", "STOPPED")
    assert agent["pid"] is None
    wait_for(lambda: not user.processes(), "all processes to end")
    assert not (user.host_dir / "crashes").exists()


def test_destroy_from_inside_the_agent_removes_it(user: User) -> None:
    user.mngr("create", "foo", "--no-connect", "--command", "mngr destroy foo; sleep 9999").ok()
    wait_for(lambda: not user.agents(), "the agent to be gone")
    wait_for(lambda: not user.processes(), "all processes to end")
    assert user.git("branch", "--list", "mngr/*") == ""
