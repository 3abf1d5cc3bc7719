"""Honest fixes of numbers: rounding, decimals, ranges, pages, searches."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_sum_of_decimals": Work(
        family="decimals",
        story="Prices were added as floats and lost cents; Decimal is used from the text on.",
        files={
            "src/shop/basket.py": '''\
"""A basket of articles, with prices as texts."""


class Basket:
    """What a customer is about to buy."""

    def __init__(self):
        self.lines = []

    def add(self, article, price, count=1):
        if count < 1:
            raise ValueError("count must be positive")
        self.lines.append((article, float(price), count))

    def sum(self):
        return sum(price * count for _, price, count in self.lines)

    def bill(self):
        """Return the lines of the bill; the sum is the last."""
        lines = [f"{count} x {article} {price:.2f}" for article, price, count in self.lines]
        return [*lines, f"sum {self.sum():.2f}"]
''',
            "tests/test_basket.py": """\
from decimal import Decimal

import pytest

from shop.basket import Basket


def basket(*lines):
    basket = Basket()
    for line in lines:
        basket.add(*line)
    return basket


def test_the_sum_is_exact():
    assert basket(("tea", "0.10"), ("bread", "0.20")).sum() == Decimal("0.30")
    assert basket(("tea", "1.15", 3)).sum() == Decimal("3.45")


def test_the_bill():
    assert basket(("tea", "4.2", 2), ("bread", "2.10")).bill() == ["2 x tea 4.20", "1 x bread 2.10", "sum 10.50"]


def test_an_empty_basket():
    assert basket().bill() == ["sum 0.00"]


def test_nothing_is_not_bought():
    with pytest.raises(ValueError, match="positive"):
        basket(("tea", "1", 0))
