"""Repositories as archives, made by somebody who wants to write elsewhere."""

from pathlib import Path

from mngr.workspace.work import archives


def test_settings_that_a_link_leads_to_are_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "config").write_text("[core]\n\tworktree = /mine\n")
    for number, name in enumerate(("directory", "file")):
        root, target = tmp_path / f"from-{number}", tmp_path / f"to-{number}"
        (root / "sub").mkdir(parents=True)
        target.mkdir()
        if name == "directory":
            (root / "sub" / ".git").symlink_to(victim)
        else:
            (root / "sub" / ".git").mkdir()
            (root / "sub" / ".git" / "config").symlink_to(victim / "config")
        assert archives.pack(str(root), "sub", str(root), str(tmp_path / "a.tar"))
        archives.unpack(str(tmp_path / "a.tar"), str(target), "sub")
        assert (target / "sub" / ".git").exists() and "worktree" in (victim / "config").read_text()


def test_nothing_is_packed_through_a_link(tmp_path: Path) -> None:
    """As one that an agent puts in place of a directory while that is packed."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for place, text in ((root / "own" / "sub", "own\n"), (outside / "sub", "SECRET\n")):
        place.mkdir(parents=True)
        (place / "file").write_text(text)
    (root / "swapped").symlink_to(outside)
    for path, expected in (("own/sub", b"own\n"), ("swapped/sub", b"SECRET\n")):
        archives.pack(str(root), path, str(root), str(tmp_path / "a.tar"))
        assert (expected in (tmp_path / "a.tar").read_bytes()) == (expected == b"own\n")
