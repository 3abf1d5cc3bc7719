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
        path = user.repo / "tests" / "real" / f"test_{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return user.run([sys.executable, str(SCRIPT), "0"], timeout=100)


def test_one_of_a_program_of_others_that_passes_alone_is_named(greeter: User) -> None:
    done = suite(greeter, kind_claude=ONCE).ok()
    assert "1 failed, once more and alone:" in done.stdout and "2 of 2 commands run in suite" in done.stdout
    told = "UNSTABLE tests/real/test_kind_claude.py::test_once: it failed with the others and passed alone (Claude Code"
    assert told in done.stdout
    again = suite(greeter).ok()
    assert "UNSTABLE" not in again.stdout and "once more" not in again.stdout
    (greeter.repo / "tests" / "sessions" / "test_bye.py").unlink()
    assert "1 problem: 1 of 2 examples cited, 1 of 2 commands run" in suite(greeter).failed().stdout


def test_every_other_failure_fails(greeter: User) -> None:
    wrong = "def test_wrong(): assert False\n"
    done = suite(greeter, kind_claude=ONCE, kind_codex=wrong).failed()
    assert "1 failed, 1 passed" in done.stdout and "UNSTABLE" not in done.stdout, "it failed twice"
    (greeter.repo / "tried").unlink()
    done = suite(greeter, other=ONCE, kind_claude="", kind_codex="").failed()
    assert "1 failed" in done.stdout and "once more" not in done.stdout, "it is not named"
    many = "".join(f"def test_{number}(): assert False\n" for number in range(4))
    assert "once more" not in suite(greeter, other="", kind_codex=many).failed().stdout, "no accident any more"


def test_what_may_be_tried_again_exists() -> None:
    names = [line.split('"')[1] for line in SCRIPT.read_text().splitlines() if line.startswith('    "tests/real/')]
    for name in names:
        path, _, function = name.partition("::")
        assert f"def {function}" in (SCRIPT.parents[1] / path).read_text()
    assert len(names) == 13