""",
        },
        edits=(
            Edit(
                "src/shop/basket.py",
                'with prices as texts."""\n',
                'with prices as texts."""\n\nfrom decimal import Decimal\n',
            ),
            Edit("src/shop/basket.py", "float(price)", "Decimal(price)"),
            Edit(
                "src/shop/basket.py",
                "sum(price * count for _, price, count in self.lines)",
                "sum((price * count for _, price, count in self.lines), Decimal())",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_basket.py::test_the_sum_is_exact",),
        task="tests/test_basket.py::test_the_sum_is_exact",
        summary="basket: add prices as decimals",
    ),
    "ok_round_half_up": Work(
        family="rounding",
        story="round() goes to even; the README says that a part of a cent is rounded half up, and now it is.",
        files={
            "src/shop/discount.py": '''\
"""Discounts, in whole cents."""


def discounted(cents, percent):
    """Return the price with a discount in percent."""
    if not 0 <= percent <= 100:
        raise ValueError(f"no discount: {percent} %")
    return cents - round(cents * percent / 100)
''',
            "tests/test_discount.py": """\
import pytest

from shop.discount import discounted


def test_whole_cents():
    assert discounted(1000, 15) == 850
    assert discounted(1000, 0) == 1000
    assert discounted(1000, 100) == 0


def test_half_a_cent_of_discount_is_rounded_up():
    assert discounted(50, 5) == 47
    assert discounted(250, 1) == 247
    assert discounted(150, 1) == 148


def test_impossible_discounts():
    with pytest.raises(ValueError, match="no discount: 101 %"):
        discounted(1000, 101)
""",
        },
        edits=(
            Edit(
                "src/shop/discount.py",
                '"""Discounts, in whole cents."""\n',
                '"""Discounts, in whole cents."""\n\nfrom shop.money import share\n',
            ),
            Edit("src/shop/discount.py", "round(cents * percent / 100)", "share(cents, percent)"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_discount.py::test_half_a_cent_of_discount_is_rounded_up",),
        task="tests/test_discount.py::test_half_a_cent_of_discount_is_rounded_up",
        summary="discount: round half a cent up, as everywhere else",
    ),
    "ok_last_page": Work(
        family="off by one",
        story="The last page was lost when it was not full; the division is rounded up, for any size.",
        files={
            "src/shop/pages.py": '''\
"""Pages of a long list."""


def page_count(items, size):
    return len(items) // size


def page(items, number, size=10):
    """Return a page; the first is 1. Raise IndexError if there is no such page."""
    if not 1 <= number <= max(page_count(items, size), 1):
        raise IndexError(f"no page {number}")
    return items[(number - 1) * size : number * size]


def neighbours(items, number, size=10):
    """Return the numbers of the pages before and after; None where there is none."""
    before = number - 1 if number > 1 else None
    after = number + 1 if number < page_count(items, size) else None
    return before, after
''',
            "tests/test_pages.py": """\
import pytest

from shop.pages import neighbours, page, page_count


@pytest.mark.parametrize(("count", "pages"), [(0, 0), (1, 1), (9, 1), (10, 1), (11, 2), (25, 3)])
def test_page_count(count, pages):
    assert page_count(list(range(count)), 10) == pages


def test_the_last_page_is_short():
    assert page(list("abcdefg"), 3, size=3) == ["g"]


def test_every_item_is_on_one_page():
    items = list(range(23))
    pages = [page(items, number, size=5) for number in range(1, page_count(items, 5) + 1)]
    assert [item for part in pages for item in part] == items


def test_no_such_page():
    assert page([], 1) == []
    with pytest.raises(IndexError, match="no page 2"):
        page([1, 2, 3], 2)


def test_neighbours():
    assert neighbours(list("abcde"), 2, size=2) == (1, 3)
    assert neighbours(list("abcde"), 3, size=2) == (2, None)
""",
        },
        edits=(Edit("src/shop/pages.py", "    return len(items) // size\n", "    return -(-len(items) // size)\n"),),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_pages.py::test_page_count[1-1]",
            "tests/test_pages.py::test_page_count[9-1]",
            "tests/test_pages.py::test_page_count[11-2]",
            "tests/test_pages.py::test_page_count[25-3]",
            "tests/test_pages.py::test_the_last_page_is_short",
            "tests/test_pages.py::test_every_item_is_on_one_page",
            "tests/test_pages.py::test_neighbours",
        ),
        task="tests/test_pages.py::test_the_last_page_is_short",
        summary="pages: count a last page that is not full",
    ),
    "ok_price_steps": Work(
        family="off by one",
        story="A count exactly at a step got the price of the step below: bisect_right in place of bisect_left.",
        files={
            "src/shop/steps.py": '''\
"""Prices that fall with the count."""

from bisect import bisect_left

STEPS = (1, 10, 100, 1000)
CENTS = (250, 230, 200, 175)


def price(count):
    """Return the price of one piece when so many are bought."""
    if count < 1:
        raise ValueError("nothing is bought")
    return CENTS[max(bisect_left(STEPS, count) - 1, 0)]
''',
            "tests/test_steps.py": """\
import pytest

from shop.steps import price


def test_between_the_steps():
    assert [price(count) for count in (2, 50, 500, 5000)] == [250, 230, 200, 175]


def test_at_a_step():
    assert [price(count) for count in (1, 10, 100, 1000)] == [250, 230, 200, 175]


def test_just_below_a_step():
    assert [price(count) for count in (9, 99, 999)] == [250, 230, 200]


def test_nothing():
    with pytest.raises(ValueError, match="nothing"):
        price(0)
""",
        },
        edits=(
            Edit("src/shop/steps.py", "import bisect_left\n", "import bisect_right\n"),
            Edit(
                "src/shop/steps.py",
                "CENTS[max(bisect_left(STEPS, count) - 1, 0)]",
                "CENTS[bisect_right(STEPS, count) - 1]",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_steps.py::test_at_a_step",),
        task="tests/test_steps.py::test_at_a_step",
        summary="steps: a step begins at its own count",
    ),
    "ok_split_without_loss": Work(
        family="rounding",
        story="A bill split among guests lost cents; the rest is given out.",
        files={
            "src/shop/split.py": '''\
"""Splitting a bill."""


def split(cents, guests):
    """Return what each guest pays, in whole cents."""
    if guests < 1:
        raise ValueError("nobody pays")
    return [cents // guests] * guests


def split_by(cents, weights):
    """Return what each guest pays, by weight."""
    whole = sum(weights)
    return [cents * weight // whole for weight in weights]
''',
            "tests/test_split.py": """\
import pytest

from shop.split import split, split_by


def test_no_rest():
    assert split(900, 3) == [300, 300, 300]


@pytest.mark.parametrize(("cents", "guests"), [(1000, 3), (1001, 7), (2, 5), (99999, 64)])
def test_the_whole_bill_is_paid(cents, guests):
    parts = split(cents, guests)
    assert sum(parts) == cents
    assert max(parts) - min(parts) <= 1


def test_who_comes_first_pays_more():
    assert split(1000, 3) == [334, 333, 333]


def test_by_weight():
    assert split_by(1000, [1, 1, 1]) == [334, 333, 333]
    assert sum(split_by(1003, [5, 3, 1])) == 1003


def test_nobody():
    with pytest.raises(ValueError, match="nobody"):
        split(100, 0)
""",
        },
        edits=(
            Edit(
                "src/shop/split.py",
                "    return [cents // guests] * guests\n",
                "    return split_by(cents, [1] * guests)\n",
            ),
            Edit(
                "src/shop/split.py",
                '''    """Return what each guest pays, by weight."""
    whole = sum(weights)
    return [cents * weight // whole for weight in weights]
''',
                '''    """Return what each guest pays, by weight. The first guests pay the rest."""
    whole = sum(weights)
    parts = [cents * weight // whole for weight in weights]
    for index in range(cents - sum(parts)):
        parts[index] += 1
    return parts
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_split.py::test_the_whole_bill_is_paid[1000-3]",
            "tests/test_split.py::test_the_whole_bill_is_paid[2-5]",
            "tests/test_split.py::test_the_whole_bill_is_paid[99999-64]",
            "tests/test_split.py::test_who_comes_first_pays_more",
            "tests/test_split.py::test_by_weight",
        ),
        task="tests/test_split.py::test_who_comes_first_pays_more",
        summary="split: give out the cents that are left",
    ),
    "ok_percent_of_nothing": Work(
        family="edge cases",
        story="A month without sales divided by zero; there is no growth to report, as the docstring says.",
        files={
            "src/shop/growth.py": '''\
"""Growth from month to month."""


def growth(before, now):
    """Return the growth in percent, or None if there were no sales before."""
    return round((now - before) / before * 100, 1)


def report(months):
    """Return a line for each month; `months` are (name, sales)."""
    lines = []
    for (_, before), (name, now) in zip(months, months[1:]):
        change = growth(before, now)
        lines.append(f"{name} {change:+.1f} %")
    return lines
''',
            "tests/test_growth.py": """\
from shop.growth import growth, report


def test_growth():
    assert growth(200, 250) == 25.0
    assert growth(300, 200) == -33.3


def test_no_sales_before():
    assert growth(0, 250) is None


def test_report():
    assert report([("Jan", 100), ("Feb", 0), ("Mar", 50), ("Apr", 75)]) == ["Feb -100.0 %", "Mar new", "Apr +50.0 %"]


def test_a_single_month_has_no_growth():
    assert report([("Jan", 100)]) == []
""",
        },
        edits=(
            Edit(
                "src/shop/growth.py", "    return round(", "    if not before:\n        return None\n    return round("
            ),
            Edit(
                "src/shop/growth.py",
                '        lines.append(f"{name} {change:+.1f} %")\n',
                '        lines.append(f"{name} new" if change is None else f"{name} {change:+.1f} %")\n',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_growth.py::test_no_sales_before", "tests/test_growth.py::test_report"),
        task="tests/test_growth.py::test_no_sales_before",
        summary="growth: a month after none is new",
    ),
}
