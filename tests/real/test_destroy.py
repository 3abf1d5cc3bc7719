"""Destroy: refused while work would be lost, complete when it is done, and never half-way."""

import os
import shutil

from tests.support.terminals import on_a_terminal
from tests.support.user import User, wait_for


def commit_in(user: User, name: str, path: str = "work.txt", text: str = "work\n") -> str:
    """A commit made inside an agent's workspace; returns it."""
    work_dir = user.work_dir(name)
    (work_dir / path).write_text(text)
    user.git("add", "-A", cwd=work_dir)
    user.git("commit", "-q", "-m", f"add {path}", cwd=work_dir)
    return user.git("rev-parse", "HEAD", cwd=work_dir)


def test_an_agent_with_commits_of_its_own_is_refused(user: User) -> None:
    for name, transfer in (("foo", "git-worktree"), ("bar", "git-mirror")):
        user.create(name, "--transfer", transfer)
        commit_in(user, name, text=f"{name}\n")  # the same commit in the same second would be found in the other one
        ran = user.mngr("destroy", name).failed()
        assert f"`{name}` has work that is found nowhere else: 1 commit that no other branch has" in ran.stderr
        assert f"mngr merge {name}" in ran.stderr and f"mngr destroy {name} --force" in ran.stderr
        assert user.state(name) == "RUNNING"


def test_an_agent_with_uncommitted_or_untracked_files_is_refused(user: User) -> None:
    user.create("foo")
    (user.work_dir("foo") / "README.md").write_text("changed\n")
    assert "1 uncommitted file" in user.mngr("destroy", "foo").failed().stderr
    (user.work_dir("foo") / "new.txt").write_text("new\n")
    assert "2 uncommitted files" in user.mngr("destroy", "foo").failed().stderr
    (user.work_dir("foo") / "new.txt").unlink()
    user.git("checkout", "-q", ".", cwd=user.work_dir("foo"))
    user.mngr("destroy", "foo").ok()


def test_a_copy_of_plain_files_with_changes_is_refused(user: User) -> None:
    plain = user.root / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub" / "a.txt").write_text("a\n")
    user.create("foo", "--from", str(plain))
    user.create("bar", "--from", str(plain))
    (user.work_dir("foo") / "sub" / "a.txt").write_text("b\n")
    assert "1 uncommitted file" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "bar").ok()


def test_merged_work_is_no_reason_to_refuse(user: User) -> None:
    user.create("foo")
    tip = commit_in(user, "foo")
    user.mngr("merge", "foo").ok()
    user.mngr("destroy", "foo").ok()
    assert user.git("rev-parse", "main") == tip
    assert user.git("branch", "--list", "mngr/*") == ""
    assert user.mngr("saved", "list").ok().stdout == "No saved work\n"


