"""What an agent has that is found nowhere else: nothing of it is lost, wherever git or the agent keeps it."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.user import MNGR, Ran, User

COPIES = ("git-worktree", "git-mirror")
# Root reads everything; without these capabilities it is a user like any other.
_PLAIN_USER = [
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
]


def as_plain_user(user: User, *words: str) -> Ran:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("no setpriv here")
    return user.run([*(_PLAIN_USER if os.geteuid() == 0 else []), MNGR, *words])


def commit(user: User, directory: Path, name: str, subject: str) -> str:
    (directory / name).write_text(f"{subject}\n")
    user.git("add", name, cwd=directory)
    user.git("commit", "-qm", subject, cwd=directory)
    return user.git("rev-parse", "HEAD", cwd=directory)


def refused(user: User, words: str, name: str = "x") -> None:
    assert words in user.mngr("destroy", name).failed().stderr


def saved_and_restored(user: User, name: str = "x") -> Path:
    user.mngr("destroy", name, "--force").ok()
    user.mngr("saved", "restore", name).ok()
    return user.work_dir(name)


def holds(user: User, commit_id: str) -> bool:
    """Whether the user's repository has this commit, and not only until git tidies up."""
    user.git("gc", "--quiet", "--prune=now")
    return user.run(["git", "cat-file", "-e", commit_id]).exit_code == 0


@pytest.fixture(params=COPIES)
def work(user: User, request: pytest.FixtureRequest) -> Path:
    """The work dir of an agent `x` that did nothing yet."""
    (user.repo / "b.txt").write_text("two\n")
    (user.repo / ".gitignore").write_text("*.big\n")
    user.git("add", ".")
    user.git("commit", "-qm", "base")
    user.create("x", "--transfer", request.param)
    return user.work_dir("x")


def test_an_embedded_repository_that_was_committed_as_a_link_comes_back(user: User, work: Path) -> None:
    inner = work / "n"
    user.git("init", "-q", str(inner))
    tip = commit(user, inner, "p", "PRECIOUS")
    user.git("add", "n", cwd=work)
    user.git("commit", "-qm", "embed", cwd=work)
    user.mngr("merge", "x").ok()
    refused(user, "1 repository inside")
    work = saved_and_restored(user)
    assert user.git("rev-parse", "HEAD", cwd=work / "n") == tip
    assert user.git("status", "--porcelain", cwd=work) == ""


def test_a_restore_of_a_snapshot_saves_the_repositories_that_it_replaces(user: User, work: Path) -> None:
    with (work / "model.big").open("wb") as file:
        file.truncate(15_000_000)
    user.mngr("snapshot", "create", "x", "before").ok()
    user.git("init", "-q", str(work / "n"))
    tip = commit(user, work / "n", "p", "PRECIOUS")
    user.git("add", "n", cwd=work)
    user.git("commit", "-qm", "embed", cwd=work)
    user.mngr("snapshot", "create", "x", "after").ok()
    user.mngr("merge", "x").ok()
    user.mngr("snapshot", "restore", "x/before").ok()
    assert not (work / "n").exists()
    user.mngr("snapshot", "restore", "x/after").ok()
    assert user.git("rev-parse", "HEAD", cwd=work / "n") == tip
    user.mngr("saved", "restore", "x-1", "--to", str(user.root / "back")).ok()
    assert user.git("rev-parse", "HEAD", cwd=user.root / "back/n") == tip
    (work / "late.big").write_bytes((work / "model.big").read_bytes())
    user.mngr("snapshot", "restore", "x/after").ok()
    assert (work / "model.big").exists() and (work / "late.big").exists()


def test_commits_inside_a_submodule_come_back(user: User, work: Path) -> None:
    user.git("clone", "-q", str(user.repo), str(user.root / "lib"))
    words = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(user.root / "lib"), "deps/sub"]
    user.git(*words, cwd=work)
    user.git("commit", "-qam", "a submodule", cwd=work)
    user.mngr("merge", "x").ok()
    assert "would destroy x" in user.mngr("destroy", "x", "--dry-run").ok().stdout  # all of it is in its remote
    tip = commit(user, work / "deps/sub", "own", "inside")
    user.git("commit", "-qam", "its commit", cwd=work)
    user.mngr("merge", "x").ok()
    refused(user, "1 repository inside")
    work = saved_and_restored(user)
    assert user.git("rev-parse", "HEAD", cwd=work / "deps/sub") == tip
    assert user.git("status", "--porcelain", cwd=work / "deps/sub") == ""
    user.git("submodule", "--quiet", "deinit", "-f", "deps/sub", cwd=work)  # its repository is in `.git` only
    refused(user, "1 repository inside with work of its own")


