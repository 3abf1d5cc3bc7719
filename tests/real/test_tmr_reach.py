"""Changed lines that no test runs, and tests that take longer than they did."""

import sys
from pathlib import Path

import pytest

from mngr.system.git import Git
from mngr.tmr.measure import reach, rows
from tests.support.measured_job import measured

SHOP = """
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def total(prices: "Sequence[int]") -> int:
    \"\"\"Words.\"\"\"
    if not prices:
        return 0
    try:
        return sum(prices)
    except TypeError:
        # not numbers
        return -1


if __name__ == "__main__":
    print(
        total([1]),
    )
"""
TESTS = """
import subprocess, sys, threading
import shop

def test_other():
    subprocess.run([sys.executable, "shop.py"], check=True)

def test_own():
    assert shop.total([1]) == 1
    other = threading.Thread(target=shop.total, args=([],))
    other.start()
    other.join()
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "conftest.py").write_text("import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n")
    (tmp_path / "test_a.py").write_text(TESTS)
    return tmp_path


def test_the_lines_that_no_test_runs_are_named(top: Path) -> None:
    lines = {"shop.py": range(1, 30), "shop.c": [1]}
    out = measured(top, reach.step(lines, ["test_a.py::test_own"]))
    found = reach.read(str(out), lines)
    assert found is not None, (out / "reach.log").read_text()
    assert found.unreached == {"shop.py": (15, 17)}, found
    assert (found.unreached_count, found.tests, found.unknown, found.why) == (2, 2, ("shop.c",), "")
    assert found.words == f"2 of {found.lines} changed lines of the product are run by no test: `shop.py` 15, 17"


def test_nothing_is_said_of_lines_that_programs_run_which_cannot_be_followed(top: Path) -> None:
    (top / "test_a.py").write_text(
        "import subprocess, sys\n\n\n"
        "def test_a():\n    subprocess.run([sys.executable, 'shop.py'], env={}, check=True)\n"
    )
    lines = {"shop.py": [11, 14]}
    found = reach.read(str(measured(top, reach.step(lines, []))), lines)
    assert found is not None
    assert (found.unreached_count, found.why) == (0, "what the tests start could not be followed")


def test_no_more_tests_are_run_than_it_takes(top: Path) -> None:
    lines = {"shop.py": [9, 10, 11, 12, 14, 16]}
    found = reach.read(str(measured(top, reach.step(lines, ["test_a.py::test_own"]))), lines)
    assert found == reach.Reach(lines=4, tests=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import sys\nsys.settrace(lambda *_: None)\n", "the tests follow the lines themselves"),
        ("import os\nos._exit(3)\n", None),
        ("import time\ntime.sleep(60)\n", "the test did not end within 20 s"),
    ],
)
def test_what_cannot_be_told_says_why(top: Path, text: str, why: str | None) -> None:
    if hasattr(sys, "monitoring") and "settrace" in text:
        why = ""  # this Python lets several follow the lines
    body = text.replace("\n", "\n    ")
    (top / "test_a.py").write_text(f"import shop\n\n\ndef test_a():\n    {body}\n")
    lines = {"shop.py": [17]}
    found = reach.read(str(measured(top, reach.step(lines, []))), lines)
    assert (found.why if found is not None else None) == why


def test_a_limit_of_time_is_kept(top: Path) -> None:
    lines = {"shop.py": [17]}
    found = reach.read(str(measured(top, reach.step(lines, [], seconds=0))), lines)
    assert found is not None and found.tests == 1 and found.why and "none of the 1 tests" in found.words


def test_changed_lines_are_those_of_the_new_side(tmp_path: Path) -> None:
    git = Git.of_user(str(tmp_path))
    git.must("init", "-q", doing="init")
    names = ("-c", "user.name=a", "-c", "user.email=a@b")
    for text in ("a\nb\nc\nd\n", "a\nB\nc\nd\nE\nF\n"):
        (tmp_path / "shop [1].py").write_text(text)
        git.must("add", ".", doing="add")
        git.must(*names, "commit", "-qm", "x", doing="commit")
    assert reach.changed_lines(git, "HEAD~1", "HEAD", ["shop [1].py"]) == {"shop [1].py": [2, 5, 6]}
    assert reach.changed_lines(git, "HEAD~1", "HEAD", []) == {}


def test_a_test_is_slower_by_a_factor_and_by_what_one_notices() -> None:
    def ran(seconds: float, outcome: str = "passed") -> rows.RanTest:
        return rows.RanTest("t", outcome, seconds, "", "")

    now = rows.Rows(ran={"a": ran(0.5), "b": ran(0.19), "c": ran(2.0), "d": ran(9, "failed"), "new": ran(9)})
    found = reach.slower({"a": 0.1, "b": 0.01, "c": 1.0, "d": 0.1}, now)
    assert [one.test for one in found] == ["a"] and "takes 0.50 s" in found[0].words
