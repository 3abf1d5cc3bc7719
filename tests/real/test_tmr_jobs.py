"""What the jobs of `mngr tmr` leave, and the gate command that runs in them."""

import pytest

from tests.support.tmr import TESTS, Project
from tests.support.user import User

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


def test_what_tests_leave_in_our_own_directory_is_not_kept_as_work(user: User) -> None:
    project = Project(user, tests=TESTS + LEAVES)
    project.tmr("-k", "add", "--no-canary").ok()
    assert "saved on destroy" not in user.git("log", "--all", "--format=%s")
    assert user.mngr("saved", "list", "--format", "json").ok().json["saved"] == []
