"""Tests and gate commands that fail now and then."""

import shlex

import pytest

from tests.support.tmr import FIX_SUB, NO_CHANGE, TESTS, Project
from tests.support.user import User

pytestmark = pytest.mark.timeout(500)

# Fails twice, as the baseline sees it, and passes from then on.
COUNTING = """\
from pathlib import Path


def test_shy():
    with Path({path!r}).open("a") as file:
        file.write("x")
    assert len(Path({path!r}).read_text()) > 2


def test_wrong():
    assert 1 + 1 == 3
"""


def test_who_changes_nothing_is_right_about_a_flaky_test_and_wrong_about_a_failing_one(user: User) -> None:
    project = Project(user, tests=COUNTING.format(path=str(user.root / "count")))
    for name in ("test_shy", "test_wrong"):
        project.script(name, NO_CHANGE)
    project.tmr("--no-canary").failed(3)
    assert project.status()["baseline"] == {"fail": 2}
    shy, wrong = project.row("test_shy"), project.row("test_wrong")
    assert (shy["verdict"], "flaky" in shy["why"]) == ("unchanged", True), shy
    assert (wrong["verdict"], "failed at the base" in wrong["why"]) == ("refuted", True), wrong


# Beside the work, a test that passes at the base and then fails twice, for a reason of its own.
BESIDE = """

def test_beside():
    from pathlib import Path
    with Path({path!r}).open("a") as file:
        file.write("x")
    assert len(Path({path!r}).read_text()) not in (2, 3)
"""


def test_a_flaky_test_beside_the_work_refutes_nobody(user: User) -> None:
    project = Project(user, tests=TESTS + BESIDE.format(path=str(user.root / "count")))
    project.script("test_beside", NO_CHANGE)
    project.tmr("--no-canary", "tests/test_calc.py::test_mul", "tests/test_calc.py::test_beside").ok()
    assert project.row("test_mul")["verdict"] == "expectation changed"
    found = next(entry["data"] for entry in project.ledger() if entry["type"] == "verdict" and entry["data"]["files"])
    assert found["repeated"] == ["tests/test_calc.py::test_beside"]


# Wrong until it is fixed, and then fails once more, as if the network were away.
HICCUP = """\
from pathlib import Path

import calc


def test_sub():
    assert calc.sub(3, 2) == 1
    seen = Path({path!r})
    if not seen.exists():
        seen.touch()
        raise OSError("no route to host")
"""


def test_one_failure_of_its_test_or_of_the_gate_refutes_nobody(user: User) -> None:
    project = Project(user, tests=HICCUP.format(path=str(user.root / "seen")))
    gate = shlex.quote(str(user.root / "gate"))
    project.settings["gate_command"] = f"git grep -q 'b - [1]' || test -e {gate} || {{ touch {gate}; exit 6; }}"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a gate")
    project.script("test_sub", FIX_SUB)
    project.tmr("--no-canary").ok()
    assert project.verdicts() == {"test_sub": "fixed"}
    found = next(entry["data"] for entry in project.ledger() if entry["type"] == "verdict")
    assert found["repeated"] == ["tests/test_calc.py::test_sub", "gate command"]
