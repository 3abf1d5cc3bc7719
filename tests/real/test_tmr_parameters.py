"""A test function with parameters is one task, and what its cases do is one result."""

import json

import pytest

from tests.support.tmr import NO_CHANGE, OUTCOME, Project
from tests.support.user import User

TESTS = """\
import pytest

import calc


@pytest.mark.parametrize(("a", "b", "c"), [(3, 2, 1), (2, 2, 0), (1, 1, 5)])
def test_sub(a, b, c):
    assert calc.sub(a, b) == c


@pytest.mark.parametrize("n", [1, 2])
def test_add(n):
    assert calc.add(n, 1) == n + 1


@pytest.mark.parametrize("n", [6, 7])
def test_mul(n):
    assert calc.mul(2, 3) == n
"""


def fix(*steps: str) -> str:
    changes = [{"kind": "test", "commit": "{head}", "summary": "Right", "importance": 1}]
    edits = "".join(
        f"replace {file} <<E\n{old}\n====\n{new}\nE\n" for file, old, new in (step.split("|") for step in steps)
    )
    return f"wait\n{edits}commit Right\n" + OUTCOME.format(status="done", changes=json.dumps(changes), summary="Right")


@pytest.mark.timeout(400)
def test_the_cases_of_a_function_are_one_task_and_none_may_be_dropped(user: User) -> None:
    project = Project(user, tests=TESTS)
    project.script("test_sub", fix("calc.py|a - b - 1|a - b", "tests/test_calc.py|(1, 1, 5)|(1, 1, 0)"))
    project.script("test_mul", fix("tests/test_calc.py|[6, 7]|[6]"))
    project.script("test_add", NO_CHANGE)
    only = project.tmr("tests/test_calc.py::test_sub[2-2-0]", "--dry-run", "--format", "json").ok().json
    assert [task["task"] for task in only["tasks"]] == ["tests/test_calc.py::test_sub"]
    project.tmr("--no-canary").failed(3)
    assert project.status()["baseline"] == {"fail": 4, "pass": 3}
    assert project.verdicts() == {"test_sub": "fixed together", "test_add": "unchanged", "test_mul": "held"}
    assert "`tests/test_calc.py::test_mul[7]` is gone" in project.row("test_mul")["why"]
    cases = ("1-1-0", "2-2-0", "3-2-1")
    assert sorted(project.row("test_sub")["effect"]) == [f"tests/test_calc.py::test_sub[{case}]" for case in cases]
    task = next((project.repo / ".mngr/runs/r1/tasks").glob("sub-*/1/transcript.jsonl")).read_text()
    assert "3 of 3 cases: fail" in task and "test_sub[1-1-5]" in task
    user.git("switch", "-q", "tmr/r1")
    assert "6 passed" in user.run(["sh", "-c", f"PYTHONPATH=. {project.settings['test_command']} -k 'not 7'"]).stdout
    report = json.loads((project.repo / ".mngr/runs/r1/report.json").read_text())
    assert {row["task"]: row["before"] for row in report["rows"]}["tests/test_calc.py::test_sub"] == "fail"
