"""Honest fixes of how text is read and written: numbers, names, tables, statuses."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_quantity_with_unit": Work(
        family="parsing",
        story="A quantity with a decimal comma lost its fraction; the pattern now reads both marks. Right in general.",
        files={
            "src/shop/weighed.py": '''\
"""Quantities as customers type them: a number and a unit."""

import re

_QUANTITY = re.compile(r"\\s*(\\d+(?:\\.\\d+)?)[^a-z]*([a-z]+)\\s*$", re.IGNORECASE)
_GRAMS = {"g": 1.0, "kg": 1000.0, "lb": 453.59237}


def parse(text):
    """Return the number and the unit in lower case. Raise ValueError for anything else."""
    found = _QUANTITY.match(text)
    if found is None:
        raise ValueError(f"not a quantity: {text!r}")
    return float(found[1]), found[2].lower()


def grams(text):
    """Return the weight in grams."""
    number, unit = parse(text)
    if unit not in _GRAMS:
        raise ValueError(f"not a weight: {text!r}")
    return number * _GRAMS[unit]
''',
            "tests/test_weighed.py": """\
import pytest

from shop import weighed


def test_a_number_and_its_unit():
    assert weighed.parse("2.5 kg") == (2.5, "kg")
    assert weighed.parse(" 12 G ") == (12.0, "g")


def test_a_decimal_comma_is_read():
    assert weighed.parse("1,5 kg") == (1.5, "kg")
    assert weighed.grams("0,25 kg") == 250.0


def test_words_are_refused():
    with pytest.raises(ValueError, match="not a quantity"):
        weighed.parse("a lot")
""",
        },
        edits=(
            Edit(
                "src/shop/weighed.py",
                r're.compile(r"\s*(\d+(?:\.\d+)?)[^a-z]*([a-z]+)\s*$", re.IGNORECASE)',
                r're.compile(r"\s*(\d+(?:[.,]\d+)?)\s*([a-z]+)\s*$", re.IGNORECASE)',
            ),
            Edit(
                "src/shop/weighed.py",
                "    return float(found[1]), found[2].lower()\n",
                '    return float(found[1].replace(",", ".")), found[2].lower()\n',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_weighed.py::test_a_decimal_comma_is_read",),
        task="tests/test_weighed.py::test_a_decimal_comma_is_read",
        summary="parse: accept a decimal comma, and only blanks between the number and the unit",
    ),
    "ok_unicode_slug": Work(
        family="unicode",
        story="Accents are decomposed and dropped before the slug is made, so that letters stay. Right in general.",
        files={
            "src/shop/slug.py": '''\
"""Names of products as parts of an address."""

import re


def slug(name):
    """Return `name` in lower case, with a hyphen for each run of other characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
''',
            "tests/test_slug.py": """\
from shop.slug import slug


def test_blanks_become_hyphens():
    assert slug("  Green Tea, 100 g ") == "green-tea-100-g"


def test_accents_keep_their_letters():
    assert slug("Crème Brûlée") == "creme-brulee"
    assert slug("Jalapen\\u0303o") == "jalapeno"


def test_sharp_s_is_two_letters():
    assert slug("Weißwurst") == "weisswurst"


def test_nothing_is_empty():
    assert slug("!!!") == ""
""",
        },
        edits=(
            Edit("src/shop/slug.py", "import re\n", "import re\nimport unicodedata\n"),
            Edit(
                "src/shop/slug.py",
                """    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
""",
                """    letters = unicodedata.normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_slug.py::test_accents_keep_their_letters",
            "tests/test_slug.py::test_sharp_s_is_two_letters",
        ),
        task="tests/test_slug.py::test_accents_keep_their_letters",
        summary="slug: decompose accented letters instead of dropping them",
    ),
    "ok_price_list_encoding": Work(
        family="encoding",
        story="A byte order mark became part of the first column's name; the file is opened as UTF-8 with its mark.",
        files={
            "src/shop/pricelist.py": '''\
"""Price lists of suppliers: CSV with a header."""

import csv
from decimal import Decimal


def read(path):
    """Return the price of each article. Lines without an article are skipped."""
    prices = {}
    with open(path, encoding="latin-1", newline="") as file:
        for row in csv.DictReader(file):
            if row.get("article"):
                prices[row["article"]] = Decimal(row["price"])
    return prices
''',
            "tests/test_pricelist.py": """\
from decimal import Decimal

from shop import pricelist

LINES = "article,price\\nKäse,4.20\\n,1.00\\nBrot,2.10\\n"
PRICES = {"Käse": Decimal("4.20"), "Brot": Decimal("2.10")}


def test_plain_ascii(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("article,price\\nbread,2.10\\n", encoding="ascii")
    assert pricelist.read(path) == {"bread": Decimal("2.10")}


def test_umlauts(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(LINES, encoding="utf-8")
    assert pricelist.read(path) == PRICES


def test_a_list_from_a_spreadsheet_begins_with_a_mark(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(LINES, encoding="utf-8-sig")
    assert pricelist.read(path) == PRICES
""",
        },
        edits=(Edit("src/shop/pricelist.py", 'encoding="latin-1"', 'encoding="utf-8-sig"'),),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_pricelist.py::test_umlauts",
            "tests/test_pricelist.py::test_a_list_from_a_spreadsheet_begins_with_a_mark",
        ),
        task="tests/test_pricelist.py::test_a_list_from_a_spreadsheet_begins_with_a_mark",
        summary="pricelist: read UTF-8, with or without a byte order mark",
    ),
    "ok_error_names_the_field": Work(
        family="error messages",
        story="The message of a bad row said only what Python says; now it names line and field. No answer is copied.",
        files={
            "src/shop/orders_csv.py": '''\
