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
