"""Create: the workspace in each transfer mode, what goes into it, and what is refused."""

import os
from pathlib import Path

import pytest

from tests.support.trees import tree
from tests.support.user import User, wait_for


def write_settings(user: User, text: str) -> None:
    user.host_dir.mkdir(mode=0o700, exist_ok=True)
    (user.host_dir / "settings.toml").write_text(text)


def everything(user: User) -> set[str]:
    """Every path this user has, to see that nothing was made."""
    return {str(path) for path in user.root.rglob("*")}


def test_a_git_repository_becomes_a_worktree_on_a_branch_of_its_own(user: User) -> None:
    agent = user.create("foo")
    assert (agent["transfer"], agent["initial_branch"], agent["base_branch"]) == ("git-worktree", "mngr/foo", "main")
    assert agent["work_dir"] != str(user.repo)
    assert tree(agent["work_dir"]) == tree(user.repo)
    assert agent["work_dir"] in user.git("worktree", "list")
    assert user.git("status", "--porcelain", cwd=agent["work_dir"]) == ""


def test_a_mirror_is_a_repository_of_its_own(user: User) -> None:
    agent = user.create("foo", "--transfer=git-mirror")
    assert (Path(agent["work_dir"]) / ".git").is_dir()
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "mngr/foo"
    assert user.git("branch", "--list", "mngr/*") == ""
    assert tree(agent["work_dir"]) == tree(user.repo)
    assert user.git("config", "user.email", cwd=agent["work_dir"]) == "test@example.com"


def test_a_directory_without_git_is_copied(user: User) -> None:
    plain = user.root / "plain dir"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub" / "a b.txt").write_text("a\n")
    os.symlink("sub/a b.txt", plain / "link")
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", cwd=plain).ok()
    agent = user.agent("foo")
    assert (agent["transfer"], agent["initial_branch"], agent["project"]) == ("rsync", None, "plain dir")
    assert tree(agent["work_dir"]) == tree(plain)
    ran = user.mngr("create", "bar", "--no-connect", "--transfer", "git-worktree", "--command", "true", cwd=plain)
    assert "is not in a git repository" in ran.failed().stderr and "--transfer rsync" in ran.stderr


def test_in_place_uses_the_directory_itself(user: User) -> None:
    (user.repo / "dirty").write_text("x\n")
    agent = user.create("foo", "--transfer=none", command="pwd > where; sleep 9999")
    assert agent["work_dir"] == str(user.repo)
    where = user.repo / "where"
    assert wait_for(lambda: where.exists() and where.read_text(), "its directory") == f"{user.repo}\n"
    assert user.git("branch", "--list", "mngr/*") == ""


def test_a_copy_with_rsync_of_a_repository_is_independent(user: User) -> None:
    user.create("other")
    agent = user.create("foo", "--transfer", "rsync")
    assert user.git("branch", "--show-current", cwd=agent["work_dir"]) == "mngr/foo"
    assert user.git("worktree", "list", cwd=agent["work_dir"]).count("\n") == 0
    assert user.git("branch", "--show-current") == "main"


def test_rsync_of_a_linked_worktree_is_refused(user: User) -> None:
    linked = user.root / "linked"
    user.git("worktree", "add", "-q", str(linked), "-b", "linked")
    ran = user.mngr("create", "foo", "--no-connect", "--transfer", "rsync", "--command", "sleep 9", cwd=linked)
    assert "worktree" in ran.failed().stderr and "git-mirror" in ran.stderr
    assert user.git("branch", "--show-current", cwd=linked) == "linked"
    for transfer in ("git-worktree", "git-mirror"):
        user.mngr("create", transfer, "--no-connect", "--transfer", transfer, "--command", "sleep 9", cwd=linked).ok()
        assert user.agent(transfer)["base_branch"] == "linked"


