"""What an agent needs is deleted or moved behind our back: the verbs that can work do, and no work is lost."""

import shutil
from pathlib import Path

import pytest

from tests.support import leftovers
from tests.support.user import User


def commit(user: User, work: Path, name: str, text: str) -> str:
    (work / name).write_text(text)
    user.git("add", name, cwd=work)
    user.git("commit", "-q", "-m", f"add {name}", cwd=work)
    return user.git("rev-parse", "HEAD", cwd=work)


def restored(user: User, name: str) -> Path:
    """The newest saved work of an agent, as files."""
    target = user.root / "restored"
    user.mngr("saved", "restore", name, "--to", str(target), cwd=user.root).ok()
    return target


def elsewhere(user: User, *words: str) -> str:
    """The repository may be gone, so the command runs beside it."""
    return user.mngr(*words, cwd=user.root).ok().stdout


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_the_source_repository_is_deleted(user: User, transfer: str) -> None:
    agent = user.create("foo", "--transfer", transfer)
    work = Path(agent["work_dir"])
    commit(user, work, "committed.txt", "one")
    (work / "new.txt").write_text("two")
    (work / "sub").mkdir()
    (work / "sub" / "deep.txt").write_text("three")
    shutil.rmtree(user.repo)
    assert elsewhere(user, "list", "--format", "{name} {state}") == "foo RUNNING\n"
    assert elsewhere(user, "exec", "foo", "cat new.txt") == "two"
    elsewhere(user, "stop", "foo")
    elsewhere(user, "start", "foo")
    for verb in ("pull", "merge"):
        assert "bug" not in user.mngr(verb, "foo", cwd=user.root).failed().stderr
    refused = user.mngr("destroy", "foo", cwd=user.root).failed()
    assert "has work that is found nowhere else" in refused.stderr
    elsewhere(user, "destroy", "foo", "--force")
    assert elsewhere(user, "list", "--format", "{name}") == ""
    assert not work.exists()
    assert "foo-1" in elsewhere(user, "saved", "list")
    elsewhere(user, "saved", "show", "foo-1")
    back = restored(user, "foo")
    found = {name: (back / name).read_text() for name in ("committed.txt", "new.txt", "sub/deep.txt", "README.md")}
    assert found == {"committed.txt": "one", "new.txt": "two", "sub/deep.txt": "three", "README.md": "hello\n"}


def test_the_source_repository_is_deleted_and_the_agent_restored(user: User) -> None:
    work = Path(user.create("foo")["work_dir"])
    (work / "new.txt").write_text("two")
    shutil.rmtree(user.repo)
    elsewhere(user, "destroy", "foo", "--force")
    elsewhere(user, "saved", "restore", "foo")
    agent = user.mngr("list", "--format", "json", cwd=user.root).ok().json["agents"][0]
    assert (Path(agent["work_dir"]) / "new.txt").read_text() == "two"
    elsewhere(user, "start", "foo")
    assert "nowhere else" in user.mngr("destroy", "foo", cwd=user.root).failed().stderr


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_the_source_repository_is_replaced_by_plain_files(user: User, transfer: str) -> None:
    work = Path(user.create("foo", "--transfer", transfer)["work_dir"])
    commit(user, work, "committed.txt", "one")
    (work / "new.txt").write_text("two")
    shutil.rmtree(user.repo / ".git")
    user.mngr("stop", "foo").ok()
    assert "nowhere else" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    back = restored(user, "foo")
    assert (back / "committed.txt").read_text() == "one"
    assert (back / "new.txt").read_text() == "two"


def test_the_current_directory_is_deleted(user: User) -> None:
    gone = user.root / "gone"
    gone.mkdir()
    done = user.run(["sh", "-c", f"rmdir {gone}; mngr list; echo $?; mngr help >/dev/null; echo $?"], cwd=gone)
    assert "error: the directory you are in was deleted\nhint: " in done.stderr
    assert done.stdout == "1\n0\n"


def test_the_source_repository_is_moved_and_repaired(user: User) -> None:
    work = Path(user.create("foo")["work_dir"])
    (work / "new.txt").write_text("two")
    user.repo = user.repo.rename(user.root / "moved")
    user.mngr("stop", "foo").ok()
    assert "nowhere else" in user.mngr("destroy", "foo").failed().stderr
    assert (work / "new.txt").read_text() == "two"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_the_work_dir_is_deleted_by_hand(user: User, transfer: str) -> None:
    agent = user.create("foo", "--transfer", transfer)
    work = Path(agent["work_dir"])
    shutil.rmtree(work)
    assert user.state("foo") == "RUNNING"
    for words in (("exec", "foo", "true"), ("diff", "foo"), ("pull", "foo")):
        said = user.mngr(*words).failed().stderr
        assert str(work) in said and "bug" not in said
    user.mngr("stop", "foo").ok()
    assert "is gone" in user.mngr("start", "foo").failed().stderr
    user.mngr("destroy", "foo").ok()
    assert leftovers.found(user) == []


