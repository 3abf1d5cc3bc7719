"""The table of `mngr list` in windows of any width."""

from typing import Any

import pytest

from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.state import RUNNING, Status
from mngr.cli.output.table import table
from mngr.cli.parser.parser import Args
from mngr.cli.verbs.list_ import _columns, _wanted
from mngr.fleet.agent import Agent
from mngr.remote.channel import Opening
from mngr.remote.site import RemoteSite
from tests.support.records import make_record


def row(name: str, reason: str = "") -> dict[str, Any]:
    return {
        "name": name, "state": "BLOCKED", "state_since": None, "type": "scripted",
        "project": "shop", "host": {"provider": "local"}, "initial_branch": f"mngr/{name}", "state_reason": reason,
    }  # fmt: skip


def lines(rows: list[dict[str, Any]], width: int) -> list[str]:
    args = Args()
    args.fields = None
    return table(rows, _columns(args, rows, width), fit=width).rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_window(width):
    rows = [row("a", "question: " + "x" * 90), row("fix-the-login-page-and-the-session-handling"), row("b")]
    assert all(len(line) <= width for line in lines(rows, width))


def test_a_wide_window_shows_all_columns_and_a_narrow_one_the_most_telling():
    rows = [row("fix-login", "question: which colour?")]
    assert lines(rows, 120)[0].split() == ["NAME", "STATE", "FOR", "TYPE", "PROJECT", "BRANCH", "WHY"]
    assert lines(rows, 60)[0].split() == ["NAME", "STATE", "FOR", "PROJECT", "WHY"]
    assert lines(rows, 45)[0].split() == ["NAME", "STATE", "FOR", "WHY"]
    assert "which colour?" in lines(rows, 60)[1]


def test_output_that_is_no_terminal_has_everything():
    args = Args()
    args.fields = None
    long = row("n" * 60, "r" * 200)
    assert "r" * 200 in table([long], _columns(args, [long], None))


def test_local_leaves_out_agents_of_other_hosts():
    args = Args()
    for name in ("running", "waiting", "blocked", "done", "failed", "stopped", "active"):
        setattr(args, name, False)
    args.project, args.provider, args.label, args.host_label, args.local, args.remote = [], [], [], [], True, False
    record = make_record(
        id="agent-1", name="a", kind="command", command="sh", work_dir="/", transfer="none", session="a",
        created_at="2026-01-01T00:00:00.000000Z", project="p",
    )  # fmt: skip
    local = Site()
    sites = [local, RemoteSite("box", "ssh", lambda: Opening("box", ["ssh", "box"], {}), local)]
    agents = [Agent(site, record, AgentView(record, Status(RUNNING, "", 0.0, ""), None)) for site in sites]
    assert [_wanted(args, agent.as_json()) for agent in agents] == [True, False]