def test_a_dirty_tree_is_refused_and_both_ways_out_are_named(user: User) -> None:
    (user.repo / "README.md").write_text("changed\n")
    (user.repo / "new.txt").write_text("new\n")
    before = everything(user)
    ran = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9").failed()
    assert "uncommitted changes: `README.md`, `new.txt`" in ran.stderr
    assert "--include-unclean" in ran.stderr and "--exclude-unclean" in ran.stderr
    assert everything(user) == before


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
@pytest.mark.parametrize("option", ["--include-unclean", "--no-ensure-clean"])
def test_included_changes_are_a_commit_and_the_source_stays_as_it_is(user: User, transfer: str, option: str) -> None:
    (user.repo / "README.md").write_bytes(b"changed\r\n")
    (user.repo / "staged.txt").write_text("staged\n")
    user.git("add", "staged.txt")
    (user.repo / "sub").mkdir()
    (user.repo / "sub" / "new file.txt").write_text("untracked\n")
    status, files = user.git("status", "--porcelain=v2"), tree(user.repo)
    agent = user.create("foo", "--transfer", transfer, option)
    assert tree(agent["work_dir"]) == files
    assert user.git("status", "--porcelain", cwd=agent["work_dir"]) == ""
    assert user.git("log", "-1", "--format=%s", cwd=agent["work_dir"]) == "Uncommitted changes carried into mngr/foo"
    assert user.git("rev-parse", "HEAD^", cwd=agent["work_dir"]) == user.git("rev-parse", "main")
    assert user.git("status", "--porcelain=v2") == status
    assert tree(user.repo) == files
    assert user.mngr("diff", "foo").ok().stdout == ""  # they are the user's, not the agent's
    user.mngr("destroy", "foo").ok()


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_excluded_changes_stay_behind(user: User, transfer: str) -> None:
    committed = tree(user.repo)
    (user.repo / "README.md").write_text("changed\n")
    (user.repo / "new.txt").write_text("new\n")
    before = tree(user.repo)
    agent = user.create("foo", "--transfer", transfer, "--exclude-unclean")
    assert tree(agent["work_dir"]) == committed
    assert tree(user.repo) == before


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_extra_paths_are_copied_or_shared(user: User, transfer: str) -> None:
    (user.repo / ".gitignore").write_text("/.env\n/data\n")
    user.git("add", ".gitignore")
    user.git("commit", "-q", "-m", "ignore")
    (user.repo / ".env").write_text("KEY=1\n")
    (user.repo / "data").mkdir()
    (user.repo / "data" / "big").write_text("big\n")
    write_settings(user, '[workspace.extra_paths]\n".env" = "copy"\ndata = "share"\n')
    work_dir = Path(user.create("foo", "--transfer", transfer)["work_dir"])
    assert (work_dir / ".env").read_text() == "KEY=1\n" and not (work_dir / ".env").is_symlink()
    assert (work_dir / "data").is_symlink() and (work_dir / "data" / "big").read_text() == "big\n"
    assert user.git("status", "--porcelain", cwd=work_dir) == ""
    user.mngr("destroy", "foo").ok()
    assert (user.repo / "data" / "big").exists()


def test_extra_paths_that_are_missing_or_not_ignored_are_refused_and_nothing_is_left(user: User) -> None:
    write_settings(user, '[workspace.extra_paths]\n".env" = "copy"\n')
    assert "does not exist" in user.mngr("create", "foo", "--no-connect", "--command", "sleep 9").failed().stderr
    (user.repo / ".env").write_text("KEY=1\n")
    ran = user.mngr("create", "foo", "--no-connect", "--exclude-unclean", "--command", "sleep 9").failed()
    assert "which git does not ignore" in ran.stderr and ".gitignore" in ran.stderr
    assert user.agents() == []
    assert user.git("branch", "--list", "mngr/*") == ""
    assert user.git("worktree", "list").count("\n") == 0


def test_the_copy_goes_where_the_address_says(user: User) -> None:
    target = user.root / "my copy"
    user.mngr("create", f"foo:{target}", "--no-connect", "--command", "sleep 9999").ok()
    assert user.agent("foo")["work_dir"] == str(target)
    assert (target / "README.md").exists()
    ran = user.mngr("create", f"bar:{target}", "--no-connect", "--command", "sleep 9").failed()
    assert "exists already" in ran.stderr
    user.mngr("destroy", "foo").ok()
    assert not target.exists()


def test_a_dry_run_makes_nothing(user: User) -> None:
    before = everything(user)
    ran = user.mngr("create", "foo", "--dry-run", "--command", "sleep 9", "--format", "json").ok()
    assert {**ran.json, "name": "foo", "transfer": "git-worktree", "branch": "mngr/foo", "dry_run": True} == ran.json
    assert "would create foo" in user.mngr("create", "foo", "--dry-run", "--command", "sleep 9").ok().stdout
    assert everything(user) == before
    assert user.tmux("ls").exit_code != 0


