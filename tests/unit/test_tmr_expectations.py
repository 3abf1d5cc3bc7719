"""Expected values that a change of tests altered."""

from mngr.tmr.judge import expectations
from mngr.tmr.judge.changed_file import File
from mngr.tmr.judge.evidence import ChangedExpectation

BEFORE = """
import pytest

WANTED = "three"


@pytest.mark.parametrize(("a", "sum"), [(1, 2), (3, 4)])
def test_cases(a, sum):
    assert add(a, 1) == sum


def test_one(e2e):
    listed = e2e.run("app list --all")
    expect(listed.stdout).to_contain("on Monday")
    expect(listed).to_have_exit_code(0)
    assert add(2, 3) == 5
    assert "two" in names
    assert limit < 10
    expected = {"a": 1}
    assert found == expected
    assert word == WANTED


class TestMore:
    def test_two(self):
        self.assertEqual(f(1), "x")
        with pytest.raises(ValueError, match="too long"):
            f(9)
"""


def changed(old: str, new: str) -> list[tuple[str, str]]:
    assert old in BEFORE
    file = File("tests/test_a.py", BEFORE, BEFORE.replace(old, new, 1), implementation=False)
    return [(one.before, one.after) for one in expectations.changed([file])]


def test_another_value_is_told_with_its_place() -> None:
    file = File("tests/test_a.py", BEFORE, BEFORE.replace("== 5", "== 7"), implementation=False)
    assert expectations.changed([file]) == [ChangedExpectation("tests/test_a.py", 16, "5", "7")]


def test_another_value_is_seen_in_each_form_of_assertion() -> None:
    assert changed("on Monday", "on Sunday") == [("to_contain('on Monday')", "to_contain('on Sunday')")]
    assert changed("code(0)", "code(1)") == [("to_have_exit_code(0)", "to_have_exit_code(1)")]
    assert changed('"two" in', '"four" in') == [("'two'", "'four'")]
    assert changed("limit < 10", "limit < 99") == [("< 10", "< 99")]
    assert changed("limit < 10", "limit > 10") == [("< 10", "> 10")]
    assert changed('{"a": 1}', '{"a": 2}') == [("{'a': 1}", "{'a': 2}")]
    assert changed('"three"', '"drei"') == [("'three'", "'drei'")]
    assert changed("(3, 4)", "(3, 5)") == [("(3, 4)", "(3, 5)")]
    assert changed('"x")', '"y")') == [("assertEqual('x')", "assertEqual('y')")]
    assert changed("too long", "too short") == [("raises('too long')", "raises('too short')")]


def test_a_contradiction_is_another_value() -> None:
    assert changed('to_contain("on Monday")', 'not_to_contain("on Monday")') == [
        ("to_contain('on Monday')", "not_to_contain('on Monday')")
    ]
    assert changed('"two" in', '"two" not in') == [("'two'", "not in: 'two'")]


def test_more_than_before_is_no_other_value() -> None:
    assert changed('to_contain("on Monday")', 'to_equal("it is on Monday\\n")') == []
    assert changed('"two" in', '"two of them" in') == []
    assert changed("    assert limit < 10\n", "    assert limit < 10\n    assert limit > 5\n") == []


def test_one_more_assertion_about_the_same_thing_changes_no_other() -> None:
    monday, again = (
        '    expect(listed.stdout).to_contain("on Monday")\n',
        '    expect(listed.stdout).to_contain("at 9")\n',
    )
    assert changed(monday, monday + again) == []
    assert changed(monday, again + monday) == []
    assert changed("[(1, 2), (3, 4)]", "[(1, 2), (2, 3), (3, 4)]") == []
    assert changed("[(1, 2), (3, 4)]", "[(0, 1), (1, 9), (3, 4)]") == [("(1, 2)", "(0, 1)")]


def test_values_that_change_places_are_other_values() -> None:
    swapped = [("(1, 2)", "(3, 4)"), ("(3, 4)", "(1, 2)")]
    assert changed("[(1, 2), (3, 4)]", "[(3, 4), (1, 2)]") == swapped


def test_what_the_test_does_is_no_expectation() -> None:
    assert changed("app list --all", "app list") == []
    assert changed("    assert add(2, 3) == 5\n", "") == []
    assert changed("add(2, 3) == 5", "add(2, 4) == 6") == [("5", "6")]


def test_other_files() -> None:
    def seen(path: str, implementation: bool = False) -> list[tuple[str, str]]:
        file = File(path, "a\nb\n", "a\nc\n", implementation)
        return [(one.before, one.after) for one in expectations.changed([file])]

    assert seen("tests/expected/list.txt") == seen("tests/__snapshots__/a.ambr") == [("b", "c")]
    assert seen("tests/notes.txt") == seen("src/expected.txt", implementation=True) == []
    assert expectations.changed([File("tests/test_a.py", None, BEFORE, False)]) == []
