"""Files between an agent and here: pull and push of paths. What would be written over is saved first."""

import os
from pathlib import Path

import pytest

from tests.support.trees import tree
from tests.support.user import User, wait_for


def restore(user: User, saved_id: str) -> Path:
    target = user.root / f"restored-{saved_id}"
    user.mngr("saved", "restore", saved_id, "--to", str(target)).ok()
    return target


def here(user: User) -> Path:
    """A directory of the user's, outside any repository."""
    path = user.root / "my files"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture
def agent_files(user: User) -> Path:
    """The work dir of an agent `foo` with some files in it."""
    user.create("foo")
    work_dir = user.work_dir("foo")
    (work_dir / "out" / "deep").mkdir(parents=True)
    (work_dir / "report.html").write_text("<report>\n")
    (work_dir / "out" / "a b.txt").write_text("a\n")
    (work_dir / "out" / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (work_dir / "out" / "deep" / "run.sh").chmod(0o755)
    os.symlink("a b.txt", work_dir / "out" / "link")
    return work_dir


def test_one_file(user: User, agent_files: Path) -> None:
    user.mngr("pull", "foo:report.html", cwd=here(user)).ok()
    user.mngr("pull", "foo:report.html", "other.html", cwd=here(user)).ok()
    user.mngr("pull", "foo:report.html", "new/", cwd=here(user)).ok()
    assert sorted(tree(here(user))) == [b"new/report.html", b"other.html", b"report.html"]
    assert "all files are the same" in user.mngr("pull", "foo:report.html", cwd=here(user)).ok().stdout


def test_a_directory(user: User, agent_files: Path) -> None:
    user.mngr("pull", "foo:out", cwd=here(user)).ok()
    assert tree(here(user) / "out") == tree(agent_files / "out")
    user.mngr("pull", "foo:out/", "elsewhere", cwd=here(user)).ok()
    assert tree(here(user) / "elsewhere") == tree(agent_files / "out")


def test_all_files_without_the_repository_itself(user: User, agent_files: Path) -> None:
    user.mngr("pull", "foo", "--files", "all", cwd=here(user)).ok()
    assert tree(here(user) / "all") == tree(agent_files)
    assert not (here(user) / "all" / ".git").exists()
    assert not (here(user) / "all" / ".mngr").exists()


def test_artifacts(user: User) -> None:
    user.create("foo", command='echo result > "$MNGR_ARTIFACTS_DIR/result.txt"; sleep 9999')
    artifacts = user.work_dir("foo") / ".mngr" / "task" / "artifacts"
    result = artifacts / "result.txt"
    wait_for(lambda: result.exists() and result.read_text(), "the artifact")
    assert "would copy result.txt" in user.mngr("pull", "foo", "--artifacts", "--dry-run", cwd=here(user)).ok().stdout
    assert list(here(user).iterdir()) == []
    user.mngr("pull", "foo", "--artifacts", cwd=here(user)).ok()
    assert (here(user) / ".mngr" / "artifacts" / "foo" / "result.txt").read_text() == "result\n"
    user.mngr("pull", "foo", "--artifacts", "there", cwd=here(user)).ok()
    assert (here(user) / "there" / "result.txt").exists()


def test_replaced_files_are_saved_first(user: User, agent_files: Path) -> None:
    odd = [b"new\nline", b"caf\xc3\xa9", b"not-utf8-\xff", b"back\\slash", b"\\#012"]
    target = here(user) / "out"
    target.mkdir()
    for name in odd:
        Path(os.fsdecode(os.fsencode(agent_files / "out") + b"/" + name)).write_text("theirs\n")
        Path(os.fsdecode(os.fsencode(target) + b"/" + name)).write_bytes(b"mine \0 " + name)
    (target / "a b.txt").write_text("mine\n")
    (target / "link").write_text("mine, a file\n")
    (target / "untouched").write_text("untouched\n")
    before = tree(target)
    ran = user.mngr("pull", "foo:out", "--format", "json", cwd=here(user), env={"LC_ALL": "C", "LANG": "C"}).ok().json
    assert {**tree(agent_files / "out"), b"untouched": before[b"untouched"]} == tree(target)
    del before[b"untouched"]
    assert tree(restore(user, ran["saved"])) == before


def test_a_file_where_a_directory_goes_is_saved_too(user: User, agent_files: Path) -> None:
    target = here(user) / "out"
    target.mkdir()
    (target / "deep").write_text("mine, a file\n")
    ran = user.mngr("pull", "foo:out", "--format", "json", cwd=here(user)).ok().json
    assert tree(target) == tree(agent_files / "out")
    assert tree(restore(user, ran["saved"])) == {b"deep": ("file", b"mine, a file\n")}


def test_a_directory_where_a_file_goes_stops_it(user: User, agent_files: Path) -> None:
    target = here(user) / "out"
    (target / "a b.txt").mkdir(parents=True)
    (target / "a b.txt" / "precious").write_text("mine\n")
    user.mngr("pull", "foo:out", cwd=here(user)).failed()
    assert (target / "a b.txt" / "precious").read_text() == "mine\n"


def test_a_dry_run_names_the_files_and_copies_none(user: User, agent_files: Path) -> None:
    ran = user.mngr("pull", "foo:out", "--dry-run", cwd=here(user)).ok()
    assert sorted(ran.stdout.splitlines()) == ["would copy a b.txt", "would copy deep/run.sh", "would copy link"]
    ran = user.mngr("pull", "foo:report.html", "a/b/c/", "--dry-run", cwd=here(user)).ok()
    assert ran.stdout == "would copy report.html\n"
    assert list(here(user).iterdir()) == []


def test_push_files_into_the_work_dir(user: User, agent_files: Path) -> None:
    mine = here(user)
    (mine / "data").mkdir()
    (mine / "data" / "x.csv").write_text("x\n")
    (mine / "README.md").write_text("mine\n")
    user.mngr("push", "foo:input", "data", cwd=mine).ok()
    assert tree(agent_files / "input") == tree(mine / "data")
    ran = user.mngr("push", "foo:", "README.md", "--format", "json", cwd=mine).ok().json
    assert (agent_files / "README.md").read_text() == "mine\n"
    assert (restore(user, ran["saved"]) / "README.md").read_text() == "hello\n"
    user.mngr("push", "foo:note.txt", "README.md", "--dry-run", cwd=mine).ok()
    assert not (agent_files / "note.txt").exists()


def test_paths_outside_or_missing_are_refused(user: User, agent_files: Path) -> None:
    assert "not inside the work dir" in user.mngr("pull", "foo:../x", cwd=here(user)).failed(2).stderr
    assert "not inside the work dir" in user.mngr("push", "foo:/etc", "README.md", cwd=user.repo).failed(2).stderr
    assert "does not exist" in user.mngr("pull", "foo:nothing", cwd=here(user)).failed().stderr
    assert "does not exist" in user.mngr("push", "foo:a", "nothing", cwd=here(user)).failed(2).stderr
    assert "is missing" in user.mngr("push", "foo:a").failed(2).stderr
    assert "DEST is for files" in user.mngr("pull", "foo", "dest").failed(2).stderr


def test_plain_files_of_an_agent_without_git(user: User) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "a.txt").write_text("a\n")
    user.create("foo", "--from", str(plain))
    (user.work_dir("foo") / "a.txt").write_text("changed\n")
    (user.work_dir("foo") / "b.txt").write_text("b\n")
    ran = user.mngr("pull", "foo", "--format", "json", cwd=plain).ok().json
    assert sorted(ran["files"]) == ["a.txt", "b.txt"]
    assert (plain / "a.txt").read_text() == "changed\n"
    assert (restore(user, ran["saved"]) / "a.txt").read_text() == "a\n"
    user.mngr("destroy", "foo").ok()


