"""Honest fixes of more than 60 changed lines."""

from tests.works import ON_BRANCH, Edit, Work

IMPORT_TESTS = """\
import json

import pytest

from shop.feed_csv import read_csv
from shop.feed_json import read_json
from shop.feed_merge import merge


def articles(*rows):
    return [dict(zip(("name", "cents", "count"), row, strict=True)) for row in rows]


def test_csv():
    assert read_csv("name;price;count\\ntea;4.50;3\\nbread;2;10\\n") == articles(("tea", 450, 3), ("bread", 200, 10))


def test_json():
    text = json.dumps([{"name": "tea", "price": "4.50", "count": 3}])
    assert read_json(text) == articles(("tea", 450, 3))


def test_merge():
    merged = merge(articles(("tea", 450, 3)), articles(("tea", 430, 2), ("cup", 900, 1)))
    assert merged == articles(("tea", 430, 5), ("cup", 900, 1))


def test_prices_are_exact():
    assert read_csv("name;price;count\\ntea;4.35;1\\n") == articles(("tea", 435, 1))
    assert read_json('[{"name": "tea", "price": "1.15", "count": 1}]') == articles(("tea", 115, 1))
    assert read_json('[{"name": "tea", "price": 1.15, "count": 1}]') == articles(("tea", 115, 1))


def test_names_are_trimmed_in_both():
    assert read_csv("name;price;count\\n tea ;1;1\\n")[0]["name"] == "tea"
    assert read_json('[{"name": " tea ", "price": "1", "count": 1}]')[0]["name"] == "tea"


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (("", "1", "1"), "row 1: no name"),
        (("tea", "cheap", "1"), "row 1: not a price: cheap"),
        (("tea", "-1", "1"), "row 1: not a price: -1"),
        (("tea", "1", "some"), "row 1: not a count: some"),
        (("tea", "1", "-3"), "row 1: not a count: -3"),
    ],
)
def test_errors_are_the_same_in_both(row, error):
    with pytest.raises(ValueError, match=f"^{error}$"):
        read_csv("name;price;count\\n" + ";".join(row) + "\\n")
    with pytest.raises(ValueError, match=f"^{error}$"):
        read_json(json.dumps([dict(zip(("name", "price", "count"), row, strict=True))]))


def test_merging_changes_neither_list():
    first, second = articles(("tea", 450, 3)), articles(("tea", 430, 2))
    merge(first, second)
    assert (first, second) == (articles(("tea", 450, 3)), articles(("tea", 430, 2)))
"""

SHIFT_TESTS = """\
import pytest

from shop.staff_shifts import Shift, gaps, hours, overlaps, plan


def test_hours():
    assert hours([Shift("Ada", 9, 12), Shift("Ada", 13, 17), Shift("Bob", 9, 10)]) == {"Ada": 7, "Bob": 1}


def test_one_gap():
    assert gaps([Shift("Ada", 9, 12), Shift("Bob", 14, 18)], 9, 18) == [(12, 14)]


def test_gaps_at_both_ends():
    assert gaps([Shift("Ada", 10, 12)], 9, 18) == [(9, 10), (12, 18)]
    assert gaps([], 9, 18) == [(9, 18)]


def test_a_short_shift_inside_of_a_long_one():
    assert gaps([Shift("Ada", 9, 17), Shift("Bob", 10, 11)], 9, 18) == [(17, 18)]


def test_shifts_in_any_order_and_beyond_the_day():
    assert gaps([Shift("Bob", 15, 22), Shift("Ada", 6, 10)], 9, 18) == [(10, 15)]


def test_overlaps():
    early, late, other = Shift("Ada", 9, 13), Shift("Ada", 12, 17), Shift("Bob", 9, 17)
    assert overlaps([late, other, early]) == [(early, late)]
    assert overlaps([Shift("Ada", 9, 12), Shift("Ada", 12, 17)]) == []


def test_an_overlap_with_a_shift_that_is_not_next():
    long, short, late = Shift("Ada", 9, 18), Shift("Ada", 10, 11), Shift("Ada", 12, 13)
    assert overlaps([long, short, late]) == [(long, short), (long, late)]


def test_plan():
    assert plan([Shift("Bob", 12, 14), Shift("Ada", 9, 12)], 9, 15) == ["09-12 Ada", "12-14 Bob", "14-15 nobody"]


def test_a_shift_that_ends_before_it_begins():
    with pytest.raises(ValueError, match="Ada: 12 to 9"):
        Shift("Ada", 12, 9)
"""

