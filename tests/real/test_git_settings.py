"""git's settings and states of the user's own repository are obeyed where they say what is wanted."""

import shutil
from pathlib import Path

import pytest

from tests.support.user import User


def commit(user: User, directory: Path, name: str, text: str) -> str:
    (directory / name).write_text(text)
    user.git("add", name, cwd=directory)
    user.git("commit", "-q", "-m", f"write {name}", cwd=directory)
    return user.git("rev-parse", "HEAD", cwd=directory)


def diverged(user: User, name: str, transfer: str = "git-worktree") -> Path:
    """An agent with a commit that its user's branch does not have, and the other way round."""
    user.create(name, "--transfer", transfer)
    commit(user, user.work_dir(name), f"{name}.txt", "theirs\n")
    commit(user, user.repo, f"mine-{name}.txt", "mine\n")
    return user.work_dir(name)


def test_a_merge_with_settings_of_git_that_change_what_a_merge_does(user: User) -> None:
    diverged(user, "foo")
    before = user.git("rev-parse", "HEAD")
    user.git("config", "merge.ff", "only")
    refused = user.mngr("merge", "foo").failed()
    assert "`merge.ff = only`" in refused.stderr and "mngr merge foo --squash" in refused.stderr
    assert user.git("rev-parse", "HEAD") == before and user.git("status", "--porcelain") == ""
    user.git("config", "merge.ff", "true")
    for options in ("--squash", "--no-commit", "--autostash"):
        user.git("config", "branch.main.mergeOptions", options)
        user.mngr("merge", "foo").ok()
        assert user.git("log", "-1", "--format=%p").count(" ") == 1 and user.git("status", "--porcelain") == ""
        user.git("reset", "-q", "--hard", before)


def test_a_merge_never_puts_uncommitted_changes_aside(user: User) -> None:
    """With `merge.autoStash` they came back as a conflict, and nothing was said."""
    user.git("config", "merge.autoStash", "true")
    user.create("foo")
    commit(user, user.work_dir("foo"), "README.md", "theirs\n")
    (user.repo / "README.md").write_text("mine\n")
    for verb in (("merge", "foo"), ("merge", "foo", "--squash"), ("pull", "foo", "--into", "current")):
        assert "would be overwritten by merge" in user.mngr(*verb).failed().stderr
        assert (user.repo / "README.md").read_text() == "mine\n"
        assert user.git("stash", "list") == "" and user.git("log", "--format=%s") == "init"


def test_a_squash_is_signed_if_commits_are(user: User) -> None:
    program = user.root / "sign"
    program.write_text(
        "#!/bin/sh\ncat >/dev/null\n[ ! -e refuse ] || exit 1\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNED\n"
    )
    program.chmod(0o755)
    user.git("config", "gpg.program", str(program))
    user.git("config", "commit.gpgSign", "true")
    user.create("foo")
    user.git("-c", "commit.gpgSign=false", "commit", "-q", "--allow-empty", "-m", "x", cwd=user.work_dir("foo"))
    (user.repo / "refuse").touch()
    before = user.git("rev-parse", "HEAD")
    assert "could not commit; nothing was changed" in user.mngr("merge", "foo", "--squash").failed().stderr
    assert user.git("rev-parse", "HEAD") == before
    (user.repo / "refuse").unlink()
    user.mngr("merge", "foo", "--squash").ok()
    assert "gpgsig SIGNED" in user.git("cat-file", "commit", "HEAD")


def test_a_bisect_of_the_user_is_kept(user: User) -> None:
    start = user.git("rev-parse", "HEAD")
    for name in ("a", "b", "c", "d"):
        commit(user, user.repo, name, name)
    diverged(user, "foo")
    user.git("bisect", "start", "HEAD", start)
    at = user.git("rev-parse", "HEAD")
    for verb in (("merge", "foo"), ("pull", "foo", "--into", "current")):
        refused = user.mngr(*verb).failed()
        assert "a bisect is in progress" in refused.stderr and "bisect reset`" in refused.stderr
        assert user.git("rev-parse", "HEAD") == at
    user.git("bisect", "reset")
    user.mngr("merge", "foo").ok()


def test_a_patch_as_json_is_one_whatever_git_shows_to_its_user(user: User) -> None:
    user.create("foo")
    (user.work_dir("foo") / "README.md").write_text("other\n")
    plain = user.mngr("diff", "foo", "--format", "json").ok().json["diff"]
    settings = {
        "diff.external": "echo difftastic",
        "color.ui": "always",
        "color.diff": "always",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.shout.textconv": "tr a-z A-Z <",
        "log.showSignature": "true",
        "core.attributesFile": str(user.home / "attributes"),
        "merge.log": "true",
        "core.pager": "false",
    }
    (user.home / "attributes").write_text("*.md diff=shout\n")
    for key, value in settings.items():
        user.git("config", "--global", key, value)
    assert user.mngr("diff", "foo", "--format", "json").ok().json["diff"] == plain
    (user.root / "p").write_text(plain)
    user.git("apply", "--check", str(user.root / "p"))
    assert user.mngr("diff", "foo").ok().stdout.startswith("difftastic")  # a person gets what they have set


def test_agents_of_a_bare_repository_whose_work_tree_is_removed(user: User) -> None:
    bare, tree, other = user.root / ".bare", user.root / "tree", user.root / "other"
    user.git("clone", "-q", "--bare", str(user.repo), str(bare))
    shutil.rmtree(user.repo)
    for path in (tree, other):
        user.git("worktree", "add", "-q", "--force", str(path), "main" if path == tree else "HEAD~0", cwd=bare)
    user.repo = tree
    for name, transfer in (("foo", "git-worktree"), ("bar", "git-mirror")):
        user.create(name, "--transfer", transfer)
        assert user.agent(name)["repo"] == str(bare)
        commit(user, user.work_dir(name), name, "x\n")
    user.git("worktree", "remove", "--force", str(tree), cwd=bare)
    user.repo = other
    assert "is a bare repository" in user.mngr("merge", "foo", cwd=user.root).failed().stderr
    for name in ("foo", "bar"):
        user.mngr("pull", name).ok()
        user.mngr("merge", name).ok()
        assert (other / name).exists()
        user.mngr("clone", name, f"{name}-2", "--no-connect").ok()
        user.mngr("snapshot", "create", name).ok()
        user.mngr("snapshot", "restore", f"{name}/snap-1").ok()
        (user.work_dir(name) / "new").write_text("n")
        user.mngr("destroy", name, "--force").ok()
        user.mngr("saved", "restore", name).ok()
        assert (user.work_dir(name) / "new").read_text() == "n"


@pytest.mark.parametrize("verb", [("create", "x", "--no-connect", "--command", "true"), ("tmr", "status"), ("gc",)])
def test_a_bare_repository_that_is_part_of_a_clone_runs_nothing(user: User, verb: tuple[str, ...]) -> None:
    inside = user.repo / "docs"
    inside.mkdir()
    user.git("init", "-q", "--bare", ".", cwd=inside)
    mark = user.root / "RAN"
    for key, value in (("bare", "false"), ("worktree", "."), ("fsmonitor", f"touch {mark}; false")):
        user.git("config", f"core.{key}", value, cwd=inside)
    ran = user.mngr(*verb, cwd=inside)
    if verb != ("gc",):
        assert "is a bare repository" in ran.failed().stderr
    assert not mark.exists() and user.agents() == []
