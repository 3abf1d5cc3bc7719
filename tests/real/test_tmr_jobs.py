"""What the jobs of `mngr tmr` leave, and the gate command that runs in them."""

from typing import Any

import pytest

from tests.support.tmr import FIX_SUB, NO_CHANGE, TESTS, Project
from tests.support.user import User, wait_for

LEAVES = """

def test_leaves():
    import pathlib
    pathlib.Path(".mngr/e2e").mkdir()
    pathlib.Path(".mngr/e2e/transcript.txt").write_text("hello")
"""
pytestmark = pytest.mark.timeout(500)


def test_a_gate_that_is_red_before_anybody_worked_is_told_before_an_agent_is_paid(user: User) -> None:
    project = Project(user)
    project.settings["gate_command"] = "echo line 3 is ugly; exit 4"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a gate")
    told = project.tmr("-k", "add", "--no-canary").failed(1).stderr
    assert "fails at the base already (exit code 4)" in told and "line 3 is ugly" in told
    assert user.agents() == []
    project.tmr("-k", "add", "--no-canary", "-S", "tmr.gate_command=", name="r2").ok()


def test_jobs_and_agents_get_the_extra_paths_and_what_tests_leave_is_not_kept_as_work(user: User) -> None:
    project = Project(user, tests=TESTS + LEAVES + "\n\ndef test_key():\n    assert open('.env').read()\n")
    project.write(".gitignore", ".env\n")
    project.write(".env", "KEY=1\n")
    project.write(".mngr/settings.toml", project.toml() + '[workspace.extra_paths]\n".env" = "copy"\n')
    project.commit("a key that git does not know")
    project.script("test_key", NO_CHANGE.replace("wait\n", "wait\nrun! test -e .env\n"))
    project.tmr("-k", "add or key", "--no-canary").ok()
    assert project.verdicts() == {"test_add": "unchanged", "test_key": "unchanged"}
    assert "saved on destroy" not in user.git("log", "--all", "--format=%s")
    assert user.mngr("saved", "list", "--format", "json").ok().json["saved"] == []


def test_a_full_disk_refutes_nobody_and_work_after_the_outcome_is_flagged(user: User) -> None:
    project = Project(user)
    full = user.root / "full"
    project.settings["prepare"] = f"! test -e {full} || {{ echo 'cc1: No space left on device'; exit 1; }}"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a disk that fills up")
    project.script("test_sub", FIX_SUB.replace("wait\n", f"wait\nrun! touch {full}\n"))
    late = "\nrun! sleep 1.1; echo >> README.md; git commit -qam Later\nthink 1\n"
    project.script("test_mul", FIX_SUB + late)
    child = user.popen(*project.words("-k", "sub", "--no-canary"))
    try:
        entry = wait_for(lambda: verdicts(project), "the first verdict", 150)[0]
        assert entry["data"]["failure"].endswith("cc1: No space left on device"), entry
        full.unlink()
        child.wait(timeout=150)
    finally:
        child.kill()
        child.communicate()
    project.tmr("-k", "mul", "--no-canary", name="r2").failed(3)
    assert "late" in {flag["kind"] for flag in project.row("test_mul", "r2")["flags"]}


def verdicts(project: Project) -> list[dict[str, Any]]:
    path = project.repo / ".mngr" / "runs" / "r1" / "ledger.jsonl"
    return [entry for entry in project.ledger() if entry["type"] == "verdict"] if path.exists() else []
