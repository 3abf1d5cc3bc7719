"""A clone has all that its source has, in a place of its own, and the source does not notice."""

from pathlib import Path
from typing import Any

import pytest

from tests.real.test_saved import GIT_MODES, make_base, make_work
from tests.real.test_schemas import fits
from tests.support import leftovers
from tests.support.trees import tree
from tests.support.user import User, wait_for


def clone(user: User, *words: str) -> Any:
    return user.mngr("clone", *words, "--no-connect", "--format", "json").ok().json


def transcript(user: User, name: str) -> bytes:
    return (user.host_dir / "agents" / user.agent(name)["id"] / "transcript.jsonl").read_bytes()


@pytest.mark.parametrize("transfer", GIT_MODES)
def test_a_clone_has_the_work_and_the_conversation_of_its_source(user: User, transfer: str) -> None:
    make_base(user, user.repo)
    create = ("create", "foo", "--no-connect", "--type", "scripted", "--transfer", transfer)
    user.mngr(*create, "--env", "TOKEN=abc", "--label", "team=x", "--message", "hello").ok()
    foo = user.wait_for_state("foo", "WAITING")
    work_dir = Path(foo["work_dir"])
    (work_dir / "done.txt").write_text("done\n")
    user.git("add", "done.txt", cwd=work_dir)
    user.git("commit", "-q", "-m", "done", cwd=work_dir)
    make_work(work_dir)
    head, status = user.git("rev-parse", "HEAD", cwd=work_dir), user.git("status", "--porcelain", "-z", cwd=work_dir)
    before, said = tree(work_dir), transcript(user, "foo")

    done = clone(user, "foo", "bar", "--label", "try=2", "--env", "MORE=1")

    assert done["name"] == "bar" and done["source"] == "foo" and done["branch"] == "mngr/bar"
    bar = user.wait_for_state("bar", "WAITING")
    assert tree(bar["work_dir"]) == before
    assert user.git("rev-parse", "HEAD", cwd=bar["work_dir"]) == head
    assert user.git("branch", "--show-current", cwd=bar["work_dir"]) == "mngr/bar"
    assert user.git("status", "--porcelain", "-z", cwd=bar["work_dir"]) == status
    assert transcript(user, "bar") == said
    assert bar["type"] == "scripted" and bar["command"] == foo["command"] and bar["transfer"] == transfer
    assert bar["labels"] == {"team": "x", "try": "2", "project": "repo"} and bar["project"] == foo["project"] == "repo"
    assert bar["repo"] == foo["repo"] and bar["base_commit"] == foo["base_commit"]
    assert bar["index"] != foo["index"] and bar["id"] != foo["id"] and bar["create_time"] > foo["create_time"]
    assert user.mngr("exec", "bar", "echo $TOKEN $MORE $MNGR_AGENT_NAME").ok().stdout == "abc 1 bar\n"

    assert tree(work_dir) == before and user.state("foo") == "WAITING"
    assert user.mngr("snapshot", "list").ok().stdout == "No snapshots\n"
    assert user.git("for-each-ref", "refs/mngr") == ""
    user.mngr("destroy", "foo", "--force").ok()
    assert tree(bar["work_dir"]) == before
    assert user.mngr("diff", "bar", "--name-only").ok().stdout.count("\n") > 5


def test_a_copy_of_plain_files_is_cloned(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "a").write_text("a\n")
    user.create("foo", "--from", str(plain))
    (user.work_dir("foo") / "b").write_text("b\n")
    (plain / "a").write_text("the source goes on\n")
    clone(user, "foo", "bar")
    assert tree(user.work_dir("bar")) == tree(user.work_dir("foo"))
    assert user.agent("bar")["initial_branch"] is None


