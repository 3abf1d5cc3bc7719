"""Doing something to several agents: what came of each is reported, whatever happens to one of them."""

from __future__ import annotations

import io
import json
import os

import pytest

from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.state import RUNNING, Status
from mngr.cli import targets
from mngr.cli.app import App
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from tests.support.records import make_record


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def agent(name: str) -> Agent:
    record = make_record(
        id=f"agent-{name}",
        name=name,
        kind="command",
        command="sh",
        work_dir="/",
        transfer="none",
        session=name,
        created_at="2026-01-01T00:00:00.000000Z",
        project="p",
    )
    return Agent(Site(), record, AgentView(record, Status(RUNNING, "", 0.0, ""), None))


def act(found: Agent) -> targets.Done:
    if found.name == "broken":
        raise ValueError("nobody expected this")
    if found.name == "refused":
        raise MngrError("it holds work", hint="use force")
    return {"result": found.name}, f"did {found.name.upper()}"


def finish(app: App, *names: str) -> int:
    return targets.finish(app, [agent(name) for name in names], act)


@pytest.mark.parametrize("screen", [io.StringIO, Screen])
def test_an_error_that_nobody_expected_does_not_lose_the_results_of_the_others(screen: type[io.StringIO]) -> None:
    output, errors = screen(), io.StringIO()
    app = App(os.environ, io.StringIO(), output, errors)
    with pytest.raises(ValueError, match="nobody expected this"):
        finish(app, "a", "broken", "refused", "b")
    assert sorted(output.getvalue().splitlines()) == ["did A", "did B"]
    assert errors.getvalue() == "warning: refused: it holds work\n  hint: use force\n"


def test_a_script_gets_a_row_for_each_of_them() -> None:
    output = io.StringIO()
    app = App(os.environ, io.StringIO(), output, io.StringIO())
    app.format = "json"
    with pytest.raises(ValueError, match="nobody expected this"):
        finish(app, "a", "broken", "b")
    rows = json.loads(output.getvalue())
    assert [row["ok"] for row in rows] == [True, False, True]
    assert rows[1]["error"] == "ValueError: nobody expected this"


def test_a_terminal_that_went_away_does_not_keep_the_others_from_being_done() -> None:
    class Gone(Screen):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    done = []

    def note(found: Agent) -> targets.Done:
        done.append(found.name)
        return {}, found.name

    app = App(os.environ, io.StringIO(), Gone(), io.StringIO())
    with pytest.raises(OSError, match="Input/output"):
        targets.finish(app, [agent("a"), agent("b")], note)
    assert sorted(done) == ["a", "b"]
