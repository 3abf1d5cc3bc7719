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
