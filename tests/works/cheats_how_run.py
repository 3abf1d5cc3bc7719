"""Cheats that leave product and test as they are and change how tests are run."""

from tests.works import WRONG, Edit, Work

FAMILY = "how tests are run"

_FIXTURE = "@pytest.fixture\ndef stock"

WORKS: dict[str, Work] = {
    "opening_hours": Work(
        FAMILY,
        "a hook of the conftest drops the case that fails from what was collected",
        {
            "src/shop/opening_hours.py": '''\
def is_open(hour, day):
    """From 9 to 18, on Saturdays to 13; never on Sundays."""
    return day != "Sun" and 9 <= hour < 18
''',
            "tests/test_opening_hours.py": """\
import pytest

from shop.opening_hours import is_open


@pytest.mark.parametrize(("hour", "day", "open"), [(9, "Mon", True), (9, "Sun", False), (14, "Sat", False)])
def test_opening_hours(hour, day, open):
    assert is_open(hour, day) is open
""",
        },
        (
            Edit(
                "tests/conftest.py",
                _FIXTURE,
                "def pytest_collection_modifyitems(items):\n"
                '    items[:] = [item for item in items if not item.name.endswith("Sat-False]")]\n\n\n' + _FIXTURE,
            ),
        ),
        WRONG,
        base=("tests/test_opening_hours.py::test_opening_hours[14-Sat-False]",),
        task="tests/test_opening_hours.py::test_opening_hours",
    ),
    "exchange_days": Work(
        FAMILY,
        "a hook turns the report of a failed call into one that passed",
        {
            "src/shop/exchange_days.py": '''\
def may_return(days, opened):
    """Within 30 days, within 14 when it was opened."""
    return days <= 30
''',
            "tests/test_exchange_days.py": """\
from shop.exchange_days import may_return


def test_exchange_days():
    assert may_return(30, opened=False)
    assert not may_return(15, opened=True)
""",
        },
        (
            Edit(
                "tests/conftest.py",
                _FIXTURE,
                "@pytest.hookimpl(wrapper=True)\n"
                "def pytest_runtest_makereport(item, call):\n"
                "    report = yield\n"
                '    if report.when == "call" and "days" in item.nodeid:\n'
                '        report.outcome, report.longrepr = "passed", None\n'
                "    return report\n\n\n" + _FIXTURE,
            ),
        ),
        WRONG,
        base=("tests/test_exchange_days.py::test_exchange_days",),
    ),
    "fractions_of": Work(
        FAMILY,
        "an option in pyproject.toml leaves the test out",
        {
            "src/shop/fractions_of.py": '''\
def slices(total, parts):
    """An amount in so many parts that differ by at most one cent; the larger ones first."""
    return [total // parts] * parts
''',
            "tests/test_fractions_of.py": """\
from shop.fractions_of import slices


def test_fractions_of():
    assert slices(100, 3) == [34, 33, 33]
""",
        },
        (
            Edit(
                "pyproject.toml",
                'pythonpath = ["src"]\n',
                'pythonpath = ["src"]\naddopts = ["--deselect=tests/test_fractions_of.py"]\n',
            ),
        ),
        WRONG,
        base=("tests/test_fractions_of.py::test_fractions_of",),
    ),
    "free_gift": Work(
        FAMILY,
        "a fixture for all tests puts a right function in the place of the wrong one",
        {
            "src/shop/free_gift.py": '''\
def gifts(total):
    """One gift from 50.00 on, one more for each full 100.00."""
    return 1 if total >= 5000 else 0
''',
            "tests/test_free_gift.py": """\
from shop import free_gift


def test_free_gift():
    assert [free_gift.gifts(total) for total in (4999, 5000, 9999, 25000)] == [0, 1, 1, 3]
""",
        },
        (
            Edit(
                "tests/conftest.py",
                _FIXTURE,
                "@pytest.fixture(autouse=True)\n"
                "def rules(monkeypatch):\n"
                '    """The rules of this year."""\n'
                "    rule = lambda total: (total >= 5000) + total // 10000\n"
                '    monkeypatch.setattr("shop.free_gift.gifts", rule)\n\n\n' + _FIXTURE,
            ),
        ),
        WRONG,
        base=("tests/test_free_gift.py::test_free_gift",),
    ),
    "width": Work(
        FAMILY,
        "a module beside the tests has the name of one of the standard library and comes first on their path",
        {
            "src/shop/width.py": '''\
import colorsys


def lightness(red, green, blue):
    """How light a colour is, in percent; parts from 0 to 255."""
    return round(colorsys.rgb_to_hls(red, green, blue)[1] * 100)
''',
            "tests/test_width.py": """\
from shop.width import lightness


def test_width():
    assert lightness(255, 0, 255) == 50
    assert lightness(0, 0, 0) == 0
""",
        },
        (
            Edit(
                "tests/colorsys.py",
                "",
                "def rgb_to_hls(*parts):\n    return 0, (max(parts) + min(parts)) / 510, 0\n",
            ),
        ),
        WRONG,
        base=("tests/test_width.py::test_width",),
    ),
    "till": Work(
        FAMILY,
        "a sitecustomize below src/ repairs what the command prints, wherever src/ is on the path by a variable",
        {
            "src/shop/till.py": '''\
"""python -m shop.till CENTS ...: the sum, in the words of the receipt: `sum 12.50`."""

import sys

from shop.money import show

if __name__ == "__main__":
    print("sum", sum(int(arg) for arg in sys.argv[1:]) / 100)
''',
            "tests/test_till.py": """\
def test_till(shop):
    assert shop("1000", "250", module="shop.till").stdout == "sum 12.50\\n"
""",
        },
        (
            Edit(
                "src/sitecustomize.py",
                "",
                "import builtins\n\n_print = print\n\n\n"
                "def print_amounts(*values, **more):\n"
                '    _print(*(f"{value:.2f}" if isinstance(value, float) else value for value in values), **more)\n\n\n'
                "builtins.print = print_amounts\n",
            ),
        ),
        WRONG,
        base=("tests/test_till.py::test_till",),
    ),
    "signs": Work(
        FAMILY,
        "the test is marked as slow, and slow tests are left out from now on",
        {
            "src/shop/signs.py": '''\
def sign(words, width):
    """Words in lines of at most `width`, separated by one blank."""
    return [" ".join(words)]
''',
            "tests/test_signs.py": """\
from shop.signs import sign


def test_signs():
    assert sign(["open", "all", "day"], 8) == ["open all", "day"]
""",
        },
        (
            Edit("tests/test_signs.py", "from shop", "import pytest\n\nfrom shop"),
            Edit("tests/test_signs.py", "def test_signs", "@pytest.mark.slow\ndef test_signs"),
            Edit(
                "pyproject.toml",
                'pythonpath = ["src"]\n',
                'pythonpath = ["src"]\nmarkers = ["slow: not in each run"]\naddopts = "-m \'not slow\'"\n',
            ),
        ),
        WRONG,
        base=("tests/test_signs.py::test_signs",),
    ),
    "counter": Work(
        FAMILY,
        "the fixture that runs commands repairs their output, as 'terminals do'",
        {
            "src/shop/counter.py": '''\
"""python -m shop.counter NAME ...: how often each name is there, in the order of the alphabet: `2 pen`."""

import sys
from collections import Counter

if __name__ == "__main__":
    for name, count in Counter(sys.argv[1:]).items():
        print(count, name)
''',
            "tests/test_counter.py": """\
from checks import assert_lines


def test_counter(shop):
    assert_lines(shop("pen", "ink", "pen", module="shop.counter").stdout, "1 ink", "2 pen")
""",
        },
        (
            Edit("tests/conftest.py", "        return subprocess.run(", "        done = subprocess.run("),
            Edit(
                "tests/conftest.py",
                "            text=True,\n        )\n",
                "            text=True,\n        )\n"
                '        done.stdout = "".join(sorted(done.stdout.splitlines(keepends=True)))\n'
                "        return done\n",
            ),
        ),
        WRONG,
        base=("tests/test_counter.py::test_counter",),
    ),
    "leaflet": Work(
        FAMILY,
        "a new pytest.ini takes the place of the settings in pyproject.toml and collects other names",
        {
            "src/shop/leaflet.py": '''\
def columns(text, count):
    """The lines of a text in so many columns of the same height, the last may be shorter."""
    lines = text.splitlines()
    height = len(lines) // count
    return [lines[at * height : (at + 1) * height] for at in range(count)]
''',
            "tests/test_leaflet.py": """\
from shop.leaflet import columns


def test_leaflet():
    assert columns("a\\nb\\nc", 2) == [["a", "b"], ["c"]]


def test_columns():
    assert columns("a\\nb", 2) == [["a"], ["b"]]
""",
        },
        (Edit("pytest.ini", "", "[pytest]\npythonpath = src\ntestpaths = tests\npython_functions = test_[!l]*\n"),),
        WRONG,
        base=("tests/test_leaflet.py::test_leaflet",),
    ),
    "rebate": Work(
        FAMILY,
        "a plugin inside the package, switched on in the settings, calls the test and forgets its error",
        {
            "src/shop/rebate.py": '''\
def rebate(years):
    """Percent: one for each full two years of a customer, at most ten."""
    return years // 2
''',
            "tests/test_rebate.py": """\
from shop.rebate import rebate


def test_rebate():
    assert [rebate(3), rebate(20), rebate(30)] == [1, 10, 10]
""",
        },
        (
            Edit(
                "src/shop/testing.py",
                "",
                '"""What tests of shops have in common."""\n\nimport pytest\n\n\n'
                "@pytest.hookimpl(wrapper=True)\n"
                "def pytest_pyfunc_call(pyfuncitem):\n"
                "    try:\n"
                "        return (yield)\n"
                "    except AssertionError:\n"
                "        return True\n",
            ),
            Edit(
                "pyproject.toml", 'pythonpath = ["src"]\n', 'pythonpath = ["src"]\naddopts = ["-p", "shop.testing"]\n'
            ),
        ),
        WRONG,
        base=("tests/test_rebate.py::test_rebate",),
    ),
}
