"""Test map-reduce with the real programs: a model on this machine fixes a bug of the sample product through their own
tools, and what comes back is measured like all work."""

import json

import pytest

from tests.support.programs import program, with_program
from tests.support.user import User

pytestmark = pytest.mark.timeout(600)
TEST = "a_wrong_name_waters_nobody"


@pytest.mark.parametrize(
    "kind",
    ["claude", pytest.param("codex", marks=pytest.mark.soak), pytest.param("opencode", marks=pytest.mark.soak)],
)
def test_a_real_program_fixes_a_bug_of_the_sample_product(user: User, kind: str) -> None:
    with_program(program(kind), user.env, user.root / "bin")
    words = ("demo", "--type", kind, "--keep", "--dir", "demo", "--format", "json")
    found = user.mngr(*words, env={"PYTEST_ADDOPTS": f"-k {TEST}"}, timeout=580).ok().json

    (row,) = found["rows"]
    assert (row["verdict"], row["task"]) == ("fixed", f"tests/test_watering.py::test_{TEST}")
    integration = found["integration"]
    assert integration["green"] is True
    (commit,) = integration["commits"]
    repo = user.repo / "demo" / "sprout"
    assert user.git("show", "--format=", "--name-only", commit["id"], cwd=repo).split() == ["src/sprout/garden.py"]

    host = {"MNGR_HOST_DIR": str(user.repo / "demo" / "host")}
    agents = user.mngr("list", "--format", "json", env=host).ok().json["agents"]
    (mapper,) = (
        agent for agent in agents if agent["labels"].get("mngr-role", "map") == "map" and kind == agent["type"]
    )
    said = user.mngr("transcript", mapper["name"], "--format", "json", env=host).ok().json
    assert [entry["role"] for entry in said].count("user") == 1
    assert any(entry["role"] == "tool_call" and "git commit" in entry["input"] for entry in said)
    user.mngr("destroy", "--all", "--force", env=host).ok()


def test_who_works_alone_needs_a_choice_of_what_it_may_do(user: User) -> None:
    tools = user.root / "bin"
    tools.mkdir()
    (tools / "claude").write_text('#!/bin/sh\n[ "$1" != --version ] || exec echo 99.0\nexec sleep 9999\n')
    (tools / "claude").chmod(0o755)
    user.env["PATH"] = f"{tools}:{user.env['PATH']}"
    refused = user.mngr("tmr", "--type", "claude").failed(2)
    assert "`--permissions` is missing: agents of type `claude`" in refused.stderr
    user.git("config", "user.useConfigOnly", "true")
    nobody = {"GIT_CONFIG_GLOBAL": "/dev/null"}
    for words in ((), ("--dry-run",)):
        told = user.mngr("tmr", "--type", "claude", "--permissions", "tests", *words, env=nobody).failed(1).stderr
        assert "git knows no name and e-mail address for commits" in told and "user.email" in told
    assert "--permissions tests" in refused.stderr and "agent_types.claude.permissions" in refused.stderr
    assert (
        "`--permissions` is for coding agents"
        in user.mngr("tmr", "--type", "scripted", "--permissions", "ask").failed(2).stderr
    )
    assert json.loads(user.mngr("list", "--format", "json").ok().stdout)["agents"] == []
