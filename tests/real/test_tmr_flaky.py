"""A test that fails now and then, and an agent that says so and changes nothing."""

import pytest

from tests.support.tmr import NO_CHANGE, Project
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
    assert (wrong["verdict"], "does not pass" in wrong["why"]) == ("refuted", True), wrong
