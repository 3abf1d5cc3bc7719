"""Repositories and files that are rare but legal: they work, and come back byte for byte."""

import os
import subprocess
from pathlib import Path

import pytest

from mngr.system.git import Git
from tests.support.user import User

ODD_NAMES = [
    "cr\r",
    "nl\nx",
    "tab\t",
    'q"uote',
    "bs\\",
    b"\xff\xfe".decode("utf-8", "surrogateescape"),
    " lead",
    "trail ",
    "-dash",
    ":colon",
    ":(exclude)x",
    ".hidden",
    "é",
    "e\u0301",
    "*",
    "[a]",
    "~",
    "dir\n/sub\r/file",
]


def content(name: str) -> bytes:
    return os.fsencode(name) + b"\r\n\0\xff"


def files_in(directory: Path) -> dict[str, bytes]:
    found = {}
    for root, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name not in (".git", ".mngr")]
        for name in names:
            path = Path(root) / name
            found[str(path.relative_to(directory))] = path.read_bytes()
    found.pop(".git", None)
    return found


@pytest.mark.parametrize("broken", ["moved", "no HEAD"])
def test_a_repository_that_git_cannot_read_is_not_taken_for_plain_files(user: User, broken: str) -> None:
    directory = user.repo
    if broken == "moved":
        directory = user.root / "worktree"
        user.git("worktree", "add", "-q", str(directory))
        user.repo.rename(user.root / "moved")
        user.repo = user.root / "moved"
    else:
        (user.repo / ".git" / "HEAD").unlink()
    inside = directory / "sub"
    inside.mkdir()
    words = ("foo", "--no-connect", "--command", "sleep 9999")
    refused = user.mngr("create", *words, cwd=inside).failed()
    assert f"`{directory}/.git` is not a repository that git can read" in refused.stderr
    assert user.agents() == []
    user.mngr("gc", cwd=inside).ok()
    user.mngr("create", *words, "--transfer", "rsync", cwd=inside).ok()


def test_an_empty_git_directory_is_no_repository(user: User) -> None:
    plain = user.root / "plain"
    (plain / ".git").mkdir(parents=True)
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", cwd=plain).ok()
    assert user.agent("foo")["transfer"] == "rsync"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync", "plain"])
def test_odd_file_names_are_saved_and_restored(user: User, transfer: str) -> None:
    if transfer == "plain":
        user.repo = user.root / "plain"
        user.repo.mkdir()
        (user.repo / "README.md").write_text("hello\n")
    user.create("foo", *(("--transfer", transfer) if transfer != "plain" else ()))
    work = user.work_dir("foo")
    for name in ODD_NAMES:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content(name))
    os.mkfifo(work / "fifo")
    wanted = {"README.md": b"hello\n", **{name: content(name) for name in ODD_NAMES}}
    if transfer != "plain":
        assert user.mngr("diff", "foo", "--stat").exit_code == 0
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo").ok()
    assert files_in(user.work_dir("foo")) == wanted