def test_pulled_work_is_no_reason_to_refuse(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    tip = commit_in(user, "foo")
    user.mngr("pull", "foo").ok()
    user.mngr("destroy", "foo").ok()
    assert user.git("rev-parse", "mngr/foo") == tip


def test_an_agent_in_place_has_nothing_of_its_own_and_leaves_the_directory(user: User) -> None:
    user.create("foo", "--transfer", "none")
    (user.repo / "mine.txt").write_text("mine\n")
    user.mngr("destroy", "foo").ok()
    assert (user.repo / "mine.txt").read_text() == "mine\n"
    assert user.git("status", "--short") == "?? mine.txt"


def test_destroy_leaves_nothing(user: User) -> None:
    user.create("foo", "--env", "A=b", command="setsid sh -c 'touch ~/begun; exec sleep 9998' & sleep 9999")
    user.create("bar", "--transfer", "git-mirror")
    user.create("plain", "--transfer", "rsync")
    wait_for((user.home / "begun").exists, "the process that leaves its terminal")
    user.mngr("destroy", "--all").ok()
    wait_for(lambda: user.tmux("ls").exit_code != 0, "the tmux server, which has nothing left to do, to end")
    assert user.git("worktree", "list").count("\n") == 0
    assert user.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert user.git("status", "--short") == ""
    wait_for(lambda: not user.processes(), "all processes to end")
    left = [path for room in ("agents", "worktrees", "clones", "saved") for path in (user.host_dir / room).iterdir()]
    assert left == []
    assert not list((user.repo / ".git").rglob("*.lock"))


def test_force_saves_and_says_how_to_get_it_back(user: User) -> None:
    user.create("foo")
    commit_in(user, "foo")
    (user.work_dir("foo") / "new.txt").write_text("new\n")
    ran = user.mngr("destroy", "foo", "--force").ok()
    assert "`mngr saved restore foo-1`" in ran.stdout
    assert "branch mngr/foo stays" in ran.stdout
    assert user.agents() == []
    row = user.mngr("saved", "list", "--format", "json").ok().json["saved"][0]
    assert (row["id"], row["commits"], row["uncommitted"]) == ("foo-1", 1, ["new.txt"])
    shown = user.mngr("saved", "show", "foo", "--patch").ok().stdout
    assert "add work.txt" in shown and "+new" in shown


def test_remove_created_branch_saves_the_branch_also_when_another_is_checked_out(user: User) -> None:
    user.create("foo")
    tip = commit_in(user, "foo")
    user.git("checkout", "-q", "-b", "elsewhere", "main", cwd=user.work_dir("foo"))
    user.mngr("destroy", "foo", "--force", "--remove-created-branch").ok()
    assert user.git("branch", "--list", "mngr/foo") == ""
    refs = user.git("for-each-ref", "--format=%(objectname)", "refs/mngr/saved").split("\n")
    assert tip in refs


def test_of_many_one_that_is_refused_stays_and_the_exit_code_is_3(user: User) -> None:
    for name in ("a1", "a2", "a3"):
        user.create(name)
    commit_in(user, "a2")
    ran = user.mngr("destroy", "a1", "a2", "a3").failed(3)
    assert "destroyed a1" in ran.stdout and "destroyed a3" in ran.stdout
    assert "a2" in ran.stderr and "found nowhere else" in ran.stderr
    assert [agent["name"] for agent in user.agents()] == ["a2"]
    rows = user.mngr("destroy", "a2", "--force", "--format", "json").ok().json
    assert rows == [{**rows[0], "name": "a2", "ok": True, "saved": "a2-1", "kept_branch": "mngr/a2"}]


def test_a_dry_run_tells_and_changes_nothing(user: User) -> None:
    user.create("foo")
    commit_in(user, "foo")
    user.mngr("destroy", "foo", "--dry-run").failed()
    ran = user.mngr("destroy", "foo", "--dry-run", "--force").ok()
    assert ran.stdout == "would destroy foo and save 1 commit that no other branch has\n"
    assert user.state("foo") == "RUNNING"


def test_two_destroys_at_once_do_it_once(user: User) -> None:
    user.create("foo")
    running = [user.popen("destroy", "foo") for _ in range(3)]
    outputs = [process.communicate() for process in running]
    codes = sorted(process.returncode for process in running)
    assert codes[0] == 0 and set(codes) <= {0, 1}, outputs
    assert user.agents() == []


def test_a_name_can_be_used_again_after_a_destroy(user: User) -> None:
    for number in (1, 2, 3):
        user.create("foo", "--branch", f":work/{number}")
        commit_in(user, "foo", text=f"{number}\n")
        user.mngr("destroy", "foo", "--force").ok()
    ids = [row["id"] for row in user.mngr("saved", "list", "--format", "json").ok().json["saved"]]
    assert ids == ["foo-3", "foo-2", "foo-1"]


def test_destroy_of_an_unknown_name_suggests_the_nearest(user: User) -> None:
    user.create("fix-login")
    ran = user.mngr("destroy", "fix-logn").failed()
    assert "no agent named `fix-logn`" in ran.stderr and "the closest name is `fix-login`" in ran.stderr


def test_a_worktree_that_is_gone_can_be_destroyed(user: User) -> None:
    user.create("foo")
    shutil.rmtree(user.work_dir("foo"))
    user.mngr("destroy", "foo").ok()
    assert user.git("worktree", "list").count("\n") == 0
    assert user.git("branch", "--list", "mngr/*") == ""


def test_the_repository_may_be_gone(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    commit_in(user, "foo")
    user.create("bar")
    user.repo.rename(user.root / "moved")
    home = str(user.home)
    ran = user.mngr("destroy", "foo", "--force", cwd=home).ok()
    assert "saved" in ran.stdout
    user.mngr("destroy", "bar", "--force", cwd=home).ok()
    assert user.mngr("list", "--format", "json", cwd=home).ok().json["agents"] == []


def test_destroy_leaves_other_worktrees_of_the_user_alone(user: User) -> None:
    mine = user.root / "mine"
    user.git("worktree", "add", "-q", str(mine), "-b", "mine")
    user.create("foo")
    mine.rename(user.root / "away")  # as when its disk is not mounted at the moment
    user.mngr("destroy", "foo").ok()
    (user.root / "away").rename(mine)
    assert user.git("status", "--short", cwd=mine) == ""


def test_a_path_with_the_name_of_the_branch_is_no_trouble(user: User) -> None:
    (user.repo / "mngr").mkdir()
    (user.repo / "mngr" / "foo").write_text("a file\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "a file called mngr/foo")
    for transfer in ("git-worktree", "git-mirror"):
        user.create("foo", "--transfer", transfer)
        user.mngr("diff", "foo").ok()
        user.mngr("destroy", "foo").ok()


def test_read_only_directories_are_removed(user: User) -> None:
    user.create("foo", "--transfer", "rsync")
    locked = user.work_dir("foo") / "cache"
    locked.mkdir()
    (locked / "a").write_text("a\n")
    os.chmod(locked, 0o500)
    user.mngr("destroy", "foo", "--force").ok()
    assert list((user.host_dir / "clones").iterdir()) == []


def test_by_session_name(user: User) -> None:
    user.create("foo")
    user.mngr("destroy", "--session", "mngr-foo").ok()
    assert "no agent has a session" in user.mngr("destroy", "--session", "mngr-foo").failed().stderr


def test_an_agent_that_writes_until_its_end_loses_nothing(user: User) -> None:
    trap = "trap 'echo last > last.txt; exit 0' HUP TERM; touch ~/begun"
    user.create("foo", command=f"{trap}; while :; do sleep 0.02; done")
    (user.work_dir("foo") / "first.txt").write_text("first\n")
    wait_for((user.home / "begun").exists, "the agent to be prepared for its end")
    user.mngr("destroy", "foo", "--force").ok()
    row = user.mngr("saved", "list", "--format", "json").ok().json["saved"][0]
    assert row["uncommitted"] == ["first.txt", "last.txt"]


def test_all_agents_are_destroyed_after_a_question_on_a_terminal(user: User) -> None:
    """By name they are not asked for, nor where nobody can be asked."""
    user.mngr("create", "-n", "a", "-n", "b", "-n", "c", "--no-connect", "--command", "sleep 9999").ok()
    user.mngr("stop", "b").ok()
    asked = "Destroy 3 agents (2 running, 1 stopped)? [y/N] "
    ran = on_a_terminal(user, "destroy", "--all", typed="n\n").failed(1)
    assert ran.stdout == f"n\n{asked}nothing was changed\n"
    assert asked in on_a_terminal(user, "destroy", "--include", "true", typed="\n").failed(1).stdout
    assert len(user.agents()) == 3
    assert on_a_terminal(user, "destroy", "a").ok().stdout == "destroyed a\n"
    ran = on_a_terminal(user, "destroy", "--all", typed="y\n").ok()
    assert "Destroy 2 agents (1 running, 1 stopped)? [y/N] destroyed " in ran.stdout
    assert user.agents() == []
    user.create("d")
    user.create("e")
    shown = on_a_terminal(user, "destroy", "--all", "-y").ok().stdout
    assert sorted(shown.splitlines()) == ["destroyed d", "destroyed e"]
    user.create("f")
    assert user.mngr("destroy", "--all").ok().stdout == "destroyed f\n"
