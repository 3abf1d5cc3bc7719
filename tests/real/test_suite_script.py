"""What `make test` makes of tests that fail, on a small product."""

import sys
from pathlib import Path

import pytest

from tests.support.greeter import BYE, HELLO, add_greeter
from tests.support.user import Ran, User

SCRIPT = Path(__file__).parents[2] / "scripts" / "suite.py"
ONCE = """
import pathlib

def test_once():
    mark = pathlib.Path("tried")
    seen = mark.exists()
    mark.touch()
    assert seen
"""


@pytest.fixture
def greeter(user: User) -> User:
    add_greeter(user, test_hello=HELLO, test_bye=BYE)
    (user.repo / "tests").rename(user.repo / "sessions")
    (user.repo / "tests").mkdir()
    (user.repo / "sessions").rename(user.repo / "tests" / "sessions")
    return user


def suite(user: User, **tests: str) -> Ran:
    for name, text in tests.items():
        (user.repo / "tests" / f"{name}.py").write_text(text)
    return user.run([sys.executable, str(SCRIPT), "0"], timeout=100)


def test_what_passes_alone_is_named(greeter: User) -> None:
    done = suite(greeter, test_one=ONCE).ok()
    assert "UNSTABLE tests/test_one.py::test_once: it failed with the others and passed alone\n" in done.stdout
    assert "1 failed, once more and alone:" in done.stdout and "2 of 2 commands run in suite" in done.stdout
    again = suite(greeter).ok()
    assert "UNSTABLE" not in again.stdout and "once more" not in again.stdout


def test_what_fails_twice_fails_and_more_than_a_few_are_not_tried_again(greeter: User) -> None:
    wrong = "def test_wrong(): assert False\n"
    done = suite(greeter, test_one=ONCE, test_two=wrong).failed()
    assert "1 failed, 1 passed" in done.stdout and "UNSTABLE" not in done.stdout
    many = suite(greeter, **{f"test_{number}": wrong for number in range(4)}).failed()
    assert "once more" not in many.stdout


def test_what_does_not_run_the_tutorial_fails(greeter: User) -> None:
    (greeter.repo / "tests" / "sessions" / "test_bye.py").unlink()
    assert "1 problem: 1 of 2 examples cited, 1 of 2 commands run" in suite(greeter).failed().stdout


def test_what_a_test_ran_when_it_was_alone_counts(greeter: User) -> None:
    path = greeter.repo / "tests" / "sessions" / "test_hello.py"
    path.write_text(
        ONCE.replace("test_once", "before") + path.read_text().replace("expect(e2e", "before(); expect(e2e")
    )
    done = suite(greeter).ok()
    assert "UNSTABLE tests/sessions/test_hello.py::test_hello" in done.stdout and "2 of 2 commands run" in done.stdout
