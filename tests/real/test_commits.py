"""Commits between an agent and its repository: pull, push, diff and merge. Nothing is merged in silence or lost."""

from pathlib import Path

import pytest

import mngr
from mngr.errors import MngrError
from tests.support.trees import tree
from tests.support.user import Ran, User

MODES = ("git-worktree", "git-mirror")


def commit(user: User, directory: str | Path, path: str, text: str) -> str:
    (Path(directory) / path).write_text(text)
    user.git("add", "-A", cwd=directory)
    user.git("commit", "-q", "-m", f"write {path}", cwd=directory)
    return user.git("rev-parse", "HEAD", cwd=directory)


def refs(user: User) -> str:
    return user.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")


def test_pull_brings_commits_here_as_a_new_branch(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    tip = commit(user, user.work_dir("foo"), "a.txt", "a\n")
    main = user.git("rev-parse", "main")
    ran = user.mngr("pull", "foo").ok()
    assert ran.stdout == "1 commit of foo on branch mngr/foo\n"
    assert user.git("rev-parse", "mngr/foo") == tip
    assert (user.git("rev-parse", "main"), user.git("branch", "--show-current")) == (main, "main")
    assert user.git("status", "--porcelain") == ""


def test_pull_moves_the_branch_forward(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    user.mngr("pull", "foo").ok()
    tip = commit(user, user.work_dir("foo"), "b.txt", "b\n")
    pulled = user.mngr("pull", "foo", "--format", "json").ok().json
    assert (pulled["commit"], pulled["commits"], pulled["branch"]) == (tip, 2, "mngr/foo")
    assert user.git("rev-parse", "mngr/foo") == tip
    assert "nothing new" in user.mngr("pull", "foo").ok().stdout


def test_pull_of_a_diverged_branch_is_refused_and_moves_nothing(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    user.mngr("pull", "foo").ok()
    user.git("checkout", "-q", "mngr/foo")
    commit(user, user.repo, "mine.txt", "mine\n")
    user.git("checkout", "-q", "main")
    theirs = commit(user, user.work_dir("foo"), "b.txt", "b\n")
    before = refs(user)
    ran = user.mngr("pull", "foo").failed()
    assert "have diverged; nothing was moved" in ran.stderr and "refs/mngr/pulled/foo" in ran.stderr
    assert refs(user) == before
    assert user.git("rev-parse", "refs/mngr/pulled/foo") == theirs


def test_pull_into_the_current_branch_only_goes_forward(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    tip = commit(user, user.work_dir("foo"), "a.txt", "a\n")
    user.mngr("pull", "foo", "--into", "current").ok()
    assert user.git("rev-parse", "main") == tip and (user.repo / "a.txt").exists()
    commit(user, user.repo, "mine.txt", "mine\n")
    commit(user, user.work_dir("foo"), "b.txt", "b\n")
    before = refs(user)
    assert "cannot be moved forward" in user.mngr("pull", "foo", "--into", "current").failed().stderr
    assert refs(user) == before and user.git("status", "--porcelain") == ""


def test_pull_into_the_current_branch_leaves_uncommitted_changes_alone(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    commit(user, user.work_dir("foo"), "README.md", "theirs\n")
    (user.repo / "README.md").write_text("mine\n")
    assert "README.md" in user.mngr("pull", "foo", "--into", "current").failed().stderr
    assert (user.repo / "README.md").read_text() == "mine\n"


def test_pull_into_none_only_fetches(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    tip = commit(user, user.work_dir("foo"), "a.txt", "a\n")
    before = refs(user)
    user.mngr("pull", "foo", "--into", "none").ok()
    assert refs(user) == before
    assert user.git("rev-parse", "refs/mngr/pulled/foo") == tip


def test_a_dry_run_shows_commits_and_files_and_changes_nothing(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    everything = user.git("for-each-ref")
    ran = user.mngr("pull", "foo", "--dry-run").ok()
    assert "would pull 1 commit" in ran.stdout and "write a.txt" in ran.stdout and "a.txt | 1 +" in ran.stdout
    assert user.git("for-each-ref") == everything


def test_pull_of_a_worktree_says_that_it_is_here_and_offers_the_merge(user: User) -> None:
    user.create("foo")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    (user.work_dir("foo") / "half").write_text("half\n")
    ran = user.mngr("pull", "foo").ok()
    assert "nothing to pull" in ran.stdout and "mngr/foo" in ran.stdout
    assert "mngr merge foo" in ran.stderr and "not pulled: 1 uncommitted file" in ran.stderr


def test_pull_without_work_says_so(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    assert user.mngr("pull", "foo").ok().stdout == "foo has no commits of its own\n"


@pytest.mark.parametrize("transfer", MODES)
def test_push_moves_the_agent_forward(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    tip = commit(user, user.repo, "new.txt", "new\n")
    assert "would push 1 commit" in user.mngr("push", "foo", "--dry-run").ok().stdout
    assert not (user.work_dir("foo") / "new.txt").exists()
    assert "pushed 1 commit to foo" in user.mngr("push", "foo").ok().stdout
    assert user.git("rev-parse", "HEAD", cwd=user.work_dir("foo")) == tip
    assert (user.work_dir("foo") / "new.txt").read_text() == "new\n"
    assert "already has all commits" in user.mngr("push", "foo").ok().stdout
    user.mngr("destroy", "foo").ok()


@pytest.mark.parametrize("transfer", MODES)
def test_push_never_overwrites_the_agents_work(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    commit(user, user.repo, "README.md", "mine\n")
    (user.work_dir("foo") / "README.md").write_text("theirs\n")
    assert "cannot be moved forward" in user.mngr("push", "foo").failed().stderr
    assert (user.work_dir("foo") / "README.md").read_text() == "theirs\n"
    user.git("commit", "-q", "-am", "theirs", cwd=user.work_dir("foo"))
    tip = user.git("rev-parse", "HEAD", cwd=user.work_dir("foo"))
    user.mngr("push", "foo").failed()
    assert user.git("rev-parse", "HEAD", cwd=user.work_dir("foo")) == tip
    assert "no branch or commit" in user.mngr("push", "foo", "--from", "nowhere").failed(2).stderr


@pytest.mark.parametrize("transfer", MODES)
def test_diff_shows_committed_uncommitted_and_untracked(user: User, transfer: str) -> None:
    (user.repo / "gone.txt").write_text("gone\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "more")
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    commit(user, work_dir, "committed.txt", "1\n")
    (work_dir / "README.md").write_text("changed\n")
    (work_dir / "untracked file.txt").write_text("2\n")
    (work_dir / "gone.txt").unlink()
    before = user.git("status", "--porcelain", cwd=work_dir)
    text = user.mngr("diff", "foo").ok().stdout
    assert "+++ b/committed.txt" in text and "-hello\n+changed" in text and "+2" in text and "deleted file" in text
    names = user.mngr("diff", "foo", "--name-only").ok().stdout.splitlines()
    assert names == ["README.md", "committed.txt", "gone.txt", "untracked file.txt"]
    assert "4 files changed" in user.mngr("diff", "foo", "--stat").ok().stdout
    assert user.mngr("diff", "foo", "--format", "json").ok().json["diff"] == text
    assert user.git("status", "--porcelain", cwd=work_dir) == before
    commit(user, user.repo, "later.txt", "main moved on\n")
    assert user.mngr("diff", "foo").ok().stdout == text


@pytest.mark.parametrize("transfer", MODES)
def test_merge_forward_and_with_a_merge_commit(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    tip = commit(user, user.work_dir("foo"), "a.txt", "a\n")
    assert user.mngr("merge", "foo", "--dry-run").ok().stdout == "would merge 1 commit of foo into main\n"
    assert user.git("rev-parse", "main") != tip
    assert user.mngr("merge", "foo").ok().stdout == "merged 1 commit of foo into main\n"
    assert user.git("rev-parse", "main") == tip
    commit(user, user.repo, "mine.txt", "mine\n")
    commit(user, user.work_dir("foo"), "b.txt", "b\n")
    user.mngr("merge", "foo", "-m", "Bring it in").ok()
    assert user.git("log", "-1", "--format=%s %p").count(" ") == 4
    assert (user.repo / "b.txt").exists() and (user.repo / "mine.txt").exists()
    assert user.mngr("merge", "foo").ok().stdout == "main already has all commits of foo\n"


def test_squash_makes_one_commit_of_the_users_own(user: User) -> None:
    user.create("foo")
    for name in ("a", "b"):
        commit(user, user.work_dir("foo"), name, f"{name}\n")
    main = user.git("rev-parse", "main")
    user.mngr("merge", "foo", "--squash", "-m", "Fix it").ok()
    assert user.git("log", "--format=%s by %an, from %p", f"{main}..main") == f"Fix it by Test User, from {main[:7]}"
    assert user.git("log", "-1", "--format=%b").split("\n") == ["* write a", "* write b"]
    assert user.git("status", "--porcelain") == ""


def merge_and_compare(user: User, *options: str) -> Ran:
    """A merge that must fail and leave the user's files, index and refs as they are."""
    before = (refs(user), user.git("status", "--porcelain=v2"), tree(user.repo))
    ran = user.mngr("merge", "foo", *options).failed()
    assert (refs(user), user.git("status", "--porcelain=v2"), tree(user.repo)) == before
    return ran


@pytest.mark.parametrize("options", [(), ("--squash",), ("--dry-run",)])
def test_a_conflict_is_found_before_anything_is_touched(user: User, options: tuple[str, ...]) -> None:
    user.create("foo")
    commit(user, user.work_dir("foo"), "README.md", "theirs\n")
    commit(user, user.repo, "README.md", "mine\n")
    ran = merge_and_compare(user, *options)
    assert "conflicts with yours in `README.md`; nothing was changed" in ran.stderr
    assert "git merge refs/mngr/pulled/foo" in ran.stderr


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("options", [(), ("--squash",)])
@pytest.mark.parametrize("forward", [True, False])
def test_a_merge_over_uncommitted_changes_is_refused(
    user: User, staged: bool, options: tuple[str, ...], forward: bool
) -> None:
    user.create("foo")
    commit(user, user.work_dir("foo"), "README.md", "theirs\n")
    if not forward:
        commit(user, user.repo, "mine.txt", "mine\n")
    (user.repo / "README.md").write_text("not committed\n")
    (user.repo / "other.txt").write_text("staged, and nobody else's business\n")
    user.git("add", "other.txt")
    if staged:
        user.git("add", "README.md")
    merge_and_compare(user, *options)


@pytest.mark.parametrize("forward", [True, False])
def test_uncommitted_changes_elsewhere_stay_out_of_a_squash(user: User, forward: bool) -> None:
    user.create("foo")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    if not forward:
        commit(user, user.repo, "b.txt", "b\n")
    (user.repo / "README.md").write_text("not committed\n")
    (user.repo / "mine.txt").write_text("staged\n")
    user.git("add", "mine.txt")
    user.mngr("merge", "foo", "--squash").ok()
    assert user.git("show", "--format=", "--name-only", "HEAD") == "a.txt"
    assert user.git("status", "--porcelain") == " M README.md\nA  mine.txt"


def test_agents_without_commits_to_move_say_why(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    user.create("plain", "--from", str(plain))
    user.create("here", "--transfer", "none")
    assert "has no git repository" in user.mngr("merge", "plain").failed().stderr
    for verb in ("pull", "push", "diff", "merge"):
        assert "works in place" in user.mngr(verb, "here").failed().stderr


@pytest.mark.parametrize("transfer", MODES)
def test_an_operation_of_the_users_own_is_kept(user: User, transfer: str) -> None:
    """What they have resolved of a merge, a rebase, ... is theirs: nothing is merged into it and nothing aborted."""
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    agent = fleet.create("foo", command="sleep 9999", transfer=transfer)
    commit(user, Path(agent.record.workspace.work_dir), "a.txt", "a\n")
    user.git("checkout", "-q", "-b", "topic")
    commit(user, user.repo, "README.md", "topic\n")
    user.git("checkout", "-q", "main")
    (user.repo / "new.txt").write_text("new\n")
    commit(user, user.repo, "README.md", "main\n")
    later = commit(user, user.repo, "README.md", "later\n")
    for words, what in (
        (("merge", "topic"), "merge"),
        (("cherry-pick", "topic"), "cherry-pick"),
        (("revert", "--no-edit", "HEAD~1"), "revert"),
        (("rebase", "topic"), "rebase"),
    ):
        assert user.run(["git", *words]).exit_code == 1
        (user.repo / "README.md").write_text("resolved by hand\n")
        user.git("add", "README.md")
        before = everything(user)
        for squash in (False, True):
            with pytest.raises(MngrError, match=rf"a {what} is in progress in `.*`; nothing was changed"):
                fleet.find("foo").merge(squash=squash)
        with pytest.raises(MngrError, match=f"a {what} is in progress"):
            fleet.find("foo").pull(into="current")
        assert everything(user) == before
        user.git(what, "--abort")
        assert user.git("rev-parse", "main") == later
    user.run(["git", "merge", "topic"])
    ran = user.mngr("merge", "foo").failed()
    assert f"hint: finish it, or `git -C {user.repo} merge --abort`, then try again" in ran.stderr
    user.git("merge", "--abort")
    user.mngr("merge", "foo").ok()
    assert (user.repo / "a.txt").exists()


def everything(user: User) -> tuple[object, ...]:
    """The user's files, index, refs, and what git notes of an operation."""
    notes = {path.name for path in (user.repo / ".git").iterdir()} - {"mngr", "ORIG_HEAD", "FETCH_HEAD", "logs"}
    return refs(user), user.git("status", "--porcelain=v2", "--branch"), tree(user.repo), notes


def test_a_merge_that_a_hook_stops_is_undone(user: User) -> None:
    user.create("foo")
    commit(user, user.work_dir("foo"), "a.txt", "a\n")
    commit(user, user.repo, "mine.txt", "mine\n")
    hook = user.repo / ".git" / "hooks" / "commit-msg"
    hook.write_text("#!/bin/sh\necho no such ticket >&2\nexit 1\n")
    hook.chmod(0o755)
    (user.repo / "README.md").write_text("not committed\n")
    ran = merge_and_compare(user)
    assert "nothing was changed" in ran.stderr and "no such ticket" in ran.stderr
    assert not (user.repo / ".git" / "MERGE_HEAD").exists()


def test_a_dry_run_of_push_writes_nothing_and_a_push_leaves_no_ref(user: User) -> None:
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    work_dir = Path(fleet.create("foo", command="sleep 9999", transfer="git-mirror").record.workspace.work_dir)
    commit(user, work_dir, "theirs.txt", "theirs\n")
    fleet.find("foo").pull(into="current")
    commit(user, user.repo, "1.txt", "new\n")
    tip = commit(user, user.repo, "2.txt", "new\n")
    before = (tree(work_dir, skip=()), tree(user.repo, skip=()))
    assert fleet.find("foo").push(dry_run=True) == (tip, 2)
    assert (tree(work_dir, skip=()), tree(user.repo, skip=())) == before
    assert fleet.find("foo").push() == (tip, 2)
    for repo in (work_dir, user.repo):
        assert user.git("for-each-ref", "refs/mngr/pushed", cwd=repo) == ""
    commit(user, work_dir, "theirs.txt", "diverged\n")
    tip = commit(user, user.repo, "mine.txt", "mine\n")
    assert fleet.find("foo").push(dry_run=True) == (tip, 1)
    with pytest.raises(MngrError, match="cannot be moved forward"):
        fleet.find("foo").push()
    assert user.git("for-each-ref", "refs/mngr/pushed", cwd=user.repo) == ""
    user.git("merge", "-q", tip, cwd=work_dir)  # as the hint says: its objects are there


@pytest.mark.parametrize("transfer", MODES)
def test_the_ref_of_uncommitted_work_goes_with_that_work(user: User, transfer: str) -> None:
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    work_dir = Path(fleet.create("foo", command="sleep 9999", transfer=transfer).record.workspace.work_dir)
    pulled = ("for-each-ref", "--format=%(refname)", "refs/mngr/pulled")
    (work_dir / "loose.txt").write_text("1\n")
    assert fleet.find("foo").pull_uncommitted() is not None
    assert user.git(*pulled) == "refs/mngr/pulled/foo-uncommitted"
    assert list(fleet.gc()) == []  # its agent is there
    commit(user, work_dir, "other.txt", "2\n")
    assert fleet.find("foo").pull_uncommitted() is None
    assert user.git(*pulled) == ""
    (work_dir / "loose.txt").write_text("3\n")
    fleet.find("foo").pull_uncommitted()
    fleet.find("foo").destroy(force=True)
    assert user.git(*pulled) == ""  # the same files are in the saved work


def test_uncommitted_work_that_only_its_ref_holds_stays_until_gc_of_saved_work(user: User) -> None:
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    work_dir = Path(fleet.create("foo", command="sleep 9999").record.workspace.work_dir)
    (work_dir / "loose.txt").write_text("1\n")
    fleet.find("foo").pull_uncommitted()
    (work_dir / "loose.txt").unlink()
    fleet.find("foo").destroy()
    assert [(found.name, found.action) for found in fleet.gc()] == [("refs/mngr/pulled/foo-uncommitted", "kept")]
    user.mngr("gc", "--saved", "--older-than", "0s").ok()
    assert user.git("for-each-ref", "refs/mngr") == ""
