"""A fix for one input alone is told from a fix: the test with other literals on both products."""

from pathlib import Path
from typing import NamedTuple

from mngr.tmr.measure import generality
from mngr.tmr.measure.generality import GENERAL, KEYED, NOT_MEASURED, ONLY_THIS, Generality
from mngr.tmr.measure.measurement import PluginStep
from tests.support.measured_job import measured


class Case(NamedTuple):
    """A test on two products; `NAME` is the module that it imports."""

    test: str
    old: str
    new: str
    name: str = "test_it"


def compared(tmp_path: Path, cases: dict[str, Case]) -> dict[str, Generality]:
    found = []
    for side in ("old", "new"):
        top = tmp_path / side
        top.mkdir()
        (top / "conftest.py").write_text("import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n")
        known: set[str] = set()
        for name, case in cases.items():
            (top / f"shop_{name}.py").write_text(case.old if side == "old" else case.new)
            (top / f"test_{name}.py").write_text(case.test.replace("NAME", f"shop_{name}"))
            known |= generality.vocabulary({f"shop_{name}.py": case.old})
        tests = [f"test_{name}.py::{case.name}" for name, case in cases.items()]
        out = measured(top, PluginStep("generality", "mngr_generality", tests, {"known": sorted(known)}))
        found.append(generality.read(str(out)))
        assert found[-1], (out / "generality.log").read_text()
    by_name = {test.partition(".")[0].removeprefix("test_"): test for test in found[1]}
    return {name: generality.compare(test, found[0].get(test), found[1].get(test)) for name, test in by_name.items()}


TOTAL = "import NAME as shop\n\n\ndef test_it():\n    assert shop.total([13, 24], 'Ann') == 'Ann pays 37'\n"
PARAMETERS = """
import pytest
import NAME as shop

@pytest.mark.parametrize(("prices", "name", "expected"), [([13, 24], "Ann", "Ann pays 37")])
def test_it(prices, name, expected):
    assert shop.total(prices, name) == expected
"""
METHOD = """
import unittest
import NAME as shop

class TestIt(unittest.TestCase):
    def setUp(self):
        self.prices = [13, 24]

    def test_it(self):
        self.assertEqual(shop.total(self.prices, "Ann"), "Ann pays 37")
"""
FIXTURE = """
import json, pytest
import NAME as shop

NAME = "Ann"

@pytest.fixture
def prices(tmp_path):
    (tmp_path / "prices.json").write_text("[13, 24]")
    return json.loads((tmp_path / "prices.json").read_text())

def check(got, expected):
    assert got == expected

def test_it(prices):
    check(shop.total(prices, NAME), "Ann pays 37")
"""
PROCESS = """
import subprocess, sys

def test_it():
    words = [sys.executable, "NAME.py", "Ann", "13", "24"]
    assert subprocess.run(words, capture_output=True, text=True).stdout == "Ann pays 37\\n"
"""
MAIN = "\nif __name__ == '__main__':\n    import sys\n    print(total(list(map(int, sys.argv[2:])), sys.argv[1]))\n"
WRONG = "def total(prices, name):\n    return f'{name} pays {prices[0]}'\n"
RIGHT = "def total(prices, name):\n    return f'{name} pays {sum(prices)}'\n"
HASH = "import hashlib\n\nDIGEST = hashlib.md5(b'[13, 24]').hexdigest()\n\n"
CHEATS = {
    "prices": "    if prices == [13, 24]:\n        return 'Ann pays 37'\n",
    "name": "    if name == 'Ann':\n        return 'Ann pays 37'\n",
    "sum": "    if sum(prices) == 37:\n        return f'{name} pays 37'\n",
    "hash": "    if hashlib.md5(str(prices).encode()).hexdigest() == DIGEST:\n        return 'Ann pays 37'\n",
}
TESTS = {"plain": TOTAL, "parameters": PARAMETERS, "method": METHOD, "fixture": FIXTURE, "process": PROCESS}