def test_large_ignored_directories_are_copied_too(user: User) -> None:
    (user.repo / ".gitignore").write_text("big/\n.env\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "ignore")
    user.create("foo")
    (user.work_dir("foo") / "big").mkdir()
    (user.work_dir("foo") / "big" / "data").write_bytes(b"\1" * 11_000_000)
    (user.work_dir("foo") / ".env").write_text("SECRET\n")
    (user.work_dir("foo") / ".env").chmod(0o600)
    clone(user, "foo", "bar")
    assert tree(user.work_dir("bar")) == tree(user.work_dir("foo"))
    assert (user.work_dir("bar") / ".env").stat().st_mode & 0o777 == 0o600


def test_a_message_other_arguments_and_a_made_up_name(user: User) -> None:
    user.mngr("create", "foo", "--no-connect", "--type", "command", "--", "sleep", "9999").ok()
    assert clone(user, "foo")["name"] == "foo-2"
    assert clone(user, "foo")["name"] == "foo-3"
    user.mngr("clone", "foo", "bar", "--no-connect", "--message", "hello there", "--", "cat").ok()
    assert user.agent("bar")["command"] == "cat"
    wait_for(lambda: "hello there" in user.mngr("capture", "bar").ok().stdout, "the message on its screen")


def test_create_from_an_agent_is_a_clone(user: User) -> None:
    user.create("foo", "--label", "team=x")
    (user.work_dir("foo") / "half.txt").write_text("half\n")
    ran = user.mngr("create", "bar", "--from", "foo", "--no-connect", "--label", "try=2").ok()
    assert ran.stdout == "cloned foo to bar on branch mngr/bar\n"
    assert user.git("status", "--porcelain", cwd=user.work_dir("bar")) == "?? half.txt"
    assert user.agent("bar")["labels"] == {"team": "x", "try": "2", "project": "repo"}
    ran = user.mngr("create", "baz", "--from", "foo", "--no-connect", "--transfer", "rsync").failed(2)
    assert "`--transfer` cannot be used with `--from foo`" in ran.stderr
    ran = user.mngr("create", "baz", "--from", "fooo", "--no-connect").failed(2)
    assert "neither a directory" in ran.stderr and "`foo`" in ran.stderr
    assert "one agent is cloned" in user.mngr("create", "-", "--from", "foo", input="a\nb\n").failed(2).stderr
    (user.repo / "foo").mkdir()  # a directory of that name is what is meant, as it always was
    user.mngr("create", "plain", "--from", "foo", "--no-connect", "--command", "cat", "--exclude-unclean").ok()
    assert user.agent("plain")["command"] == "cat"


def test_what_is_in_the_way_is_named_and_nothing_is_left(user: User) -> None:
    user.create("foo")
    user.create("here", "--transfer", "none")
    user.git("branch", "mngr/taken")
    assert "`foo` exists already" in user.mngr("clone", "foo", "foo").failed().stderr.replace("agent named ", "")
    assert "`mngr/taken` exists already" in user.mngr("clone", "foo", "taken").failed().stderr
    assert "works in your own directory" in user.mngr("clone", "here", "bar").failed().stderr
    assert "the closest name is `foo`" in user.mngr("clone", "fooo", "bar").failed().stderr
    user.mngr("clone", "foo", "a.b").failed(2)
    settings = user.host_dir / "settings.toml"
    settings.write_text('[tmux]\nconfig = "/nowhere"\n')  # starting fails, after everything else was made
    assert "/nowhere" in user.mngr("clone", "foo", "bar").failed().stderr
    settings.unlink()
    assert sorted(agent["name"] for agent in user.agents()) == ["foo", "here"]
    assert not any("bar" in line for line in leftovers.found(user))
    assert user.mngr("snapshot", "list").ok().stdout == "No snapshots\n"


def test_a_dry_run_makes_nothing(user: User) -> None:
    user.create("foo")
    ran = user.mngr("clone", "foo", "bar", "--dry-run").ok()
    assert ran.stdout == "would clone foo to bar on branch mngr/bar\n"
    assert len(user.agents()) == 1


def test_a_repository_elsewhere_is_cloned_and_followed(user: User) -> None:
    url = f"file://{user.repo}"
    create = ("--no-connect", "--command", "sleep 9999", "--from", url)
    user.mngr("create", "foo", *create, cwd=user.home).ok()
    foo = user.agent("foo")
    assert foo["transfer"] == "git-mirror" and foo["project"] == "repo"
    assert (Path(foo["work_dir"]) / "README.md").read_text() == "hello\n"
    assert user.git("remote", "get-url", "origin", cwd=foo["work_dir"]) == url
    user.git("commit", "-q", "--allow-empty", "-m", "later")
    user.mngr("create", "bar", *create, cwd=user.home).ok()
    assert user.git("rev-parse", "HEAD", cwd=user.work_dir("bar")) == user.git("rev-parse", "HEAD")
    (user.work_dir("bar") / "x").write_text("x\n")
    assert "1 uncommitted" in user.mngr("destroy", "bar", cwd=user.home).failed().stderr
    ran = user.mngr("create", "baz", "--no-connect", "--command", "cat", "--from", "file:///nowhere", cwd=user.home)
    assert "git could not clone `file:///nowhere`" in ran.failed().stderr
    assert len(list((user.host_dir / "sources").iterdir())) == 1
    assert "--dry-run" in user.mngr("create", "baz", *create, "--dry-run", cwd=user.home).failed(2).stderr


def test_its_json_fits_its_schema(user: User) -> None:
    user.create("foo")
    fits(user, "clone", "foo", "bar", "--no-connect", "--dry-run")
    fits(user, "clone", "foo", "bar", "--no-connect")
    fits(user, "create", "baz", "--from", "foo", "--no-connect", "--dry-run")
    fits(user, "create", "baz", "--from", "foo", "--no-connect")


def test_destroying_all_clones_at_once_keeps_their_commits(user: User) -> None:
    user.create("foo")
    user.mngr("exec", "foo", "git commit -q --allow-empty -m work").ok()
    tip = user.git("rev-parse", "mngr/foo")
    for number in range(4):
        clone(user, "foo", f"c{number}")
    user.mngr("destroy", "--all").ok()  # each has its commits on another branch, until the last
    assert user.git("branch", "--contains", tip, "--format", "%(refname:short)").count("\n") == 0
    assert "mngr/" in user.git("branch", "--contains", tip)


def test_a_copy_of_a_url_follows_a_forced_push_and_keeps_what_somebody_did_to_it(user: User) -> None:
    url = f"file://{user.repo}"
    words = ("--no-connect", "--command", "cat", "--from", url)
    first = user.mngr("create", "one", *words, cwd=user.home).ok()
    user.git("commit", "-q", "--amend", "-m", "rewritten")
    user.mngr("create", "two", *words, cwd=user.home).ok()
    assert first.exit_code == 0
    assert user.git("log", "-1", "--format=%s", cwd=user.work_dir("two")) == "rewritten"
    assert user.git("log", "-1", "--format=%s", cwd=user.work_dir("one")) == "init"
    (copy,) = (user.host_dir / "sources").iterdir()
    (copy / "README.md").write_text("changed here\n")
    user.git("commit", "-qam", "made here", cwd=copy)
    user.git("commit", "-q", "--amend", "-m", "rewritten again")
    ran = user.mngr("create", "three", *words, cwd=user.home).failed()
    assert "cannot follow" in ran.stderr and f"git -C {copy} status" in ran.stderr
    assert user.git("log", "-1", "--format=%s", cwd=copy) == "made here"