def test_odd_file_names_are_carried_into_an_agent(user: User) -> None:
    for name in ODD_NAMES:
        (user.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (user.repo / name).write_bytes(content(name))
    for transfer in ("git-worktree", "git-mirror", "rsync"):
        user.create(transfer, "--transfer", transfer, "--include-unclean")
        assert files_in(user.work_dir(transfer)) == files_in(user.repo)


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_a_repository_with_the_longer_hash(user: User, transfer: str) -> None:
    user.repo = user.root / "sha256"
    user.repo.mkdir()
    user.git("init", "-q", "--object-format=sha256")
    for name in ("a", "b"):
        (user.repo / name).write_text(name)
    user.git("add", ".")
    user.git("commit", "-q", "-m", "start")
    user.create("foo", "--transfer", transfer)
    work = user.work_dir("foo")
    (work / "a").unlink()
    (work / "new").write_text("n")
    assert "new" in user.mngr("diff", "foo").ok().stdout
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo").ok()
    assert files_in(user.work_dir("foo")) == {"b": b"b", "new": b"n"}
    user.git("-c", "user.name=x", "commit", "-q", "-am", "work", cwd=user.work_dir("foo"))
    user.mngr("pull", "foo").ok()


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_filters_of_the_repository_work_in_its_copies(user: User, transfer: str) -> None:
    user.git("config", "filter.rot.clean", "tr a-z b-za")
    user.git("config", "filter.rot.smudge", "tr b-za a-z")
    (user.repo / ".gitattributes").write_text("secret filter=rot\n")
    (user.repo / "secret").write_text("plain\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "secret")
    assert user.git("cat-file", "blob", "HEAD:secret") == "qmbjo"
    user.create("foo", "--transfer", transfer)
    assert (user.work_dir("foo") / "secret").read_text() == "plain\n"
    user.mngr("destroy", "foo").ok()


def test_a_repository_with_packed_refs_and_alternates(user: User) -> None:
    user.git("pack-refs", "--all")
    shared = user.root / "shared"
    user.git("clone", "-q", "--shared", str(user.repo), str(shared))
    user.repo = shared
    for transfer in ("git-worktree", "git-mirror"):
        user.create(transfer, "--transfer", transfer)
        assert files_in(user.work_dir(transfer)) == {"README.md": b"hello\n"}
        user.mngr("destroy", transfer).ok()


def test_an_agent_made_inside_the_worktree_of_another(user: User) -> None:
    work = user.work_dir(user.create("foo")["name"])
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 9999", cwd=work).ok()
    user.mngr("destroy", "foo").ok()
    assert user.mngr("exec", "bar", "git branch --show-current").ok().stdout == "mngr/bar\n"
    user.mngr("destroy", "bar").ok()
    assert user.git("branch", "--list", "mngr/*") == ""
    assert user.git("worktree", "list").count("\n") == 0


def test_an_agent_made_in_a_worktree_of_a_bare_repository_that_is_removed_later(user: User) -> None:
    bare, tree = user.root / "bare.git", user.root / "tree"
    user.git("clone", "-q", "--bare", str(user.repo), str(bare))
    user.git("worktree", "add", "-q", str(tree), "main", cwd=bare)
    user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", cwd=tree).ok()
    user.git("worktree", "remove", str(tree), cwd=bare)
    user.mngr("exec", "foo", "echo x > x; git add x; git commit -qm x").ok()
    user.mngr("clone", "foo", "bar", "--no-connect", cwd=user.root).ok()
    assert user.mngr("pull", "foo", cwd=user.root).ok()
    assert "is a bare repository" in user.mngr("merge", "foo", cwd=user.root).failed().stderr
    again = user.root / "again"
    user.git("worktree", "add", "-q", str(again), "main", cwd=bare)
    user.mngr("merge", "foo", cwd=again).ok()
    assert (again / "x").exists()
    user.git("worktree", "remove", str(again), cwd=bare)
    user.mngr("destroy", "foo", "bar").ok()
    assert user.git("branch", "--list", "mngr/*", cwd=bare) == ""
    assert user.git("worktree", "list", cwd=bare).count("\n") == 0


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "plain"])
def test_a_user_who_forbids_bare_repositories(user: User, transfer: str) -> None:
    user.git("config", "--global", "safe.bareRepository", "explicit")
    if transfer == "plain":
        user.repo = user.root / "plain"
        user.repo.mkdir()
    user.create("foo", *(("--transfer", transfer) if transfer != "plain" else ()))
    (user.work_dir("foo") / "new.txt").write_text("x")
    user.mngr("destroy", "foo", "--force").ok()
    assert "new.txt" in user.mngr("saved", "show", "foo").ok().stdout
    user.mngr("saved", "restore", "foo").ok()
    assert (user.work_dir("foo") / "new.txt").read_text() == "x"
    user.mngr("destroy", "foo", "--force").ok()
    if transfer != "plain":
        assert user.git("branch", "--list", "mngr/*") == ""
        assert user.git("worktree", "list").count("\n") == 0


def test_a_command_run_by_a_hook_of_another_repository(user: User) -> None:
    """git tells its hooks where it is in variables that would send our git there too."""
    other = user.root / "other"
    user.git("clone", "-q", str(user.repo), str(other))
    hook = other / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\ncd {user.repo} && mngr create foo --no-connect --command 'sleep 9999'\n")
    hook.chmod(0o755)
    user.git("commit", "-q", "--allow-empty", "-m", "x", cwd=other)
    assert user.agent("foo")["repo"] == str(user.repo)
    assert user.mngr("exec", "foo", "git rev-parse --show-toplevel").ok().stdout == f"{user.work_dir('foo')}\n"
    assert user.git("branch", "--list", "mngr/*", cwd=other) == ""
    user.mngr("destroy", "foo").ok()


def test_commits_are_counted_while_others_delete_branches(user: User) -> None:
    """Without a second try about one count in 300 failed with `bad object`."""
    loop = 'for i in $(seq 120); do git branch "$0-$i"; git branch -D "$0-$i"; done >/dev/null 2>&1'
    others = [subprocess.Popen(["bash", "-c", loop, name], cwd=user.repo, env=user.env) for name in ("a", "b", "c")]
    git = Git.of_user(str(user.repo))
    counted = 0
    while any(other.poll() is None for other in others):
        assert git.count("HEAD", "--not", "--exclude=main", "--branches", "--tags") >= 0
        counted += 1
    assert counted > 10


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_hooks_of_the_repository_do_not_run_when_a_copy_is_made(user: User, transfer: str) -> None:
    """As `mngr help transfer` says."""
    hook = user.repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {user.root}/ran\n")
    hook.chmod(0o755)
    user.create("foo", "--transfer", transfer)
    assert not (user.root / "ran").exists()


def commit_file(user: User, name: str, text: str) -> None:
    (user.repo / name).write_text(text)
    user.git("add", "--", name)
    user.git("commit", "-qm", f"{name}: {text}")