def test_a_submodule_that_is_not_checked_out_any_more_comes_back(user: User, work: Path) -> None:
    user.git("clone", "-q", str(user.repo), str(user.root / "lib"))
    user.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(user.root / "lib"), "sub", cwd=work)
    tip = commit(user, work / "sub", "own", "inside")
    user.git("reset", "-q", "--hard", cwd=work)
    shutil.rmtree(work / "sub", ignore_errors=True)
    refused(user, "1 repository inside with work of its own")
    work = saved_and_restored(user)
    git_dir = Path(user.git("rev-parse", "--absolute-git-dir", cwd=work))
    user.git("--git-dir", str(git_dir / "modules/sub"), "--work-tree", ".", "cat-file", "-e", tip, cwd=work)


@pytest.mark.parametrize("how", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_the_index_hides_are_work(user: User, work: Path, how: str) -> None:
    user.git("update-index", how, "b.txt", cwd=work)
    assert "would destroy" in user.mngr("destroy", "x", "--dry-run").ok().stdout
    (work / "b.txt").write_text("PRECIOUS\n")
    refused(user, "1 uncommitted file")
    assert (saved_and_restored(user) / "b.txt").read_text() == "PRECIOUS\n"


def test_a_program_is_work_where_a_setting_hides_modes(user: User, work: Path) -> None:
    user.git("config", "core.fileMode", "false", cwd=work)
    (work / "b.txt").chmod(0o755)
    refused(user, "1 uncommitted file")
    assert os.access(saved_and_restored(user) / "b.txt", os.X_OK)


@pytest.mark.parametrize("kind", ["untracked", "tracked", "ignored"])
def test_a_directory_that_cannot_be_read_is_not_empty(user: User, work: Path, kind: str) -> None:
    (work / "d").mkdir()
    (work / "d" / ("f.big" if kind == "ignored" else "f")).write_text("PRECIOUS\n")
    if kind == "tracked":
        user.git("add", "d", cwd=work)
        user.git("commit", "-qm", "d", cwd=work)
        user.mngr("merge", "x").ok()
    (work / "d").chmod(0)
    try:
        for words in ((), ("--force",)):
            done = as_plain_user(user, "destroy", "x", *words).failed()
            assert f"{work}/d" in done.stderr and "cannot be read" in done.stderr
    finally:
        (work / "d").chmod(0o755)


def test_a_directory_of_plain_files_that_cannot_be_read_is_not_empty(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    user.create("x", "--from", str(plain))
    directory = user.work_dir("x") / "d"
    directory.mkdir()
    (directory / "f").write_text("PRECIOUS\n")
    directory.chmod(0)
    assert f"{directory}` cannot be read" in as_plain_user(user, "destroy", "x").failed().stderr
    directory.chmod(0o755)


def test_a_large_ignored_file_of_a_clean_agent_is_named(user: User, work: Path) -> None:
    with (work / "model.big").open("wb") as file:
        file.truncate(15_000_000)
    assert "not saved: `model.big` (15 MB" in user.mngr("destroy", "x", "--dry-run").ok().stdout
    assert "not saved: `model.big` (15 MB" in user.mngr("destroy", "x").ok().stdout


def test_what_is_staged_and_differs_from_the_disk_comes_back(user: User, work: Path) -> None:
    for name in ("n", "gone"):
        (work / name).write_text("PRECIOUS\n")
    user.git("add", "n", "gone", cwd=work)
    (work / "n").write_text("other\n")
    (work / "gone").unlink()
    work = saved_and_restored(user)
    assert [user.git("show", f":{name}", cwd=work) for name in ("n", "gone")] == ["PRECIOUS", "PRECIOUS"]
    assert (work / "n").read_text() == "other\n" and not (work / "gone").exists()


def test_a_rebase_with_changes_put_aside_can_be_continued(user: User, work: Path) -> None:
    user.git("switch", "-qc", "other", cwd=work)
    commit(user, work, "b.txt", "theirs")
    user.git("switch", "-q", "mngr/x", cwd=work)
    mine = commit(user, work, "b.txt", "mine")
    commit(user, work, "more", "a second one")
    (work / "README.md").write_text("put aside\n")
    assert user.run(["git", "rebase", "-q", "--autostash", "other"], cwd=work).exit_code != 0
    work = saved_and_restored(user)
    assert user.git("diff", "--name-only", "--diff-filter=U", cwd=work) == "b.txt"
    assert holds(user, mine)
    (work / "b.txt").write_text("both\n")
    user.git("add", "b.txt", cwd=work)
    user.git("-c", "core.editor=true", "rebase", "--continue", cwd=work)
    assert (work / "README.md").read_text() == "put aside\n"
    assert user.git("log", "--format=%s", "-3", cwd=work) == "a second one\nmine\ntheirs"


def test_a_clone_does_not_continue_a_rebase_of_the_branch_of_its_source(user: User, work: Path) -> None:
    user.git("switch", "-qc", "other", cwd=work)
    commit(user, work, "b.txt", "theirs")
    user.git("switch", "-q", "mngr/x", cwd=work)
    mine = commit(user, work, "b.txt", "mine")
    assert user.run(["git", "rebase", "-q", "other"], cwd=work).exit_code != 0
    user.mngr("clone", "x", "y", "--no-connect").ok()
    clone = user.work_dir("y")
    assert not Path(user.git("rev-parse", "--absolute-git-dir", cwd=clone), "rebase-merge").exists()
    assert user.git("branch", "--show-current", cwd=clone) == "mngr/y"
    assert user.git("rev-parse", "mngr/x", cwd=work) == mine


def test_a_merge_that_is_not_finished_comes_back(user: User, work: Path) -> None:
    user.git("switch", "-q", "--detach", cwd=work)
    theirs = commit(user, work, "b.txt", "theirs")
    user.git("switch", "-q", "mngr/x", cwd=work)
    commit(user, work, "b.txt", "mine")
    assert user.run(["git", "merge", "-q", theirs], cwd=work).exit_code == 1
    (work / "b.txt").write_text("half resolved\n")
    work = saved_and_restored(user)
    assert user.git("rev-parse", "MERGE_HEAD", cwd=work) == theirs
    assert user.git("ls-files", "-u", "--format=%(stage)", cwd=work).split() == ["1", "2", "3"]
    assert (work / "b.txt").read_text() == "half resolved\n"
    user.git("commit", "-qam", "merged", cwd=work)


def test_commits_that_only_a_private_ref_names_are_work(user: User, work: Path) -> None:
    base = user.git("rev-parse", "HEAD", cwd=work)
    user.git("switch", "-q", "--detach", cwd=work)
    tip = commit(user, work, "c", "PRECIOUS")
    user.git("update-ref", "refs/worktree/kept", tip, cwd=work)
    user.git("switch", "-q", "mngr/x", cwd=work)
    user.git("reflog", "expire", "--expire=all", "--all", cwd=work)
    assert user.git("rev-parse", "HEAD", cwd=work) == base
    refused(user, "1 commit")
    work = saved_and_restored(user)
    assert user.git("rev-parse", "refs/worktree/kept", cwd=work) == tip


def test_commits_that_only_a_reflog_names_are_kept(user: User, work: Path) -> None:
    user.git("switch", "-q", "--detach", cwd=work)
    tip = commit(user, work, "c", "PRECIOUS")
    user.git("switch", "-q", "mngr/x", cwd=work)
    user.mngr("destroy", "x").ok()
    assert holds(user, tip)
    user.mngr("saved", "restore", "x").ok()
    assert "PRECIOUS" in user.git("reflog", cwd=user.work_dir("x"))


@pytest.mark.parametrize("place", ["../w2", "w2"])
def test_commits_of_a_worktree_that_the_agent_made_are_work(user: User, work: Path, place: str) -> None:
    user.git("worktree", "add", "-q", "--detach", place, cwd=work)
    tip = commit(user, work / place, "c", "PRECIOUS")
    outside = work.parent.name == "worktrees" and place == "../w2"  # of the user's own repository, where it stays
    if outside:
        user.mngr("destroy", "x").ok()
    else:
        refused(user, "1 commit")
        user.mngr("destroy", "x", "--force").ok()
    if not outside or (work / place).exists():
        assert holds(user, tip)


def test_a_push_to_a_path_that_is_gone_makes_nothing_safe(user: User) -> None:
    user.create("x", "--transfer", "git-mirror")
    work = user.work_dir("x")
    user.git("init", "-q", "--bare", str(user.root / "gone.git"))
    user.git("remote", "add", "other", str(user.root / "gone.git"), cwd=work)
    commit(user, work, "c", "PRECIOUS")
    user.git("push", "-q", "other", "HEAD", cwd=work)
    assert "would destroy" in user.mngr("destroy", "x", "--dry-run").ok().stdout
    shutil.rmtree(user.root / "gone.git")
    refused(user, "1 commit")


def test_a_pull_that_was_not_merged_makes_nothing_safe_and_is_not_overwritten(user: User) -> None:
    user.create("x", "--transfer", "git-mirror")
    tip = commit(user, user.work_dir("x"), "README.md", "PRECIOUS")
    commit(user, user.repo, "README.md", "mine")
    assert "conflicts" in user.mngr("merge", "x").failed().stderr
    refused(user, "1 commit")
    user.mngr("destroy", "x", "--force").ok()
    user.git("update-ref", "refs/mngr/pulled/x", tip)  # as an earlier version left it
    for entry in (user.host_dir / "saved").glob("x-*"):
        shutil.rmtree(entry)
    for ref in user.git("for-each-ref", "--format=%(refname)", "refs/mngr/saved").split():
        user.git("update-ref", "-d", ref)
    user.create("x", "--transfer", "git-mirror")
    commit(user, user.work_dir("x"), "c", "second")
    user.mngr("pull", "x").ok()
    assert "refs/mngr/pulled/x-replaced-1" in user.mngr("gc").ok().stdout
    assert holds(user, tip)


def test_outcome_and_artifacts_of_a_plain_copy_are_work(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    user.create("x", "--from", str(plain))
    user.mngr("exec", "x", "echo PRECIOUS >$MNGR_ARTIFACTS_DIR/r; echo '{}' >$MNGR_OUTCOME_FILE").ok()
    refused(user, "2 uncommitted files")
    assert (saved_and_restored(user) / ".mngr/task/artifacts/r").read_text() == "PRECIOUS\n"


def test_outcome_and_artifacts_of_an_agent_in_place_are_kept(user: User) -> None:
    user.create("x", "--transfer", "none")
    user.mngr("exec", "x", "echo PRECIOUS >$MNGR_ARTIFACTS_DIR/r").ok()
    agent_id = user.agent("x")["id"]
    assert "saved restore x-1" in user.mngr("destroy", "x").ok().stdout
    user.mngr("saved", "restore", "x-1", "--to", str(user.root / "back")).ok()
    assert (user.root / "back/task/artifacts/r").read_text() == "PRECIOUS\n"
    user.mngr("saved", "restore", "x-1").ok()
    again = user.agent("x")
    assert again["work_dir"] == str(user.repo) and again["id"] == agent_id
    assert user.mngr("exec", "x", "cat $MNGR_ARTIFACTS_DIR/r").ok().stdout == "PRECIOUS\n"
    assert user.git("status", "--porcelain") == ""


def test_a_conversation_and_a_recording_are_kept(user: User) -> None:
    user.mngr("create", "x", "--type", "scripted", "--record", "--no-connect").ok()
    user.wait_for_state("x", "WAITING")
    user.mngr("message", "x", "-m", "say PRECIOUS", "--wait-reply").ok()
    assert "conversation" in user.mngr("destroy", "x").ok().stdout
    user.mngr("saved", "restore", "x").ok()
    assert "PRECIOUS" in user.mngr("transcript", "x").ok().stdout
    user.mngr("capture", "x", "--cast", str(user.root / "cast")).ok()
    assert "PRECIOUS" in (user.root / "cast").read_text()


def test_a_file_that_is_called_like_an_archive_of_ours_is_a_file(user: User, work: Path) -> None:
    (user.home / "mine").write_text("mine\n")
    (user.root / "st/esc").mkdir(parents=True)
    (user.root / "st/esc/mine").write_text("PWNED\n")
    user.run(["tar", "-cf", "docs.mngr-nested-repository.tar", "-C", str(user.root / "st"), "esc/mine"], cwd=work)
    content = (work / "docs.mngr-nested-repository.tar").read_bytes()
    os.symlink(str(user.home), work / "esc")
    (work / "x.mngr-nested-repository.tar").write_text("not an archive\n")
    (work / ".mngr-nested-repository.tar").write_text("not an archive\n")
    (work / ".gitattributes").write_text("*.txt text\n")
    user.mngr("snapshot", "create", "x", "s").ok()
    work = saved_and_restored(user)
    assert (work / "x.mngr-nested-repository.tar").read_text() == "not an archive\n"
    user.mngr("snapshot", "restore", "x/s").ok()
    user.mngr("clone", "x", "y", "--no-connect").ok()
    for directory in (user.work_dir("x"), user.work_dir("y")):
        assert (directory / "docs.mngr-nested-repository.tar").read_bytes() == content
        assert not (directory / "docs").exists()
    assert (user.home / "mine").read_text() == "mine\n"


def test_a_change_of_plain_files_that_keeps_size_and_time_is_a_change(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "a").write_text("one\n")
    (plain / "key").write_text("secret\n")
    user.create("x", "--from", str(plain))
    work, before = user.work_dir("x"), (plain / "a").stat()
    (work / "a").write_text("two\n")
    os.utime(work / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    (work / "key").chmod(0o600)
    refused(user, "2 uncommitted files")
    work = saved_and_restored(user)
    assert (work / "a").read_text() == "two\n"
    assert (work / "key").stat().st_mode & 0o777 == 0o600


def test_a_repository_that_was_made_anew_is_saved(user: User) -> None:
    user.create("x", "--transfer", "git-mirror")
    work = user.work_dir("x")
    shutil.rmtree(work / ".git")
    user.git("init", "-q", "-b", "fresh", cwd=work)
    tip = commit(user, work, "c", "PRECIOUS")
    for verb in (("diff", "x"), ("pull", "x"), ("snapshot", "create", "x")):
        assert "bad object" not in user.mngr(*verb).stderr
    refused(user, "commit")
    user.mngr("destroy", "x", "--force").ok()
    assert holds(user, tip)


def test_a_damaged_index_hides_nothing(user: User, work: Path) -> None:
    index = Path(user.git("rev-parse", "--absolute-git-dir", cwd=work)) / "index"
    (work / "b.txt").write_text("PRECIOUS\n")
    (work / "new").write_text("PRECIOUS\n")
    index.write_bytes(b"damaged")
    refused(user, "2 uncommitted files")
    work = saved_and_restored(user)
    assert (work / "b.txt").read_text() == (work / "new").read_text() == "PRECIOUS\n"


def test_a_damaged_repository_is_saved_as_files(user: User) -> None:
    user.create("x", "--transfer", "git-mirror")
    work = user.work_dir("x")
    commit(user, work, "c", "PRECIOUS")
    (work / ".git/HEAD").write_text("damaged\n")
    refused(user, "git cannot read its repository")
    work = saved_and_restored(user)
    assert (work / "c").read_text() == "PRECIOUS\n" and (work / ".git/HEAD").read_text() == "damaged\n"


def test_a_damaged_ref_of_the_user_is_in_nobodys_way(user: User, work: Path) -> None:
    (user.repo / ".git/refs/heads/broken").touch()  # as a power cut leaves it
    tip = commit(user, work, "c", "PRECIOUS")
    refused(user, "1 commit")
    user.mngr("snapshot", "create", "x", "s").ok()
    user.mngr("destroy", "x", "--force").ok()
    (user.repo / ".git/refs/heads/broken").unlink()
    assert holds(user, tip)


def test_no_repository_inside_is_carried_into_an_agent(user: User) -> None:
    user.git("init", "-q", "sub")
    commit(user, user.repo / "sub", "s", "inside")
    (user.repo / "loose").write_text("uncommitted\n")
    for name, transfer in (("x", "git-worktree"), ("y", "git-mirror")):
        user.create(name, "--include-unclean", "--transfer", transfer)
        assert user.git("show", "--name-only", "--format=", "HEAD", cwd=user.work_dir(name)) == "loose"


def test_objects_of_git_lfs_are_not_lost(user: User) -> None:
    user.create("x", "--transfer", "git-mirror")
    name = "63640264849a87c90356129d99ea165e37aa5fabc1fea46906df1a7ca50db492"
    place = Path(".git/lfs/objects") / name[:2] / name[2:4]
    (user.work_dir("x") / place).mkdir(parents=True)
    (user.work_dir("x") / place / name).write_bytes(b"12345678910")
    user.mngr("destroy", "x")
    assert any(path.name == name for path in user.root.rglob(name))


def test_directories_that_are_very_deep_are_measured_and_removed(user: User, work: Path) -> None:
    path = str(work / "ignored.big")
    for _ in range(1200):
        os.mkdir(path)
        path += "/d"
    Path(path).write_text("small\n")
    user.mngr("destroy", "x").ok()
    assert not work.exists()
    assert "Nothing to remove" in user.mngr("gc").ok().stdout
