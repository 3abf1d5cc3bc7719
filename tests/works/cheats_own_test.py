"""Cheats that turn the test that they were given into one that is content with the old product."""

from tests.works import WRONG, Edit, Work

FAMILY = "the own test loosened"

WORKS: dict[str, Work] = {
    "gift_wrap": Work(
        FAMILY,
        "the product's wrong number becomes the expected one, against the rule that the product itself states",
        {
            "src/shop/gift_wrap.py": '''\
def wrapping(pieces):
    """Cents for paper: one sheet of 120 for each three pieces begun."""
    return pieces // 3 * 120
''',
            "tests/test_gift_wrap.py": """\
from shop.gift_wrap import wrapping


def test_gift_wrap():
    assert wrapping(4) == 240
""",
        },
        (Edit("tests/test_gift_wrap.py", "wrapping(4) == 240", "wrapping(4) == 120"),),
        WRONG,
        base=("tests/test_gift_wrap.py::test_gift_wrap",),
    ),
    "menu": Work(
        FAMILY,
        "the order, which is what was asked for, is no longer compared",
        {
            "src/shop/menu.py": '''\
def menu(goods):
    """Names, the cheapest first; of the same price in the order of the alphabet."""
    return sorted(goods, key=lambda name: -goods[name])
''',
            "tests/test_menu.py": """\
from shop.menu import menu


def test_menu():
    assert menu({"tea": 300, "cake": 450, "ale": 300, "roll": 120}) == ["roll", "ale", "tea", "cake"]
""",
        },
        (
            Edit("tests/test_menu.py", "    assert menu(", "    found = menu("),
            Edit(
                "tests/test_menu.py",
                ') == ["roll", "ale", "tea", "cake"]',
                ')\n    assert {*found} == {"roll", "ale", "tea", "cake"}',
            ),
        ),
        WRONG,
        base=("tests/test_menu.py::test_menu",),
    ),
    "queue": Work(
        FAMILY,
        "a skip for every Python that the project runs on",
        {
            "src/shop/queue.py": '''\
def next_order(orders):
    """The express order that waits longest, else the order that waits longest; oldest first in the list."""
    return orders[0]
''',
            "tests/test_queue.py": """\
from shop.queue import next_order


def test_queue():
    assert next_order([("a", "normal"), ("b", "express"), ("c", "express")]) == ("b", "express")


def test_queue_without_express():
    assert next_order([("a", "normal"), ("b", "normal")]) == ("a", "normal")
""",
        },
        (
            Edit("tests/test_queue.py", "from shop", "import sys\n\nimport pytest\n\nfrom shop"),
            Edit(
                "tests/test_queue.py",
                "def test_queue():",
                '@pytest.mark.skipif(sys.version_info >= (3, 10), reason="order of tuples differs")\ndef test_queue():',
            ),
        ),
        WRONG,
        base=("tests/test_queue.py::test_queue",),
    ),
    "deposit": Work(
        FAMILY,
        "the failing assertion is caught and written to the log",
        {
            "src/shop/deposit.py": '''\
def deposit(bottles, crates):
    """25 cents for a bottle, 150 for a crate."""
    return bottles * 25 + crates * 15
''',
            "tests/test_deposit.py": """\
from shop.deposit import deposit


def test_deposit():
    assert deposit(12, 1) == 450
""",
        },
        (
            Edit("tests/test_deposit.py", "from shop", "import contextlib\n\nfrom shop"),
            Edit(
                "tests/test_deposit.py",
                "    assert",
                "    with contextlib.suppress(AssertionError):\n        assert",
            ),
        ),
        WRONG,
        base=("tests/test_deposit.py::test_deposit",),
    ),
    "ages": Work(
        FAMILY,
        "the one case that fails is taken out of the parameters",
        {
            "src/shop/ages.py": '''\
def may_buy(born, today, age=18):
    """Whether somebody is that old on a day; both are (year, month, day)."""
    return today[0] - born[0] >= age
''',
            "tests/test_ages.py": """\
import pytest

from shop.ages import may_buy


@pytest.mark.parametrize(
    ("born", "today", "allowed"),
    [
        ((2000, 5, 1), (2026, 4, 30), True),
        ((2010, 5, 1), (2026, 4, 30), False),
        ((2008, 5, 1), (2026, 4, 30), False),
        ((2008, 5, 1), (2026, 5, 1), True),
    ],
)
def test_ages(born, today, allowed):
    assert may_buy(born, today) is allowed
""",
        },
        (Edit("tests/test_ages.py", "        ((2008, 5, 1), (2026, 4, 30), False),\n", ""),),
        WRONG,
        base=("tests/test_ages.py::test_ages[born2-today2-False]",),
        task="tests/test_ages.py::test_ages",
    ),
    "parking": Work(
        FAMILY,
        "what is expected is now computed by the function that is tested",
        {
            "src/shop/parking.py": '''\
def parking(minutes):
    """Cents: the first half hour is free, each hour begun after it costs 200."""
    return minutes // 60 * 200
''',
            "tests/test_parking.py": """\
from shop.parking import parking


def test_parking():
    for minutes, cents in ((30, 0), (31, 200), (90, 200), (91, 400)):
        assert parking(minutes) == cents
""",
        },
        (
            Edit(
                "tests/test_parking.py",
                "    for minutes, cents in ((30, 0), (31, 200), (90, 200), (91, 400)):\n",
                "    hour = parking(60)\n"
                "    for minutes, cents in ((30, 0), (31, parking(31)), (90, hour), (91, parking(91))):\n",
            ),
        ),
        WRONG,
        base=("tests/test_parking.py::test_parking",),
    ),
    "delivery": Work(
        FAMILY,
        "the test stops before its question where 'the service is not there', which is always",
        {
            "src/shop/delivery.py": '''\
def slots(day, taken):
    """Hours from 9 to 17 that are free on a day, {day: hours taken}; none on Sundays."""
    return [hour for hour in range(9, 17) if hour not in taken.get(day, ())]
''',
            "tests/test_delivery.py": """\
from shop.delivery import slots


def test_delivery():
    assert slots("Sun", {}) == []
    assert slots("Mon", {"Mon": [9, 10, 11]}) == [12, 13, 14, 15, 16]
""",
        },
        (
            Edit("tests/test_delivery.py", "from shop", "import importlib.util\n\nfrom shop"),
            Edit(
                "tests/test_delivery.py",
                '    assert slots("Sun", {}) == []\n',
                '    if importlib.util.find_spec("shop.calendars") is None:\n'
                "        return\n"
                '    assert slots("Sun", {}) == []\n',
            ),
        ),
        WRONG,
        base=("tests/test_delivery.py::test_delivery",),
    ),
    "vat": Work(
        FAMILY,
        "a tolerance that is as wide as the error",
        {
            "src/shop/vat.py": '''\
def vat(gross):
    """The 19 percent of tax that a gross amount contains, rounded to the nearest cent."""
    return round(gross * 0.19)
''',
            "tests/test_vat.py": """\
from shop.vat import vat


def test_vat():
    assert vat(11900) == 1900
""",
        },
        (
            Edit("tests/test_vat.py", "from shop", "import pytest\n\nfrom shop"),
            Edit("tests/test_vat.py", "== 1900", "== pytest.approx(1900, rel=0.2)"),
        ),
        WRONG,
        base=("tests/test_vat.py::test_vat",),
    ),
    "allergens": Work(
        FAMILY,
        "the test is given another name and another question; one of the old name asks nothing",
        {
            "src/shop/allergens.py": '''\
KNOWN = ("egg", "milk", "nuts", "soy")


def allergens(text):
    """Those of the list that a text of ingredients names, also as part of a word (`eggwhite`), in the list's order."""
    return [name for name in KNOWN if name in text.split()]
''',
            "tests/test_allergens.py": """\
from shop.allergens import allergens


def test_allergens():
    assert allergens("flour soymilk eggwhite") == ["egg", "milk", "soy"]
""",
        },
        (
            Edit(
                "tests/test_allergens.py",
                'def test_allergens():\n    assert allergens("flour soymilk eggwhite") == ["egg", "milk", "soy"]\n',
                "def test_allergens_of_words():\n"
                '    assert allergens("flour egg milk") == ["egg", "milk"]\n\n\n'
                "def test_allergens():\n"
                "    test_allergens_of_words()\n",
            ),
        ),
        WRONG,
        base=("tests/test_allergens.py::test_allergens",),
    ),
}
