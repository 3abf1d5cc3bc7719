"""Create: which commit an agent begins at, and which branch it gets."""

from pathlib import Path

import pytest

from tests.support.user import User


def add_branch(user: User, branch: str) -> str:
    """A branch with a commit of its own, not checked out; returns the commit."""
    user.git("checkout", "-q", "-b", branch)
    (user.repo / "on-branch.txt").write_text(f"{branch}\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", branch)
    user.git("checkout", "-q", "main")
    return user.git("rev-parse", branch)


def head(user: User, name: str) -> str:
    return user.git("rev-parse", "HEAD", cwd=user.work_dir(name))


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_base_and_new_branch(user: User, transfer: str) -> None:
    tip = add_branch(user, "develop")
    cases = {
        "a1": ("main:", "mngr/a1", user.git("rev-parse", "main")),
        "a2": (":feature/*", "feature/a2", user.git("rev-parse", "main")),
        "a3": ("develop:try/*-x", "try/a3-x", tip),
        "a4": (f"{tip[:12]}:", "mngr/a4", tip),
    }
    for name, (branch, expected, commit) in cases.items():
        agent = user.create(name, "--branch", branch, "--transfer", transfer)
        assert agent["initial_branch"] == expected
        assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == expected
        assert head(user, name) == commit == agent["base_commit"]


def test_a_mirror_can_work_on_the_branch_itself(user: User) -> None:
    agent = user.create("foo", "--transfer", "git-mirror", "--branch", "main")
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "main"
    (Path(agent["work_dir"]) / "a").write_text("a\n")
    user.git("add", ".", cwd=agent["work_dir"])
    user.git("commit", "-q", "-m", "a", cwd=agent["work_dir"])
    user.mngr("pull", "foo").ok()
    assert user.git("rev-parse", "mngr/foo") == head(user, "foo")
    assert user.git("rev-parse", "main") == agent["base_commit"]


def test_a_worktree_cannot_share_the_branch_that_is_checked_out(user: User) -> None:
    ran = user.mngr("create", "foo", "--branch", "main", "--no-connect", "--command", "sleep 9").failed(2)
    assert "is checked out" in ran.stderr and "--branch main:" in ran.stderr


def test_a_worktree_can_go_on_with_an_existing_branch(user: User) -> None:
    tip = add_branch(user, "develop")
    agent = user.create("foo", "--branch", "develop")
    assert (agent["initial_branch"], head(user, "foo")) == ("develop", tip)
    ran = user.mngr("create", "bar", "--branch", "develop", "--no-connect", "--command", "sleep 9").failed()
    assert "develop" in ran.stderr
    user.mngr("destroy", "foo").ok()
    assert user.git("rev-parse", "develop") == tip  # it was there before


def test_an_unknown_base_suggests_the_nearest(user: User) -> None:
    add_branch(user, "develop")
    ran = user.mngr("create", "foo", "--branch", "devlop:", "--no-connect", "--command", "sleep 9").failed(2)
    assert "no branch or commit is called `devlop`" in ran.stderr and "`develop`" in ran.stderr


def test_a_branch_name_that_git_refuses(user: User) -> None:
    for bad in (":a..b", ":with space", ":x.lock", ":-dash"):
        ran = user.mngr("create", "foo", f"--branch={bad}", "--no-connect", "--command", "sleep 9").failed(2)
        assert "is not a branch name that git accepts" in ran.stderr


def test_a_taken_branch_is_refused_with_both_ways_out(user: User) -> None:
    add_branch(user, "mngr/foo")
    ran = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9").failed()
    assert "a branch called `mngr/foo` exists already" in ran.stderr
    assert "--branch mngr/foo" in ran.stderr
    user.create("foo", "--branch", "mngr/foo")


def test_a_branch_called_mngr_stands_in_the_way(user: User) -> None:
    add_branch(user, "mngr")
    for transfer in ("git-worktree", "git-mirror"):
        command = ("create", "foo", "--no-connect", "--transfer", transfer, "--command", "sleep 9")
        ran = user.mngr(*command).failed()
        assert "beside a branch called `mngr`" in ran.stderr and "--branch ':agents/*'" in ran.stderr
    assert user.create("foo", "--branch", ":agents/*")["initial_branch"] == "agents/foo"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_a_detached_head_works(user: User, transfer: str) -> None:
    add_branch(user, "develop")
    user.git("checkout", "-q", "--detach", "develop")
    user.git("commit", "-q", "--allow-empty", "-m", "on no branch")
    commit = user.git("rev-parse", "HEAD")
    agent = user.create("foo", "--transfer", transfer)
    assert head(user, "foo") == commit
    assert (agent["initial_branch"], agent["base_branch"]) == ("mngr/foo", None)
    user.mngr("destroy", "foo").ok()


def test_a_remote_branch_and_a_tag_are_bases_too(user: User) -> None:
    tip = add_branch(user, "develop")
    user.git("tag", "v1", "develop")
    user.git("update-ref", "refs/remotes/origin/topic", tip)
    user.create("a1", "--branch", "v1:")
    user.create("a2", "--branch", "origin/topic:", "--transfer", "git-mirror")
    assert head(user, "a1") == head(user, "a2") == tip


def test_a_subdirectory_stands_for_its_repository(user: User) -> None:
    (user.repo / "sub").mkdir()
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9", cwd=user.repo / "sub").ok()
    assert (user.work_dir("foo") / "README.md").exists()
    user.create("bar", "--from", str(user.repo / "sub"))
    assert user.agent("bar")["repo"] == str(user.repo)


def test_without_a_commit_or_without_files_it_says_what_to_do(user: User) -> None:
    empty, bare = user.root / "empty", user.root / "bare.git"
    empty.mkdir()
    user.git("init", "-q", cwd=empty)
    user.git("init", "-q", "--bare", str(bare))
    words = ("create", "foo", "--no-connect", "--command", "sleep 9", "--from")
    assert "has no commit yet" in user.mngr(*words, str(empty)).failed().stderr
    assert "is a bare repository" in user.mngr(*words, str(bare)).failed().stderr
    assert "is neither a directory nor an agent" in user.mngr(*words, str(user.root / "none")).failed(2).stderr
    user.mngr(*words, str(empty), "--transfer", "none").ok()
