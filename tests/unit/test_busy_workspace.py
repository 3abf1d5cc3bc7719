"""Files that go away while a workspace is measured: its agent is at work."""

import os
from pathlib import Path

import pytest

from mngr.system.git import Git
from mngr.workspace.work import disk, plain
from mngr.workspace.work import files as uncommitted_files


def gone_when_looked_at() -> str:
    """A directory that lists a file which is gone a moment later: the descriptor that the listing itself holds open."""
    path = f"/proc/{os.getpid()}/fdinfo"
    if not os.path.isdir(path):
        pytest.skip("no /proc here")
    return path


def test_a_file_that_goes_away_has_no_size(tmp_path: Path) -> None:
    assert disk.size_of(str(tmp_path / "gone")) == 0
    assert disk.size_of(gone_when_looked_at()) == 0


def test_a_file_that_goes_away_is_no_difference_and_no_error() -> None:
    assert "0" in plain.differing_files(gone_when_looked_at(), "", skip="")


def test_a_file_that_went_away_before_it_was_compared_differs(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for directory, at in ((here, 1), (there, 2)):
        directory.mkdir()
        (directory / "file").write_text("same")
        os.utime(directory / "file", (at, at))
    first, second = (plain.find_files(str(directory), "") for directory in (here, there))
    assert plain.same(str(here), str(there), "file", first, second, 0.0)
    (here / "file").unlink()
    assert not plain.same(str(here), str(there), "file", first, second, 0.0)


def test_what_went_away_is_not_in_the_tree(tmp_path: Path) -> None:
    """A link, a directory and a file whose name no list of lines can hold, after they were listed."""
    git = Git.of_user(str(tmp_path))
    git.must("init", "-q")
    (tmp_path / "stays").write_text("x")
    names = git.must(
        "ls-tree", "-r", "--name-only", uncommitted_files.dirty_tree(git, ["stays", "gone", "odd\nname", "dir/"])
    )
    assert names == "stays"
    assert uncommitted_files.private_files(str(tmp_path), ["gone", "dir/"]) == []
