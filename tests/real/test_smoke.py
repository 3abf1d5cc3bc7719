"""The first minutes of a new user."""

from tests.support.user import User


def test_create_list_exec_and_destroy(user: User) -> None:
    agent = user.create("foo")
    assert agent["state"] == "RUNNING"
    assert user.mngr("exec", "foo", "git branch --show-current").ok().stdout == "mngr/foo\n"
    user.mngr("destroy", "foo").ok()
    assert user.agents() == []
    assert user.git("worktree", "list").count("\n") == 0
    assert user.git("branch", "--list", "mngr/*") == ""
