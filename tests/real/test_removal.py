"""A removal is a transaction: whatever stops it, there is the whole agent or none, and `gc` does the rest."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import leftovers
from tests.support.user import User


@contextmanager
def undeletable(user: User, path: Path, text: str = "cannot be deleted\n") -> Iterator[None]:
    """A file that nobody can delete, wherever it is moved, until the block ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if subprocess.run(["chattr", "+i", str(path)], capture_output=True, check=False).returncode:
        pytest.skip("needs root, and a file system with attributes")
    try:
        yield
    finally:
        make_deletable(user)


def make_deletable(user: User) -> None:
    subprocess.run(["chattr", "-R", "-f", "-i", str(user.root)], capture_output=True, check=False)


def ignore(user: User, pattern: str) -> None:
    (user.repo / ".gitignore").write_text(f"{pattern}\n")
    user.git("add", ".gitignore")
    user.git("commit", "-q", "-m", "ignore")


def trash(user: User) -> list[str]:
    room = user.host_dir / "trash"
    return sorted(path.name for path in room.iterdir()) if room.is_dir() else []


def without_saved(user: User) -> list[str]:
    return [line for line in leftovers.found(user) if "refs/mngr/saved" not in line]


def killing_git(user: User, words: str) -> dict[str, str]:
    """An environment whose `git` kills the process that runs it, in place of running these words."""
    place = user.root / "killing"
    place.mkdir(exist_ok=True)
    script = f'#!/bin/sh\ncase " $* " in *" {words} "*) kill -9 $PPID; exit 1;; esac\nexec /usr/bin/env git "$@"\n'
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (place / "git").write_text(script.replace("/usr/bin/env git", real))
    (place / "git").chmod(0o755)
    return {"PATH": f"{place}:{user.env['PATH']}"}


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_a_file_that_cannot_be_deleted_leaves_no_half_of_an_agent(user: User, transfer: str) -> None:
    ignore(user, "out/")
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    with undeletable(user, work_dir / "out" / "kept"):
        said = user.mngr("destroy", "foo").ok().stdout
        assert said.startswith("destroyed foo; ") and "; could not delete `" in said
        assert said.endswith("out/kept`: Operation not permitted; `mngr gc` tries again\n")
        assert without_saved(user) == [] and not work_dir.exists()
        (left,) = user.mngr("gc", "--format", "json").failed().json["leftovers"]
        assert (left["what"], left["action"]) == ("trash", "failed") and "out/kept" in left["note"]
        user.create("foo", "--transfer", transfer)
        user.mngr("destroy", "foo").ok()
    assert len(trash(user)) == 1
    user.mngr("gc").ok()
    assert trash(user) == [] and user.mngr("gc").ok().stdout == "Nothing to remove\n"


def test_a_creation_that_failed_leaves_no_agent_beside_a_file_that_cannot_be_deleted(user: User) -> None:
    make = "mkdir out && touch out/kept && chattr +i out/kept && false"
    user.mngr("create", "foo", "--no-connect", "--command", "cat", "--extra-provision-command", make).failed()
    left = list((user.host_dir / "trash").glob("*/out/kept"))
    if not left:
        pytest.skip("needs root, and a file system with attributes")
    try:
        assert leftovers.found(user) == []
        user.mngr("gc").failed()
    finally:
        make_deletable(user)
    user.mngr("gc").ok()
    assert trash(user) == []


def test_what_is_mounted_in_a_work_dir_is_not_deleted_and_the_agent_stays(user: User) -> None:
    precious = user.root / "precious"
    precious.mkdir()
    (precious / "mine").write_text("mine\n")
    ignore(user, "mounted/")
    user.create("foo")
    place = user.work_dir("foo") / "mounted"
    place.mkdir()
    if subprocess.run(["mount", "--bind", str(precious), str(place)], capture_output=True, check=False).returncode:
        pytest.skip("needs root, and a kernel that lets it mount")
    try:
        for words in (["foo"], ["foo", "--force"], ["foo", "--dry-run"]):
            said = user.mngr("destroy", *words).failed().stderr
            assert f"`{place}` is mounted" in said and f"`umount {place}`" in said
        assert user.state("foo") == "RUNNING"
        record = user.host_dir / "agents" / user.agent("foo")["id"]
        user.mngr("stop", "foo").ok()
        record.rename(user.root / "record")
        (found,) = [
            item for item in user.mngr("gc", "--format", "json").json["leftovers"] if item["what"] == "work dir"
        ]
        assert found["action"] == "failed" and "is mounted" in found["note"]
        (user.root / "record").rename(record)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    user.mngr("destroy", "foo").ok()
    assert (precious / "mine").read_text() == "mine\n"


