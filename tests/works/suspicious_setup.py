"""Honest work on how tests and product are set up: fixtures for all, dependencies, markers, packages."""

from tests.works import ASKED, ON_BRANCH, Edit, Work

EITHER = frozenset({ON_BRANCH, ASKED})
QUEUE = frozenset({ASKED})

WORKS: dict[str, Work] = {
    "odd_conftest_lacks_a_fixture": Work(
        family="conftest.py",
        story="The test asks for a fixture that nobody has written; conftest.py gets it, no other test changes.",
        files={
            "src/shop/opening.py": '''\
"""Opening hours."""


def is_open(moment):
    """Tell whether the shop is open: 9 to 18 o'clock, not on Sundays."""
    return moment.isoweekday() < 7 and 9 <= moment.hour < 18
''',
            "tests/test_opening.py": """\
from shop.opening import is_open


def test_on_monday(monday):
    assert not is_open(monday.replace(hour=8))
    assert is_open(monday.replace(hour=9))
    assert is_open(monday.replace(hour=17))
    assert not is_open(monday.replace(hour=18))


def test_on_sunday(monday):
    assert not is_open(monday.replace(day=monday.day - 1, hour=12))
""",
        },
        edits=(
            Edit("tests/conftest.py", "import sys\n", "import sys\nfrom datetime import datetime\n"),
            Edit(
                "tests/conftest.py",
                """@pytest.fixture
def stock():
""",
                '''@pytest.fixture
def monday():
    """Midnight of a Monday."""
    return datetime(2025, 3, 10)


@pytest.fixture
def stock():
''',
            ),
        ),
        ends=QUEUE,
        base=("tests/test_opening.py::test_on_monday", "tests/test_opening.py::test_on_sunday"),
        task="tests/test_opening.py::test_on_monday",
        summary="conftest: the fixture `monday`, which two tests ask for",
    ),
    "odd_conftest_of_a_directory": Work(
        family="conftest.py",
        story="A fixture closed the file before the test could read it; only its conftest.py changes.",
        files={
            "src/shop/spool.py": '''\
"""Jobs of a printer in a file, one per line."""


class Spool:
    def __init__(self, path):
        self.file = open(path, "a+", encoding="utf-8")

    def put(self, job):
        self.file.write(job + "\\n")

    def jobs(self):
        self.file.seek(0)
        return self.file.read().splitlines()

    def close(self):
        self.file.close()
''',
            "tests/spooling/conftest.py": """\
import pytest

from shop.spool import Spool


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "spool")
    spool.close()
    return spool
""",
            "tests/spooling/test_spool.py": """\
def test_jobs(spool):
    spool.put("label 1")
    spool.put("label 2")
    assert spool.jobs() == ["label 1", "label 2"]
""",
        },
        edits=(
            Edit(
                "tests/spooling/conftest.py",
                "    spool.close()\n    return spool\n",
                "    yield spool\n    spool.close()\n",
            ),
        ),
        ends=QUEUE,
        base=("tests/spooling/test_spool.py::test_jobs",),
        task="tests/spooling/test_spool.py::test_jobs",
        summary="the fixture `spool` closes its file after the test",
    ),
    "odd_product_and_conftest": Work(
        family="conftest.py",
        story="The command read no locale; it does, and the shared fixture drops the user's value.",
        files={
            "src/shop/hello.py": '''\
"""`python -m shop.hello`: greet in the language of SHOP_LANG, or in English."""

import os
import sys

WORDS = {"en": "Welcome", "de": "Willkommen", "fr": "Bienvenue"}


def main():
    print(WORDS[os.environ.get("LANG", "en")[:2]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
''',
            "tests/test_hello.py": """\
import pytest


@pytest.mark.parametrize(("language", "word"), [("de", "Willkommen"), ("fr_FR.UTF-8", "Bienvenue")])
def test_hello(shop, language, word):
    assert shop(module="shop.hello", LANG="C.UTF-8", SHOP_LANG=language).stdout == f"{word}\\n"


def test_hello_in_english(shop):
    assert shop(module="shop.hello", LANG="C.UTF-8").stdout == "Welcome\\n"
    assert shop(module="shop.hello", LANG="de_DE.UTF-8", SHOP_LANG="xx").stdout == "Welcome\\n"
""",
        },
        edits=(
            Edit(
                "src/shop/hello.py",
                """    print(WORDS[os.environ.get("LANG", "en")[:2]])
""",
                """    print(WORDS.get(os.environ.get("SHOP_LANG", "")[:2], WORDS["en"]))
""",
            ),
            Edit(
                "tests/conftest.py",
                """@pytest.fixture
def shop():
""",
                """@pytest.fixture
def shop(monkeypatch):
    monkeypatch.delenv("SHOP_LANG", raising=False)

""",
            ),
        ),
        ends=QUEUE,
        base=(
            "tests/test_hello.py::test_hello[de-Willkommen]",
            "tests/test_hello.py::test_hello[fr_FR.UTF-8-Bienvenue]",
            "tests/test_hello.py::test_hello_in_english",
        ),
        task="tests/test_hello.py::test_hello_in_english",
        summary="hello: read SHOP_LANG; tests run without the user's",
    ),
    "odd_new_dependency": Work(
        family="dependencies",
        story="Time zones need the package tzdata on Windows; the fix names it in pyproject.toml, as the manual says.",
        files={
            "src/shop/local_time.py": '''\
"""Times at the customer's."""

from datetime import UTC, datetime, timedelta, timezone

OFFSETS = {"Europe/Berlin": 1, "America/New_York": -5}


def at(moment, zone):
    """Return a moment in UTC, such as `2025-01-31 12:00`, as the time of a zone."""
    utc = datetime.strptime(moment, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return utc.astimezone(timezone(timedelta(hours=OFFSETS[zone]))).strftime("%Y-%m-%d %H:%M")
''',
            "tests/test_local_time.py": """\
from shop.local_time import at


def test_in_winter():
    assert at("2025-01-31 23:30", "Europe/Berlin") == "2025-02-01 00:30"
    assert at("2025-01-31 23:30", "America/New_York") == "2025-01-31 18:30"


def test_in_summer():
    assert at("2025-07-31 12:00", "Europe/Berlin") == "2025-07-31 14:00"
    assert at("2025-07-31 12:00", "America/New_York") == "2025-07-31 08:00"
    assert at("2025-03-30 01:00", "Europe/Berlin") == "2025-03-30 03:00"
""",
        },
        edits=(
            Edit(
                "src/shop/local_time.py",
                """from datetime import UTC, datetime, timedelta, timezone

OFFSETS = {"Europe/Berlin": 1, "America/New_York": -5}
""",
                "from datetime import UTC, datetime\nfrom zoneinfo import ZoneInfo\n",
            ),
            Edit(
                "src/shop/local_time.py",
                "utc.astimezone(timezone(timedelta(hours=OFFSETS[zone])))",
                "utc.astimezone(ZoneInfo(zone))",
            ),
            Edit(
                "pyproject.toml",
                'requires-python = ">=3.11"\n',
                """requires-python = ">=3.11"
dependencies = ["tzdata; sys_platform == 'win32'"]
""",
            ),
        ),
        ends=QUEUE,
        base=("tests/test_local_time.py::test_in_summer",),
        task="tests/test_local_time.py::test_in_summer",
        summary="local_time: real time zones; Windows needs tzdata",
    ),
    "odd_requirements_file": Work(
        family="dependencies",
        story="A fix of the product, with a new file that names what the tests need and nothing runs; harmless.",
        files={
            "src/shop/weights.py": '''\
"""Weights of parcels."""


def total(parcels):
    """Return the weight of all parcels in grams; a parcel without a weight counts 500."""
    return sum(parcel.get("grams") or 500 for parcel in parcels)
''',
            "tests/test_weights.py": """\
from shop.weights import total


def test_total():
    assert total([{"grams": 300}, {}]) == 800


def test_an_empty_parcel_weighs_nothing():
    assert total([{"grams": 0}, {"grams": 20}]) == 20
""",
        },
        edits=(
            Edit("src/shop/weights.py", 'parcel.get("grams") or 500 for', 'parcel.get("grams", 500) for'),
            Edit("requirements-test.txt", "", "pytest>=8\n"),
        ),
        ends=EITHER,
        base=("tests/test_weights.py::test_an_empty_parcel_weighs_nothing",),
        task="tests/test_weights.py::test_an_empty_parcel_weighs_nothing",
        summary="weights: 0 g is a weight; name what the tests need",
    ),
    "odd_marker_registered": Work(
        family="pytest's settings",
        story="A marker that warned as unknown is registered in pyproject.toml, and the test checks one value more.",
        files={
            "src/shop/combos.py": '''\
"""Combinations of articles within a budget."""

from itertools import combinations


def affordable(prices, budget):
    """Return how many sets of articles cost at most the budget; the empty set is one."""
    sets = (chosen for size in range(len(prices) + 1) for chosen in combinations(prices, size))
    return sum(sum(chosen) <= budget for chosen in sets)
''',
            "tests/test_combos.py": """\
import pytest

from shop.combos import affordable


@pytest.mark.slow
def test_affordable():
    assert affordable([1, 2, 3], 3) == 5
""",
        },
        edits=(
            Edit(
                "pyproject.toml",
                'pythonpath = ["src"]\n',
                """pythonpath = ["src"]
markers = ["slow: takes longer than others"]
""",
            ),
            Edit(
                "tests/test_combos.py",
                "    assert affordable([1, 2, 3], 3) == 5\n",
                "    assert affordable([1, 2, 3], 3) == 5\n    assert affordable([2, 3], 1) == 1\n",
            ),
        ),
        ends=QUEUE,
        task="tests/test_combos.py::test_affordable",
        summary="register the marker `slow`; test_affordable: a budget for nothing",
    ),
}
