"""Locales that are not UTF-8, as in containers and cron jobs."""

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