def test_a_directory_on_another_file_system_is_removed_in_the_same_way(user: User) -> None:
    other = next((room for room in ("/tmp", "/dev/shm") if os.stat(room).st_dev != os.stat(user.root).st_dev), None)
    if other is None:
        pytest.skip("needs /tmp and /dev/shm on two file systems")
    place = Path(f"{other}/{user.root.name}-2")
    place.mkdir()
    try:
        user.mngr("create", f"foo:{place}/work", "--no-connect", "--command", "cat").ok()
        user.mngr("destroy", "foo").ok()
        assert list(place.iterdir()) == [] and leftovers.found(user) == [] and trash(user) == []
        user.mngr("create", f"bar:{place}/work", "--no-connect", "--command", "cat").ok()
        user.mngr("destroy", "bar", env=killing_git(user, "worktree remove --force -f")).failed(-signal.SIGKILL)
        assert [path.name.endswith(".mngr-trash") for path in place.iterdir()] == [True]
        (place / "work").mkdir()  # at the same path, and not the agent's
        user.mngr("gc").ok()
        assert [path.name for path in place.iterdir()] == ["work"] and leftovers.found(user) == [] == trash(user)
    finally:
        subprocess.run(["rm", "-rf", str(place)], check=True)


@pytest.mark.parametrize("words", ["worktree remove --force -f", "branch -q -D"])
def test_a_destroy_that_was_killed_is_finished_by_gc(user: User, words: str) -> None:
    user.create("foo")
    (user.work_dir("foo") / "notes").write_text("half\n")
    env = killing_git(user, words)
    user.git("-C", str(user.work_dir("foo")), "commit", "-q", "--allow-empty", "-m", "own")
    user.mngr("destroy", "foo", "--force", "--remove-created-branch", env=env).failed(-signal.SIGKILL)
    assert user.agents() == []
    (found,) = user.mngr("gc", "--format", "json").ok().json["leftovers"]
    assert (found["what"], found["name"], found["action"]) == ("interrupted removal", "foo", "removed")
    assert without_saved(user) == [] == trash(user)
    user.mngr("saved", "restore", "foo-1").ok()
    assert (user.work_dir("foo") / "notes").read_text() == "half\n"
    assert [event["type"] for event in user.events("foo")][:2] == ["created", "started"]


def test_saved_work_of_a_killed_destroy_is_restored_whole_without_gc(user: User) -> None:
    user.create("foo")
    (user.work_dir("foo") / "notes").write_text("half\n")
    first = user.agent("foo")["id"]
    user.mngr("destroy", "foo", "--force", env=killing_git(user, "worktree remove --force -f")).failed(-9)
    user.mngr("saved", "restore", "foo").ok()
    assert user.agent("foo")["id"] == first
    assert [event["type"] for event in user.events("foo")][:2] == ["created", "started"]
    assert (user.work_dir("foo") / "notes").read_text() == "half\n"
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"


@pytest.mark.parametrize("words", ["commit-tree", "update-index --force-remove -z --stdin"])
def test_a_save_that_was_killed_leaves_the_agent_and_gc_removes_the_half(user: User, words: str) -> None:
    user.create("foo")
    (user.work_dir("foo") / "notes").write_text("half\n")
    user.mngr("destroy", "foo", "--force", env=killing_git(user, words)).failed(-signal.SIGKILL)
    agent = user.agent("foo")
    assert (agent["state"], agent["state_reason"]) == ("STOPPED", "stopped by `mngr destroy`")
    assert user.mngr("saved", "list").ok().stdout == "No saved work\n"
    user.mngr("gc").ok()
    assert list((user.host_dir / "saved").iterdir()) == []
    assert user.git("for-each-ref", "refs/mngr") == "" and not list((user.repo / ".git").glob("mngr-index-*"))
    assert (user.work_dir("foo") / "notes").read_text() == "half\n"
    user.mngr("destroy", "foo", "--force").ok()
    assert user.mngr("saved", "list", "--format", "json").ok().json["saved"][0]["id"] == "foo-1"


@pytest.mark.parametrize("words", ["worktree add -q --no-checkout", "--reset -u HEAD", "commit-tree"])
def test_a_clone_that_was_killed_leaves_nothing_after_gc(user: User, words: str) -> None:
    user.create("foo")
    (user.work_dir("foo") / "notes").write_text("half\n")
    user.mngr("clone", "foo", "bar", "--no-connect", env=killing_git(user, words)).failed(-signal.SIGKILL)
    assert user.mngr("snapshot", "list").ok().stdout == "No snapshots\n"
    user.mngr("gc").ok()
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"
    assert user.git("for-each-ref", "refs/mngr", "refs/heads/mngr/bar") == ""
    assert not list((user.repo / ".git").glob("mngr-index-*")) and user.git("log", "--all", "--format=%s") == "init"
    user.mngr("clone", "foo", "bar", "--no-connect").ok()
    assert (user.work_dir("bar") / "notes").read_text() == "half\n"