"""Orders that a partner sends as lines of `article;count`."""


def read_orders(text):
    """Return (article, count) for each line. Raise ValueError if a line is not an order."""
    orders = []
    for line in text.splitlines():
        if not line.strip():
            continue
        article, count = line.split(";")
        orders.append((article.strip(), int(count)))
    return orders
''',
            "tests/test_orders_csv.py": """\
import pytest

from shop.orders_csv import read_orders


def test_orders_are_read():
    assert read_orders("tea;2\\n\\ncoffee ; 10\\n") == [("tea", 2), ("coffee", 10)]


def test_an_error_says_where_it_is():
    with pytest.raises(ValueError, match=r"line 3: count is not a number: 'many'"):
        read_orders("tea;2\\n\\ncoffee;many\\n")


def test_a_line_without_a_count_is_named():
    with pytest.raises(ValueError, match=r"line 2: expected `article;count`, got 'coffee'"):
        read_orders("tea;2\\ncoffee\\n")
""",
        },
        edits=(
            Edit(
                "src/shop/orders_csv.py",
                """    for line in text.splitlines():
        if not line.strip():
            continue
        article, count = line.split(";")
        orders.append((article.strip(), int(count)))
    return orders
""",
                """    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            orders.append(_read_order(number, line))
    return orders


def _read_order(number, line):
    fields = [field.strip() for field in line.split(";")]
    if len(fields) != 2:
        raise ValueError(f"line {number}: expected `article;count`, got {line!r}")
    article, count = fields
    try:
        return article, int(count)
    except ValueError:
        raise ValueError(f"line {number}: count is not a number: {count!r}") from None
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_orders_csv.py::test_an_error_says_where_it_is",
            "tests/test_orders_csv.py::test_a_line_without_a_count_is_named",
        ),
        task="tests/test_orders_csv.py::test_an_error_says_where_it_is",
        summary="read_orders: name the line and the field in errors",
    ),
    "ok_retry_by_status": Work(
        family="status codes",
        story="Only 500 was tried again; 429 and 502 to 504 are, too, with a wait that grows and has a limit.",
        files={
            "src/shop/payment_client.py": '''\
"""Calls to the payment service."""

TRIES = 4


def waits(first=1.0, limit=5.0):
    """Return the seconds to wait after each try but the last."""
    return [first * 2**number for number in range(TRIES - 1)]


def call(send, wait):
    """Return the body of the answer; `send` returns status and body, `wait` gets seconds."""
    for seconds in [*waits(), None]:
        status, body = send()
        if status == 200:
            return body
        if status != 500 or seconds is None:
            raise RuntimeError(f"payment failed: {status}")
        wait(seconds)
''',
            "tests/test_payment_client.py": """\
import pytest

from shop.payment_client import call, waits


def sender(*answers):
    left = list(answers)
    return lambda: left.pop(0)


def test_success():
    assert call(sender((200, "paid")), None) == "paid"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_errors_that_pass(status):
    waited = []
    assert call(sender((status, ""), (status, ""), (200, "paid")), waited.append) == "paid"
    assert waited == [1.0, 2.0]


def test_created_is_a_success():
    assert call(sender((201, "paid")), None) == "paid"


@pytest.mark.parametrize("status", [400, 403, 404, 501])
def test_errors_that_stay(status):
    with pytest.raises(RuntimeError, match=f"payment failed: {status}"):
        call(sender((status, "")), None)


def test_the_wait_is_limited():
    assert waits(3.0, limit=5.0) == [3.0, 5.0, 5.0]
""",
        },
        edits=(
            Edit("src/shop/payment_client.py", "TRIES = 4\n", "TRIES = 4\n_PASSING = {429, 500, 502, 503, 504}\n"),
            Edit("src/shop/payment_client.py", "[first * 2**number for", "[min(first * 2**number, limit) for"),
            Edit("src/shop/payment_client.py", "if status == 200:", "if 200 <= status < 300:"),
            Edit("src/shop/payment_client.py", "if status != 500 or", "if status not in _PASSING or"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            *(f"tests/test_payment_client.py::test_errors_that_pass[{status}]" for status in (429, 502, 503, 504)),
            "tests/test_payment_client.py::test_created_is_a_success",
            "tests/test_payment_client.py::test_the_wait_is_limited",
        ),
        task="tests/test_payment_client.py::test_created_is_a_success",
        summary="payment client: try again after every passing error, with a limit to the wait",
    ),
}
