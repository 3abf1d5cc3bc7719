"""`examples/map_reduce.sh`: the verbs are enough for a small map-reduce."""

import sys
from pathlib import Path

import pytest

from tests.support.tmr import Project
from tests.support.user import User

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "map_reduce.sh"
TESTS = """\
import calc
import pytest


def test_sub():
    assert calc.sub(3, 2) == 1


def test_sub_of_more():
    assert calc.sub(9, 2) == 7


@pytest.mark.parametrize("name", ["two words"])
def test_add(name):
    assert calc.add(1, 2) == 3


def test_mul():
    assert calc.mul(2, 3) == 7


def test_nothing():
    assert calc.add(0, 0) == 1


def test_question():
    assert calc.add(0, 0) == 2
"""
SCRIPT = """\
wait
if-message test_sub\\. <<END
  replace calc.py <<TEXT
    return a - b - 1
====
    return a - b
TEXT
  commit Subtract no more than asked
END
if-message test_sub_of_more <<END
  replace calc.py <<TEXT
    return a - b - 1
====
    return a + -b
TEXT
  commit Add the opposite
END
if-message test_mul <<END
  run! exit 3
END
if-message test_nothing <<END
  write notes.txt <<TEXT
It cannot be.
TEXT
  commit Only talk
END
if-message test_question <<END
  ask May it be two?
END
"""


@pytest.mark.timeout(500)
def test_good_work_is_merged_and_the_rest_is_named(user: User) -> None:
    project = Project(user, tests=TESTS)
    script = user.root / "all.script"
    script.write_text(SCRIPT)
    env = {
        "PYTEST": "python3 -m pytest -p no:cacheprovider",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": ".",
        "MAX_AGENTS": "2",
    }
    ran = user.run(["sh", str(EXAMPLE), "scripted", str(script)], env=env, timeout=450).ok()
    said = [line for line in ran.stdout.splitlines() if line.startswith("tests/")]
    run = user.git("branch", "--show-current")
    test = "tests/test_calc.py::test_"
    assert said == [
        f"{test}sub: passes with 1 commits of {run}-1",
        f"{test}sub_of_more: the work of {run}-2 clashes with what is merged",
        f"{test}add[two words]: passes with 0 commits of {run}-3",
        f"{test}mul: {run}-4 is FAILED",
        f"{test}nothing: does not pass with the work of {run}-5",
        f"{test}question: {run}-6 is BLOCKED",
    ]
    assert ran.stdout.splitlines()[-1] == f"branch {run}: 1 commits"
    assert user.git("log", "--format=%s", f"main..{run}") == "Subtract no more than asked"
    assert user.git("status", "--porcelain") == ""
    assert user.run(["git", "show", "HEAD:calc.py"]).stdout == (project.repo / "calc.py").read_text()
    states = {agent["name"]: agent["state"] for agent in user.agents()}
    assert states[f"{run}-1"] == "STOPPED" and states[f"{run}-2"] == "WAITING", "what is not merged stays"


def test_changes_that_are_not_committed_are_not_put_at_risk(user: User) -> None:
    (user.repo / "README.md").write_text("precious\n")
    ran = user.run(["sh", str(EXAMPLE), "scripted", "all.script"]).failed(1)
    assert "commit or stash your changes first" in ran.stderr and user.agents() == []
    assert (user.repo / "README.md").read_text() == "precious\n"


def test_when_nobody_is_green_the_other_example_fails(user: User) -> None:
    ran = user.run([sys.executable, str(ROOT / "examples" / "first_green.py"), "exit 3"]).failed(1)
    assert "try-1 is FAILED" in ran.stdout and user.agents() == []
