"""Test map-reduce with the real programs: a model on this machine fixes a bug of the sample product through their own
tools, and what comes back is measured like all work."""

import json
import time
from collections.abc import Iterator

import pytest

from mngr_testing.model_server import ModelServer, Rule
from tests.support.programs import program, with_program
from tests.support.sprout_world import BUGS, INTERRUPTED, SproutWorld
from tests.support.user import User

pytestmark = pytest.mark.timeout(600)
TEST = "a_wrong_name_waters_nobody"
PROGRAMS = ["claude", "codex", pytest.param("opencode", marks=pytest.mark.soak)]


@pytest.fixture
def user() -> Iterator[User]:
    """Not in `/dev/shm`: what Codex runs in its sandbox has a `/dev` of its own."""
    made = User("/tmp")
    try:
        yield made
    finally:
        made.close()


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


@pytest.mark.parametrize("kind", PROGRAMS)
def test_six_bugs_are_fixed_with_the_permissions_tests_and_nobody_is_blocked(user: User, kind: str) -> None:
    world = SproutWorld(kind, user)
    denied = [f"%% run {command}" for command in world.forbidden]
    rules = [world.rule(test, [*world.look(test), *denied, *world.fix(test)]) for test in BUGS]
    with ModelServer(rules) as server:
        found = world.tmr(server, BUGS, "--max-agents", "3").ok().json
    assert {row["task"]: row["verdict"] for row in found["rows"]} == dict.fromkeys(BUGS, "fixed")
    integration = found["integration"]
    assert integration["green"] is True and not integration["set_aside"]
    changed = user.git("diff", "--name-only", f"main..{integration['branch']}").split()
    assert sorted(changed) == sorted(set(BUGS.values()))
    assert world.untouched()
    states = {(entry["state"], entry["reason"]) for entry in world.ledger if entry["type"] == "state"}
    assert "BLOCKED" not in {state for state, _ in states}, states
    assert [entry["number"] for entry in world.ledger if entry["type"] == "attempt"] == [1] * len(BUGS)
    for name, entries in world.transcripts().items():
        assert (entries[-1]["role"], entries[-1]["text"]) == ("assistant", "Done."), name
        tried = [entry["input"] for entry in entries if entry["role"] == "tool_call"]
        assert set(world.forbidden) <= set(tried), f"{name} went on before it tried all: {tried}"


# A limit after which the turn ends, by the program: what its model's server says, and what it does itself before.
LIMITS = {
    "claude": "%% status 429 times=2 You have hit your session limit · resets in 3 seconds",
    "codex": '%% status 429 {"error": {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": @NOW@}}',
}


@pytest.mark.parametrize(
    "kind", ["claude", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("codex", "opencode"))]
)
def test_a_limit_costs_no_attempt_and_the_same_conversation_continues(user: User, kind: str) -> None:
    """The first limit is one that the program waits for itself; after the second, if it gives up at any, it is told to
    continue."""
    world, test = SproutWorld(kind, user), f"tests/test_watering.py::test_{TEST}"
    look, fix = world.look(test), world.fix(test)
    limit = [LIMITS[kind].replace("@NOW@", str(int(time.time())))] if kind in LIMITS else []
    short = "%% status 429 times=1 retry-after=4"
    steps = [look[0], short, *look[1:], *limit, *([] if limit else fix)]
    with ModelServer([world.rule(test, steps), Rule(INTERRUPTED, "\n".join(fix))]) as server:
        # Claude Code gives up after ten requests, which takes minutes, unless it is told otherwise.
        found = world.tmr(server, [test], "--env", "CLAUDE_CODE_MAX_RETRIES=1").ok().json
        asked = [entry for entry in server.log if not entry.side]
    assert [(row["verdict"], row["attempts"]) for row in found["rows"]] == [("fixed", 1)]
    of_run = [entry for entry in world.ledger if entry.get("task") == test]
    assert sum(entry["type"] == "attempt" for entry in of_run) == 1
    assert sum(entry["type"] == "continued" for entry in of_run) == len(limit)
    blocked = [entry["reason"] for entry in of_run if entry["type"] == "state" and entry["state"] == "BLOCKED"]
    assert blocked and all(reason.startswith("rate limit: retry at ") for reason in blocked), blocked
    assert len({entry.session for entry in asked}) == 1, "one conversation"
    ((_, said),) = world.transcripts().items()
    assert [entry["role"] for entry in said].count("user") == 1 + len(limit)


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
        assert "git has no user name and e-mail address" in told and "user.email" in told
    assert "--permissions tests" in refused.stderr and "agent_types.claude.permissions" in refused.stderr
    assert (
        "`--permissions` is for coding agents"
        in user.mngr("tmr", "--type", "scripted", "--permissions", "ask").failed(2).stderr
    )
    assert json.loads(user.mngr("list", "--format", "json").ok().stdout)["agents"] == []
