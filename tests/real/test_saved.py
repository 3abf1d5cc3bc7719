"""Work that was saved comes back byte for byte, whatever it was and wherever the agent worked."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.trees import tree
from tests.support.user import User

GIT_MODES = ("git-worktree", "git-mirror", "rsync")
NAMES = (
    b"with space",
    b"new\nline",
    "ünï-名前".encode(),
    b"not-utf8-\xff\xfe",
    b"-dash",
    b"quote'\"",
    b"tab\tback\\slash",
    b"git~1",
)


def make_work(directory: Path) -> None:
    """Every kind of uncommitted change that a work tree can hold."""
    (directory / "README.md").write_bytes(b"changed\r\nmixed\nline\rends\0and a NUL\n")
    (directory / "gone.txt").unlink()
    (directory / "binary.bin").write_bytes(bytes(range(256)) * 5)
    (directory / "no-newline").write_bytes(b"no newline at the end")
    (directory / "empty").touch()
    (directory / "run.sh").write_text("#!/bin/sh\n")
    (directory / "run.sh").chmod(0o755)
    (directory / "tool").chmod(0o755)
    (directory / "deep" / "er").mkdir(parents=True)
    (directory / "deep" / "er" / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    os.symlink("README.md", directory / "link")
    os.symlink("/nowhere/at all", directory / "broken")
    os.symlink("deep", directory / "dirlink")
    (directory / "was-file").unlink()
    (directory / "was-file").mkdir()
    (directory / "was-file" / "inner").write_text("now a directory\n")
    (directory / "was-dir" / "inner").unlink()
    (directory / "was-dir").rmdir()
    (directory / "was-dir").write_text("now a file\n")
    for name in NAMES:
        Path(os.fsdecode(os.path.join(os.fsencode(directory), name))).write_bytes(name)


def make_base(user: User, directory: Path) -> None:
    (directory / ".gitattributes").write_text("* text=auto eol=crlf\n*.bin binary\n")
    (directory / "gone.txt").write_text("to be deleted\n")
    (directory / "tool").write_text("#!/bin/sh\n")
    (directory / "was-file").write_text("a file\n")
    (directory / "was-dir").mkdir()
    (directory / "was-dir" / "inner").write_text("inside\n")
    (directory / "kept.txt").write_bytes(b"untouched\r\n")
    if (directory / ".git").exists():
        user.git("add", "-A", cwd=directory)
        user.git("commit", "-q", "-m", "base", cwd=directory)


def destroy_and_restore(user: User, name: str, *words: str) -> dict[str, Any]:
    user.mngr("destroy", name, "--force").ok()
    assert user.agents() == []
    user.mngr("saved", "restore", name, *words).ok()
    return user.agent(name)


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_uncommitted_work_comes_back_byte_for_byte(user: User, transfer: str) -> None:
    make_base(user, user.repo)
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    make_work(work_dir)
    before, status = tree(work_dir), user.git("status", "--porcelain", "-z", cwd=work_dir)
    agent = destroy_and_restore(user, "foo")
    assert agent["state"] == "STOPPED"
    assert tree(agent["work_dir"]) == before
    assert user.git("status", "--porcelain", "-z", cwd=agent["work_dir"]) == status
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "mngr/foo"
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"


def test_plain_files_come_back_byte_for_byte(user: User) -> None:
    plain = user.root / "plain files"
    plain.mkdir()
    (plain / "README.md").write_text("hello\n")
    make_base(user, plain)
    user.create("foo", "--from", str(plain))
    make_work(user.work_dir("foo"))
    before = tree(user.work_dir("foo"))
    source = tree(plain)
    assert tree(destroy_and_restore(user, "foo")["work_dir"]) == before
    assert tree(plain) == source


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_commits_come_back_on_their_branch(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    for number in (1, 2):
        (work_dir / f"{number}.txt").write_text(f"{number}\n")
        user.git("add", ".", cwd=work_dir)
        user.git("commit", "-q", "-m", f"number {number}", cwd=work_dir)
    (work_dir / "3.txt").write_text("3\n")
    tip, before = user.git("rev-parse", "HEAD", cwd=work_dir), tree(work_dir)
    agent = destroy_and_restore(user, "foo")
    assert user.git("rev-parse", "HEAD", cwd=agent["work_dir"]) == tip
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "mngr/foo"
    assert tree(agent["work_dir"]) == before
    assert user.mngr("diff", "foo", "--name-only").ok().stdout == "1.txt\n2.txt\n3.txt\n"
    assert "2 commits" in user.mngr("pull", "foo", "--dry-run").ok().stdout


def test_branches_tags_and_stash_of_a_mirror_come_back(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    work_dir = user.work_dir("foo")
    for text in ("first", "second"):
        (work_dir / "README.md").write_text(f"{text}\n")
        user.git("stash", "push", "-q", "-m", text, cwd=work_dir)
    for branch in ("one", "two"):
        user.git("checkout", "-q", "-b", branch, "main", cwd=work_dir)
        (work_dir / branch).write_text(f"{branch}\n")
        user.git("add", ".", cwd=work_dir)
        user.git("commit", "-q", "-m", branch, cwd=work_dir)
    user.git("tag", "light", "one", cwd=work_dir)
    user.git("tag", "-a", "-m", "heavy", "heavy", "main", cwd=work_dir)
    show = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash")
    refs = user.git(*show, cwd=work_dir)
    agent = destroy_and_restore(user, "foo")
    assert user.git(*show, cwd=agent["work_dir"]) == refs
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "two"
    stashes = user.git("stash", "list", cwd=agent["work_dir"]).split("\n")
    assert [line.rpartition(" ")[2] for line in stashes] == ["second", "first"]


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_a_detached_head_comes_back(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    user.git("checkout", "-q", "--detach", cwd=work_dir)
    (work_dir / "a").write_text("a\n")
    user.git("add", ".", cwd=work_dir)
    user.git("commit", "-q", "-m", "on no branch", cwd=work_dir)
    tip = user.git("rev-parse", "HEAD", cwd=work_dir)
    assert "1 commit" in user.mngr("destroy", "foo").failed().stderr
    agent = destroy_and_restore(user, "foo")
    assert user.git("rev-parse", "HEAD", cwd=agent["work_dir"]) == tip


@pytest.mark.parametrize("transfer", [*GIT_MODES, "plain"])
def test_a_repository_inside_comes_back_whole(user: User, transfer: str) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "a").write_text("a\n")
    user.create("foo", *(("--from", str(plain)) if transfer == "plain" else ("--transfer", transfer)))
    inner = user.work_dir("foo") / "vendor" / "lib"
    inner.mkdir(parents=True)
    user.git("init", "-q", cwd=inner)
    (inner / "a.txt").write_text("committed\n")
    user.git("add", ".", cwd=inner)
    user.git("commit", "-q", "-m", "inner", cwd=inner)
    (inner / "b.txt").write_text("uncommitted\n")
    unborn = user.work_dir("foo") / "unborn"
    unborn.mkdir()
    user.git("init", "-q", "-b", "first", cwd=unborn)
    (unborn / "c.txt").write_text("staged\n")
    user.git("add", ".", cwd=unborn)
    tip = user.git("rev-parse", "HEAD", cwd=inner)
    restored = Path(destroy_and_restore(user, "foo")["work_dir"])
    assert user.git("rev-parse", "HEAD", cwd=restored / "vendor" / "lib") == tip
    assert user.git("status", "--porcelain", cwd=restored / "vendor" / "lib") == "?? b.txt"
    assert user.git("status", "--porcelain", cwd=restored / "unborn") == "A  c.txt"


def test_history_made_in_a_copy_of_plain_files_comes_back(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "a").write_text("a\n")
    user.create("foo", "--from", str(plain))
    work_dir = user.work_dir("foo")
    user.git("init", "-q", cwd=work_dir)
    user.git("add", "a", cwd=work_dir)
    user.git("commit", "-q", "-m", "first", cwd=work_dir)
    tip = user.git("rev-parse", "HEAD", cwd=work_dir)
    assert "uncommitted" in user.mngr("destroy", "foo").failed().stderr
    agent = destroy_and_restore(user, "foo")
    assert user.git("rev-parse", "HEAD", cwd=agent["work_dir"]) == tip
    assert user.git("status", "--porcelain", cwd=agent["work_dir"]) == ""


def test_small_ignored_files_are_kept_and_large_ones_named(user: User) -> None:
    (user.repo / ".gitignore").write_text(".env\nbuild/\nbig/\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "ignore")
    user.create("foo")
    work_dir = user.work_dir("foo")
    (work_dir / ".env").write_text("SECRET=1\n")
    (work_dir / "build" / "x").mkdir(parents=True)
    (work_dir / "build" / "x" / "out").write_bytes(b"\0" * 1000)
    (work_dir / "build" / "src").mkdir()
    user.git("init", "-q", cwd=work_dir / "build" / "src")
    (work_dir / "build" / "src" / "note").write_text("in an ignored repository\n")
    (work_dir / "big").mkdir()
    (work_dir / "big" / "data").write_bytes(b"\1" * 11_000_000)
    ran = user.mngr("destroy", "foo").ok()  # ignored files alone are no reason to refuse
    assert "not saved: `big/` (11 MB, ignored by git)" in ran.stdout
    assert "not saved: big/" in user.mngr("saved", "show", "foo").ok().stdout
    user.mngr("saved", "restore", "foo").ok()
    restored = user.work_dir("foo")
    assert (restored / ".env").read_text() == "SECRET=1\n"
    assert (restored / "build" / "x" / "out").read_bytes() == b"\0" * 1000
    assert user.git("status", "--porcelain", cwd=restored / "build" / "src") == "?? note"
    assert not (restored / "big").exists()


def test_saved_work_can_be_written_to_a_directory(user: User) -> None:
    user.create("foo")
    make_something(user, "foo")
    before = tree(user.work_dir("foo"))
    user.mngr("destroy", "foo", "--force").ok()
    target = user.root / "recovered here"
    user.mngr("saved", "restore", "foo-1", "--to", str(target), "--branch", "recovered").ok()
    assert tree(target) == before
    assert user.git("branch", "--show-current", cwd=target) == "recovered"
    assert user.agents() == []
    assert "exists already" in user.mngr("saved", "restore", "foo-1", "--to", str(target)).failed().stderr


def test_restore_takes_another_name_and_branch(user: User) -> None:
    user.create("foo")
    make_something(user, "foo")
    before = tree(user.work_dir("foo"))
    user.mngr("destroy", "foo", "--force").ok()
    user.create("foo", "--branch", ":other")
    assert "exists already" in user.mngr("saved", "restore", "foo").failed().stderr
    user.mngr("saved", "restore", "foo", "--name", "foo-again", "--branch", "again").ok()
    assert user.agent("foo-again")["initial_branch"] == "again"
    assert tree(user.work_dir("foo-again")) == before
    ran = user.mngr("saved", "restore", "foo", "--name", "third", "--branch", "main").failed()
    assert "`main` exists already" in ran.stderr
    assert len(user.agents()) == 2


def test_restore_beside_a_branch_that_moved_on_moves_nothing(user: User) -> None:
    user.create("foo")
    make_something(user, "foo")
    user.mngr("destroy", "foo", "--force").ok()
    user.git("branch", "-f", "mngr/foo", "main")
    user.mngr("saved", "restore", "foo").ok()
    assert user.agent("foo")["initial_branch"] == "mngr/foo-1-restored"
    assert user.git("rev-parse", "mngr/foo") == user.git("rev-parse", "main")


def test_a_dry_run_restores_nothing(user: User) -> None:
    user.create("foo")
    make_something(user, "foo")
    user.mngr("destroy", "foo", "--force").ok()
    assert "would restore 1 commit" in user.mngr("saved", "restore", "foo", "--dry-run").ok().stdout
    assert user.agents() == []


def test_saved_work_survives_garbage_collection_and_a_branch_that_was_deleted(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    make_something(user, "foo")
    before = tree(user.work_dir("foo"))
    user.mngr("destroy", "foo", "--force").ok()
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")
    user.mngr("saved", "restore", "foo").ok()
    assert tree(user.work_dir("foo")) == before


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_work_comes_back_although_its_repository_was_gone(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    make_something(user, "foo")
    before = tree(user.work_dir("foo"))
    user.repo.rename(user.root / "moved")
    user.mngr("destroy", "foo", "--force", cwd=user.home).ok()
    user.mngr("saved", "restore", "foo", "--to", "back", cwd=user.home).ok()
    assert tree(user.home / "back") == before


def test_an_unknown_id_suggests_the_nearest(user: User) -> None:
    user.create("foo")
    make_something(user, "foo")
    user.mngr("destroy", "foo", "--force").ok()
    assert "`foo-1`" in user.mngr("saved", "restore", "fooo-1").failed().stderr


def make_something(user: User, name: str) -> None:
    """A commit and an uncommitted file."""
    work_dir = user.work_dir(name)
    (work_dir / "done.txt").write_text("done\n")
    user.git("add", ".", cwd=work_dir)
    user.git("commit", "-q", "-m", "done", cwd=work_dir)
    (work_dir / "half.txt").write_text("half\n")


def test_an_entry_of_an_earlier_version_comes_back(user: User) -> None:
    """Written with git's own commands as earlier versions did: blobs without filters, a repository as an archive."""
    user.create("any")
    store = user.host_dir / "saved" / "files.git"
    user.git("init", "-q", "--bare", str(store))
    nested = user.root / "made" / "nested"
    nested.mkdir(parents=True)
    user.git("init", "-q", cwd=nested)
    (nested / "inside").write_bytes(b"in\r\n")
    subprocess.run(["tar", "-cf", "nested.tar", "nested"], cwd=nested.parent, check=True, timeout=60)
    (nested.parent / "crlf.txt").write_bytes(b"one\r\ntwo\n")
    (nested.parent / "target").write_bytes(b"crlf.txt")

    def blob(name: str) -> str:
        return user.git("hash-object", "-w", "--no-filters", str(nested.parent / name), cwd=store)

    lines = {
        f"100755 blob {blob('crlf.txt')}\tcrlf.txt",
        f"120000 blob {blob('target')}\tlink",
        f"100644 blob {blob('nested.tar')}\tnested.mngr-nested-repository.tar",
    }
    (user.root / "lines").write_text("".join(f"{line}\n" for line in lines))
    command = f"git mktree < {user.root / 'lines'}"
    tree_id = subprocess.check_output(["sh", "-c", command], cwd=store, text=True, timeout=60).strip()
    empty = user.git("hash-object", "-w", "-t", "tree", os.devnull, cwd=store)
    parent = user.git("commit-tree", empty, "-m", "Before", cwd=store)
    commit = user.git("commit-tree", tree_id, "-p", parent, "-m", "Files", cwd=store)
    user.git("update-ref", "refs/mngr/saved/old/1", commit, cwd=store)
    entry = {
        "id": "old-1", "name": "old", "reason": "a copy over existing files", "saved_at": "2026-01-02T03:04:05.000Z",
        "repo": str(store), "ref": "refs/mngr/saved/old/1", "commit": commit, "parent": parent, "commits": 0,
        "changed": ["crlf.txt", "link", "nested"], "ignored": [], "left_out": [], "refs": [], "agent": None,
    }  # fmt: skip
    (user.host_dir / "saved" / "old-1").mkdir()
    (user.host_dir / "saved" / "old-1" / "entry.json").write_text(json.dumps(entry))
    back = user.root / "back"
    user.mngr("saved", "restore", "old-1", "--to", str(back)).ok()
    assert (back / "crlf.txt").read_bytes() == b"one\r\ntwo\n" and os.access(back / "crlf.txt", os.X_OK)
    assert os.readlink(back / "link") == "crlf.txt"
    assert tree(back / "nested") == tree(nested)


def test_an_id_that_is_also_the_name_of_an_agent_is_asked_back(user: User) -> None:
    for name in ("foo", "foo-1"):
        user.create(name)
        (user.work_dir(name) / name).write_text("work\n")
        user.mngr("destroy", name, "--force").ok()
    said = user.mngr("saved", "restore", "foo-1").failed(5).stderr
    assert "`foo-1` is saved work of `foo`, and the name of an agent with saved work `foo-1-1`" in said
    assert "`foo/1` or `foo-1/1`" in said
    user.mngr("saved", "restore", "foo-1/1").ok()
    assert (user.work_dir("foo-1") / "foo-1").exists()
    user.mngr("saved", "restore", "foo/1").ok()
    assert (user.work_dir("foo") / "foo").exists()
    assert "no saved work is called `foo/7`" in user.mngr("saved", "show", "foo/7").failed().stderr
