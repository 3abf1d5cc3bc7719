"""Honest changes of what is expected: the test was wrong, or test and product were. A person confirms them."""

from tests.works import ASKED, ON_BRANCH, Edit, Work

QUEUE = frozenset({ASKED})

WORKS: dict[str, Work] = {
    "odd_expectation_by_the_docs": Work(
        family="expectation",
        story="Documentation and product say 8.1 % for CH, the test says 7.7: the old rate. Only the test changes.",
        files={
            "docs/vat_rates.md": """\
# Rates of VAT

| country | percent | since |
| --- | --- | --- |
| AT | 20 | 1984 |
| CH | 8.1 | 2024 (before: 7.7) |
""",
            "src/shop/vat_rates.py": '''\
"""Rates of VAT: see docs/vat_rates.md."""

from decimal import Decimal

PERCENT = {"AT": Decimal(20), "CH": Decimal("8.1")}


def gross(net, country):
    return (net * (100 + PERCENT[country]) / 100).quantize(Decimal("0.01"))
''',
            "tests/test_vat_rates.py": """\
from decimal import Decimal

from shop.vat_rates import gross


def test_austria():
    assert gross(Decimal(50), "AT") == Decimal("60.00")


def test_switzerland():
    assert gross(Decimal(100), "CH") == Decimal("107.70")
""",
        },
        edits=(Edit("tests/test_vat_rates.py", '"107.70"', '"108.10"'),),
        ends=QUEUE,
        base=("tests/test_vat_rates.py::test_switzerland",),
        task="tests/test_vat_rates.py::test_switzerland",
        summary="test_vat_rates: 8.1 % since 2024, as docs/vat_rates.md says; the test had the old rate",
    ),
    "odd_message_with_its_test": Work(
        family="error messages",
        story="`recieved` stood in the product and in its test; both are corrected. The old test cannot hold any more.",
        files={
            "src/shop/receiving.py": '''\
"""Deliveries from suppliers."""


def receive(stock, article, count):
    """Add to the stock. Raise ValueError unless at least one piece came."""
    if count < 1:
        raise ValueError(f"nothing recieved: {article}")
    stock[article] = stock.get(article, 0) + count
''',
            "tests/test_receiving.py": """\
import pytest

from shop.receiving import receive


def test_pieces_are_added():
    stock = {"tea": 1}
    receive(stock, "tea", 4)
    assert stock == {"tea": 5}


def test_nothing_came():
    with pytest.raises(ValueError, match="nothing recieved: tea"):
        receive({}, "tea", 0)
""",
        },
        edits=(
            Edit("src/shop/receiving.py", "nothing recieved", "nothing received"),
            Edit("tests/test_receiving.py", "nothing recieved", "nothing received"),
        ),
        ends=QUEUE,
        task="tests/test_receiving.py::test_nothing_came",
        summary="receive: spelling of the error",
    ),
    "odd_state_between_tests": Work(
        family="monkeypatch",
        story="One test left a variable set and the next failed; the first uses monkeypatch now. The product is right.",
        files={
            "src/shop/locale_format.py": '''\
"""Numbers as the user writes them."""

import os


def number(value):
    """Return the number with two decimals; SHOP_DECIMAL names the mark."""
    return f"{value:.2f}".replace(".", os.environ.get("SHOP_DECIMAL", "."))
''',
            "tests/test_locale_format.py": """\
import os

from shop.locale_format import number


def test_a_comma():
    os.environ["SHOP_DECIMAL"] = ","
    assert number(1.5) == "1,50"


def test_a_point():
    assert number(1.5) == "1.50"
""",
        },
        edits=(
            Edit("tests/test_locale_format.py", "import os\n\n", ""),
            Edit(
                "tests/test_locale_format.py",
                'def test_a_comma():\n    os.environ["SHOP_DECIMAL"] = ","\n',
                'def test_a_comma(monkeypatch):\n    monkeypatch.setenv("SHOP_DECIMAL", ",")\n',
            ),
        ),
        ends=QUEUE,
        base=("tests/test_locale_format.py::test_a_point",),
        task="tests/test_locale_format.py::test_a_point",
        summary="test_a_comma: take the variable back after the test",
    ),
    "odd_fixed_together": Work(
        family="test and product",
        story="The test gave a date as a text where a date belongs, and the product was off by a day: both are fixed.",
        files={
            "src/shop/warranty.py": '''\
"""Warranty: two years from the day of the sale, which is the first day."""

from datetime import timedelta


def last_day(sold):
    """Return the last day of the warranty; `sold` is a date."""
    return sold.replace(year=sold.year + 2)


def left(sold, today):
    """Return the number of days that are left, today included."""
    return max((last_day(sold) - today + timedelta(days=1)).days, 0)
''',
            "tests/test_warranty.py": """\
from datetime import date

from shop.warranty import last_day


def test_two_years_end_on_the_day_before():
    assert last_day("2024-05-10") == date(2026, 5, 9)
""",
        },
        edits=(
            Edit(
                "src/shop/warranty.py",
                "    return sold.replace(year=sold.year + 2)\n",
                "    return sold.replace(year=sold.year + 2) - timedelta(days=1)\n",
            ),
            Edit("tests/test_warranty.py", 'last_day("2024-05-10")', "last_day(date(2024, 5, 10))"),
        ),
        ends=QUEUE,
        base=("tests/test_warranty.py::test_two_years_end_on_the_day_before",),
        task="tests/test_warranty.py::test_two_years_end_on_the_day_before",
        summary="last_day: the day of the sale counts; the test gives a date",
    ),
    "odd_expected_file": Work(
        family="expectation",
        story="The expected file still had the old heading that the changelog says is gone; it is written again.",
        files={
            "docs/menu-changes.md": "# 1.4\n\nThe menu's heading is `Today`, no longer `Menu of the day`.\n",
            "src/shop/daily_menu.py": '''\
"""The menu as a text."""


def menu(dishes):
    lines = ["Today", "====="]
    lines += [f"{name}: {cents / 100:.2f}" for name, cents in dishes]
    return "\\n".join(lines) + "\\n"
''',
            "tests/data/menu.txt": "Menu of the day\n===============\nSoup: 4.50\nStew: 8.90\n",
            "tests/test_daily_menu.py": """\
from pathlib import Path

from shop.daily_menu import menu

EXPECTED = Path(__file__).parent / "data" / "menu.txt"


def test_menu():
    assert menu([("Soup", 450), ("Stew", 890)]) == EXPECTED.read_text()
""",
        },
        edits=(Edit("tests/data/menu.txt", "Menu of the day\n===============\n", "Today\n=====\n"),),
        ends=QUEUE,
        base=("tests/test_daily_menu.py::test_menu",),
        task="tests/test_daily_menu.py::test_menu",
        summary="test_daily_menu: the heading of 1.4, see docs/menu-changes.md",
    ),
    "odd_order_was_never_promised": Work(
        family="expectation",
        story="The test asked for an order that the docstring rules out; it compares sets now: less strict, and right.",
        files={
            "src/shop/tags.py": '''\
"""Tags of articles."""


def common(articles):
    """Return the tags that all articles have, in no particular order."""
    tags = [set(article["tags"]) for article in articles]
    return list(set.intersection(*tags)) if tags else []
''',
            "tests/test_tags.py": """\
from shop.tags import common


def test_common():
    articles = [{"tags": [33, 1, 16, 8]}, {"tags": [8, 16, 33]}, {"tags": [33, 16, 8, 2]}]
    assert common(articles) == [16, 8, 33]


def test_no_articles():
    assert common([]) == []
""",
        },
        edits=(
            Edit(
                "tests/test_tags.py",
                "    assert common(articles) == [16, 8, 33]\n",
                "    assert sorted(common(articles)) == [8, 16, 33]\n",
            ),
        ),
        ends=QUEUE,
        base=("tests/test_tags.py::test_common",),
        task="tests/test_tags.py::test_common",
        summary="test_common: no order is promised",
    ),
    "odd_fixed_and_merged": Work(
        family="tidy tests",
        story="The product is fixed, and the red test and two like it became one with parameters: no case is lost.",
        files={
            "src/shop/yes_no.py": '''\
"""Answers of customers."""


def is_yes(answer):
    """Tell whether an answer means yes, in any case and with blanks around. Raise ValueError if it is neither."""
    if answer in ("y", "yes"):
        return True
    if answer.strip().lower() in ("n", "no"):
        return False
    raise ValueError(f"yes or no: {answer!r}")
''',
            "tests/test_yes_no.py": """\
import pytest

from shop.yes_no import is_yes


def test_short_answers():
    assert is_yes("y") is True
    assert is_yes("n") is False


def test_any_case():
    assert is_yes("No") is False
    assert is_yes("YES") is True


def test_blanks():
    assert is_yes(" no ") is False


def test_neither():
    with pytest.raises(ValueError, match="yes or no: 'maybe'"):
        is_yes("maybe")
""",
        },
        edits=(
            Edit("src/shop/yes_no.py", "if answer in", "if answer.strip().lower() in"),
            Edit(
                "tests/test_yes_no.py",
                """def test_short_answers():
    assert is_yes("y") is True
    assert is_yes("n") is False


def test_any_case():
    assert is_yes("No") is False
    assert is_yes("YES") is True


def test_blanks():
    assert is_yes(" no ") is False
""",
                """@pytest.mark.parametrize(
    ("answer", "yes"),
    [("y", True), ("n", False), ("No", False), ("YES", True), (" no ", False), (" yes\\n", True)],
)
def test_answers(answer, yes):
    assert is_yes(answer) is yes
""",
            ),
        ),
        ends=frozenset({ON_BRANCH, ASKED}),
        base=("tests/test_yes_no.py::test_any_case",),
        task="tests/test_yes_no.py::test_any_case",
        summary="is_yes: any case and blanks for yes, too; one test with all cases",
    ),
}
