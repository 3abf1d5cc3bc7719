"""`mngr gc`: leftovers go, after what exists only there was saved; everything else stays."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.actions import leftovers as found_leftovers
from mngr.actions.site import Site
from tests.support import leftovers
from tests.support.records import edit_record
from tests.support.user import User, wait_for


def gc(user: User, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = user.mngr("gc", *words, "--format", "json").ok().json["leftovers"]
    return found


def kinds(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((item["what"], item["action"]) for item in found)


def forget(user: User, name: str) -> Path:
    """Remove an agent's record by hand, as after a lost disk; returns its work dir."""
    agent = user.agent(name)
    shutil.rmtree(user.host_dir / "agents" / agent["id"])
    return Path(agent["work_dir"])


def test_nothing_is_left_over_where_all_is_well(user: User) -> None:
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"
    assert not user.host_dir.exists()
    user.create("foo")
    user.create("bar", "--transfer", "git-mirror")
    user.mngr("stop", "bar").ok()
    assert gc(user) == []
    assert user.state("foo") == "RUNNING"
    assert user.work_dir("bar").is_dir()


def test_a_work_dir_that_no_record_knows_is_saved_and_removed(user: User) -> None:
    user.create("foo")
    user.mngr("exec", "foo", "echo c > c; git add c; git commit -qm c; echo half > notes").ok()
    user.mngr("stop", "foo").ok()
    work_dir = forget(user, "foo")
    (would,) = [item for item in gc(user, "--dry-run") if item["what"] == "work dir"]
    assert would["action"] == "would remove" and work_dir.is_dir()
    (done,) = [item for item in gc(user) if item["what"] == "work dir"]
    assert (done["action"], done["saved"], done["path"]) == ("removed", "foo-1", str(work_dir))
    assert not work_dir.exists()
    assert "foo" not in user.git("worktree", "list")
    assert user.git("log", "-1", "--format=%s", "mngr/foo") == "c"
    user.mngr("saved", "restore", "foo-1").ok()
    assert (user.work_dir("foo") / "notes").read_text() == "half\n"
    assert (user.work_dir("foo") / "c").exists()
    assert gc(user) == []


