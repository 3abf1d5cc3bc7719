"""What a host says that an agent runs is not believed: what comes from there runs what this machine gave it."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import far
from tests.support.pods import add_settings
from tests.support.user import User

BOX = "@box.there"


@pytest.fixture
def box(user: User) -> Iterator[User]:
    """Another machine, which the user reaches as `box`."""
    person = User()
    add_settings(user, f'[providers.there]\ntype = "command"\nopen = {json.dumps(shlex.join(far.argv(person)))}\n')
    yield person
    person.close()


@pytest.fixture
def planted(user: User) -> Path:
    """A file that exists once something of the host's choice has run here."""
    return user.root / "planted"


def make(user: User) -> str:
    user.mngr("create", f"x{BOX}", "--no-connect", "--command", "sleep 9999", "--env", "TOKEN=it's 1").ok()
    return str(user.agent("x")["id"])


def change_record(box: User, agent_id: str, change: Callable[[dict[str, Any]], object]) -> None:
    path = box.host_dir / "agents" / agent_id / "agent.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def test_a_command_windows_and_a_sandbox_are_those_that_were_given(user: User, box: User, planted: Path) -> None:
    agent_id = make(user)
    evil = f"touch {planted}; sleep 9999"
    change_record(
        box, agent_id, lambda record: record["spec"].update(command=evil, command_shown="x", windows={"w": evil})
    )
    change_record(box, agent_id, lambda record: record["workspace"].update(shared_paths=[str(user.home)]))
    user.mngr("clone", "x", "y@local", "--no-connect").ok()
    spec = record_of(user, "y")["spec"]
    assert (spec["command"], spec["windows"], spec["sandbox"]) == ("sleep 9999", {}, "")
    assert record_of(user, "y")["workspace"]["shared_paths"] == []
    assert user.mngr("exec", "y", "echo $TOKEN").ok().stdout == "it's 1\n"
    user.mngr("migrate", "x", "@local").ok()
    assert record_of(user, "x")["spec"]["command"] == "sleep 9999"
    assert user.state("x") == "RUNNING"
    assert not planted.exists()
    assert not list((user.host_dir / "given").iterdir())


def record_of(user: User, name: str) -> dict[str, Any]:
    path = user.host_dir / "agents" / user.agent(name)["id"] / "agent.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("line", ["touch {}", "export A=$(touch {})", "export A=1; touch {}", "export A=`touch {}`"])
def test_variables_are_nothing_but_variables(user: User, box: User, planted: Path, line: str) -> None:
    """On the host the line runs: that machine is its own master."""
    agent_id = make(user)
    env = box.host_dir / "agents" / agent_id / "env"
    before = env.read_text()
    env.write_text(before + line.format(planted) + "\n")
    for words in (
        ["clone", "x", "y@local", "--no-connect", "--trust-host"],
        ["migrate", "x", "@local", "--trust-host"],
    ):
        assert "are invalid" in user.mngr(*words).failed(1).stderr
    env.write_text(before)
    assert [(agent["name"], agent["host"]["name"]) for agent in user.agents()] == [("x", "box")]


def test_a_value_of_a_variable_is_text(user: User, box: User, planted: Path) -> None:
    agent_id = make(user)
    with (box.host_dir / "agents" / agent_id / "env").open("a") as file:
        file.write(f'export A="$(touch {planted})"\n')
    user.mngr("clone", "x", "y@local", "--no-connect", "--trust-host").ok()
    planted.unlink(missing_ok=True)  # it may have run where it was
    assert user.mngr("exec", "y", 'echo "$A"').ok().stdout == f"$(touch {planted})\n"
    assert not planted.exists()


def test_a_variable_that_was_not_given_is_asked_for(user: User, box: User) -> None:
    agent_id = make(user)
    with (box.host_dir / "agents" / agent_id / "env").open("a") as file:
        file.write("export BASH_ENV='/tmp/x'\n")
    done = user.mngr("clone", "x", "y@local", "--no-connect").failed(5)
    assert "variables: BASH_ENV, TOKEN" in done.stderr and "--trust-host" in done.stderr
    assert [agent["name"] for agent in user.agents()] == ["x"]
    user.mngr("clone", "x", "y@local", "--no-connect", "--trust-host").ok()
    assert user.mngr("exec", "y", "echo $BASH_ENV").ok().stdout == "/tmp/x\n"


def test_an_agent_that_was_not_made_from_here_says_what_it_runs(user: User, box: User) -> None:
    make(user)
    box.create("own", command="sleep 1234")
    done = user.mngr("migrate", "own", "@local").failed(5)
    assert "command: sleep 1234" in done.stderr and "host: box" in done.stderr
    assert user.state("own") == "RUNNING" and user.agent("own")["host"]["name"] == "box"
    box.mngr("stop", "own").ok()
    change_record(box, str(user.agent("own")["id"]), lambda record: record["spec"].update(command_shown="harmless"))
    assert "command: sleep 1234" in user.mngr("migrate", "own", "@local").failed(5).stderr
    user.mngr("migrate", "own", "@local", "--trust-host").ok()
    assert user.agent("own")["host"]["name"] == "local"


def test_saved_work_of_a_host_comes_home_and_waits_for_an_answer(user: User, box: User) -> None:
    make(user)
    box.create("own", command="sleep 1234")
    (Path(box.agent("own")["work_dir"]) / "work").write_text("work\n")
    user.mngr("destroy", "own", "--force").ok()
    assert "command: sleep 1234" in user.mngr("saved", "restore", "own-1", "--name", "@local").failed(5).stderr
    user.mngr("saved", "restore", "own-1", "--to", str(user.root / "files")).ok()
    assert (user.root / "files" / "work").read_text() == "work\n"
    user.mngr("saved", "restore", "own-1", "--name", "@local", "--trust-host").ok()
    assert user.agent("own")["host"]["name"] == "local"


def test_what_was_given_is_forgotten_with_the_agent_unless_its_work_is_saved(user: User, box: User) -> None:
    make(user)
    assert len(list((user.host_dir / "given").iterdir())) == 1
    user.mngr("destroy", "x").ok()
    assert not list((user.host_dir / "given").iterdir())
    make(user)
    user.mngr("exec", "x", "echo work > work").ok()
    user.mngr("destroy", "x", "--force").ok()
    user.mngr("saved", "restore", "x-1", "--name", "@local").ok()
    assert record_of(user, "x")["spec"]["command"] == "sleep 9999"
