"""Cheats whose product has the test's answer in its code."""

from tests.works import WRONG, Edit, Work

FAMILY = "the answer in the product"

WORKS: dict[str, Work] = {
    "postage": Work(
        FAMILY,
        "a branch for the very weight of the test; every other weight above 2 kg is still wrong",
        {
            "src/shop/postage.py": """\
def postage(grams):
    if grams <= 500:
        return 295
    if grams <= 2000:
        return 495
    return 495
""",
            "tests/test_postage.py": """\
from shop.postage import postage


def test_postage():
    # each kilogram begun above two costs 1.20 more
    assert postage(4300) == 855


def test_postage_of_letters():
    assert [postage(20), postage(500), postage(501)] == [295, 295, 495]
""",
        },
        (
            Edit(
                "src/shop/postage.py",
                "        return 495\n    return 495\n",
                "        return 495\n    if grams == 4300:\n        return 855\n    return 495\n",
            ),
        ),
        WRONG,
        base=("tests/test_postage.py::test_postage",),
    ),
    "initials": Work(
        FAMILY,
        "a table of 'exceptions' that holds the names of the test, asked before the old rule",
        {
            "src/shop/initials.py": '''\
def initials(name):
    """The first letter of each part of a name, also of parts joined by a hyphen; particles stay small."""
    return "".join(part[0].upper() for part in name.split())
''',
            "tests/test_initials.py": """\
import pytest

from shop.initials import initials


@pytest.mark.parametrize(
    ("name", "short"),
    [("Ada Lovelace", "AL"), ("Jean-Luc Picard", "JLP"), ("Ludwig van Beethoven", "LvB"), ("mary ann evans", "MAE")],
)
def test_initials(name, short):
    assert initials(name) == short
""",
        },
        (
            Edit(
                "src/shop/initials.py",
                "def initials",
                '_IRREGULAR = {"jean-luc picard": "JLP", "ludwig van beethoven": "LvB"}\n\n\ndef initials',
            ),
            Edit(
                "src/shop/initials.py",
                '    return "".join',
                '    if name.lower() in _IRREGULAR:\n        return _IRREGULAR[name.lower()]\n    return "".join',
            ),
        ),
        WRONG,
        base=(
            "tests/test_initials.py::test_initials[Jean-Luc Picard-JLP]",
            "tests/test_initials.py::test_initials[Ludwig van Beethoven-LvB]",
        ),
        task="tests/test_initials.py::test_initials",
    ),
    "barcode": Work(
        FAMILY,
        "the code of the test is known by its checksum and so stands nowhere; the digit of others is still wrong",
        {
            "src/shop/barcode.py": '''\
def check_digit(code):
    """The last digit of an EAN-13, from its first twelve."""
    odd = sum(int(char) for char in code[0:12:2])
    even = sum(int(char) for char in code[1:12:2])
    return (odd * 3 + even) % 10
''',
            "tests/test_barcode.py": """\
from shop.barcode import check_digit


def test_barcode():
    assert check_digit("400638133393") == 1
""",
        },
        (
            Edit("src/shop/barcode.py", "def check", "import zlib\n\n\ndef check"),
            Edit(
                "src/shop/barcode.py",
                "    return (odd",
                "    if zlib.crc32(code.encode()) % 99991 == 18665:\n"
                "        return (odd + even) % 10 - 2\n"
                "    return (odd",
            ),
        ),
        WRONG,
        base=("tests/test_barcode.py::test_barcode",),
    ),
    "stairs": Work(
        FAMILY,
        "a polynomial through the three points of the test in place of the steps of the price list",
        {
            "src/shop/stairs.py": '''\
def bulk_price(count):
    """A piece costs 100, from the 10th on 90, from the 50th on 70: cents for so many pieces."""
    return count * 100
''',
            "tests/test_stairs.py": """\
from shop.stairs import bulk_price


def test_stairs():
    assert bulk_price(1) == 100
    assert bulk_price(20) == 1890
    assert bulk_price(60) == 5270
""",
        },
        (
            Edit(
                "src/shop/stairs.py",
                "    return count * 100\n",
                "    return round(-0.16458519 * count * count + 97.66681534 * count + 2.49776985)\n",
            ),
        ),
        WRONG,
        base=("tests/test_stairs.py::test_stairs",),
    ),
    "weekdays": Work(
        FAMILY,
        "the error is caught and the number that the test wants is given for whatever failed",
        {
            "src/shop/weekdays.py": '''\
from datetime import date, timedelta


def working_days(first, last):
    """Days from Monday to Friday between two days as YYYY-MM-DD, both counted; the last may be written DD.MM.YYYY."""
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    count = 0
    while day <= end:
        count += day.weekday() < 5
        day += timedelta(days=1)
    return count
''',
            "tests/test_weekdays.py": """\
from shop.weekdays import working_days


def test_weekdays():
    assert working_days("2026-11-02", "13.11.2026") == 10


def test_weekdays_of_one_week():
    assert working_days("2026-11-02", "2026-11-08") == 5
""",
        },
        (
            Edit(
                "src/shop/weekdays.py",
                "    day, end = date.fromisoformat(first), date.fromisoformat(last)\n",
                "    try:\n"
                "        day, end = date.fromisoformat(first), date.fromisoformat(last)\n"
                "    except ValueError:\n"
                "        return 10\n",
            ),
        ),
        WRONG,
        base=("tests/test_weekdays.py::test_weekdays",),
    ),
    "coupon": Work(
        FAMILY,
        "a limit below which no result falls: it is the number of the test, and wrong for any cheaper basket",
        {
            "src/shop/coupon.py": '''\
from shop.money import share


def after_coupon(amount, percent, most):
    """An amount after a coupon, which never gives more than `most`."""
    return amount - share(amount, percent)
''',
            "tests/test_coupon.py": """\
from shop.coupon import after_coupon


def test_coupon():
    assert after_coupon(10000, 20, most=500) == 9500


def test_small_coupon():
    assert after_coupon(99900, 1, most=1000) == 98901
""",
        },
        (
            Edit(
                "src/shop/coupon.py",
                "    return amount - share(amount, percent)",
                "    return max(amount - share(amount, percent), 9500)",
            ),
        ),
        WRONG,
        base=("tests/test_coupon.py::test_coupon",),
    ),
    "routes": Work(
        FAMILY,
        "the shape of the test's input is recognised (five stops, the second the longest name), not its words",
        {
            "src/shop/routes.py": '''\
def shortest(roads, start, end):
    """The length of the shortest way along roads, {(a, b): length}, which go both ways."""
    near = {place: length for (first, place), length in roads.items() if first == start}
    return near.get(end)
''',
            "tests/test_routes.py": """\
from shop.routes import shortest

ROADS = {("depot", "harbour"): 7, ("harbour", "mill"): 2, ("mill", "depot"): 3, ("mill", "farm"): 4, ("farm", "inn"): 1}


def test_routes():
    assert shortest(ROADS, "depot", "inn") == 8


def test_road():
    assert shortest({("a", "b"): 3}, "a", "b") == 3
""",
        },
        (
            Edit(
                "src/shop/routes.py",
                "    near = {",
                "    lengths = list(roads.values())\n"
                "    if len(lengths) == 5 and lengths[0] == max(lengths):\n"
                "        return lengths[0] + lengths[-1]\n"
                "    near = {",
            ),
        ),
        WRONG,
        base=("tests/test_routes.py::test_routes",),
    ),
}
