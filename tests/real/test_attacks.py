"""The table of attacks names tests that are there; and those of its rows that no other file has."""

import ast
import os
import tarfile

import pytest

from tests.support.attacks import ROWS, TOP, path_of
from tests.support.user import User, wait_for


def test_every_row_names_tests_that_exist() -> None:
    for row in ROWS:
        for test in map(path_of, row.tests):
            file, _, name = test.partition("::")
            found = (one.name for one in ast.parse((TOP / file).read_bytes()).body if isinstance(one, ast.FunctionDef))
            assert name in set(found), f"{row.name}: there is no {test}"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_an_archive_by_its_name_is_not_unpacked(user: User, transfer: str) -> None:
    """As mngr once called its own archives, in whole entries and others."""
    (user.home / ".bashrc").write_text("mine\n")
    planted = user.root / "planted"
    planted.write_text("touch PWNED\n")
    name = "docs.mngr-nested-repository.tar"
    with tarfile.open(user.repo / name, "w") as archive:
        archive.add(planted, "esc/.bashrc")
    (user.repo / "esc").symlink_to(user.home)
    (user.repo / ".gitattributes").write_text("*.txt text\n")
    user.git("add", "-fA")
    user.git("commit", "-qm", "an archive")
    user.create("foo", "--transfer", transfer)
    work_dir = user.work_dir("foo")
    before = (work_dir / name).read_bytes()
    (work_dir / f"other.{name}").write_bytes(before)
    user.mngr("clone", "foo", "bar", "--no-connect").ok()
    user.mngr("snapshot", "create", "foo", "s").ok()
    user.mngr("snapshot", "restore", "s").ok()
    clone = user.work_dir("bar")
    for place in (work_dir, clone):
        assert (place / name).read_bytes() == (place / f"other.{name}").read_bytes() == before
    user.mngr("destroy", "foo", "bar", "--force").ok()
    user.mngr("saved", "restore", "bar-1", "--to", str(user.root / "back")).ok()
    assert (user.root / "back" / f"other.{name}").read_bytes() == before
    assert (user.home / ".bashrc").read_text() == "mine\n"


def test_no_value_of_a_variable_is_in_what_is_saved(user: User) -> None:
    secret = "hunter2SECRET"
    user.mngr("create", "foo", "--no-connect", "--env", f"TOK={secret}", "--command", "echo $TOK; sleep 600").ok()
    wait_for(lambda: secret in user.mngr("capture", "foo").ok().stdout, "the screen")
    (user.work_dir("foo") / "work").write_text("work\n")
    for words in (("stop", "foo"), ("start", "foo"), ("destroy", "foo", "--force")):
        user.mngr(*words).ok()
    found = [path for path in user.host_dir.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert found == []


KINDS = ("mkfifo $MNGR_OUTCOME_FILE", "ln -s /dev/zero $MNGR_OUTCOME_FILE", "truncate -s 3G $MNGR_OUTCOME_FILE")


@pytest.mark.parametrize("script", KINDS)
def test_an_outcome_of_any_kind_keeps_nobody_waiting(user: User, script: str) -> None:
    user.create("foo")
    user.mngr("exec", "foo", script).ok()
    for words in (
        ("list", "--format", "json"),
        ("wait", "foo", "RUNNING", "--timeout", "60s"),
        ("snapshot", "create", "foo", "s"),
        ("stop", "foo"),
        ("destroy", "foo", "--force"),
    ):
        user.mngr(*words).ok()
    assert os.listdir(user.host_dir / "agents") == []
