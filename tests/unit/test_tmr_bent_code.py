"""New code whose effect is elsewhere, or cannot be read where it stands."""

import pytest

from mngr.tmr.judge import bent_code, flags
from mngr.tmr.judge.changed_file import File

CODE = """
import importlib, json, marshal, os, pickle, re, shop, sys
from mngr.e2e import expect


class Money:
    def total(self, names):
        pass
"""


def kinds(line: str, implementation: bool = True, before: str = CODE) -> list[str]:
    after = CODE.replace("        pass", f"        {line}") if implementation else f"{CODE}\n{line}\n"
    return [flag.kind for flag in bent_code.find(File("src/a.py", before, after, implementation))]


@pytest.mark.parametrize(
    "line",
    [
        "exec(names)",
        "return eval('1 + ' + names)",
        "return marshal.loads(names)",
        "return pickle.load(open('a'))",
        "return importlib.import_module(names)",
        "return __import__(names)",
    ],
)
def test_code_made_from_data_was_not_looked_at(line: str) -> None:
    assert kinds(line) == [bent_code.MADE] and bent_code.MADE in flags.HOLDING


@pytest.mark.parametrize(
    "line", ["return re.compile(names)", "return json.loads(names)", "return importlib.import_module('shop')"]
)
def test_a_pattern_and_data_are_no_code(line: str) -> None:
    assert kinds(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "expect(1).__class__.to_equal = print",
        "shop.one = print",
        "setattr(shop, 'one', print)",
        "del shop.one",
        "sys.modules['json'] = shop",
        "vars(shop)['one'] = print",
        "shop.__dict__.update(one=print)",
        "json.loads, shop.one = print, print",
    ],
)
def test_whoever_changes_another_module_is_for_a_person(line: str) -> None:
    assert bent_code.ELSEWHERE in kinds(line) and bent_code.ELSEWHERE in kinds(line, implementation=False)
    after = f"{CODE}\n{line}\n"
    assert list(bent_code.find(File("tests/test_a.py", after, after + "x = 1\n", implementation=False))) == []


def test_an_object_of_ones_own_and_a_variable_for_children_may_be_changed() -> None:
    assert kinds("mine = shop.Shop(); mine.name = 3") == kinds("os.environ['LANG'] = 'C'") == []
    assert kinds("os.environ['LANG'] = 'C'", implementation=False) == [bent_code.ELSEWHERE]


@pytest.mark.parametrize(
    "body",
    [
        "def __eq__(self, other):\n        return True",
        "def __eq__(self, other):\n        return isinstance(other, int)",
        "def __repr__(self):\n        return 'Money(5)'",
        "__eq__ = lambda self, other: True",
        "name: str = field(compare=False)",
    ],
)
def test_a_comparison_that_does_not_compare_is_seen(body: str) -> None:
    found = list(bent_code.find(File("src/a.py", None, f"class Money:\n    {body}\n", True)))
    assert [flag.kind for flag in found] == [bent_code.UNEQUAL]


def test_a_change_of_nothing_but_how_objects_are_shown_is_seen() -> None:
    before = (
        "class Money:\n    def __repr__(self):\n        return f'{self.cents}'\n\n    def add(self):\n        pass\n"
    )
    shown = before.replace("{self.cents}", "{self.cents // 5 * 5}")
    assert [flag.kind for flag in bent_code.find(File("a.py", before, shown, True))] == [bent_code.UNEQUAL]
    assert list(bent_code.find(File("a.py", before, shown.replace("pass", "return 3"), True))) == []


def test_an_honest_comparison_is_not_flagged() -> None:
    body = "def __eq__(self, other):\n        return isinstance(other, Money) and self.cents == other.cents"
    shown = "def __repr__(self):\n        return f'Money({self.cents})'\n\n    __hash__ = None"
    for one in (body, shown):
        assert list(bent_code.find(File("src/a.py", None, f"class Money:\n    {one}\n", True))) == []
