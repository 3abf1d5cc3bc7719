"""`mngr tmr` on ordinary projects of odd shapes: what each agent did is seen for what it is, and is
where it belongs."""

import time
from collections.abc import Callable

import pytest

from tests.support.odd_projects import FACTS, PROJECTS
from tests.support.odd_run import OddRun
from tests.support.user import User

# Shapes whose cause another one has too: `make soak` runs them.
ALIKE = frozenset(
    {
        *("plain", "a few failures are enough", "settings beside the tests", "a partial clone", "a worktree"),
        *("doctests in text files", "a namespace package", "testpaths and names of its own", "names with spaces"),
        *("two packages with tests of one name", "warnings are errors", "random order"),
    }
)
SHAPES = [pytest.param(shape, marks=[pytest.mark.soak] * (shape in ALIKE)) for shape in PROJECTS]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_of_agents_in_an_odd_project_is_seen_for_what_it_is(
    user: User, shape: str, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    project = PROJECTS[shape]
    run = OddRun(user, project)
    base = user.git("rev-parse", "HEAD")
    result = run.tmr()  # which ends with 3: the branch is green, and some work is not on it
    rows = user.mngr("tmr", "status", "r1", "--format", "json").ok().json["rows"]
    names = {project.named.format(name): name for name in FACTS}
    found = {names.get(row["task"].rpartition("::")[2], row["task"]): row for row in rows}
    verdicts = {name: found[name]["verdict"] for name in FACTS if name in found}
    said = ", ".join(f"{name}: {verdict}" for name, verdict in sorted(verdicts.items()))
    record_property("odd project", (shape, said, time.monotonic() - began))
    assert {name: row["verdict"] for name, row in found.items() if name in FACTS} == project.facts, rows
    integration = result["integration"]
    assert integration["green"] is True
    aside = [slug for one in integration["set_aside"] for slug in one["slugs"]]
    assert aside == [found["twice"]["slug"]] * (project.facts["twice"] == "fixed"), aside
    subjects = user.git("log", "--reverse", "--format=%s", f"{base}..tmr/r1").splitlines()
    assert [subject for subject in subjects if "half" in subject], subjects
    assert not [subject for subject in subjects if "twice" in subject or "greet" in subject], subjects
