"""The Python API: the verbs as methods of `mngr.Fleet`."""

import sys
from pathlib import Path

import pytest

import mngr
from tests.support.user import User

ROOT = Path(__file__).parents[2]


def fleet_of(user: User) -> mngr.Fleet:
    return mngr.Fleet(environ=user.env, cwd=str(user.repo))


def test_an_agent_from_creation_to_merge(user: User) -> None:
    fleet = fleet_of(user)
    agent = fleet.create("foo", command="cat", labels={"team": "a"})
    assert agent.state == "RUNNING"
    assert agent.message("hello there").acknowledged is None
    result = fleet.find("foo").exec(
        "echo made > made.txt; git add made.txt; git commit -q -m Made; echo more > more.txt"
    )
    assert result.ok
    assert b"made.txt" in agent.diff("--name-only")
    assert agent.pull().commits == 1
    assert agent.merge().commits == 1
    assert (user.repo / "made.txt").read_text() == "made\n"
    assert agent.label({"team": "b"}, remove=["x"]).record.spec.labels == {"team": "b"}
    assert fleet.find("foo").rename("bar").name == "bar"
    assert fleet.find("bar").stop().changed
    assert fleet.find("bar").start()[0].state == "RUNNING"
    with pytest.raises(mngr.MngrError, match="found nowhere else"):
        fleet.find("bar").destroy()
    saved = fleet.find("bar").destroy(force=True).entry
    assert saved is not None
    assert [kept.entry.id for kept in fleet.saved().entries] == [saved.id]
    back = fleet.restore_saved(saved.id)
    assert (Path(back.record.workspace.work_dir) / "more.txt").read_text() == "more\n"
    assert [agent.name for agent in fleet.list().agents] == ["bar"]


def test_it_waits_captures_and_tells_what_happened(user: User) -> None:
    fleet = fleet_of(user)
    fleet.create("done", command="echo all well; sleep 0.2")
    fleet.create("failed", command="sleep 0.2; exit 4")
    ended = fleet.wait(["done", "failed"], ("DONE", "FAILED"), timeout=60)
    assert [(agent.name, agent.state, agent.status.exit_code) for agent in ended] == [
        ("done", "DONE", 0),
        ("failed", "FAILED", 4),
    ]
    assert "all well" in fleet.find("done").capture()
    assert [event["type"] for event in fleet.find("done").events()] == ["created", "started", "exited"]
    with pytest.raises(mngr.MngrError, match="no agent named `nobody`"):
        fleet.find("nobody")


def test_a_fleet_touches_nothing_until_it_is_used(user: User) -> None:
    assert fleet_of(user).list().agents == []
    assert not user.host_dir.exists()


def test_the_example_merges_the_first_that_is_done(user: User) -> None:
    work = "echo {0} > {0}.txt; git add {0}.txt; git commit -q -m {0}"
    commands = [f"sleep 9999; {work.format('slow')}", work.format("quick"), "exit 3"]
    done = user.run([sys.executable, str(ROOT / "examples" / "first_green.py"), *commands])
    assert done.exit_code == 0, done.stderr
    assert "merged 1 commit(s) of try-2 into main" in done.stdout
    assert (user.repo / "quick.txt").exists()
    assert user.agents() == []


def test_the_script_of_the_guide_prints_what_the_guide_says(user: User) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "python.md").read_text()
    script, output = (guide.split(f"```{name}\n")[1].split("```")[0] for name in ("python", "text"))
    assert user.run([sys.executable, "-c", script]).ok().stdout == output
