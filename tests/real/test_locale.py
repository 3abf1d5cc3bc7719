"""Locales that are not UTF-8, as in containers and cron jobs."""

import shutil
import subprocess

import pytest

from tests.support.user import User, wait_for


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", ""])
def test_agents_are_seen_in_any_locale(user: User, locale: str) -> None:
    user.env["LANG"] = ""
    user.env["LC_ALL"] = locale
    agent = user.create("foo", command="printf 'gr\\303\\274n\\n'; sleep 9999")
    assert agent["state"] == "RUNNING"
    wait_for(lambda: "grün" in user.run(["mngr", "capture", "foo"], env={"PYTHONUTF8": "1"}).stdout, "grün")
    user.mngr("destroy", "foo").ok()
    assert user.tmux("list-sessions").stdout == ""


@pytest.mark.parametrize("locale", ["POSIX", "en_US.ISO-8859-1"])
def test_names_are_those_of_the_files_in_any_locale(user: User, locale: str) -> None:
    """Python itself would read them in the locale's encoding, and git gives them as UTF-8."""
    if locale != "POSIX":
        if not shutil.which("localedef"):
            pytest.skip("`localedef` is not installed: no locale in Latin-1 can be made")
        words = ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(user.root / locale)]
        subprocess.run(words, check=True, capture_output=True)
    user.create("foo")
    work_dir = user.work_dir("foo")
    (work_dir / "committed-ü.txt").write_text("ü\n")
    user.git("add", "-A", cwd=work_dir)
    user.git("commit", "-qm", "ü", cwd=work_dir)
    (work_dir / "ö.txt").write_text("ö\n")
    user.env.update(PYTHONUTF8="0", LC_ALL=locale, LOCPATH=str(user.root))
    shown = user.mngr("diff", "foo", "--stat").ok().stdout
    assert "txt" in shown
    user.mngr("pull", "foo:ö.txt", "ä.txt").ok()
    assert (user.repo / "ä.txt").read_text() == "ö\n"
    user.mngr("push", "foo:ä/", "ä.txt").ok()
    assert (work_dir / "ä" / "ä.txt").exists()
    user.mngr("snapshot", "create", "foo").ok()
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1", "--to", str(user.root / "zurück")).ok()
    assert (user.root / "zurück" / "ö.txt").read_text() == "ö\n"
