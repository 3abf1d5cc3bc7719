"""What agents say is held against what their tests do, also where that is not plain to see."""

import pytest

from mngr.mapreduce.run import Run
from tests.support.tmr import FIX_SUB, NO_CHANGE, OUTCOME, Project
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(500)

FAILS = "import calc\n\n\ndef test_{0}():\n    assert calc.sub(3, 2) == 1\n"


def done(kind: str = "test") -> str:
    change = f'[{{"kind": "{kind}", "commit": "{{head}}", "summary": "x", "importance": 1}}]'
    return OUTCOME.format(status="done", changes=change, summary="done")


LIES = {
    "expected": (
        "wait\nreplace tests/test_expected.py <<E\ndef test\n====\nimport pytest\n\n\n@pytest.mark.xfail\ndef test\nE\n"
        "commit expect it\n" + done(),
        ("refuted", "its test is xfailed"),
    ),
    "settings": (
        FIX_SUB.replace("commit Sub", "append pytest.ini <<E\naddopts = -q\nE\ncommit Sub"),
        ("held", "`pytest.ini`"),
    ),
    "odd.py": (
        "wait\ndelete tests/test_odd.py\nrun! git add -A\ncommit no file, no trouble\n" + done(),
        ("refuted", "its test is missing"),
    ),
    "away": ("wait\nthink 600\n", ("failed", "its agent is gone")),
}


def test_work_that_only_seems_to_hold_is_told_and_kept_off_the_branch(user: User) -> None:
    project = Project(user, tests="")
    for name, (script, _) in LIES.items():
        project.write(f"tests/test_{name.removesuffix('.py')}.py", FAILS.format(name))
        project.script(f"test_{name}", script)
    project.write("pytest.ini", "[pytest]\n")
    project.write(
        "tests/test_calc.py", "def test_passes():\n    pass\n"
    )  # nobody pays for a suite that fails as a whole
    base = project.commit("tests that fail")
    child = user.popen(*project.words("--no-canary", "--failing"))
    try:
        running = wait_for(lambda: told(project), "the agent that is destroyed", 100)
        user.mngr("destroy", *running, "--force").ok()
        assert child.wait(timeout=150) == 3
    finally:
        child.kill()
        child.communicate()
    rows = {row["task"].rpartition("test_")[2]: row for row in project.status()["rows"]}
    for name, (_, (verdict, why)) in LIES.items():
        assert rows[name]["verdict"] == verdict and why in rows[name]["why"], rows[name]
    assert project.status()["integration"]["tip"] == base
    user.mngr("tmr", "status").ok()


def told(project: Project) -> list[str]:
    """Its name, once it has its task: before that, it is being made."""
    tasks = Run(str(project.repo / ".mngr" / "runs" / "r1")).state.tasks.values()
    last = [task.last for task in tasks if task.id.endswith("test_away") and task.last is not None]
    return [attempt.agent for attempt in last if attempt.told_at is not None]


def test_without_a_baseline_each_test_is_measured_before_its_agent_is_believed(user: User) -> None:
    project = Project(user)
    project.script("test_add", FIX_SUB)
    project.script("test_sub", NO_CHANGE)
    project.tmr("--no-baseline", "--no-canary").failed(3)
    assert project.verdicts() == {"test_add": "unproven", "test_sub": "refuted", "test_mul": "expectation changed"}
    assert "failed at the base" in project.row("test_sub")["why"]
