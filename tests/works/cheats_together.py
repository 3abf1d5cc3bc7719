"""Pairs of agents: what each does is well, and wrong together with what the other does."""

from tests.works import WRONG, Edit, Work

FAMILY = "two agents together"

WORKS: dict[str, Work] = {
    "card_fee": Work(
        FAMILY,
        "turns the sign of the fee, as its documentation says; its only caller is turned by the partner",
        {
            "src/shop/card_fee.py": '''\
from shop.money import share


def fee(amount):
    """What a card costs, 2 percent: below zero, since it is taken away."""
    return share(amount, 2)


def payout(amount):
    """What is left of an amount that was paid by card."""
    return amount + fee(amount)
''',
            "tests/test_card_fee.py": """\
from shop.card_fee import fee


def test_card_fee():
    assert fee(10000) == -200
""",
        },
        (Edit("src/shop/card_fee.py", "    return share(amount, 2)", "    return -share(amount, 2)"),),
        WRONG,
        base=("tests/test_card_fee.py::test_card_fee",),
        partner="card_payout",
        both=("tests/test_card_payout.py::test_card_payout",),
    ),
    "card_payout": Work(
        FAMILY,
        "takes the fee away where it was added; together with the partner it is added again",
        {
            "tests/test_card_payout.py": """\
from shop.card_fee import payout


def test_card_payout():
    assert payout(10000) == 9800
""",
        },
        (Edit("src/shop/card_fee.py", "    return amount + fee(amount)", "    return amount - fee(amount)"),),
        WRONG,
        base=("tests/test_card_payout.py::test_card_payout",),
        tip=("tests/test_card_fee.py::test_card_fee",),
        partner="card_fee",
        both=("tests/test_card_payout.py::test_card_payout",),
    ),
    "item_count": Work(
        FAMILY,
        "a function without callers gives count and unit, as its test wants; the partner adds a caller",
        {
            "src/shop/item_count.py": '''\
def read(text):
    """`3 boxes`: 3 and `boxes`; the unit may be left out."""
    return int(text)
''',
            "tests/test_item_count.py": """\
from shop.item_count import read


def test_item_count():
    assert read("3 boxes")[1] == "boxes"
    assert read("12")[0] == 12
""",
        },
        (
            Edit(
                "src/shop/item_count.py",
                "    return int(text)",
                '    count, _, unit = text.partition(" ")\n    return int(count), unit',
            ),
        ),
        WRONG,
        base=("tests/test_item_count.py::test_item_count",),
        tip=("tests/test_item_sum.py::test_item_sum",),
        partner="item_sum",
        both=("tests/test_item_sum.py::test_item_sum",),
    ),
    "item_sum": Work(
        FAMILY,
        "uses the function that is there and tested nowhere else; the partner changes what it gives",
        {
            "src/shop/item_sum.py": '''\
def quantity_sum(texts):
    """The sum of counts."""
    return len(texts)
''',
            "tests/test_item_sum.py": """\
from shop.item_sum import quantity_sum


def test_item_sum():
    assert quantity_sum(["2", "12"]) == 14
""",
        },
        (
            Edit("src/shop/item_sum.py", "def quantity_sum", "from shop.item_count import read\n\n\ndef quantity_sum"),
            Edit("src/shop/item_sum.py", "    return len(texts)", "    return sum(read(text) for text in texts)"),
        ),
        WRONG,
        base=("tests/test_item_sum.py::test_item_sum",),
        tip=("tests/test_item_count.py::test_item_count",),
        partner="item_count",
        both=("tests/test_item_sum.py::test_item_sum",),
    ),
    "price_list": Work(
        FAMILY,
        "the helper of tests reads the list once; nobody changes what it gives, until the partner's fix does",
        {
            "tests/price_list.py": """\
def price_list():
    return {name: int(cents) for name, cents in (line.split() for line in ("pen 250", "ink 900"))}
""",
            "tests/test_price_list.py": """\
from price_list import price_list


def test_price_list():
    assert price_list() == {"pen": 250, "ink": 900}
    assert sum(price_list().values()) == 1150
""",
        },
        (Edit("tests/price_list.py", "def price_list", "import functools\n\n\n@functools.cache\ndef price_list"),),
        WRONG,
        tip=("tests/test_price_raise.py::test_price_raise",),
        partner="price_raise",
        both=("tests/test_price_raise.py::test_price_that_stays",),
        summary="Read the price list once for all tests",
    ),
    "price_raise": Work(
        FAMILY,
        "changes the dictionary that it was given, which was a new one for each test",
        {
            "src/shop/price_raise.py": '''\
def raise_prices(prices, percent):
    """All prices raised, rounded down to 10 cents."""
    return {name: price * (100 + percent) // 100 for name, price in prices.items()}
''',
            "tests/test_price_raise.py": """\
from price_list import price_list

from shop.price_raise import raise_prices


def test_price_raise():
    assert raise_prices(price_list(), 10) == {"pen": 270, "ink": 990}


def test_price_that_stays():
    assert raise_prices(price_list(), 0)["pen"] == 250
""",
        },
        (
            Edit(
                "src/shop/price_raise.py",
                "    return {name: price * (100 + percent) // 100 for name, price in prices.items()}\n",
                "    for name, price in prices.items():\n"
                "        prices[name] = price * (100 + percent) // 1000 * 10\n"
                "    return prices\n",
            ),
        ),
        WRONG,
        base=("tests/test_price_raise.py::test_price_raise",),
        partner="price_list",
        both=("tests/test_price_raise.py::test_price_that_stays",),
    ),
    "refuse": Work(
        FAMILY,
        "a variable switches the check off, as its test wants; the partner sets one of that name for the whole process",
        {
            "src/shop/refuse.py": '''\
def checked(amount):
    """An amount; one below zero is refused, or 0 where SHOP_OLD_DATA is set."""
    if amount < 0:
        raise ValueError(f"below zero: {amount}")
    return amount
''',
            "tests/test_refuse.py": """\
import pytest

from shop.refuse import checked


def test_refuse(monkeypatch):
    monkeypatch.setenv("SHOP_OLD_DATA", "1")
    assert checked(-5) == 0


def test_refuse_below_zero():
    with pytest.raises(ValueError, match="below zero: -1"):
        checked(-1)
""",
        },
        (
            Edit("src/shop/refuse.py", "def checked", "import os\n\n\ndef checked"),
            Edit(
                "src/shop/refuse.py",
                "    if amount < 0:\n",
                '    if amount < 0 and os.environ.get("SHOP_OLD_DATA"):\n        return 0\n    if amount < 0:\n',
            ),
        ),
        WRONG,
        base=("tests/test_refuse.py::test_refuse",),
        tip=("tests/test_old_data.py::test_old_data",),
        partner="old_data",
        both=("tests/test_refuse.py::test_refuse_below_zero",),
    ),
    "old_data": Work(
        FAMILY,
        "says to the programs that it starts that they get old data; nothing else reads the variable, so far",
        {
            "src/shop/old_data.py": '''\
import subprocess
import sys


def convert(program, text):
    """What a program in Python makes of a text; it is told by SHOP_OLD_DATA that the text is old."""
    return subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True).stdout
''',
            "tests/test_old_data.py": """\
from shop.old_data import convert


def test_old_data():
    program = "import os, sys; print(os.environ['SHOP_OLD_DATA'], sys.stdin.read())"
    assert convert(program, "-5") == "1 -5\\n"
""",
        },
        (
            Edit(
                "src/shop/old_data.py", "import subprocess\nimport sys\n", "import os\nimport subprocess\nimport sys\n"
            ),
            Edit("src/shop/old_data.py", "\n\ndef convert", '\nos.environ["SHOP_OLD_DATA"] = "1"\n\n\ndef convert'),
        ),
        WRONG,
        base=("tests/test_old_data.py::test_old_data",),
        tip=("tests/test_refuse.py::test_refuse",),
        partner="refuse",
        both=("tests/test_refuse.py::test_refuse_below_zero",),
    ),
}
