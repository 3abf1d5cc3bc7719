"""Two versions of a test compared by what they noticed."""

import json

from mngr.tmr.measure import strength
from mngr.tmr.measure.strength import MeasuredCommand, MeasuredTest, Tried

LIST, ADD = MeasuredCommand("till list", "d1"), MeasuredCommand("till add 3 bus", "d2")


def side(
    *killed: str, commands=(LIST,), tried=("0 exit", "0 word", "0 line"), mutants=None, lines=None
) -> MeasuredTest:
    """Edits as `number id`; those named are killed."""
    results = {one: "killed" if one in killed else "survived" for one in (*tried, *killed)}
    edits = {}
    for one, result in results.items():
        number, _, id = one.partition(" ")
        edits[(int(number), id)] = Tried(id, result)
    changed = {id: Tried(id, result, "p.py", int(id)) for id, result in (mutants or {}).items()}
    why = "" if mutants is not None else "no"
    return MeasuredTest("t", "passed", 1.0, commands, edits, "", changed, why, lines)


def word(before: MeasuredTest | None, after: MeasuredTest | None) -> str:
    return strength.compare(before, after).word


def test_kills_decide() -> None:
    assert word(side("0 exit"), side("0 exit")) == "same"
    assert word(side("0 exit"), side("0 exit", "0 word")) == "stronger"
    assert word(side("0 exit", "0 word"), side("0 exit")) == "weaker"
    assert word(side("0 exit"), side("0 word")) == "mixed"
    assert word(side("0 exit"), side()) == "cannot fail"


def test_same_says_with_how_many_changes_and_lost_kills_can_be_tried_again() -> None:
    assert strength.compare(side("0 exit"), side("0 exit")).why == "no difference seen with 3 output edits"
    found = strength.compare(side("0 exit", "0 word"), side("0 exit"))
    assert found.lost == ("`till list`: word",) and found.again == ("0 word",)
    first = side("0 exit", "0 word")
    again = strength.repeated(first, side("0 exit"))  # this time it was not killed
    assert word(again, side("0 exit")) == "same"


def test_what_a_spoiled_product_ends_can_fail() -> None:
    assert word(side("0 exit"), side()._replace(spoiled="passed")) == "cannot fail"
    assert word(side("0 exit"), side()._replace(spoiled="failed")) == "weaker"


def test_a_command_that_is_run_no_longer_is_lost_and_a_new_one_gained() -> None:
    both = side("0 exit", "1 exit", commands=(LIST, ADD), tried=())
    assert word(both, side("0 exit", tried=())) == "weaker"
    assert word(side("0 exit", tried=()), both) == "stronger"


def test_the_same_command_is_found_again_in_another_place() -> None:
    empty = MeasuredCommand("till list", "other output")
    before = side("1 exit", commands=(ADD, LIST), tried=("0 exit",))
    after = side("0 exit", "2 exit", commands=(empty, ADD, LIST), tried=("1 exit",))
    assert strength.aligned(before.commands, after.commands) == [(0, 1), (1, 2)]
    assert word(before, after) == "stronger"
    turned = side("0 exit", commands=(LIST, ADD), tried=("1 exit",))
    assert word(before, turned) == "same"


def test_other_commands_are_for_a_person_and_never_weaker() -> None:
    other = MeasuredCommand("till add 5 tea && till add 3 bus", "d3")
    before = side("0 exit", "1 exit", commands=(MeasuredCommand("till add 5 tea", "d4"), ADD), tried=())
    assert word(before, side("0 exit", commands=(other,), tried=())) == "mixed"


def test_a_lost_mutant_is_weaker_and_a_line_that_is_not_run_kills_nothing() -> None:
    before = side(tried=(), mutants={"1": "killed", "2": "survived"}, lines={"p.py": frozenset({1, 2})})
    assert word(before, side(tried=(), mutants={"2": "killed"}, lines={"p.py": frozenset({2})})) == "mixed"
    assert word(before, side("0 exit", tried=(), mutants={}, lines={"p.py": frozenset()})) == "weaker"
    unknown = side(tried=(), mutants={"2": "killed"}, lines={"p.py": frozenset({1, 2})})  # 1 was not tried there
    assert word(before, unknown) == "stronger"


def test_time_outs_prove_nothing() -> None:
    before = side(tried=(), mutants={"1": "killed", "2": "killed"})
    assert word(before, side(tried=(), mutants={"1": "killed", "2": "timeout"})) == "same"
    assert word(before, side(tried=(), mutants={"1": "timeout", "2": "timeout"})) == "cannot fail"


def test_what_was_not_measured_says_why() -> None:
    failing = side()._replace(outcome="failed")
    assert strength.compare(side(), failing).why == "without a change it failed"
    assert strength.compare(side("0 exit"), None).word == "not measured"
    neither = side()._replace(no_edits="it does not use `e2e`")
    assert strength.compare(side("0 exit"), neither).word == "not measured"
    assert strength.compare(None, side("0 exit")).word == "stronger"


def test_rows_are_read_and_cases_of_a_function_joined() -> None:
    rows = [
        {"id": "t[1]", "outcome": "passed"},
        {"id": "t[1]", "no_edits": "", "commands": [["a", "x"]], "edits": [[0, "exit", "e", "killed"]]},
        {"id": "t[2]", "outcome": "passed"},
        {"id": "t[2]", "no_edits": "", "commands": [["b", "y"]], "edits": [[0, "exit", "e", "survived"]]},
    ]
    found = strength.read("".join(json.dumps(row) + "\n" for row in rows).encode() + b'{"torn')
    joined = strength.joined("t", list(found.values()))
    assert [command.text for command in joined.commands] == ["a", "b"]
    assert {key: one.result for key, one in joined.edits.items()} == {(0, "exit"): "killed", (1, "exit"): "survived"}


def test_what_one_test_notices_is_noticed() -> None:
    found = {"a": side("0 exit"), "b": side("0 word", commands=(LIST,)), "c": side("0 exit", commands=(ADD,))}
    missed = strength.unnoticed(found)
    assert {(one.where, one.change) for one in missed} == {
        ("`till list`", "line"),
        ("`till add 3 bus`", "word"),
        ("`till add 3 bus`", "line"),
    }
    assert next(one.tests for one in missed if one.where == "`till list`") == ("a", "b")
    assert strength.not_run([side(lines={})]) and not strength.not_run([side(lines={"p": frozenset({1})})])