def test_a_name_is_made_up_when_none_is_given(user: User) -> None:
    made = user.mngr("create", "--no-connect", "--type", "command", "--format", "json", "--", "sleep", "100").ok().json
    assert user.agent(made["name"])["state"] == "RUNNING"
    assert made["branch"] == f"mngr/{made['name']}"


def test_json_has_the_ids(user: User) -> None:
    made = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9", "--format", "json").ok().json
    agent = user.agent("foo")
    assert made["agent_id"] == agent["id"] and made["host_id"] == agent["host"]["id"]
    assert made["host_name"] == "local" and made["work_dir"] == agent["work_dir"]


def test_a_name_that_exists_is_refused(user: User) -> None:
    user.create("foo")
    ran = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9").failed()
    assert "an agent named `foo` exists already" in ran.stderr and "mngr connect foo" in ran.stderr
    for bad in ("a.b", "-x", "a/b", "ä", "a" * 64, "a b"):
        user.mngr("create", "--name", bad, "--no-connect", "--command", "sleep 9").failed(2)
    assert len(user.agents()) == 1


def test_labels_and_project_are_stored_as_given(user: User) -> None:
    user.create(
        "foo", "--label", "team=backend", "--label", "note=a=b $(x) 'é'\n;", "--label", "empty=", "--project", "web"
    )
    agent = user.agent("foo")
    assert agent["labels"] == {"team": "backend", "note": "a=b $(x) 'é'\n;", "empty": "", "project": "web"}
    assert agent["project"] == "web"
    assert user.mngr("create", "x", "--label", "none", "--command", "true").failed(2).stderr.startswith("error:")


def test_the_first_message_arrives(user: User) -> None:
    user.create("foo", "--message", "hello there", command="cat > got.txt")
    got = user.work_dir("foo") / "got.txt"
    assert wait_for(lambda: got.exists() and got.read_text(), "the message") == "hello there\n"
    prompt = user.root / "prompt.md"
    prompt.write_text("line one\nline two\n")
    user.create("bar", "--message-file", str(prompt), command="cat > got.txt")
    got = user.work_dir("bar") / "got.txt"
    wait_for(lambda: got.exists() and got.read_text().count("\n") == 2, "both lines")
    assert got.read_text() == "line one\nline two\n"


def test_a_bad_first_message_makes_nothing(user: User) -> None:
    before = everything(user)
    user.mngr("create", "foo", "--no-connect", "--message", "", "--command", "cat").failed()
    user.mngr("create", "foo", "--no-connect", "--message", "\x1b[201~", "--command", "cat").failed()
    user.mngr("create", "foo", "--no-connect", "--message-file", "missing.md", "--command", "cat").failed(2)
    assert everything(user) == before


def test_ten_creates_at_once_all_succeed_with_indices_of_their_own(user: User) -> None:
    running = [user.popen("create", f"a{n}", "--no-connect", "--command", "sleep 9999") for n in range(10)]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 10, outputs
    agents = user.agents()
    assert {agent["state"] for agent in agents} == {"RUNNING"}
    assert sorted(agent["index"] for agent in agents) == list(range(10))
    assert len({agent["work_dir"] for agent in agents}) == 10
    assert user.git("fsck", "--no-dangling") == ""


def test_of_ten_creates_of_one_name_one_succeeds(user: User) -> None:
    running = [user.popen("create", "foo", "--no-connect", "--command", "sleep 9999") for _ in range(6)]
    outputs = [process.communicate() for process in running]
    assert sorted(process.returncode for process in running) == [0, 1, 1, 1, 1, 1], outputs
    assert [agent["name"] for agent in user.agents()] == ["foo"]
    assert len(list((user.host_dir / "worktrees").iterdir())) == 1


def test_a_tilde_in_an_address_is_the_home(user: User) -> None:
    """No shell makes anything of it after a colon."""
    user.mngr("create", "foo:~/my copy", "--no-connect", "--command", "sleep 9999").ok()
    assert user.agent("foo")["work_dir"] == str(user.home / "my copy")
    assert not (user.repo / "~").exists()
    assert "not inside the work dir" in user.mngr("push", "foo:~/x", "README.md").failed(2).stderr
    assert "not inside the work dir" in user.mngr("pull", "foo:~/x").failed(2).stderr
    user.mngr("exec", "foo", "echo new >x").ok()
    user.mngr("pull", "foo:x", "~/got/").ok()
    assert (user.home / "got" / "x").read_text() == "new\n"
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1", "--to=~/back").ok()
    assert (user.home / "back" / "x").exists()
