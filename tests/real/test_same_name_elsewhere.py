"""Two state directories on one tmux server, each with an agent of the same name."""

from pathlib import Path

import pytest

import mngr
from tests.support.user import User


def test_an_agent_of_the_same_name_in_another_state_directory_is_left_alone(user: User) -> None:
    mine = user.create("foo")
    other = {"MNGR_HOST_DIR": str(user.root / "other")}
    words = ("create", "foo", "--no-connect", "--branch", ":theirs", "--command", "sleep 9999")
    user.mngr(*words, env=other).ok()
    assert user.agent("foo")["pid"] == mine["pid"]
    user.mngr("destroy", "foo", env=other).ok()
    assert (user.agent("foo")["state"], user.agent("foo")["pid"]) == ("RUNNING", mine["pid"])


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_what_is_kept_of_agents_of_the_same_name_stays_apart(user: User, transfer: str) -> None:
    """They share a repository, and so the place of the refs that hold saved work and snapshots."""
    fleets = [
        mngr.Fleet(environ={**user.env, "MNGR_HOST_DIR": str(user.root / name)}, cwd=str(user.repo))
        for name in ("one", "two")
    ]
    for number, fleet in enumerate(fleets):
        agent = fleet.create("foo", command="sleep 9999", transfer=transfer, branch=f":branch-{number}")
        (Path(agent.record.workspace.work_dir) / "work.txt").write_text(f"snapshot {number}\n")
        fleet.find("foo").snapshot("before")
        (Path(agent.record.workspace.work_dir) / "work.txt").write_text(f"saved {number}\n")
        fleet.find("foo").destroy(force=True)
    for number, fleet in enumerate(fleets):
        ((_, entry),) = fleet.saved().entries
        assert (
            Path(fleet.restore_saved(entry.id).record.workspace.work_dir) / "work.txt"
        ).read_text() == f"saved {number}\n"
        fleet.restore_snapshot("foo/before")
        assert (Path(fleet.find("foo").record.workspace.work_dir) / "work.txt").read_text() == f"snapshot {number}\n"
    held = user.git("for-each-ref", "--format=%(objectname)", "refs/mngr").split("\n")
    assert {
        one.entry.commit for fleet in fleets for one in (*fleet.saved().entries, *fleet.snapshots().entries)
    } <= set(held)


def test_rename_to_a_name_that_the_other_directory_has(user: User) -> None:
    other = {"MNGR_HOST_DIR": str(user.root / "other")}
    user.create("foo")
    user.mngr("create", "bar", "--no-connect", "--command", "sleep 9999", env=other).ok()
    before = user.agent("foo")
    user.mngr("rename", "foo", "bar").ok()
    agent = user.agent("bar")
    assert agent["session"] == f"mngr-bar-{agent['id'][6:14]}"
    assert (agent["pid"], agent["state"]) == (before["pid"], "RUNNING")
    user.tmux("has-session", "-t", f"={agent['session']}").ok()
    user.mngr("destroy", "bar").ok()
    assert [one["state"] for one in user.mngr("list", "--format", "json", env=other).json["agents"]] == ["RUNNING"]
    user.mngr("destroy", "bar", env=other).ok()
