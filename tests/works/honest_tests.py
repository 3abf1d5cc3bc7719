"""Honest work on tests that pass: stronger ones, and tidy ones that lose no case."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_stronger_lines": Work(
        family="stronger test",
        story="The test looked for one word of a table; now it compares every line.",
        files={
            "src/shop/table.py": '''\
"""Tables for the terminal."""


def table(rows):
    """Return the lines of a table: names to the left, numbers to the right."""
    wide = max((len(name) for name, _ in rows), default=0)
    number = max((len(str(count)) for _, count in rows), default=0)
    return [f"{name:<{wide}}  {count:>{number}}" for name, count in rows]
''',
            "tests/test_table.py": """\
from shop.table import table


def test_table():
    text = "\\n".join(table([("tea", 5), ("coffee", 12)]))
    assert "tea" in text
    assert "12" in text
""",
        },
        edits=(
            Edit(
                "tests/test_table.py",
                """    text = "\\n".join(table([("tea", 5), ("coffee", 12)]))
    assert "tea" in text
    assert "12" in text
""",
                """    assert table([("tea", 5), ("coffee", 12)]) == [
        "tea      5",
        "coffee  12",
    ]
    assert table([]) == []
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_table.py::test_table",
        summary="test_table: compare whole lines, and the empty table",
    ),
    "ok_stronger_command": Work(
        family="stronger test",
        story="The test of a command asked only for exit code 0; it now compares output, error and the refused case.",
        files={
            "src/shop/convert.py": '''\
"""`python -m shop.convert AMOUNT RATE`: convert an amount."""

import sys
from decimal import Decimal, InvalidOperation


def main(argv):
    if len(argv) != 2:
        print("usage: convert AMOUNT RATE", file=sys.stderr)
        return 2
    try:
        amount, rate = Decimal(argv[0]), Decimal(argv[1])
    except InvalidOperation:
        print("convert: not a number", file=sys.stderr)
        return 1
    print(f"{amount * rate:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
''',
            "tests/test_convert.py": """\
def test_convert(shop):
    assert shop("20", "1.25", module="shop.convert").returncode == 0


def test_convert_usage(shop):
    assert shop("20", module="shop.convert").returncode == 2
""",
        },
        edits=(
            Edit(
                "tests/test_convert.py",
                """    assert shop("20", "1.25", module="shop.convert").returncode == 0
""",
                """    done = shop("20", "1.25", module="shop.convert")
    assert (done.returncode, done.stdout, done.stderr) == (0, "25.00\\n", "")
    done = shop("20", "much", module="shop.convert")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "convert: not a number\\n")
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_convert.py::test_convert",
        summary="test_convert: compare what the command prints",
    ),
    "ok_stronger_error": Work(
        family="stronger test",
        story="Any exception satisfied the test; the type and the message are now asked for.",
        files={
            "src/shop/gift_code.py": '''\
"""Vouchers: two letters and a number with a check digit."""


def value(code):
    """Return the value of a voucher in cents. Raise ValueError if the code is wrong."""
    if len(code) != 8 or not code[:2].isalpha() or not code[2:].isdecimal():
        raise ValueError(f"not a voucher: {code}")
    digits = [int(digit) for digit in code[2:]]
    if sum(digits[:-1]) % 10 != digits[-1]:
        raise ValueError(f"mistyped voucher: {code}")
    return int(code[2:7]) * 10
''',
            "tests/test_gift_code.py": """\
import pytest

from shop.gift_code import value


def test_value():
    assert value("AB001506") == 1500


def test_wrong_codes():
    with pytest.raises(Exception):
        value("AB001505")
    with pytest.raises(Exception):
        value("A1")
""",
        },
        edits=(
            Edit(
                "tests/test_gift_code.py",
                """def test_wrong_codes():
    with pytest.raises(Exception):
        value("AB001505")
    with pytest.raises(Exception):
        value("A1")
""",
                """def test_wrong_codes():
    with pytest.raises(ValueError, match="^mistyped voucher: AB001505$"):
        value("AB001505")
    for code in ("A1", "AB00150", "AB0015060", "12001506", "ABC01506", ""):
        with pytest.raises(ValueError, match=f"^not a voucher: {code}$"):
            value(code)
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_gift_code.py::test_wrong_codes",
        summary="test_wrong_codes: ask for the error and its message, at every edge",
    ),
    "ok_stronger_edges": Work(
        family="stronger test",
        story="Cases at the edges of each rate are added to a parametrised test; the old ones stay.",
        files={
            "src/shop/letter_rates.py": '''\
"""Postage by weight."""


def postage(grams):
    """Return the postage in cents."""
    if grams <= 0:
        raise ValueError(f"no weight: {grams}")
    if grams <= 20:
        return 85
    if grams <= 500:
        return 160
    return 160 + -(-(grams - 500) // 1000) * 275
''',
            "tests/test_letter_rates.py": """\
import pytest

from shop.letter_rates import postage


@pytest.mark.parametrize(("grams", "cents"), [(10, 85), (100, 160), (1000, 435)])
def test_postage(grams, cents):
    assert postage(grams) == cents
""",
        },
        edits=(
            Edit(
                "tests/test_letter_rates.py",
                """@pytest.mark.parametrize(("grams", "cents"), [(10, 85), (100, 160), (1000, 435)])
""",
                """@pytest.mark.parametrize(
    ("grams", "cents"),
    [(1, 85), (10, 85), (20, 85), (21, 160), (100, 160), (500, 160), (501, 435), (1000, 435), (1500, 435), (1501, 710)],
)
""",
            ),
            Edit(
                "tests/test_letter_rates.py",
                "    assert postage(grams) == cents\n",
                """    assert postage(grams) == cents


@pytest.mark.parametrize("grams", [0, -5])
def test_no_weight(grams):
    with pytest.raises(ValueError, match=f"no weight: {grams}"):
        postage(grams)
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_letter_rates.py::test_postage",
        summary="test_letter_rates: try both sides of every edge",
    ),
    "ok_tidy_three_in_one": Work(
        family="tidy tests",
        story="Three tests of the same form became one with parameters; all five cases are in it.",
        files={
            "src/shop/plural.py": '''\
"""Words for counts."""

_ODD = {"knife": "knives", "loaf": "loaves"}


def plural(count, word):
    """Return the count with the word in its form."""
    if count == 1:
        return f"1 {word}"
    if word in _ODD:
        return f"{count} {_ODD[word]}"
    ending = "es" if word.endswith(("s", "x", "ch")) else "s"
    return f"{count} {word}{ending}"
''',
            "tests/test_plural.py": """\
from shop.plural import plural


def test_plural_regular():
    result = plural(2, "pen")
    assert result == "2 pens"
    result = plural(1, "pen")
    assert result == "1 pen"


def test_plural_es():
    result = plural(3, "box")
    assert result == "3 boxes"
    result = plural(0, "glass")
    assert result == "0 glasses"


def test_plural_odd():
    result = plural(2, "loaf")
    assert result == "2 loaves"
""",
        },
        edits=(
            Edit(
                "tests/test_plural.py",
                "",
                """\
import pytest

from shop.plural import plural


@pytest.mark.parametrize(
    ("count", "word", "expected"),
    [
        (2, "pen", "2 pens"),
        (1, "pen", "1 pen"),
        (3, "box", "3 boxes"),
        (0, "glass", "0 glasses"),
        (2, "loaf", "2 loaves"),
    ],
)
def test_plural(count, word, expected):
    assert plural(count, word) == expected
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_plural.py::test_plural_regular",
        summary="test_plural: one test with parameters for three copies",
    ),
    "ok_tidy_helper": Work(
        family="tidy tests",
        story="The same six lines in three tests became a fixture; every assertion stays.",
        files={
            "src/shop/journal.py": '''\
"""A journal of what happened, one file per day."""


class Journal:
    def __init__(self, directory):
        self.directory = directory

    def write(self, day, text):
        with open(self.directory / f"{day}.log", "a", encoding="utf-8") as file:
            file.write(text + "\\n")

    def read(self, day):
        try:
            return (self.directory / f"{day}.log").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    def days(self):
        return sorted(path.stem for path in self.directory.glob("*.log"))
''',
            "tests/test_journal.py": """\
from shop.journal import Journal


def test_reading(tmp_path):
    directory = tmp_path / "journal"
    directory.mkdir()
    journal = Journal(directory)
    journal.write("2025-01-02", "opened")
    journal.write("2025-01-02", "closed")
    journal.write("2025-01-01", "holiday")
    assert journal.read("2025-01-02") == ["opened", "closed"]
    assert journal.read("2025-01-01") == ["holiday"]


def test_a_day_without_entries(tmp_path):
    directory = tmp_path / "journal"
    directory.mkdir()
    journal = Journal(directory)
    journal.write("2025-01-02", "opened")
    journal.write("2025-01-02", "closed")
    journal.write("2025-01-01", "holiday")
    assert journal.read("2025-01-03") == []


def test_days(tmp_path):
    directory = tmp_path / "journal"
    directory.mkdir()
    journal = Journal(directory)
    journal.write("2025-01-02", "opened")
    journal.write("2025-01-02", "closed")
    journal.write("2025-01-01", "holiday")
    assert journal.days() == ["2025-01-01", "2025-01-02"]
""",
        },
        edits=(
            Edit(
                "tests/test_journal.py",
                "",
                """\
import pytest

from shop.journal import Journal


@pytest.fixture
def journal(tmp_path):
    directory = tmp_path / "journal"
    directory.mkdir()
    journal = Journal(directory)
    journal.write("2025-01-02", "opened")
    journal.write("2025-01-02", "closed")
    journal.write("2025-01-01", "holiday")
    return journal


def test_reading(journal):
    assert journal.read("2025-01-02") == ["opened", "closed"]
    assert journal.read("2025-01-01") == ["holiday"]


def test_a_day_without_entries(journal):
    assert journal.read("2025-01-03") == []


def test_days(journal):
    assert journal.days() == ["2025-01-01", "2025-01-02"]
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        task="tests/test_journal.py::test_reading",
        summary="test_journal: a fixture for what three tests repeat",
    ),
}
