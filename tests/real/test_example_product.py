"""`examples/sprout`, a product that is not mngr: its tests give the results that its README tells."""

import sys
from pathlib import Path

import pytest

from mngr.demo import sample
from tests.support.pytests import results
from tests.support.user import User

pytestmark = pytest.mark.timeout(600)  # whole runs of pytest, one after the other

FLAKY = "test_a_tip_is_about_water"
FAILING = {"test_a_wrong_name_waters_nobody", "test_watering_on_an_earlier_day"}
BROKEN_ON_FRIDAY = {
    "test_the_list_marks_the_thirsty",
    "test_due_names_the_thirsty",
    "test_due_as_json",
    "test_the_report_counts_by_room",
    "test_the_week_begins_on_monday",
    "test_export_quotes_a_name_with_a_comma",
    "test_export_leaves_a_missing_room_empty",
    "test_the_board_waters_with_a_key",
}


def failed(found: dict[str, str]) -> set[str]:
    """Those that did not pass, without the flaky one; there must be 18."""
    assert len(found) == 18, sorted(found)
    assert found[FLAKY] in ("passed", "failed")
    assert set(found.values()) <= {"passed", "failed"}, found
    return {name for name, result in found.items() if result == "failed" and name != FLAKY}


def test_two_tests_of_the_example_fail_and_one_is_flaky(user: User) -> None:
    project = user.root / "sprout"
    sample.copy(str(project))
    readme = (project / "README.md").read_text()
    for name in {FLAKY, *FAILING}:
        assert f"| `{name}` |" in readme
    assert failed(results(user, project)) == FAILING
    checked = user.mngr("tutorial", "check", "--script", "tutorial.sh", "--tests", "tests", cwd=project)
    problems = [line for line in checked.stdout.splitlines() if "was not run by a test that passed" in line]
    assert all(any(f"`{name}`" in line for name in {FLAKY, *FAILING}) for line in problems), checked.stdout
    assert checked.exit_code == 1 and "16 of 16 examples cited" in checked.stdout, checked.stdout + checked.stderr
    recordings = list(project.glob(".mngr/e2e/*/tests/*/*.cast"))
    assert len(recordings) == 1
    assert "board" in recordings[0].parent.name


def test_the_demo_begins_where_a_friday_left_the_example(user: User) -> None:
    """The same commits everywhere, and nothing in the user's own settings changes them."""
    (user.home / ".gitconfig").write_text("[commit]\n\tgpgsign = true\n[core]\n\tautocrlf = true\n")
    first, second = user.root / "one", user.root / "two"
    make = "import sys; from mngr.demo import sample; print(sample.make_repository(sys.argv[1]))"
    bases = {user.run([sys.executable, "-c", make, str(path)]).ok().stdout for path in (first, second)}
    assert len(bases) == 1
    assert user.git("log", "--format=%s", cwd=first).splitlines() == [
        "Tidy up before the weekend",
        "sprout remembers when plants want water",
    ]
    assert user.git("status", "--porcelain", cwd=first) == ""
    kept = user.mngr("config", "list", "--format", "json", cwd=first).ok().json
    assert "tests/conftest.py" in str(kept)
    assert failed(results(user, first)) == FAILING | BROKEN_ON_FRIDAY
    assert user.git("status", "--porcelain", cwd=first) == ""


def test_the_flaky_test_is_as_flaky_as_its_docstring_says() -> None:
    source = (Path(sample.source()) / "src" / "sprout" / "tips.py").read_text()
    scope: dict[str, tuple[str, ...]] = {}
    exec(source, scope)
    assert sorted("water" in tip for tip in scope["TIPS"]) == [False, False, True, True]