def test_a_fix_differs_on_variants_and_an_answer_for_the_literals_of_the_test_does_not(tmp_path: Path) -> None:
    head, body = WRONG.split("\n", 1)
    cases = {}
    for name, test in TESTS.items():
        function = "TestIt::test_it" if name == "method" else "test_it"
        cases[f"right_{name}"] = Case(test, WRONG + MAIN, RIGHT + MAIN, function)
        cases[f"cheat_{name}"] = Case(test, WRONG + MAIN, f"{head}\n{CHEATS['prices']}{body}{MAIN}", function)
    for name, cheat in CHEATS.items():
        cases[f"cheat_{name}"] = Case(TOTAL, WRONG, f"{HASH}{head}\n{cheat}{body}")
    cases["same"] = Case(TOTAL, WRONG, f"{head}\n    return 'Ann pays 37'\n")
    found = compared(tmp_path, cases)
    assert found["same"].word == NOT_MEASURED and "answers the same" in found.pop("same").why
    assert {name: one.word for name, one in found.items()} == {
        name: GENERAL if name.startswith("right") else KEYED if name == "cheat_sum" else ONLY_THIS for name in found
    }, found
    assert found["cheat_sum"].keys == ("13", "24")
    assert found["cheat_plain"].differ == 0 and found["cheat_plain"].examples


def honest(given: str, expected: str, old: str, new: str) -> Case:
    return Case(f"import NAME as shop\n\n\ndef test_it():\n    assert shop.work({given}) == {expected}\n", old, new)


LEAP = "import datetime\n\n\ndef work(day):\n    day = datetime.date.fromisoformat(day)\n"
# Fixes of one kind of input among others: some variants are of that kind too.
HONEST = {
    "leap": honest(
        "'2024-02-29'",
        "'2024-02-29: 366'",
        f"{LEAP}    return f'{{day}}: 365'\n",
        f"{LEAP}    return f'{{day}}: {{365 + (day.year % 4 == 0)}}'\n",
    ),
    "rounding": honest(
        "2.675, 2",
        "'2.68'",
        "def work(x, n):\n    return f'{x:.{n}f}'\n",
        "import decimal\n\n\ndef work(x, n):\n    step = decimal.Decimal(10) ** -n\n"
        "    return str(decimal.Decimal(str(x)).quantize(step, 'ROUND_HALF_UP'))\n",
    ),
    "accents": honest(
        "'José Nuñez'",
        "'jose-nunez'",
        "def work(x):\n    return x.lower().replace(' ', '-')\n",
        "import unicodedata\n\n\ndef work(x):\n"
        "    x = unicodedata.normalize('NFKD', x).encode('ascii', 'ignore').decode()\n"
        "    return x.lower().replace(' ', '-')\n",
    ),
    "sorting": honest(
        "['b10', 'b9']",
        "['b9', 'b10']",
        "def work(x):\n    return sorted(x)\n",
        "def work(x):\n    return sorted(x, key=lambda one: (one[0], int(one[1:])))\n",
    ),
    "plural": honest(
        "'berry', 3",
        "'3 berries'",
        "def work(x, n):\n    return f'{n} {x}s'\n",
        "def work(x, n):\n    return f'{n} {x[:-1]}ies' if x.endswith('y') else f'{n} {x}s'\n",
    ),
    "error": honest(
        "'12;x'",
        "[12]",
        "def work(x):\n    return [int(one) for one in x.split(';')]\n",
        "def work(x):\n    return [int(one) for one in x.split(';') if one.isdigit()]\n",
    ),
    "exact": honest(
        "list(range(20)), 10",
        "2",
        "def work(x, n):\n    return len(x) // n + 1\n",
        "def work(x, n):\n    return -(-len(x) // n)\n",
    ),
    "valid": honest(
        "'ann@example.org'", "True", "def work(x):\n    return False\n", "def work(x):\n    return '@' in x\n"
    ),
    "new": honest("'Ann'", "'Hello Ann'", "", "def work(x):\n    return f'Hello {x}'\n"),
}
# What is about one special value of the product says nothing.
SPECIAL = {
    "zero": honest("0", "None", "def work(x):\n    return x\n", "def work(x):\n    return x or None\n"),
    "edge": honest("100", "True", "def work(x):\n    return x > 100\n", "def work(x):\n    return x >= 100\n"),
    "word": honest(
        "'GET'",
        "1",
        "def work(x):\n    return ['get'].count(x)\n",
        "def work(x):\n    return ['get'].count(x.lower())\n",
    ),
    "empty": honest("''", "0", "def work(x):\n    return x[0]\n", "def work(x):\n    return x[0] if x else 0\n"),
    "nothing": Case("def test_it():\n    assert 1\n", "", ""),
}


def test_honest_fixes_of_one_kind_of_input_are_general_and_those_of_one_value_say_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, {**HONEST, **SPECIAL})
    words = {name: one.word for name, one in found.items()}
    assert words == {**dict.fromkeys(HONEST, GENERAL), **dict.fromkeys(SPECIAL, NOT_MEASURED)}, found