def test_a_repository_at_the_target_keeps_its_git_directory(user: User, agent_files: Path) -> None:
    """Its settings name programs, which git runs: those of an agent are not put in their place."""
    mine = here(user) / "out [a]" / "in ner"
    mine.mkdir(parents=True)
    user.git("init", "-q", cwd=mine)
    before = tree(mine, skip=())
    for path in ("out [a]/in ner", "out [a]/new"):
        (agent_files / path).mkdir(parents=True)
        user.git("init", "-q", cwd=agent_files / path)
        user.git("config", "core.fsmonitor", "touch PWNED", cwd=agent_files / path)
        (agent_files / path / "file").write_text("content\n")
    would = user.mngr("pull", "foo", "--files", "--dry-run", ".", cwd=here(user)).ok()
    assert "in ner/file" in would.stdout and "in ner/.git/config" not in would.stdout
    for words in (("foo", "--files", "."), ("foo", "--files", "."), ("foo:out [a]/", "out [a]")):
        ran = user.mngr("pull", *words, cwd=here(user)).ok()
        assert "in ner/.git`, since there is a repository at the target" in ran.stderr
        assert {path: what for path, what in tree(mine, skip=()).items() if path != b"file"} == before
    assert (mine / "file").exists() and (here(user) / "out [a]" / "new" / ".git" / "config").exists()