def clone_of(user: User, *words: str) -> None:
    """Replace the user's repository by a clone of it."""
    whole = user.root / "whole"
    user.repo.rename(whole)
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        user.git("config", name, "true", cwd=whole)
    user.git("clone", "-q", *words, f"file://{whole}", str(user.repo), cwd=user.root)


@pytest.mark.parametrize("sandbox", [False, True], ids=["mirror", "sandbox"])
def test_a_shallow_clone_has_mirrors_whose_work_is_saved_and_restored(user: User, sandbox: bool) -> None:
    commit_file(user, "more.txt", "more\n")
    clone_of(user, "--depth=1")
    words = ("--sandbox",) if sandbox else ("--transfer", "git-mirror")
    place = user.create("foo", *words)["work_dir"]
    user.mngr("exec", "foo", "echo mine >mine.txt; git add .; git commit -qm mine").ok()
    assert user.git("log", "--format=%s", cwd=place).splitlines()[0] == "mine"
    user.mngr("destroy", "foo", "--force").ok()
    restored = user.mngr("saved", "restore", "foo-1", "--format", "json").ok().json
    assert user.git("show", "HEAD:mine.txt", cwd=restored["work_dir"]) == "mine"


@pytest.mark.parametrize("words", [["--filter=blob:none"], ["--filter=tree:0", "--no-checkout"]], ids=" ".join)
def test_the_mirror_of_a_partial_clone_gets_what_it_lacks(user: User, words: list[str]) -> None:
    for number in range(3):
        commit_file(user, "more.txt", f"{number}\n")
    clone_of(user, *words)
    if "--no-checkout" in words:
        user.git("read-tree", "HEAD")  # as after a checkout whose files are not wanted
        user.git("checkout", "-q", "--", ".")
    place = user.create("foo", "--transfer", "git-mirror")["work_dir"]
    assert "-1" in user.git("log", "-p", "--", "more.txt", cwd=place)
    user.mngr("exec", "foo", "echo mine >mine.txt; git add .; git commit -qm mine").ok()
    user.mngr("merge", "foo").ok()
    assert (user.repo / "mine.txt").read_text() == "mine\n"


def test_a_mirror_is_of_the_kind_that_git_makes(user: User) -> None:
    place = user.create("foo", "--transfer", "git-mirror")["work_dir"]
    settings = user.git("config", "--local", "--list", cwd=place)
    assert "core.bare=false" in settings and str(user.repo) not in settings


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_a_tag_with_the_name_of_the_branch_of_an_agent_changes_nothing(user: User, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    user.git("tag", "mngr/foo", cwd=work_dir)
    user.mngr("snapshot", "create", "foo").ok()
    for name in ("one", "two"):
        (work_dir / name).write_text(f"{name}\n")
        user.git("add", ".", cwd=work_dir)
        user.git("commit", "-q", "-m", name, cwd=work_dir)
    user.mngr("snapshot", "restore", "foo/snap-1").ok()
    assert user.git("symbolic-ref", "HEAD", cwd=work_dir) == "refs/heads/mngr/foo"
    assert user.git("log", "-1", "--format=%s", cwd=work_dir) == "init"
    assert user.git("for-each-ref", "--format=%(refname)", "refs/heads/heads") == ""
    (work_dir / "three").write_text("three\n")
    user.git("add", ".", cwd=work_dir)
    user.git("commit", "-q", "-m", "three", cwd=work_dir)
    user.mngr("merge", "foo").ok()
    assert (user.repo / "three").exists()
    user.mngr("destroy", "foo", "--force").ok()
    assert (user.repo / "three").exists() and user.git("symbolic-ref", "HEAD") == "refs/heads/main"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_work_on_a_shallow_clone_comes_back(user: User, transfer: str) -> None:
    for number in range(3):
        user.git("commit", "-q", "--allow-empty", "-m", f"c{number}")
    shallow = user.root / "shallow"
    user.git("clone", "-q", "--depth", "1", f"file://{user.repo}", str(shallow))
    words = ("--no-connect", "--transfer", transfer, "--command", "sleep 9999")
    user.mngr("create", "foo", *words, cwd=shallow).ok()
    work_dir = user.work_dir("foo")
    (work_dir / "own").write_text("own\n")
    user.git("add", ".", cwd=work_dir)
    user.git("commit", "-q", "-m", "own", cwd=work_dir)
    (work_dir / "half").write_text("half\n")
    user.mngr("clone", "foo", "bar", "--no-connect", cwd=shallow).ok()
    assert (user.work_dir("bar") / "half").read_text() == "half\n"
    user.mngr("destroy", "foo", "--force", "-b", cwd=shallow).ok()
    target = user.root / "back"
    user.mngr("saved", "restore", "foo-1", "--to", str(target), cwd=shallow).ok()
    assert (target / "half").read_text() == "half\n" and (target / "own").exists()
    user.mngr("saved", "restore", "foo-1", cwd=shallow).ok()
    assert (user.work_dir("foo") / "half").read_text() == "half\n"
    assert user.git("log", "-1", "--format=%s", cwd=user.work_dir("foo")) == "own"
