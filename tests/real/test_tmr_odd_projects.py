"""`mngr tmr` on ordinary projects of odd shapes: what each agent did is seen for what it is, and is
where it belongs."""

import pytest

from tests.support.odd_projects import FACTS, PROJECTS, OddRun
from tests.support.user import User


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", PROJECTS)
def test_the_work_of_agents_in_an_odd_project_is_seen_for_what_it_is(user: User, shape: str) -> None:
    run = OddRun(user, PROJECTS[shape])
    result = run.tmr()
    rows = user.mngr("tmr", "status", "r1", "--format", "json").ok().json["rows"]
    assert {row["task"].rpartition("::")[2]: row["verdict"] for row in rows} == FACTS, rows
    integration = result["integration"]
    assert integration["green"] is True
    aside = [slug for one in integration["set_aside"] for slug in one["slugs"]]
    assert aside == [row["slug"] for row in rows if row["task"].endswith("test_twice")], aside
    subjects = user.git("log", "--reverse", "--format=%s", "main..tmr/r1").splitlines()
    assert [subject for subject in subjects if "test_half" in subject], subjects
    assert not [subject for subject in subjects if "test_twice" in subject or "test_greet" in subject], subjects
