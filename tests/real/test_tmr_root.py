"""Tests have the same names however pytest is called, or the run says that they do not."""

import pytest

from tests.support.tmr import Project
from tests.support.user import User


@pytest.mark.timeout(300)
def test_settings_beside_the_tests_do_not_change_what_they_are_called(user: User) -> None:
    project = Project(user)
    project.write("tests/pytest.ini", "[pytest]\n")
    project.commit("settings beside the tests")
    project.tmr("-k", "add", "--no-canary").ok()
    assert project.status()["baseline"] == {"fail": 2, "pass": 1}


@pytest.mark.timeout(300)
def test_a_command_may_run_the_tests_from_another_directory(user: User) -> None:
    project = Project(user)
    project.settings["test_command"] = (
        f"cd tests && export PYTHONPATH=..:$PYTHONPATH; {project.settings['test_command']}"
    )
    project.write(".mngr/settings.toml", project.toml())
    project.commit("tests from elsewhere")
    project.tmr("tests/test_calc.py::test_sub").ok()
    assert project.status()["baseline"] == {"fail": 2, "pass": 1}
    assert project.verdicts() == {"test_sub": "fixed"}
    assert project.row("test_sub")["task"] == "tests/test_calc.py::test_sub"