@pytest.mark.parametrize("words", [(), ("--remove-created-branch",), ("--force", "--remove-created-branch")])
def test_commits_of_a_deleted_work_dir_stay_on_the_branch(user: User, words: tuple[str, ...]) -> None:
    work = Path(user.create("foo")["work_dir"])
    tip = commit(user, work, "committed.txt", "one")
    shutil.rmtree(work)
    done = user.mngr("destroy", "foo", *words).ok()
    assert "branch mngr/foo stays" in done.stdout
    assert user.git("rev-parse", "mngr/foo") == tip


@pytest.mark.parametrize("force", [("--force",), ("--force", "--remove-created-branch")])
@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_an_agent_that_removed_its_own_repository(user: User, transfer: str, force: tuple[str, ...]) -> None:
    work = Path(user.create("foo", "--transfer", transfer)["work_dir"])
    tip = commit(user, work, "committed.txt", "one")
    (work / "new.txt").write_text("two")
    shutil.rmtree(work / ".git") if (work / ".git").is_dir() else (work / ".git").unlink()
    assert user.state("foo") == "RUNNING"
    assert "bug" not in user.mngr("diff", "foo").failed().stderr
    assert "nowhere else" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", *force).ok()
    back = restored(user, "foo")
    assert (back / "new.txt").read_text() == "two"
    assert (back / "committed.txt").read_text() == "one"
    if transfer == "git-worktree":
        assert user.git("rev-parse", "mngr/foo") == tip


def test_an_agent_in_a_home_that_is_a_repository_and_without_its_own(user: User) -> None:
    """git would find the repository further up and answer for that one."""
    user.git("init", "-q", cwd=user.home)
    user.git("commit", "-q", "--allow-empty", "-m", "dotfiles", cwd=user.home)
    work = Path(user.create("foo")["work_dir"])
    (work / "new.txt").write_text("two")
    (work / ".git").unlink()
    assert "nowhere else" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    assert (restored(user, "foo") / "new.txt").read_text() == "two"
    assert user.git("status", "--porcelain", "--untracked-files=no", cwd=user.home) == ""
    assert user.git("for-each-ref", "refs/mngr", cwd=user.home) == ""


def test_plain_files_with_a_repository_among_them(user: User) -> None:
    plain = user.root / "plain"
    (plain / "lib").mkdir(parents=True)
    (plain / "a.txt").write_text("a")
    user.git("init", "-q", cwd=plain / "lib")
    commit(user, plain / "lib", "b.txt", "b")
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", cwd=plain).ok()
    work = user.work_dir("foo")
    tip = commit(user, work / "lib", "c.txt", "c")
    user.mngr("destroy", "foo").failed()
    user.mngr("destroy", "foo", "--force").ok()
    back = restored(user, "foo")
    assert (back / "lib" / "c.txt").read_text() == "c"
    assert user.git("rev-parse", "HEAD", cwd=back / "lib") == tip


def test_the_branch_was_deleted_or_renamed_by_the_agent(user: User) -> None:
    work = Path(user.create("foo")["work_dir"])
    user.git("checkout", "-q", "--detach", cwd=work)
    tip = commit(user, work, "committed.txt", "one")
    user.git("branch", "-D", "mngr/foo")
    assert "1 commit" in user.mngr("destroy", "foo").failed().stderr
    user.mngr("destroy", "foo", "--force").ok()
    assert user.git("rev-parse", user.git("for-each-ref", "--format=%(refname)", "refs/mngr/saved")) == tip


def test_commits_on_the_branch_and_on_a_detached_head_are_both_kept(user: User) -> None:
    work = Path(user.create("foo")["work_dir"])
    on_branch = commit(user, work, "branch.txt", "one")
    user.git("checkout", "-q", "--detach", "HEAD~1", cwd=work)
    detached = commit(user, work, "detached.txt", "two")
    user.mngr("destroy", "foo", "--force", "--remove-created-branch").ok()
    alive = user.git("rev-list", "--all").split("\n")
    assert on_branch in alive and detached in alive


def test_the_state_of_an_agent_is_deleted_by_hand(user: User) -> None:
    agent = user.create("foo")
    shutil.rmtree(user.host_dir / "agents" / agent["id"])
    assert user.agents() == []
    assert "no agent named `foo`" in user.mngr("stop", "foo").failed().stderr
    assert (Path(agent["work_dir"]) / "README.md").exists()
    done = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999").failed()
    assert "a branch called `mngr/foo` exists already" in done.stderr
