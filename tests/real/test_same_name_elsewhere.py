"""Two state directories on one tmux server, each with an agent of the same name."""

from tests.support.user import User


def test_an_agent_of_the_same_name_in_another_state_directory_is_left_alone(user: User) -> None:
    mine = user.create("foo")
    other = {"MNGR_HOST_DIR": str(user.root / "other")}
    words = ("create", "foo", "--no-connect", "--branch", ":theirs", "--command", "sleep 9999")
    user.mngr(*words, env=other).ok()
    assert user.agent("foo")["pid"] == mine["pid"]
    user.mngr("destroy", "foo", env=other).ok()
    assert (user.agent("foo")["state"], user.agent("foo")["pid"]) == ("RUNNING", mine["pid"])
