"""Two commands that change one agent at once: neither undoes what the other has done."""

import os
import subprocess
from pathlib import Path

import mngr
from mngr.actions import agent_process, lifecycle
from tests.support.user import User, wait_for

LABEL = 'mngr label "$MNGR_AGENT_NAME" team=backend'


def fleet_of(user: User) -> mngr.Fleet:
    return mngr.Fleet(environ=user.env, cwd=str(user.repo))


def test_a_label_given_during_create_or_start_stays(user: User) -> None:
    fleet = fleet_of(user)
    alone = fleet.create("one", command="sleep 9999", labels={"a": "b"}, provision=(LABEL,))
    others = fleet.create_many(["two", "three"], command="sleep 9999", labels={"a": "b"}, provision=(LABEL,))
    for agent in (alone, *others):
        assert not isinstance(agent, mngr.MngrError)
        assert agent.record.spec.labels == {"a": "b", "team": "backend"}
    fleet.find("one").stop()
    read_before = fleet.find("one").record
    lifecycle.label(fleet.local, read_before.id, {"late": "yes"})
    started = agent_process.start_process(fleet.local, read_before)
    assert fleet.find("one").record == started
    assert started.spec.labels == {"a": "b", "team": "backend", "late": "yes"}
    assert started.life.stopped_at is None


def test_a_label_given_while_files_are_checked_out_stays(user: User) -> None:
    """In `create`, `clone` and `saved restore`."""
    label = "for name in foo bar; do mngr label $name $name=labelled >/dev/null 2>&1; done; cat"
    user.git("config", "--global", "filter.label.smudge", label)
    (user.repo / ".gitattributes").write_text("marked.txt filter=label\n")
    (user.repo / "marked.txt").write_text("marked\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "marked")
    assert user.create("foo", "--label", "a=b")["labels"] == {"a": "b", "foo": "labelled", "project": "repo"}
    user.mngr("clone", "foo", "bar", "--no-connect").ok()
    fleet = fleet_of(user)
    assert fleet.find("bar").record.spec.labels == {"a": "b", "foo": "labelled", "bar": "labelled"}
    fleet.find("bar").label({}, remove=["bar"])
    (Path(fleet.find("bar").record.workspace.work_dir) / "work.txt").write_text("work\n")
    fleet.find("bar").destroy(force=True)
    user.mngr("saved", "restore", "bar").ok()
    assert fleet.find("bar").record.spec.labels == {"a": "b", "foo": "labelled", "bar": "labelled"}


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""  # closed in this very moment


def has_open(process: "subprocess.Popen[bytes]", path: Path) -> bool:
    fds = f"/proc/{process.pid}/fd"
    links = [os.path.join(fds, name) for name in os.listdir(fds)]
    return any(_target(link) == str(path) for link in links)


def test_two_restores_of_one_entry_at_once_make_two_agents(user: User) -> None:
    fleet = fleet_of(user)
    old = fleet.create("foo", command="sleep 9999")
    (Path(old.record.workspace.work_dir) / "work.txt").write_text("work\n")
    fleet.find("foo").destroy(force=True)
    with fleet.local.store.locked():  # none has looked yet whether the old id is free
        running = [user.popen("saved", "restore", "foo", "--name", name) for name in ("one", "two")]
        lock = user.host_dir / "locks" / "host"
        wait_for(lambda: all(has_open(process, lock) for process in running), "both to wait for the lock")
    ended = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], ended
    agents = {agent.name: agent for agent in fleet.list().agents}
    assert sorted(agents) == ["one", "two"]
    assert old.id in {agent.id for agent in agents.values()}
    for agent in agents.values():
        assert (Path(agent.record.workspace.work_dir) / "work.txt").read_text() == "work\n"
    assert len({agent.record.workspace.work_dir for agent in agents.values()}) == 2
