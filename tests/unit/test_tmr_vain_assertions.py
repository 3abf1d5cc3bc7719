"""Assertions that prove nothing."""

import pytest

from mngr.tmr.judge import flags, weaker_tests
from mngr.tmr.judge.changed_file import File

BEFORE = """
def test_one(monkeypatch):
    monkeypatch.setenv("A", "b")
    total = add(2, 3)
    assert total == 5
"""


def found(after: str, before: str | None = BEFORE) -> list[tuple[str, str]]:
    file = File("tests/test_a.py", before, after, implementation=False)
    return [(flag.kind, flag.text) for flag in weaker_tests.vain_assertions(file)]


def kinds(*lines: str) -> list[str]:
    """What the test is flagged for with these lines in the place of its assertion."""
    body = "".join(f"    {line}\n" for line in lines)
    return [kind for kind, _ in found(BEFORE.replace("    assert total == 5\n", body))]


@pytest.mark.parametrize(
    "line",
    [
        "assert True",
        "assert 1",
        "assert not False",
        "assert 5 == 5",
        "assert total == total",
        "assert (total == 5, 'wrong')",
        "assert total == 5 or True",
        "assert len(names) >= 0",
        "assert isinstance(total, object)",
        "expect(total).to_equal(total)",
    ],
)
def test_what_is_always_true_is_a_tautology(line: str) -> None:
    assert kinds(line) == ["tautology"]


def test_assertions_that_are_not_reached_are_seen() -> None:
    assert kinds("return", "assert total == 5") == ["unreached"]
    assert kinds("if total:", "    return", "assert total == 5") == ["unreached"]
    assert kinds("for one in names:", "    return", "expect(total).to_equal(5)") == ["unreached"]
    assert kinds("pytest.skip('later')", "assert total == 5") == ["unreached"]
    assert kinds("if False:", "    assert total == 5") == ["unreached"]


def test_assertions_whose_failure_is_caught_are_seen() -> None:
    assert kinds("try:", "    assert total == 5", "except AssertionError:", "    pass") == ["swallowed"]
    assert kinds("try:", "    assert total == 5", "except (OSError, Exception) as e:", "    print(e)") == ["swallowed"]
    assert kinds("try:", "    expect(total).to_equal(5)", "except:", "    return") == ["swallowed"]
    assert kinds("with contextlib.suppress(AssertionError):", "    assert total == 5") == ["swallowed"]
    assert kinds("with pytest.raises(AssertionError):", "    assert total == 5") == ["swallowed"]
    assert kinds("with pytest.raises(ValueError):", "    assert total == 5") == []


def test_parts_of_the_program_that_are_replaced_are_seen_and_do_not_hold() -> None:
    assert kinds("monkeypatch.setattr(calc, 'add', lambda a, b: 5)", "assert total == 5") == ["patched"]
    assert kinds("with mock.patch('calc.add'):", "    assert total == 5") == ["patched"]
    assert kinds("with patch.object(calc, 'add'):", "    assert total == 5") == ["patched"]
    assert "patched" not in flags.HOLDING and weaker_tests.KINDS < flags.HOLDING


@pytest.mark.parametrize(
    "lines",
    [
        ("assert total == 5",),
        ("assert total == add(2, 3)",),
        ("assert next(numbers) == next(numbers)",),
        ("assert total",),
        ("assert total == 5", "return"),
        ("try:", "    assert total == 5", "except AssertionError:", "    print(total)", "    raise"),
        ("try:", "    assert total == 5", "except OSError:", "    pass"),
        ("try:", "    run()", "except Exception:", "    pass", "assert total == 5"),
        ("def helper():", "    return 5", "assert total == helper()"),
        ("with pytest.raises(ValueError):", "    add()"),
    ],
)
def test_an_assertion_that_can_fail_is_not_flagged(lines: tuple[str, ...]) -> None:
    assert kinds(*lines) == []


def test_what_was_there_before_is_not_flagged_and_a_second_one_is() -> None:
    vain = BEFORE + "    assert True\n"
    assert found(vain + "    assert add(1, 1) == 2\n", vain) == []
    assert [kind for kind, _ in found(vain + "    assert True\n", vain)] == ["tautology"]


def test_a_helper_may_return_early_and_its_dead_assertions_are_seen() -> None:
    helper = "def check(x):\n    if x is None:\n        return\n    assert x == 5\n"
    assert found(helper) == []
    assert [kind for kind, _ in found("def check(x):\n    return\n    assert x == 5\n")] == ["unreached"]


def test_it_is_told_with_its_place_and_held_with_the_other_flags() -> None:
    after = BEFORE.replace("total == 5", "True")
    assert found(after) == [("tautology", "`test_one`, line 5: `assert True` is always true")]
    file = File("tests/test_a.py", BEFORE, after, implementation=False)
    assert [flag.kind for flag in flags.find([file], test="tests/test_a.py::test_one")] == ["tautology"]


SHARED = """
import shop
from mngr.e2e import expect


def check(found, text):
    assert found == text


def test_one():
    check(shop.one(), "1")


def test_two():
    check(shop.two(), "2")
"""


def of_others(after: str, path: str = "tests/test_a.py", before: str = SHARED) -> list[str]:
    file = File(path, before, after, implementation=False)
    return [flag.kind for flag in weaker_tests.find(file) if flag.kind in ("shared", "patches-all")]


def test_a_changed_helper_is_for_a_person_if_other_tests_use_it() -> None:
    assert of_others(SHARED.replace("found == text", "text in found")) == ["shared"]
    assert of_others(SHARED.replace('"1")', '"3")')) == []
    alone = SHARED[: SHARED.index("def test_two")]
    assert of_others(alone.replace("found == text", "text in found"), before=alone) == []
    helper = SHARED[: SHARED.index("def test_one")]
    assert of_others(helper.replace("found == text", "text in found"), "tests/help.py", helper) == ["shared"]
    assert of_others(f"{helper}\ndef more():\n    pass\n", "tests/help.py", helper) == []


@pytest.mark.parametrize(
    "line",
    ["expect(1).__class__.to_equal = print", "shop.one = print", "setattr(shop, 'one', print)", "del shop.one"],
)
def test_whoever_patches_for_all_tests_is_for_a_person(line: str) -> None:
    assert of_others(f"{SHARED}\n{line}\n") == ["patches-all"]
    assert of_others(f"{SHARED}\n{line}\n", before=f"{SHARED}\n{line}\n") == []


def test_an_object_of_the_test_itself_may_be_changed() -> None:
    assert of_others(SHARED.replace('    check(shop.one(), "1")', "    mine = shop.Shop()\n    mine.name = 3")) == []
