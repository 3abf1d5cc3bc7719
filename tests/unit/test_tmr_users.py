"""Which tests use a helper or fixture that a change alters."""

from mngr.tmr.judge.changed_file import File
from mngr.tmr.judge.users import users
from mngr.tmr.measure.rows import CollectedTest

HELP = "def check(found, text):\n    assert found == text\n\n\ndef other():\n    pass\n"
LOOSE = HELP.replace("found == text", "text in found")
ONE = """
import pytest
from tests.help import check


@pytest.fixture
def shop():
    return 1


def both(a, b):
    check(a, b)


def test_direct():
    check(1, 1)


def test_through_another():
    both(1, 1)


def test_fixture(shop):
    assert shop


class TestAll:
    def test_inside(self):
        both(2, 2)


def test_alone():
    assert 1
"""
NAMES = ("test_direct", "test_through_another", "test_fixture", "TestAll::test_inside", "test_alone")
TESTS = {
    f"tests/test_a.py::{name}": CollectedTest(f"tests/test_a.py::{name}", "tests/test_a.py", 1, name, "", "")
    for name in NAMES
}
SOURCES = {"tests/help.py": HELP, "tests/test_a.py": ONE}


def found(path: str, before: str | None, after: str | None) -> list[str]:
    seen = users([File(path, before, after, implementation=False)], SOURCES, TESTS)
    return [test.partition("::")[2] for test in seen]


def test_the_users_of_a_helper_are_found_through_other_helpers() -> None:
    assert found("tests/help.py", HELP, LOOSE) == ["TestAll::test_inside", "test_direct", "test_through_another"]
    assert found("tests/help.py", HELP, f"# why\n{HELP}") == found("tests/help.py", HELP, HELP + "x = 1\n") == []
    assert found("tests/help.py", HELP, None) == found("tests/help.py", HELP, LOOSE)


def test_a_fixture_is_asked_for_by_its_name() -> None:
    assert found("tests/test_a.py", ONE, ONE.replace("return 1", "return 2")) == ["test_fixture"]
    assert found("tests/test_a.py", ONE, ONE.replace("assert shop", "assert 1")) == []


def test_what_runs_for_every_test_is_used_by_all_below() -> None:
    hook = "def pytest_runtest_setup(item):\n    pass\n"
    assert len(found("tests/conftest.py", hook, hook.replace("pass", "return"))) == len(NAMES)
    auto = "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef fresh():\n    pass\n"
    assert len(found("conftest.py", auto, auto.replace("pass", "return"))) == len(NAMES)
    assert found("docs/conftest.py", auto, auto.replace("pass", "return")) == []
