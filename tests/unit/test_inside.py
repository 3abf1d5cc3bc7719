"""Paths below a directory that somebody else writes."""

import os
import threading
from pathlib import Path

import pytest

from mngr.system import files, inside
from mngr.system.inside import UnsafePath


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A directory with a file, links that stay in it, links that lead out, a pipe, and a directory beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "file").write_text("content")
    (top / "in").symlink_to("a/b")
    (top / "out").symlink_to("../outside")
    (top / "absolute").symlink_to(tmp_path / "outside")
    (top / "file").symlink_to("../outside/secret")
    (top / "loop").symlink_to("loop")
    (top / "devices").symlink_to("/dev")
    os.mkfifo(top / "pipe")
    return str(top)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".", "."),
        ("a", "a"),
        ("in", "a/b"),
        ("in/new", "a/b/new"),
        ("in/../file", "a/file"),
        ("not/there", "not/there"),
        ("a/", "a"),
    ],
)
def test_a_path_inside_is_resolved(root, path, found):
    assert inside.resolve(root, path) == found
    assert inside.resolve(root, os.path.join(root, path)) == found


@pytest.mark.parametrize(
    "path", ["..", "../root2", "out", "out/x", "absolute/x", "file", "/etc", "a/../../outside", "in/../../..", "x\0y"]
)
def test_a_path_that_leads_out_is_refused(root, path):
    with pytest.raises(UnsafePath):
        inside.resolve(root, path)


def test_a_root_that_is_a_link_is_followed(root, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    alias = str(tmp_path / "alias")
    assert inside.resolve(alias, "in") == "a/b"
    assert inside.resolve(alias, f"{alias}/in") == "a/b"
    assert inside.read(alias, "a/file", 100) == b"content"


@pytest.mark.parametrize(
    "path", ["out/secret", "absolute/secret", "file", "in/x", "loop/x", "pipe", "a", ".", "pipe/x"]
)
def test_only_regular_files_are_read_and_no_link_is_followed(root, path):
    with pytest.raises(UnsafePath):
        inside.read(root, path, 100)


@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "a/../file", "x\0y"])
def test_a_path_with_links_or_dots_has_to_be_resolved_first(root, path):
    for use in (inside.read, inside.facts, inside.make_directory, inside.remove_links):
        with pytest.raises(UnsafePath):
            use(root, path, *([10] if use is inside.read else []))


def test_what_is_missing_is_none(root):
    assert inside.read(root, "a/none", 100) is None
    assert inside.read(root, "none/none", 100) is None
    assert inside.facts(root, "a/none") is None
    assert inside.facts(root, "none/none") is None


def test_reading_is_limited_and_shows_that_more_is_there(root):
    assert inside.read(root, "a/file", 3) == b"cont"
    assert inside.read(root, "a/file", 3, tail=True) == b"tent"
    assert inside.read(root, "a/file", 7) == b"content"


def test_a_followed_file_has_to_be_regular(root):
    assert files.read_followed(f"{root}/file", 100) == b"secret"
    for path in ("pipe", "devices/zero", "devices/stdin", "a"):
        with pytest.raises(OSError, match="not a plain file"):
            files.read_followed(f"{root}/{path}", 100)
    with pytest.raises(FileNotFoundError):
        files.read_followed(f"{root}/none", 100)


def test_a_file_is_written_whole_and_replaces_a_link(root, tmp_path):
    inside.write(root, "a/new", b"1", 0o640)
    inside.write(root, "file", b"2")
    assert Path(root, "a/new").read_bytes() == b"1"
    assert Path(root, "a/new").stat().st_mode & 0o777 == 0o640
    assert not Path(root, "file").is_symlink()
    assert (tmp_path / "outside" / "secret").read_text() == "secret"
    assert not list(Path(root).rglob("*.draft"))


@pytest.mark.parametrize("path", ["out/x", "in/x", "a/file/x", "loop/x"])
def test_nothing_is_written_or_made_through_a_link(root, tmp_path, path):
    with pytest.raises(UnsafePath):
        inside.write(root, path, b"1")
    with pytest.raises(UnsafePath):
        inside.make_directory(root, f"{path}/y")
    with pytest.raises(UnsafePath):
        inside.link(root, path, "anywhere")
    assert os.listdir(tmp_path / "outside") == ["secret"]
    assert os.listdir(f"{root}/a/b") == []


def test_directories_are_made_as_far_as_they_are_missing(root):
    inside.make_directory(root, "a/b/c/d", 0o700)
    inside.make_directory(root, "a/b/c/d", 0o700)
    assert Path(root, "a/b/c/d").stat().st_mode & 0o777 == 0o700


def test_an_error_names_the_link_and_where_it_leads(root):
    with pytest.raises(UnsafePath, match=r"`.*/root/out` is a link to `\.\./outside`, which is not followed"):
        inside.make_directory(root, "out/deep/er")


def test_the_first_link_on_the_way_is_removed(root, tmp_path):
    inside.remove_links(root, "out/secret")
    inside.remove_links(root, "a/file/x")
    inside.remove_links(root, "a/b")
    inside.remove_links(root, "none/x")
    assert not os.path.lexists(f"{root}/out")
    assert not os.path.lexists(f"{root}/a/file")
    assert os.path.isdir(f"{root}/a/b")
    assert (tmp_path / "outside" / "secret").exists()


def test_a_program_gets_the_directory_that_was_opened(root, tmp_path):
    with inside.directory(root, "a") as fd:
        os.rename(f"{root}/a", f"{root}/moved")
        os.symlink(tmp_path / "outside", f"{root}/a")
        assert sorted(os.listdir(inside.for_programs(fd, f"{root}/a"))) == ["b", "file"]


def test_a_link_that_is_swapped_in_is_never_followed(root, tmp_path):
    """Another process makes the directory a link and a directory again all the time."""
    place, outside = f"{root}/swapped", tmp_path / "outside"
    ended = threading.Event()

    def swap() -> None:
        os.symlink(outside, f"{root}/other")
        os.mkdir(place)
        while not ended.is_set():
            os.rename(place, f"{root}/aside")
            os.rename(f"{root}/other", place)
            os.rename(place, f"{root}/other")
            os.rename(f"{root}/aside", place)

    swapper = threading.Thread(target=swap)
    swapper.start()
    written = refused = 0
    try:
        for _ in range(2000):
            try:
                inside.write(root, "swapped/file", b"x")
                written += 1
            except (UnsafePath, OSError):  # missing at that moment; a tmpfs was seen to say EINVAL, once
                refused += 1
    finally:
        ended.set()
        swapper.join()
    assert written + refused == 2000
    assert os.listdir(outside) == ["secret"]


def test_a_file_can_have_any_name_that_the_system_allows(root):
    for name in ("x" * 255, "日" * 85, "é" * 127, "-rf", "new\nline", "\udcff"):
        inside.write(root, name, b"content")
        assert inside.read(root, name, 100) == b"content"