@pytest.mark.parametrize("transfer", ["git-mirror", "rsync"])
def test_the_commits_of_a_clone_that_no_record_knows_are_saved(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    user.mngr("exec", "foo", "echo c > c; git add c; git commit -qm c; git stash list; echo half > notes").ok()
    user.mngr("stop", "foo").ok()
    work_dir = forget(user, "foo")
    gc(user)
    assert not work_dir.exists()
    target = user.root / "back"
    user.mngr("saved", "restore", "foo-1", "--to", str(target)).ok()
    assert (target / "notes").read_text() == "half\n"
    assert user.git("log", "-1", "--format=%s", cwd=target) == "c"


def test_plain_files_that_no_record_knows_are_saved(user: User) -> None:
    user.create("foo")
    place = user.host_dir / "clones" / "odd name"
    place.mkdir()
    (place / "work").write_text("precious\n")
    (done,) = gc(user)
    assert done["saved"] == "leftover-1"
    assert not place.exists()
    target = user.root / "back"
    user.mngr("saved", "restore", "leftover-1", "--to", str(target)).ok()
    assert (target / "work").read_text() == "precious\n"


def test_a_file_in_our_room_is_told_and_kept(user: User) -> None:
    user.create("foo")
    (user.host_dir / "clones" / "note.txt").write_text("mine")
    assert kinds(gc(user)) == [("work dir", "kept")]
    assert (user.host_dir / "clones" / "note.txt").read_text() == "mine"


def test_the_note_of_a_worktree_that_was_deleted_by_hand_goes(user: User) -> None:
    user.create("foo")
    user.mngr("stop", "foo").ok()
    shutil.rmtree(forget(user, "foo"))
    assert "foo" in user.git("worktree", "list")
    (found,) = [item for item in gc(user) if item["what"] == "worktree"]
    assert found["action"] == "removed"
    assert "foo" not in user.git("worktree", "list")


def test_worktrees_of_the_user_stay(user: User) -> None:
    user.create("foo")
    user.git("worktree", "add", "-q", str(user.root / "mine"))
    shutil.rmtree(user.root / "mine")
    shutil.rmtree(user.work_dir("foo"))
    assert gc(user) == []
    assert "mine" in user.git("worktree", "list") and "foo" in user.git("worktree", "list")


def test_a_session_that_no_record_knows_is_ended(user: User) -> None:
    user.create("foo", command="setsid sh -c 'trap \"\" TERM HUP; touch ~/begun; sleep 9998; :' & sleep 9999")
    user.create("bar")
    wait_for((user.home / "begun").exists, "the process that leaves its terminal")
    forget(user, "foo")
    assert ("session", "would remove") in kinds(gc(user, "--dry-run"))
    assert ("session", "removed") in kinds(gc(user))
    assert user.tmux("list-sessions", "-F", "#{session_name}").stdout == "mngr-bar\n"
    wait_for(lambda: b"9998" not in _command_lines(user), "its processes to end")
    assert user.state("bar") == "RUNNING"


def _command_lines(user: User) -> bytes:
    found = b""
    for pid in user.processes():
        try:
            found += Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
    return found


def test_sessions_of_another_state_directory_are_left_alone(user: User) -> None:
    user.create("foo")
    other = {"MNGR_HOST_DIR": str(user.root / "other")}
    user.mngr("create", "bar", "--no-connect", "--command", "cat", env=other).ok()
    shutil.rmtree(user.root / "other" / "agents")
    assert gc(user) == []
    assert "mngr-bar" in user.tmux("list-sessions").stdout


def test_an_interrupted_creation_goes(user: User) -> None:
    user.create("foo")
    user.mngr("stop", "foo").ok()
    making = subprocess.Popen(["sleep", "9999"], env=user.env)  # so that it ends with the test, whatever happens
    agent = user.agent("foo")
    path = user.host_dir / "agents" / agent["id"] / "agent.json"
    started = Path(f"/proc/{making.pid}/stat").read_text().rpartition(")")[2].split()[19]
    edit_record(path, started_at=None, stopped_at=None, creator=[making.pid, started])
    assert user.state("foo") == "STARTING"
    assert gc(user) == []
    making.kill()
    making.wait()
    assert kinds(gc(user)) == [("interrupted creation", "removed")]
    assert leftovers.found(user) == []


def half_way(user: User) -> "subprocess.Popen[bytes]":
    """`mngr create foo` that stands still while it writes the files, until `go` exists."""
    (user.repo / ".gitattributes").write_text("README.md filter=slow\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "slow")
    wait = f"touch {user.home}/reached; while [ ! -e {user.home}/go ]; do sleep 0.05; done; cat"
    user.git("config", "filter.slow.smudge", wait)
    making = user.popen("create", "foo", "--no-connect", "--command", "sleep 9999")
    wait_for((user.home / "reached").exists, "the creation to be half-way")
    return making


def test_a_creation_that_is_going_on_is_left_alone(user: User) -> None:
    making = half_way(user)
    try:
        assert gc(user) == []
    finally:
        (user.home / "go").touch()
        making.communicate(timeout=60)
    assert making.returncode == 0
    assert user.state("foo") == "RUNNING"


def test_an_agent_whose_creation_was_killed_leaves_nothing(user: User) -> None:
    making = half_way(user)
    making.kill()
    (user.home / "go").touch()
    making.communicate(timeout=60)
    wait_for(lambda: b"read-tree" not in _command_lines(user), "git, which outlived it, to be through")
    assert user.state("foo") == "FAILED"
    assert ("interrupted creation", "removed") in kinds(gc(user))
    assert leftovers.found(user) == []


def test_a_state_directory_without_a_record_goes_unless_it_holds_a_history(user: User) -> None:
    user.create("foo")
    empty = user.host_dir / "agents" / f"agent-{'0' * 32}"
    full = user.host_dir / "agents" / f"agent-{'1' * 32}"
    for path in (empty, full):
        path.mkdir()
        (path / "agent.json.12.ab.draft").write_text("{")
    (full / "transcript.jsonl").write_text("{}\n")
    assert kinds(gc(user)) == [("state directory", "kept"), ("state directory", "removed")]
    assert not empty.exists() and (full / "transcript.jsonl").exists()


def test_a_record_that_cannot_be_read_protects_its_work_dir(user: User) -> None:
    agent = user.create("foo")
    (user.host_dir / "agents" / agent["id"] / "agent.json").write_text("{")
    assert gc(user) == []
    assert Path(agent["work_dir"]).is_dir()
    assert "mngr-foo" in user.tmux("list-sessions").stdout


def test_locks_of_agents_that_are_gone_go(user: User) -> None:
    agent = user.create("foo")
    locks = user.host_dir / "locks"
    for name in (f"agent-{'2' * 32}", f"agent-{'2' * 32}.message", "unknown"):
        (locks / name).touch()
    assert kinds(gc(user)) == [("lock", "removed")] * 2
    assert (locks / agent["id"]).exists() and (locks / "unknown").exists()


def test_a_pulled_ref_goes_unless_it_alone_holds_commits(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    user.create("bar", "--transfer", "git-mirror")
    user.create("here", "--transfer", "git-mirror")
    for name in ("foo", "bar", "here"):
        user.mngr("exec", name, f"echo c > {name}; git add .; git commit -qm {name}").ok()
    user.mngr("pull", "foo").ok()
    user.mngr("pull", "here").ok()
    user.mngr("pull", "bar", "--into", "none").ok()
    for name in ("foo", "bar"):
        user.mngr("stop", name).ok()
        shutil.rmtree(forget(user, name))
    found = {item["name"]: item["action"] for item in gc(user) if item["what"] == "ref"}
    assert found == {"refs/mngr/pulled/foo": "removed", "refs/mngr/pulled/bar": "kept"}
    refs = user.git("for-each-ref", "--format=%(refname)", "refs/mngr/pulled").split("\n")
    assert refs == ["refs/mngr/pulled/bar", "refs/mngr/pulled/here"]


def test_saved_work_goes_only_when_it_is_asked_for_and_old(user: User) -> None:
    user.create("foo")
    user.mngr("exec", "foo", "echo half > notes").ok()
    user.mngr("destroy", "foo", "--force").ok()
    assert gc(user) == []
    assert gc(user, "--saved", "--older-than", "1h") == []
    assert kinds(gc(user, "--saved", "--older-than", "0s", "--dry-run")) == [("saved work", "would remove")]
    assert user.git("for-each-ref", "refs/mngr/saved") != ""
    assert kinds(gc(user, "--saved", "--older-than", "0s")) == [("saved work", "removed")]
    assert user.git("for-each-ref", "refs/mngr/saved") == ""
    assert user.mngr("saved", "list").ok().stdout == "No saved work\n"
    for words in (["--saved"], ["--older-than", "3d"]):
        assert "requires" in user.mngr("gc", *words).failed(2).stderr


def test_gc_tells_each_thing_in_words(user: User) -> None:
    user.create("foo")
    user.mngr("exec", "foo", "echo half > notes").ok()
    user.mngr("stop", "foo").ok()
    work_dir = forget(user, "foo")
    said = user.mngr("gc", "--dry-run").ok()
    assert f"would remove work dir {work_dir.name}: 1 uncommitted file\n" in said.stdout
    assert "`mngr gc` removes them" in said.stderr
    said = user.mngr("gc").ok()
    assert f"removed work dir {work_dir.name}: 1 uncommitted file; saved: `mngr saved restore foo-1`\n" in said.stdout


def test_gc_tells_each_thing_as_it_happens_and_asks_the_tmux_server_of_the_site(user: User) -> None:
    user.create("foo")
    assert [session.name for session in found_leftovers.sessions(Site(environ=user.env))] == ["mngr-foo"]
    forget(user, "foo")
    with next((user.host_dir / "locks").glob("repo-*")).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # so that the work dir has to wait
        running = user.popen("gc")
        try:
            assert running.stdout is not None
            os.set_blocking(running.stdout.fileno(), False)
            wait_for(
                lambda: (running.stdout and running.stdout.read()) == b"removed session mngr-foo\n", "its first line"
            )
            assert running.poll() is None
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert running.wait(60) == 0
        finally:
            running.kill()
            running.communicate()
