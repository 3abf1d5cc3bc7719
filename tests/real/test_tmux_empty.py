"""A tmux server that runs and has no session: as it is for a moment whenever the first agent is created."""

from tests.support.user import User


def test_a_server_without_sessions_has_no_panes_instead_of_not_answering(user: User) -> None:
    user.create("foo")
    user.tmux("set-option", "-s", "exit-empty", "off").ok()
    user.tmux("kill-session", "-t", "=mngr-foo").ok()
    assert user.tmux("list-sessions").stdout == ""
    listed = user.mngr("list", "--format", "json").ok().json
    assert listed["errors"] == []
    assert [agent["state"] for agent in listed["agents"]] == ["FAILED"]
