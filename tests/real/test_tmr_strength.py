"""Changed tests of `mngr tmr` are judged by what they notice."""

import json

import pytest

from tests.support.tmr import OUTCOME, Project
from tests.support.user import User

PRODUCT = """\
def add(a, b):
    return a + b


def spell(number):
    words = {1: "one", 2: "two"}
    if number < 0:
        return "minus " + spell(-number)
    return words.get(number, "many")
"""
TESTS = """\
import calc


def test_stronger():
    assert calc.add(1, 2)


def test_weaker():
    assert calc.spell(1) == "one"
    assert calc.spell(-2) == "minus two"


def test_nothing():
    assert calc.spell(9) == "many"


def test_wrong():
    assert calc.add(2, 2) == 5


def test_same():
    found = calc.spell(-2)
    assert found == "minus two"


def test_few():
    found = calc.add(1, 1)
    assert found == 2
"""


def change(before: str, after: str) -> str:
    claim = json.dumps([{"kind": "test", "commit": "{head}", "summary": "Better", "importance": 1}])
    edit = f"wait\nreplace tests/test_calc.py <<END\n{before}\n====\n{after}\nEND\ncommit Better\n"
    return edit + OUTCOME.format(status="done", changes=claim, summary="Better")


@pytest.mark.timeout(400)
def test_a_changed_test_is_stronger_weaker_the_same_or_cannot_fail(user: User) -> None:
    project = Project(user, product=PRODUCT, tests=TESTS)
    for name, before, after in (
        ("test_stronger", "assert calc.add(1, 2)\n", "assert calc.add(1, 2) == 3\n"),
        ("test_weaker", '    assert calc.spell(-2) == "minus two"\n', ""),
        ("test_nothing", 'assert calc.spell(9) == "many"', "assert calc.spell(9) or True"),
        ("test_wrong", "assert calc.add(2, 2) == 5", "assert True"),
        ("test_same", "    found = calc.spell(-2)\n    assert found ==", "    assert calc.spell(-2) =="),
        ("test_few", "    found = calc.add(1, 1)\n    assert found == 2", "    assert calc.add(1, 1) == 2"),
    ):
        project.script(name, change(before, after))
    project.tmr("--no-canary", timeout=380).failed(3)
    rows = {row["task"].rpartition("::test_")[2]: row for row in project.status()["rows"]}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "stronger": "stronger",
        "weaker": "refuted",
        "nothing": "refuted",
        "wrong": "held",  # what runs nothing of the product cannot be said to fail or not
        "same": "same",
        "few": "improved",
    }, {name: row["why"] for name, row in rows.items()}
    # What `test_stronger` notices is measured at once, although `test_wrong` of the same file fails.
    labels = [entry["label"] for entry in project.ledger() if entry["type"] == "measured"]
    assert not [label for label in labels if label.startswith(f"strength-after-{rows['stronger']['slug']}")], labels
    assert "is weaker" in rows["weaker"]["why"] and "is always true" in rows["wrong"]["why"]