def test_a_note_of_a_worktree_that_git_was_killed_over_goes(user: User) -> None:
    user.create("foo")
    note = user.repo / ".git" / "worktrees" / "bar-0123abcd"
    note.mkdir()
    (note / "gitdir").write_text(f"{user.host_dir}/worktrees/bar-0123abcd/.git\n")
    (note / "commondir").write_text("")
    assert user.run(["git", "log", "--all"]).exit_code != 0
    user.mngr("gc").ok()
    assert user.git("log", "--all", "--format=%s") == "init" and not note.exists()
    assert user.state("foo") == "RUNNING"


def test_saved_work_goes_with_all_its_refs_also_when_that_is_killed(user: User) -> None:
    user.create("foo")
    (user.work_dir("foo") / "notes").write_text("half\n")
    user.mngr("destroy", "foo", "--force").ok()
    words = ["gc", "--saved", "--older-than", "0s"]
    user.mngr(*words, env=killing_git(user, "update-ref --stdin")).failed(-signal.SIGKILL)
    assert user.mngr("saved", "list").ok().stdout == "No saved work\n"
    user.mngr("gc").ok()
    assert user.git("for-each-ref", "refs/mngr") == "" and trash(user) == []


def half_restored(user: User) -> None:
    """An agent whose restore of a snapshot without any work was killed before the files were written."""
    for number in range(3):
        (user.repo / f"file-{number}").write_text("first\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "files")
    user.create("foo")
    user.mngr("snapshot", "create", "foo").ok()
    for number in range(3):
        (user.work_dir("foo") / f"file-{number}").write_text("later\n")
    (user.work_dir("foo") / "later").write_text("later\n")
    env = killing_git(user, "reset -q --hard")
    user.mngr("snapshot", "restore", "foo/snap-1", env=env).failed(-signal.SIGKILL)
    agent = user.agent("foo")
    assert (agent["state"], agent["state_reason"]) == ("STOPPED", "restored from snapshot `foo/snap-1`")
    assert not (user.work_dir("foo") / "later").exists(), "half of it was done"
    assert (user.work_dir("foo") / "file-0").read_text() == "later\n"


def test_half_of_a_restore_is_no_work(user: User) -> None:
    half_restored(user)
    user.mngr("destroy", "foo").ok()
    user.mngr("saved", "restore", "foo-1").ok()
    assert (user.work_dir("foo") / "later").read_text() == "later\n"


def test_a_restore_that_was_killed_is_finished_by_the_next_start(user: User) -> None:
    half_restored(user)
    user.mngr("start", "foo").ok()
    assert user.git("status", "--short", cwd=user.work_dir("foo")) == ""
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"


def test_a_restore_that_was_killed_is_finished_by_gc(user: User) -> None:
    half_restored(user)
    assert user.mngr("gc").ok().stdout == "finished interrupted restore foo\n"
    assert user.git("status", "--short", cwd=user.work_dir("foo")) == ""
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"
    user.mngr("start", "foo").ok()


def test_a_restore_of_a_snapshot_that_is_gone_by_now_stays_as_it_is(user: User) -> None:
    half_restored(user)
    user.mngr("snapshot", "destroy", "foo/snap-1").ok()
    assert "3 uncommitted files" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("start", "foo").ok()


def test_what_an_agent_wrote_names_nothing_that_gc_removes(user: User) -> None:
    for name in ("bar", "foo"):
        user.create(name)
        (user.work_dir(name) / "notes").write_text(name)
    user.mngr("destroy", "bar", "--force").ok()
    work_dir = user.work_dir("foo")
    mark = {"ref": "refs/mngr/saved", "repos": [str(user.repo)], "copy": "", "maker": None}
    text = json.dumps({**mark, "made_at": "2020-01-01T00:00:00.000000Z"})
    with undeletable(user, work_dir / "unfinished.json", text):
        user.mngr("destroy", "foo", "--force").ok()
        assert len(trash(user)) == 1
        user.mngr("gc").failed()
    user.mngr("gc").ok()
    refs = user.git("for-each-ref", "--format=%(refname)", "refs/mngr/saved").split()
    assert {ref.split("/")[3] for ref in refs} == {"bar", "foo"} and trash(user) == []
