"""What is said of a fix by measurements with other inputs, and by what it touches."""

from mngr.tmr.judge.beyond import _only, _said
from mngr.tmr.judge.changed_file import functions
from mngr.tmr.judge.lost_tests import values
from mngr.tmr.measure.generality import GENERAL, NOT_MEASURED, ONLY_THIS, Generality

ALIKE = "`3` → `6`: 'six' before and now"
RAISED = "`3` → `6`: raises IndexError: no page 6 before and now"


def test_inputs_with_which_both_products_raise_or_always_say_the_same_say_nothing() -> None:
    six, two, empty = (ALIKE.replace("six", word) for word in ("six", "two", "dict()"))
    more = "`3` → `6` and 7 more: raises AssertionError: before and now"
    for examples in ((RAISED, more, RAISED, six, two), (empty, empty, empty, more), (six, two)):
        assert _said(Generality("t", ONLY_THIS, 5, 0, examples)).word == NOT_MEASURED
    assert _said(Generality("t", ONLY_THIS, 5, 0, (RAISED, six, two, two))).word == ONLY_THIS
    assert _said(Generality("t", GENERAL, 5, 5, (RAISED,))).word == GENERAL


def test_a_fix_for_one_input_is_told_with_what_was_tried() -> None:
    told = _only(Generality("t", ONLY_THIS, 7, 0, (ALIKE,)))
    assert told.startswith("it is fixed only for this input: with 7 other inputs") and ALIKE in told
    assert _only(Generality("t", GENERAL, 7, 7, (ALIKE,))) == ""


def test_the_values_of_a_test_are_counted_and_its_words_for_people_are_not() -> None:
    source = 'def test_a():\n    """3 of 4"""\n    assert f(3, "x") == 3\n'
    assert values(functions(source)["test_a"]) == {"3": 2, "'x'": 1}
    assert values(None) == {}
