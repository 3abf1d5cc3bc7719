"""`mngr tmr` on mngr itself, begun inside of an agent: what its tests do never reaches the fleet around them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.ourselves import ROOT, Ourselves
from tests.support.user import User

FILE = "tests/sessions/test_nothing_is_lost.py"
SAME = ("id", "state", "pid", "work_dir", "labels", "start_time", "state_since")


@pytest.mark.timeout(600)
def test_a_run_on_ourselves_inside_of_an_agent(user: User) -> None:
    """Two tests that are the whole suite; the next one takes all."""
    ourselves = Ourselves(user, ["test_what_would_be_saved"])
    user.trust(ROOT)
    command = user.mngr("config", "get", "tmr.test_command", cwd=ROOT).ok().stdout.strip()
    narrow = command.replace("tests/unit tests/sessions", FILE)
    assert narrow != command
    narrow += " -k 'would_be_saved or alone'"
    before = user.create("bystander")
    words = ["-S", f"tmr.test_command={narrow}", "-S", "tmr.gate_command=", "-S", "tmr.mutants=0"]
    result = ourselves.from_inside_an_agent(FILE, *words, "--name", "own", timeout=500)
    assert Counter(row["verdict"] for row in result["rows"]) == {"unchanged": 1, "stronger": 1}
    assert result["integration"]["green"] is True
    assert result["canary"]["test"] == "pytest itself", "whose plugin is part of the product"
    assert user.git("diff", "--shortstat", "main", "tmr/own", cwd=ourselves.repo) == " 1 file changed, 1 insertion(+)"
    agents = {agent["name"]: agent for agent in user.agents()}
    assert {name: agents["bystander"][name] for name in SAME} == {name: before[name] for name in SAME}
    others = [agent for name, agent in agents.items() if name not in ("bystander", "outer")]
    assert [agent["labels"]["mngr-run"] for agent in others] == ["own"] * 2
    assert user.mngr("saved", "list", "--format", "json").ok().json["saved"] == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_all_session_tests_inside_of_an_agent(user: User) -> None:
    """With our own settings, a fleet of its own, and an assertion more for every eighth test."""
    ourselves = Ourselves(user, every=8)
    before = user.create("bystander")
    fleet = user.root / "f"
    result = ourselves.from_inside_an_agent(
        "tests/sessions", "--max-agents", "20", "--name", "all", host_dir=fleet, timeout=3300
    )
    verdicts = Counter(row["verdict"] for row in result["rows"])
    improved = len(ourselves.improved)
    assert len(result["rows"]) >= 60 and verdicts["stronger"] == improved, (verdicts, result)
    assert result["integration"]["green"] is True
    changes = user.git("diff", "--numstat", "main", "tmr/all", cwd=ourselves.repo).splitlines()
    assert sum(int(line.split()[0]) for line in changes) == improved
    agents = {agent["name"]: agent for agent in user.agents()}
    assert set(agents) == {"bystander", "outer"}
    assert {name: agents["bystander"][name] for name in SAME} == {name: before[name] for name in SAME}
    inner = user.mngr("list", "--format", "json", env={"MNGR_HOST_DIR": str(fleet)}).ok().json["agents"]
    assert len(inner) == len(result["rows"]) and {agent["state"] for agent in inner} == {"STOPPED"}
    assert not Path(fleet, "worktrees").exists() or len(list(Path(fleet, "worktrees").iterdir())) == len(inner)