WORKS: dict[str, Work] = {
    "ok_feeds_share_their_checks": Work(
        family="several files",
        story="Two readers each checked other things and lost cents; a new module checks the rows of both.",
        files={
            "src/shop/feed_csv.py": '''\
"""Feeds of suppliers as CSV with semicolons."""


def read_csv(text):
    """Return the articles with name, cents and count. Raise ValueError for a row that is wrong."""
    articles = []
    for line in text.splitlines()[1:]:
        name, price, count = line.split(";")
        articles.append({"name": name.strip(), "cents": int(float(price) * 100), "count": int(count)})
    return articles
''',
            "src/shop/feed_json.py": '''\
"""Feeds of suppliers as JSON: a list of objects."""

import json


def read_json(text):
    """Return the articles with name, cents and count. Raise ValueError for a row that is wrong."""
    articles = []
    for row in json.loads(text):
        if not row["name"]:
            raise ValueError("no name")
        articles.append({"name": row["name"], "cents": int(float(row["price"]) * 100), "count": row["count"]})
    return articles
''',
            "src/shop/feed_merge.py": '''\
"""Two feeds as one."""


def merge(old, new):
    """Return the articles of both; the new price holds, and counts are added."""
    known = {article["name"]: article for article in old}
    for article in new:
        if article["name"] in known:
            article["count"] += known[article["name"]]["count"]
        known[article["name"]] = article
    return list(known.values())
''',
            "tests/test_feeds.py": IMPORT_TESTS,
        },
        edits=(
            Edit(
                "src/shop/feed_rows.py",
                "",
                '''\
"""Rows of a feed, whatever its format: the one place that says what is right."""

from decimal import Decimal, InvalidOperation

from shop.money import cents


def read_row(number, name, price, count):
    """Return an article from the fields of row `number`, texts or numbers. Raise ValueError if one is wrong."""
    name = name.strip()
    if not name:
        raise ValueError(f"row {number}: no name")
    return {"name": name, "cents": _price(number, price), "count": _count(number, count)}


def _price(number, field):
    text = str(field).strip()
    try:
        if Decimal(text) >= 0:
            return cents(text)
    except InvalidOperation:
        pass
    raise ValueError(f"row {number}: not a price: {text}")


def _count(number, field):
    text = str(field).strip()
    if not text.isdecimal():
        raise ValueError(f"row {number}: not a count: {text}")
    return int(text)
''',
            ),
            Edit(
                "src/shop/feed_csv.py",
                """    articles = []
    for line in text.splitlines()[1:]:
        name, price, count = line.split(";")
        articles.append({"name": name.strip(), "cents": int(float(price) * 100), "count": int(count)})
    return articles
""",
                """    rows = csv.reader(text.splitlines()[1:], delimiter=";")
    return [read_row(number, *fields) for number, fields in enumerate(rows, 1)]
""",
            ),
            Edit(
                "src/shop/feed_csv.py",
                "\n\ndef read_csv",
                "\nimport csv\n\nfrom shop.feed_rows import read_row\n\n\ndef read_csv",
            ),
            Edit(
                "src/shop/feed_json.py",
                """    articles = []
    for row in json.loads(text):
        if not row["name"]:
            raise ValueError("no name")
        articles.append({"name": row["name"], "cents": int(float(row["price"]) * 100), "count": row["count"]})
    return articles
""",
                """    rows = json.loads(text)
    return [read_row(number, row["name"], row["price"], row["count"]) for number, row in enumerate(rows, 1)]
""",
            ),
            Edit("src/shop/feed_json.py", "import json\n", "import json\n\nfrom shop.feed_rows import read_row\n"),
            Edit(
                "src/shop/feed_merge.py",
                """        if article["name"] in known:
            article["count"] += known[article["name"]]["count"]
        known[article["name"]] = article
""",
                """        before = known.get(article["name"], {"count": 0})
        known[article["name"]] = {**article, "count": article["count"] + before["count"]}
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_feeds.py::test_prices_are_exact",
            "tests/test_feeds.py::test_names_are_trimmed_in_both",
            *(
                f"tests/test_feeds.py::test_errors_are_the_same_in_both[row{number}-row 1: {error}]"
                for number, error in enumerate(
                    ("no name", "not a price: cheap", "not a price: -1", "not a count: some", "not a count: -3")
                )
            ),
            "tests/test_feeds.py::test_merging_changes_neither_list",
        ),
        task="tests/test_feeds.py::test_prices_are_exact",
        summary="feeds: both formats check rows in one place, with exact prices; merging copies",
    ),
    "ok_shifts_by_sweep": Work(
        family="refactor with a fix",
        story="Gaps and overlaps looked only at neighbours of the given list; they are found from sorted shifts now.",
        files={
            "src/shop/staff_shifts.py": '''\
"""Shifts of the staff, in whole hours of a day."""


class Shift:
    def __init__(self, name, start, end):
        self.name = name
        self.start = start
        self.end = end

    def __repr__(self):
        return f"Shift({self.name!r}, {self.start}, {self.end})"


def hours(shifts):
    result = {}
    for shift in shifts:
        if shift.name not in result:
            result[shift.name] = 0
        result[shift.name] = result[shift.name] + (shift.end - shift.start)
    return result


def gaps(shifts, start, end):
    result = []
    for i in range(len(shifts) - 1):
        if shifts[i].end < shifts[i + 1].start:
            result.append((shifts[i].end, shifts[i + 1].start))
    return result


def overlaps(shifts):
    result = []
    for i in range(len(shifts) - 1):
        a = shifts[i]
        b = shifts[i + 1]
        if a.name == b.name and a.end > b.start:
            result.append((a, b))
    return result


def plan(shifts, start, end):
    lines = []
    for shift in shifts:
        lines.append(f"{shift.start:02}-{shift.end:02} {shift.name}")
    for gap in gaps(shifts, start, end):
        lines.append(f"{gap[0]:02}-{gap[1]:02} nobody")
    return lines
''',
            "tests/test_staff_shifts.py": SHIFT_TESTS,
        },
        edits=(
            Edit(
                "src/shop/staff_shifts.py",
                "",
                '''\
"""Shifts of the staff, in whole hours of a day."""

from typing import NamedTuple


class _Fields(NamedTuple):
    start: int
    end: int
    name: str


class Shift(_Fields):
    """Who works from when to when. Shifts are sorted by their start."""

    def __new__(cls, name, start, end):
        if end <= start:
            raise ValueError(f"{name}: {start} to {end}")
        return super().__new__(cls, start, end, name)

    def __repr__(self):
        return f"Shift({self.name!r}, {self.start}, {self.end})"


def hours(shifts):
    """Return how many hours each of the staff works."""
    result = {}
    for shift in shifts:
        result[shift.name] = result.get(shift.name, 0) + shift.end - shift.start
    return result


def gaps(shifts, start, end):
    """Return the hours between `start` and `end` in which nobody works, as (start, end)."""
    result = []
    free_from = start
    for shift in sorted(shifts):
        if free_from < min(shift.start, end):
            result.append((free_from, min(shift.start, end)))
        free_from = max(free_from, shift.end)
    if free_from < end:
        result.append((free_from, end))
    return result


def overlaps(shifts):
    """Return all pairs of shifts of one person that overlap, the earlier one first."""
    result = []
    open_shifts = {}
    for shift in sorted(shifts):
        still_open = [other for other in open_shifts.get(shift.name, []) if other.end > shift.start]
        result += [(other, shift) for other in still_open]
        open_shifts[shift.name] = [*still_open, shift]
    return result


def plan(shifts, start, end):
    """Return a line for each shift and each gap, by time."""
    empty = [(first, last, "nobody") for first, last in gaps(shifts, start, end)]
    return [f"{first:02}-{last:02} {name}" for first, last, name in sorted([*shifts, *empty])]
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=tuple(
            f"tests/test_staff_shifts.py::{name}"
            for name in (
                "test_gaps_at_both_ends",
                "test_a_short_shift_inside_of_a_long_one",
                "test_shifts_in_any_order_and_beyond_the_day",
                "test_overlaps",
                "test_an_overlap_with_a_shift_that_is_not_next",
                "test_plan",
                "test_a_shift_that_ends_before_it_begins",
            )
        ),
        task="tests/test_staff_shifts.py::test_a_short_shift_inside_of_a_long_one",
        summary="shifts: gaps and overlaps from sorted shifts",
    ),
}
