"""A snapshot holds everything of an agent, and brings it back byte for byte, whatever happened to the work dir."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_saved import GIT_MODES, make_base, make_work
from tests.real.test_schemas import fits
from tests.support.trees import tree
from tests.support.user import User, wait_for

WRECK = "rm -rf -- .git *"


def talk(user: User, name: str, *words: str) -> dict[str, Any]:
    """A scripted agent that has said something."""
    user.mngr("create", name, "--no-connect", "--type", "scripted", *words, "--message", "hello").ok()
    return user.wait_for_state(name, "WAITING")


def transcript(user: User, name: str) -> bytes:
    return (user.host_dir / "agents" / user.agent(name)["id"] / "transcript.jsonl").read_bytes()


def restore(user: User, *words: str) -> Any:
    return user.mngr("snapshot", "restore", *words, "--format", "json").ok().json


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_a_wrecked_work_dir_comes_back_byte_for_byte_with_the_conversation(user: User, transfer: str) -> None:
    (user.repo / ".gitignore").write_text(".env\n")
    make_base(user, user.repo)
    agent = talk(user, "foo", "--transfer", transfer)
    work_dir = Path(agent["work_dir"])
    (work_dir / "done.txt").write_text("done\n")
    user.git("add", "done.txt", cwd=work_dir)
    user.git("commit", "-q", "-m", "done", cwd=work_dir)
    make_work(work_dir)
    (work_dir / ".env").write_text("SECRET=1\n")
    (work_dir / ".env").chmod(0o600)
    (work_dir / "kept.txt").write_bytes(b"untouched\n")  # git calls this unchanged: it would write \r\n
    head, status = user.git("rev-parse", "HEAD", cwd=work_dir), user.git("status", "--porcelain", "-z", cwd=work_dir)
    before, said = tree(work_dir), transcript(user, "foo")
    user.mngr("snapshot", "create", "my-snapshot").ok()

    assert tree(work_dir) == before
    user.mngr("message", "foo", "-m", "something else").ok()
    wait_for(lambda: transcript(user, "foo") != said, "the conversation to go on")
    user.mngr("exec", "foo", WRECK).ok()
    assert not (work_dir / "done.txt").exists()
    done = restore(user, "my-snapshot")

    assert done["work_dir"] == str(work_dir) and done["branch"] == "mngr/foo" and done["running"]
    assert tree(work_dir) == before
    assert (work_dir / ".env").stat().st_mode & 0o777 == 0o600
    assert user.git("rev-parse", "HEAD", cwd=work_dir) == head
    assert user.git("branch", "--show-current", cwd=work_dir) == "mngr/foo"
    assert user.git("status", "--porcelain", "-z", cwd=work_dir) == status
    assert transcript(user, "foo") == said
    assert user.wait_for_state("foo", "WAITING")["id"] == agent["id"]
    assert user.git("status", "--porcelain") == "" and user.git("branch", "--show-current") == "main"


def test_a_wrecked_copy_of_plain_files_comes_back(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "README.md").write_text("hello\n")
    make_base(user, plain)
    user.create("foo", "--from", str(plain))
    work_dir = user.work_dir("foo")
    make_work(work_dir)
    before = tree(work_dir)
    user.mngr("snapshot", "create", "foo", "s").ok()
    (plain / "README.md").write_text("the source goes on\n")
    (plain / "new").write_text("new\n")
    user.mngr("exec", "foo", WRECK + "; echo x > late").ok()
    restore(user, "s")
    assert tree(work_dir) == before
    assert (plain / "new").exists()


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_what_a_restore_replaces_is_saved(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    (work_dir / "half.txt").write_text("half\n")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("exec", "foo", "git add half.txt; git commit -qm later; echo late > late.txt").ok()
    late, tip = tree(work_dir), user.git("rev-parse", "HEAD", cwd=work_dir)
    done = restore(user, "s")
    assert user.git("status", "--porcelain", cwd=work_dir) == "?? half.txt"
    assert not (work_dir / "late.txt").exists()
    (entry,) = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
    assert entry["id"] == done["saved"] and entry["reason"] == "snapshot restore"
    user.mngr("saved", "restore", done["saved"], "--to", "../late", "--branch", "late").ok()
    assert tree(user.root / "late") == late
    assert user.git("rev-parse", "HEAD", cwd=user.root / "late") == tip


def test_a_large_ignored_directory_is_left_alone(user: User) -> None:
    (user.repo / ".gitignore").write_text("big/\nlater/\nsmall\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "ignore")
    user.create("foo")
    work_dir = user.work_dir("foo")
    for name in ("big", "later"):
        (work_dir / name).mkdir()
    (work_dir / "big" / "data").write_bytes(b"\1" * 11_000_000)
    ran = user.mngr("snapshot", "create", "s").ok()
    assert "not kept: `big/` (11 MB, ignored by git)" in ran.stderr
    (work_dir / "later" / "data").write_bytes(b"\2" * 11_000_000)
    (work_dir / "small").write_text("small\n")
    restore(user, "s")
    assert (work_dir / "big" / "data").stat().st_size == 11_000_000
    assert (work_dir / "later" / "data").stat().st_size == 11_000_000  # too large to be saved, so it is not removed
    assert not (work_dir / "small").exists()


def test_branches_tags_and_stash_of_a_mirror_are_what_they_were(user: User) -> None:
    user.git("tag", "source-tag")
    user.create("foo", "--transfer", "git-mirror")
    work_dir = user.work_dir("foo")
    for number in range(12):
        (work_dir / "README.md").write_text(f"{number}\n")
        user.git("stash", "push", "-q", "-m", f"stash {number}", cwd=work_dir)
    user.git("branch", "side", cwd=work_dir)
    user.git("tag", "-a", "-m", "heavy", "heavy", cwd=work_dir)
    user.git("config", "alias.x", "status", cwd=work_dir)
    show = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash")
    refs = user.git(*show, cwd=work_dir)
    user.mngr("snapshot", "create", "s").ok()
    user.git("branch", "-m", "main", "main/deeper", cwd=work_dir)
    user.git("tag", "-d", "heavy", cwd=work_dir)
    user.git("tag", "later", cwd=work_dir)
    user.git("stash", "drop", "-q", cwd=work_dir)
    user.git("commit", "-q", "--allow-empty", "-m", "main of the source goes on")
    for wreck in ("true", WRECK):
        user.mngr("exec", "foo", wreck).ok()
        restore(user, "s")
        assert user.git(*show, cwd=work_dir) == refs
        stashes = user.git("stash", "list", "--format=%gs", cwd=work_dir).split("\n")
        assert [line.rpartition(" ")[2] for line in stashes] == [str(number) for number in reversed(range(12))]
        assert user.git("for-each-ref", "refs/mngr", cwd=work_dir) == ""
        if wreck == "true":
            assert user.git("config", "alias.x", cwd=work_dir) == "status"


def test_repositories_inside_come_back_too(user: User) -> None:
    user.create("foo")
    inner = user.work_dir("foo") / "vendor" / "lib"
    inner.mkdir(parents=True)
    user.git("init", "-q", cwd=inner)
    (inner / "a.txt").write_text("a\n")
    user.mngr("snapshot", "create", "s").ok()
    user.git("add", ".", cwd=inner)
    user.git("commit", "-q", "-m", "later", cwd=inner)
    restore(user, "s")
    assert user.git("status", "--porcelain", cwd=inner) == "?? a.txt"


def test_a_worktree_that_git_has_forgotten_comes_back(user: User) -> None:
    agent = user.create("foo")
    work_dir = Path(agent["work_dir"])
    (work_dir / "half.txt").write_text("half\n")
    before = tree(work_dir)
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("stop", "foo").ok()
    user.run(["rm", "-rf", str(work_dir)]).ok()
    user.git("worktree", "prune")
    restore(user, "s")
    assert tree(work_dir) == before
    assert user.git("branch", "--show-current", cwd=work_dir) == "mngr/foo"
    assert str(work_dir) in user.git("worktree", "list")
    user.mngr("start", "foo").ok()
    (work_dir / ".git").unlink()
    user.git("worktree", "prune")
    (work_dir / "after").write_text("after\n")
    restore(user, "s")
    assert tree(work_dir) == before
    user.mngr("destroy", "foo", "--force").ok()
    assert user.git("worktree", "list").count("\n") == 0


def test_a_repository_made_in_place_of_the_worktree_is_saved_and_replaced(user: User) -> None:
    user.create("foo")
    work_dir = user.work_dir("foo")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("exec", "foo", "rm .git; git init -q; git add -A; git commit -qm mine; echo x > x").ok()
    tip = user.git("rev-parse", "HEAD", cwd=work_dir)
    done = restore(user, "s")
    assert user.git("branch", "--show-current", cwd=work_dir) == "mngr/foo"
    assert not (work_dir / "x").exists()
    user.mngr("saved", "restore", done["saved"], "--to", "../late").ok()
    assert user.git("rev-parse", "HEAD", cwd=user.root / "late") == tip


def test_the_branch_is_moved_back_and_its_later_commits_are_kept(user: User) -> None:
    user.git("branch", "feature")
    user.create("foo", "--branch", "feature")  # the user's own branch, not one that we made
    work_dir = user.work_dir("foo")
    start = user.git("rev-parse", "HEAD")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("exec", "foo", "git commit -q --allow-empty -m later; git checkout -q --detach HEAD~1").ok()
    later = user.git("rev-parse", "feature")
    ran = user.mngr("snapshot", "restore", "s").ok()
    assert f"branch feature was at {later[:10]}" in ran.stderr
    assert user.git("rev-parse", "feature") == start
    assert user.git("branch", "--show-current", cwd=work_dir) == "feature"
    assert later in user.git("for-each-ref", "--format=%(objectname)", "refs/mngr/saved")


def test_a_branch_that_is_checked_out_elsewhere_is_not_moved(user: User) -> None:
    user.create("foo")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("exec", "foo", "git commit -q --allow-empty -m later; git checkout -q --detach").ok()
    later = user.git("rev-parse", "mngr/foo")
    user.git("checkout", "-q", "mngr/foo")
    ran = user.mngr("snapshot", "restore", "s").ok()
    assert "checked out in" in ran.stderr and "mngr/foo-restored" in ran.stderr
    assert user.git("rev-parse", "mngr/foo") == later
    assert user.git("branch", "--show-current", cwd=user.work_dir("foo")) == "mngr/foo-restored"
    assert user.agent("foo")["initial_branch"] == "mngr/foo-restored"


def test_a_detached_head_and_a_rebase_in_the_middle(user: User) -> None:
    user.create("foo")
    work_dir = user.work_dir("foo")
    user.git("checkout", "-q", "--detach", cwd=work_dir)
    user.git("commit", "-q", "--allow-empty", "-m", "on no branch", cwd=work_dir)
    tip = user.git("rev-parse", "HEAD", cwd=work_dir)
    user.mngr("snapshot", "create", "s").ok()
    user.mngr(
        "exec",
        "foo",
        "git checkout -q mngr/foo; echo a > README.md; git commit -qam a; git checkout -q -b b main; "
        "echo b > README.md; git commit -qam b; git rebase mngr/foo; true",
    ).ok()
    assert "rebas" in user.git("status", cwd=work_dir)
    restore(user, "s")
    assert user.git("rev-parse", "HEAD", cwd=work_dir) == tip
    assert user.git("branch", "--show-current", cwd=work_dir) == ""
    assert "rebas" not in user.git("status", cwd=work_dir)


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_a_destroyed_agent_is_made_again(user: User, transfer: str) -> None:
    agent = talk(user, "foo", "--transfer", transfer, "--env", "TOKEN=abc", "--label", "team=x")
    work_dir = Path(agent["work_dir"])
    (work_dir / "half.txt").write_text("half\n")
    before, said = tree(work_dir), transcript(user, "foo")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("destroy", "foo", "--force").ok()
    user.git("gc", "-q", "--prune=now")
    done = restore(user, "s")
    assert done["made"] and not done["running"]
    again = user.agent("foo")
    assert again["state"] == "STOPPED" and again["id"] == agent["id"] and again["labels"]["team"] == "x"
    assert tree(again["work_dir"]) == before
    assert transcript(user, "foo") == said
    user.mngr("start", "foo").ok()
    assert user.mngr("exec", "foo", "echo $TOKEN").ok().stdout == "abc\n"
    assert restore(user, "s")["made"] is False  # it is the same agent again


def test_a_snapshot_becomes_another_agent(user: User) -> None:
    user.create("foo")
    (user.work_dir("foo") / "half.txt").write_text("half\n")
    user.mngr("snapshot", "create", "s").ok()
    assert restore(user, "s", "--as", "bar")["name"] == "bar"
    assert user.agent("bar")["initial_branch"] == "mngr/bar"
    assert user.agent("bar")["index"] != user.agent("foo")["index"]
    assert tree(user.work_dir("bar")) == tree(user.work_dir("foo"))
    assert user.state("foo") == "RUNNING"
    assert "exists already" in user.mngr("snapshot", "restore", "s", "--as", "bar").failed().stderr


def test_settings_come_back(user: User) -> None:
    user.create("foo", "--env", "TOKEN=abc", "--label", "team=x")
    user.mngr("snapshot", "create", "s").ok()
    env = user.host_dir / "snapshots" / "foo" / "s" / "agent" / "env"
    assert "abc" in env.read_text() and env.stat().st_mode & 0o777 == 0o600
    user.mngr("label", "foo", "team=y", "more=z").ok()
    user.mngr("rename", "foo", "bar").ok()
    restore(user, "s")
    assert user.agent("bar")["labels"] == {"team": "x", "project": "repo"}


def test_events_are_never_taken_back(user: User) -> None:
    user.create("foo")
    user.mngr("snapshot", "create", "s").ok()
    user.mngr("stop", "foo").ok()
    restore(user, "s")
    types = [event["type"] for event in user.events("foo")]
    assert types == ["created", "started", "snapshot_created", "stopped", "snapshot_restored"]
    assert user.state("foo") == "STOPPED"


def test_the_agent_may_work_while_it_is_kept(user: User) -> None:
    """Files come, go and are committed all the time; the snapshot is one that git can read, and is taken."""
    loop = (
        "i=0; until [ -e ~/enough ]; do i=$((i+1)); echo $i > f-$((i % 50)); rm -f f-$(((i + 25) % 50)); "
        "[ $((i % 20)) = 0 ] && git add -A && git commit -qm $i; sleep 0.005; done; touch ~/rests; sleep 9999"
    )
    user.create("foo", command=loop)
    wait_for((user.work_dir("foo") / "f-1").exists, "the first file")
    for number in range(5):
        user.mngr("snapshot", "create", f"s{number}").ok()
    assert user.state("foo") == "RUNNING" and not (user.home / "rests").exists()
    (user.home / "enough").touch()
    wait_for((user.home / "rests").exists, "the end of its last commit")  # killed, git would leave its locks
    user.mngr("stop", "foo").ok()
    restore(user, "s2")
    user.git("fsck", "--no-dangling", cwd=user.work_dir("foo"))


def test_two_at_the_same_time_with_one_name(user: User) -> None:
    user.create("foo")
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: user.mngr("snapshot", "create", "s").exit_code, range(4)))
    assert sorted(codes) == [0, 1, 1, 1]
    assert len(user.mngr("snapshot", "list", "--format", "json").ok().json["snapshots"]) == 1


def test_which_agent_is_meant(user: User) -> None:
    assert "no agent to keep" in user.mngr("snapshot", "create", "s").failed().stderr
    user.create("foo")
    user.mngr("snapshot", "create", "one").ok()
    user.create("bar")
    ran = user.mngr("snapshot", "create", "two").failed(5)
    assert "`foo`" in ran.stderr and "`bar`" in ran.stderr
    user.mngr("snapshot", "create", "two", env={"MNGR_AGENT_NAME": "bar"}).ok()
    user.mngr("exec", "bar", "mngr snap create three").ok()
    user.mngr("snapshot", "create", "four", cwd=user.work_dir("foo")).ok()
    user.mngr("snapshot", "create", "foo", "five").ok()
    user.mngr("snapshot", "create", "bar", "--name", "six").ok()
    user.mngr("snapshot", "create", "bar").ok()
    user.mngr("snapshot", "create", "--name", "seven", env={"MNGR_AGENT_NAME": "foo"}).ok()
    rows = user.mngr("snapshot", "list", "--format", "json").ok().json["snapshots"]
    assert [row["id"] for row in reversed(rows)] == [
        *("foo/one", "bar/two", "bar/three", "foo/four", "foo/five", "bar/six", "bar/snap-1", "foo/seven"),
    ]
    rows = user.mngr("snapshot", "list", "bar", "--format", "json").ok().json["snapshots"]
    assert {row["agent"] for row in rows} == {"bar"}


def test_a_name_that_several_agents_have(user: User) -> None:
    user.create("foo")
    user.create("bar")
    for name in ("foo", "bar"):
        user.mngr("snapshot", "create", name, "s").ok()
    ran = user.mngr("snapshot", "restore", "s").failed(5)
    assert "`foo/s`" in ran.stderr and "`bar/s`" in ran.stderr
    assert restore(user, "foo/s")["name"] == "foo"
    assert restore(user, "bar", "s")["name"] == "bar"
    ran = user.mngr("snapshot", "restore", "s", "--format", "json", env={"MNGR_AGENT_NAME": "bar"}).ok()
    assert ran.json["name"] == "bar"


def test_mistakes_are_named_and_change_nothing(user: User) -> None:
    user.create("foo")
    user.mngr("snapshot", "create", "my-snapshot").ok()
    assert "`my-snapshot`" in user.mngr("snapshot", "restore", "my-snapshto").failed().stderr
    assert "called `my-snapshot` already" in user.mngr("snapshot", "create", "my-snapshot").failed().stderr
    assert "given twice" in user.mngr("snapshot", "create", "foo", "a", "--name", "b").failed(2).stderr
    assert "not a snapshot name" in user.mngr("snapshot", "create", "a/b").failed(2).stderr
    assert "no agent named `nobody`" in user.mngr("snapshot", "create", "nobody", "a").failed().stderr
    assert "no snapshot was named" in user.mngr("snapshot", "destroy").failed(2).stderr
    user.mngr("exec", "foo", "rm .git").ok()
    assert "is gone" in user.mngr("snapshot", "create", "late").failed().stderr
    user.repo.rename(user.root / "moved")
    assert "cannot be read" in user.mngr("snapshot", "restore", "my-snapshot", cwd=user.home).failed().stderr
    (user.root / "moved").rename(user.repo)
    assert user.state("foo") == "RUNNING"
    assert len(user.mngr("snapshot", "list", "--format", "json").ok().json["snapshots"]) == 1


def test_an_agent_in_your_own_directory_is_refused(user: User) -> None:
    user.create("foo", "--transfer", "none")
    assert "works in your own directory" in user.mngr("snapshot", "create", "s").failed().stderr
    assert not os.listdir(user.host_dir / "snapshots")


def test_destroying_snapshots(user: User) -> None:
    user.create("foo")
    user.create("bar")
    for name in ("a", "b", "c", "d"):
        user.mngr("snapshot", "create", "foo", name).ok()
    user.mngr("snapshot", "create", "bar", "e").ok()
    assert user.mngr("snapshot", "destroy", "a", "--dry-run").ok().stdout == "would destroy foo/a\n"
    assert user.mngr("snapshot", "destroy", "a").ok().stdout == "destroyed foo/a\n"
    user.mngr("snapshot", "destroy", "--snapshot", "foo/b").ok()
    user.mngr("snapshot", "destroy", "foo", "--snapshot", "c", "--force").ok()
    assert "has no snapshot named `e`" in user.mngr("snapshot", "destroy", "foo", "--snapshot", "e").failed().stderr
    user.mngr("destroy", "foo").ok()
    user.mngr("snapshot", "destroy", "--all-snapshots", "foo").ok()
    user.mngr("snapshot", "destroy", "--all-snapshots").ok()
    assert user.mngr("snapshot", "list").ok().stdout == "No snapshots\n"
    assert user.git("for-each-ref", "refs/mngr/snapshots") == ""
    assert os.listdir(user.host_dir / "snapshots") == []
    assert user.state("bar") == "RUNNING"


def test_dry_runs_change_nothing(user: User) -> None:
    user.create("foo")
    assert "would keep foo as s" in user.mngr("snapshot", "create", "s", "--dry-run").ok().stdout
    assert user.mngr("snapshot", "list").ok().stdout == "No snapshots\n"
    user.mngr("snapshot", "create", "s").ok()
    (user.work_dir("foo") / "x").write_text("x\n")
    assert "would reset foo to" in user.mngr("snapshot", "restore", "s", "--dry-run").ok().stdout
    assert (user.work_dir("foo") / "x").exists()


def test_json_lines_and_templates(user: User) -> None:
    user.create("foo")
    user.mngr("snapshot", "create", "s").ok()
    (line,) = user.mngr("snapshot", "list", "--format", "jsonl").ok().stdout.splitlines()
    assert json.loads(line)["id"] == "foo/s"
    assert user.mngr("snapshot", "list", "--format", "{agent} {name}").ok().stdout == "foo s\n"


def test_its_json_fits_its_schema(user: User) -> None:
    user.create("foo")
    fits(user, "snapshot", "create", "s", "--dry-run")
    fits(user, "snapshot", "create", "s")
    fits(user, "snapshot", "list")
    fits(user, "snapshot", "restore", "s", "--dry-run")
    fits(user, "snapshot", "restore", "s")
    fits(user, "snapshot", "restore", "s", "--as", "bar")
    fits(user, "snapshot", "destroy", "s")
