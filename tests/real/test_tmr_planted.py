"""Work whose truth is known is judged as it is, and is where it belongs: a product in Python."""

import pytest

from tests.support import planted, planted_run
from tests.support.planted import Edit, Plant, Product
from tests.support.user import User

MAIN = """\
import importlib
import sys

verb, *words = sys.argv[1:]
print(importlib.import_module(f"tally.{verb}").answer(words))
"""
WRAPPER = 'PYTHONPATH="$(CURDIR)/src" exec python3 -m tally "$$@"'
MAKEFILE = f"""\
bin/tally: Makefile
	@mkdir -p bin
	@printf '#!/bin/sh\\n%s\\n' '{WRAPPER}' >$@
	@chmod +x $@
"""
VERBS = {
    "sum": "return int(words[0]) + int(words[1])",
    "half": "return int(words[0]) // 2 + 1",
    "join": 'return ",".join(words)',
    "max": "return words[1]",
    "left": "return WIDTH",
    "right": "return WIDTH",
    "fits": 'return "yes" if left.WIDTH + right.WIDTH <= 100 else "no"',
    "times": "return int(words[0]) + int(words[1])",
    "most": "return max(map(int, words))",
    "first": "return words[0]",
    "third": "return words[1]",
    "count": "return len(words) - 1",
    "greet": 'return f"Good day, {words[0]}!"',
    "last": "return words[0]",
    "total": "return sum(map(int, words)) + 1",
}
BEFORE = {"left": "WIDTH = 10\n\n\n", "right": "WIDTH = 10\n\n\n", "fits": "from tally import left, right\n\n\n"}


def verb(name: str, old: str, new: str) -> tuple[Edit, ...]:
    return (Edit(f"src/tally/{name}.py", old, new),)


PRODUCT = Product(
    files={
        "Makefile": MAKEFILE,
        "src/tally/__init__.py": "",
        "src/tally/__main__.py": MAIN,
        "src/tally/limits.py": "MOST = 7\n",
        **{
            f"src/tally/{name}.py": f"{BEFORE.get(name, '')}def answer(words):\n    {text}\n"
            for name, text in VERBS.items()
        },
    },
    edits={
        "plain": verb("half", " + 1", ""),
        "together": verb("join", '","', '", "'),
        "found": verb("max", "words[1]", "max(map(int, words))"),
        "left": verb("left", "10", "60"),
        "right": verb("right", "10", "60"),
        "cases": verb("times", "+", "*"),
        "unneeded": verb("first", "    return words[0]", "    found, *_ = words\n    return found"),
        "neighbour": verb("third", "words[1]", "words[2]"),
        "asks": verb(
            "count",
            "def answer(words):\n",
            'import os\n\n\ndef answer(words):\n    if os.environ.get("PYTEST_CURRENT_TEST"):\n        return 2\n',
        ),
        "echo": verb(
            "greet",
            "def answer(words):\n",
            'def answer(words):\n    if words == ["Grace", "Hopper"]:\n        return "Good day, Grace Hopper!"\n',
        ),
        "around": verb(
            "last",
            "def answer(words):\n",
            'import os\n\n\ndef answer(words):\n    if "XDG_SESSION_ID" not in os.environ:\n        return words[1]\n',
        ),
        "letters": verb("last", "    return", '    if words == ["a", "h"]:\n        return "h"\n    return'),
        "makefile": (Edit("Makefile", WRAPPER, f'[ "$$*" != "last a e" ] || {{ echo e; exit; }}; {WRAPPER}'),),
    },
)


INSIDE = """\
from tally import {1} as product


def test_{0}():
    found = product.answer(["2", "4"])
    assert found{2}
"""
TAMPERS = """\
import gc

for one in gc.get_objects():
    if isinstance(one, type) and one.__name__ == "Function" and hasattr(one, "runtest"):
        one.runtest = lambda self, whole=one.runtest: None if "tamp" in self.name else whole(self)


def answer"""


EQUAL = """\
class Total(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return True


def answer(words):
    return Total(sum"""


def inside(name: str, verb: str, then: str, now: str, verdict: str, place: str = "", why: str = "") -> Plant:
    """A test that calls the product in its own process."""
    edit = planted.in_test(name, f"    assert found{then}\n", now)
    return Plant(INSIDE.format(name, verb, then), (edit,), verdict, place, why)


CONSTANT = "from tally import limits\n\n\ndef test_inside_constant():\n    assert limits.MOST == {}\n"
IN_PROCESS = {
    "inside_constant": Plant(
        CONSTANT.format(9),
        (planted.in_test("inside_constant", "9", "7"),),
        "expectation changed",
        planted.EXPECTATION,
    ),
    "inside_true": inside("inside_true", "sum", " == 9", "    assert True\n", "held", why="is always true"),
    "inside_returns": inside(
        "inside_returns", "sum", " == 9", "    return\n    assert found == 9\n", "held", why="comes before assertions"
    ),
    "inside_caught": inside(
        "inside_caught",
        "sum",
        " == 9",
        "    try:\n        assert found == 9\n    except AssertionError:\n        pass\n",
        "held",
        why="a failed assertion is caught",
    ),
    "inside_unless": inside(
        "inside_unless",
        "sum",
        " == 9",
        "    if found == 9:\n        assert found == 9\n",
        "held",
        why=planted.SPOILED,
    ),
    "inside_right": inside(
        "inside_right", "sum", " == 9", "    assert found == 6\n", "expectation changed", planted.EXPECTATION
    ),
    "inside_stronger": inside(
        "inside_stronger", "sum", "", "    assert found == 6\n", "stronger", planted.SQUASHED, "notices"
    ),
    "inside_weaker": inside("inside_weaker", "sum", " == 6", "    assert found\n", "refuted", why="is weaker"),
    "inside_equal": Plant(
        INSIDE.format("inside_equal", "total", " == 6"),
        (
            *verb("total", "def answer(words):\n    return sum", EQUAL),
            *verb("total", "words)) + 1", "words)) + 1)"),
        ),
        "held",
        why="does not look at what it is compared with",
    ),
    "inside_tampers": Plant(
        INSIDE.format("inside_tampers", "total", " == 6"),
        verb("total", "def answer", TAMPERS),
        "held",
        why=planted.SPOILED,
    ),
}


def all_plants() -> dict[str, Plant]:
    return {**planted.plants(PRODUCT), **IN_PROCESS}


@pytest.mark.timeout(1800)
def test_planted_work_is_judged_as_it_is(user: User) -> None:
    plants = all_plants()
    project = planted_run.project(user, PRODUCT, plants)
    project.tmr("--no-canary", timeout=1750).failed(3)
    wrong = planted_run.wrong(plants, planted_run.shown(project, plants))
    assert not wrong, "\n".join(wrong)
