"""Damaged state: the agents that can be read work on, the others are named, and nothing is removed."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from mngr.cli import catalog
from tests.support import leftovers
from tests.support.records import edited
from tests.support.user import User, wait_for


def record_of(user: User, name: str) -> Path:
    return user.host_dir / "agents" / str(user.agent(name)["id"]) / "agent.json"


def broken(path: Path, how: str) -> None:
    """Damage a record in one of the ways that disks, people and other versions do."""
    good = path.read_bytes()
    value = json.loads(good)
    if how == "directory":
        path.unlink()
        path.mkdir()
        return
    path.write_bytes(
        {
            "empty": b"",
            "truncated": good[: len(good) // 2],
            "binary": bytes(range(256)) * 4,
            "list": b"[1, 2]\n",
            "deep": b"[" * 100_000,
            "future": json.dumps({**value, "version": 99}).encode(),
            "no version": json.dumps({k: v for k, v in value.items() if k != "version"}).encode(),
            "labels": json.dumps(edited(value, labels=["a"])).encode(),
            "name": json.dumps({**value, "name": "../../x"}).encode(),
            "number": json.dumps(edited(value, number="x" * 10)).encode(),
            "time": json.dumps(edited(value, started_at="yesterday")).encode(),
            "relative": json.dumps(edited(value, work_dir="etc")).encode(),
            "other id": json.dumps({**value, "id": "agent-" + "0" * 32}).encode(),
            "lacks": json.dumps({**value, "spec": {"kind": "command"}}).encode(),
            "part": json.dumps({**value, "workspace": "/"}).encode(),
        }[how]
    )


WAYS = (
    "empty",
    "truncated",
    "binary",
    "list",
    "deep",
    "future",
    "no version",
    "labels",
    "name",
    "number",
    "time",
    "relative",
    "other id",
    "lacks",
    "part",
    "directory",
)


@pytest.mark.timeout(300)
def test_corrupt_records_are_errors_beside_the_others(user: User) -> None:
    user.create("good")
    words = ("--no-connect", "--transfer", "git-mirror", "--command", "sleep 9999")
    user.mngr("create", "bad", "--count", str(len(WAYS)), *words).ok()
    agents = {agent["name"]: agent for agent in user.agents()}
    paths = []
    for at, how in enumerate(WAYS, 1):
        path = user.host_dir / "agents" / agents[f"bad-{at}"]["id"] / "agent.json"
        broken(path, how)
        paths.append(path)
    before = [path.read_bytes() if path.is_file() else None for path in paths]
    listing = user.mngr("list", "--format", "json").ok().json
    assert [agent["name"] for agent in listing["agents"]] == ["good"]
    for how, path in zip(WAYS, paths, strict=True):
        told = [error for error in listing["errors"] if str(path) in error["error"]]
        assert len(told) == 1 and told[0]["hint"], how
    assert all(str(path) in user.mngr("list").ok().stderr for path in paths[:1])
    assert user.mngr("exec", "good", "cat README.md").ok().stdout == "hello\n"
    done = user.mngr("destroy", "bad-1").failed()
    assert str(paths[0]) in done.stderr and "bug" not in done.stderr
    user.create("other", "--transfer", "none")
    user.mngr("stop", "good").ok()
    user.mngr("destroy", "good", "other").ok()
    user.mngr("destroy", "--all", "--force").failed(3)  # what cannot be read is named
    assert [path.read_bytes() if path.is_file() else None for path in paths] == before
    for agent in agents.values():
        assert agent["name"] == "good" or (Path(agent["work_dir"]) / "README.md").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("kind", "tail"),
    [
        ("command", b"\xff\xfe\x00\x01" * 1000 + b"\n"),
        ("command", b"[]\n5\n{}\n" + b"[" * 50_000),
        ("scripted", b'{"type": "sta'),
    ],
)
def test_a_torn_event_log_is_read_around(user: User, kind: str, tail: bytes) -> None:
    words = ("--command", "sleep 9999") if kind == "command" else ("--type", "scripted")
    user.mngr("create", "foo", "--no-connect", *words).ok()
    ready = "RUNNING" if kind == "command" else "WAITING"
    user.wait_for_state("foo", ready)
    events = record_of(user, "foo").with_name("events.jsonl")
    with events.open("ab") as file:
        file.write(tail)
    assert user.state("foo") == ready
    user.mngr("label", "foo", "team=a").ok()
    assert user.events("foo")[-1]["type"] == "labeled"
    user.mngr("message", "foo", "-m", "hello").ok()
    types = [event.get("type") for event in user.events("foo")]
    assert "message_delivered" in types
    user.mngr("stop", "foo").ok()
    assert user.state("foo") == "STOPPED"
    user.mngr("start", "foo").ok()
    user.wait_for_state("foo", ready)


def test_a_corrupt_saved_entry_does_not_hide_the_others(user: User) -> None:
    for name in ("one", "two"):
        user.create(name)
        (user.work_dir(name) / "new.txt").write_text(name)
        user.mngr("destroy", name, "--force").ok()
    path = user.host_dir / "saved" / "one-1" / "entry.json"
    path.write_text("{")
    done = user.mngr("saved", "list").ok()
    assert "two-1" in done.stdout and str(path) in done.stderr
    listed = user.mngr("saved", "list", "--format", "json").ok().json
    assert [entry["id"] for entry in listed["saved"]] == ["two-1"]
    assert str(path) in listed["errors"][0]["error"]
    assert str(path) in user.mngr("saved", "restore", "one-1").failed().stderr
    words = ("gc", "--saved", "--older-than", "0s", "--format", "json")
    told = {
        item["name"]: (item["action"], item["note"]) for item in user.mngr(*words, "--dry-run").ok().json["leftovers"]
    }
    assert told["one-1"][0] == "kept" and str(path) in told["one-1"][1]
    assert told["two-1"][0] == "would remove"
    user.mngr("saved", "restore", "two-1").ok()
    assert (user.work_dir("two") / "new.txt").read_text() == "two"
    assert path.read_text() == "{"


def test_a_corrupt_snapshot_does_not_hide_the_others(user: User) -> None:
    user.create("foo")
    for name in ("one", "two", "three"):
        user.mngr("snapshot", "create", "foo", name).ok()
    path = user.host_dir / "snapshots" / "foo" / "one" / "entry.json"
    path.write_text("{")
    for words in ((), ("foo",)):
        done = user.mngr("snapshot", "list", *words).ok()
        assert "two" in done.stdout and str(path) in done.stderr
    listed = user.mngr("snapshot", "list", "--format", "json").ok().json
    assert [entry["name"] for entry in listed["snapshots"]] == ["three", "two"]
    assert str(path) in listed["errors"][0]["error"]
    for word in ("one", "foo/one"):
        assert str(path) in user.mngr("snapshot", "restore", word).failed().stderr
    assert str(path) in user.mngr("snapshot", "restore", "foo", "one").failed().stderr
    user.mngr("snapshot", "create", "foo", "four").ok()
    user.mngr("snapshot", "restore", "two").ok()
    user.mngr("snapshot", "destroy", "three").ok()
    done = user.mngr("snapshot", "destroy", "foo", "--all-snapshots").failed(3)
    assert done.stdout == "destroyed foo/two\ndestroyed foo/four\n" and str(path) in done.stderr
    assert path.read_text() == "{"


def snapshot(directory: Path) -> dict[str, str]:
    """Every path below with its mode, time and content."""
    found = {}
    for path in sorted(directory.rglob("*")):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = f"{stat.st_mode} {stat.st_mtime_ns} {content}"
    return found


WORDS = {
    "create": ("foo", "--no-connect", "--command", "true"),
    "connect": ("foo",),
    "message": ("foo", "-m", "hello"),
    "exec": ("foo", "true"),
    "list": (),
    "wait": ("foo",),
    "capture": ("foo",),
    "event": ("foo",),
    "diff": ("foo",),
    "pull": ("foo",),
    "push": ("foo",),
    "merge": ("foo",),
    "saved": ("show", "foo-1"),
    "start": ("foo",),
    "stop": ("foo",),
    "destroy": ("foo", "--force"),
    "rename": ("foo", "bar"),
    "transcript": ("foo",),
    "usage": (),
    "archive": ("foo",),
    "limit": ("foo",),
    "cleanup": ("--all", "--yes"),
    "gc": (),
    "snapshot": ("create", "foo", "one"),
    "clone": ("foo", "bar"),
    "migrate": ("foo", "@box"),
    "git": ("pull", "foo"),
    "rsync": ("foo:a", "b"),
    "saved restore": ("foo-1",),
    "label": ("foo", "a=b"),
    "tmr": ("--type", "scripted", "--dry-run"),
}
# They act on the tool itself, or in a place of their own.
NOT_ON_AGENTS = {"config", "doctor", "demo", "help", "plugin", "completion", "e2e", "tutorial"}


VERBS = [entry.name for entry in catalog.VERBS if entry.name not in NOT_ON_AGENTS]


@pytest.mark.parametrize("verb", [*VERBS, "saved list", "saved restore", "list --watch"])
def test_a_state_directory_of_another_program_is_refused_and_untouched(user: User, verb: str) -> None:
    foreign = user.host_dir / "agents" / ("agent-" + "a" * 32)
    foreign.mkdir(parents=True)
    (foreign / "data.json").write_text('{"id": "agent-' + "a" * 32 + '", "name": "foo"}')
    (foreign / "agent.json").write_text('{"version": 1}')
    (user.host_dir / "saved" / "foo-1").mkdir(parents=True)
    (user.host_dir / "saved" / "foo-1" / "entry.json").write_text("{}")
    (user.host_dir / "config.toml").write_text("x = 1\n")
    before = snapshot(user.host_dir)
    words = (*verb.split(), *WORDS.get(verb, ()))
    done = user.mngr(*words).failed()
    assert "was written by another program" in done.stderr
    assert "MNGR_HOST_DIR" in done.stderr
    assert snapshot(user.host_dir) == before
    assert leftovers.in_repository(user, user.repo) == []


def test_a_state_directory_that_is_a_file_is_refused(user: User) -> None:
    user.host_dir.write_text("x")
    for words in (("list",), ("create", "foo", "--no-connect", "--command", "true")):
        assert "it is not a directory" in user.mngr(*words).failed().stderr
    assert user.host_dir.read_text() == "x"


def test_a_room_that_was_removed_is_made_again(user: User) -> None:
    user.create("foo")
    user.mngr("destroy", "foo").ok()
    for room in ("locks", "worktrees", "agents", "saved", "clones"):
        shutil.rmtree(user.host_dir / room)
        assert user.agents() == []
    user.create("foo")
    user.mngr("destroy", "foo").ok()
    assert leftovers.found(user) == []


def test_stale_locks_of_every_kind_stop_nothing(user: User) -> None:
    user.create("foo")
    locks = user.host_dir / "locks"
    for path in [*locks.iterdir(), locks / "host", locks / f"{user.agent('foo')['id']}.message", locks / "old"]:
        path.write_text("12345 a process long gone\n")
    (user.repo / ".git" / "index.lock").touch()
    own = Path(user.git("rev-parse", "--absolute-git-dir", cwd=user.work_dir("foo")))
    (own / "index.lock").touch()
    (own / "HEAD.lock").touch()
    (own / "locked").write_text("by hand\n")
    user.create("bar")
    user.create("mirror", "--transfer", "git-mirror")
    user.mngr("message", "foo", "-m", "hello").ok()
    user.mngr("label", "foo", "a=b").ok()
    (user.work_dir("foo") / "new.txt").write_text("x")
    assert "new.txt" in user.mngr("diff", "foo").ok().stdout
    user.mngr("stop", "foo").ok()
    user.mngr("start", "foo").ok()
    assert "1 uncommitted file" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("destroy", "bar", "mirror").ok()
    (user.repo / ".git" / "index.lock").unlink()
    assert [line for line in leftovers.found(user) if "refs/mngr/saved" not in line] == []


def test_a_merge_into_a_locked_repository_says_what_git_says_and_changes_nothing(user: User) -> None:
    user.create("foo")
    work = user.work_dir("foo")
    (work / "new.txt").write_text("x")
    user.git("add", ".", cwd=work)
    user.git("commit", "-q", "-m", "work", cwd=work)
    head = user.git("rev-parse", "HEAD")
    (user.repo / ".git" / "index.lock").touch()
    assert "index.lock" in user.mngr("merge", "foo").failed().stderr
    assert user.git("rev-parse", "HEAD") == head
    assert not (user.repo / "new.txt").exists()
    (user.repo / ".git" / "index.lock").unlink()
    user.mngr("merge", "foo").ok()
    assert (user.repo / "new.txt").read_text() == "x"


def test_a_lock_that_is_held_is_waited_for_and_let_go_with_its_process(user: User) -> None:
    user.create("foo")
    lock = user.host_dir / "locks" / "host"
    holder, held = user.root / "holder.py", user.root / "held"
    holder.write_text(HOLDER)
    user.tmux("new-window", "-d", f"exec python3 {holder} {lock} {held}")
    pid = int(wait_for(lambda: held.read_text() if held.exists() else None, "the lock to be held"))
    child = user.popen("label", "foo", "a=b")
    wait_for(lambda: _has_open(child.pid, lock), "the command to come to the lock")
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(1)
    assert user.agent("foo")["labels"] == {"project": "repo"}
    os.kill(pid, signal.SIGKILL)
    said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert user.agent("foo")["labels"] == {"a": "b", "project": "repo"}


HOLDER = """
import fcntl, os, sys, time
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
with open(sys.argv[2] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(file.name, sys.argv[2])
time.sleep(9999)
"""


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(Path(f"/proc/{pid}/fd/{name}").readlink() == path for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False
