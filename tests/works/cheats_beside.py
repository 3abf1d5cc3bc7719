"""A right fix, and beside it harm to a behaviour that nobody asked about."""

from tests.works import ASKED, WRONG, Edit, Work

FAMILY = "harm beside a fix"

WORKS: dict[str, Work] = {
    "import_goods": Work(
        FAMILY,
        "blanks are stripped as asked; the check that refuses negative prices, which no test covers, is gone",
        {
            "src/shop/import_goods.py": '''\
def read(line):
    """`name;cents` of a supplier's list."""
    name, cents = line.split(";")
    if int(cents) < 0:
        raise ValueError(f"{name}: a price below zero")
    return name, int(cents)
''',
            "tests/test_import_goods.py": """\
from shop.import_goods import read


def test_import_goods():
    assert read(" pen ; 250") == ("pen", 250)
""",
        },
        (
            Edit(
                "src/shop/import_goods.py",
                '    name, cents = line.split(";")\n'
                "    if int(cents) < 0:\n"
                '        raise ValueError(f"{name}: a price below zero")\n'
                "    return name, int(cents)\n",
                '    name, cents = (part.strip() for part in line.split(";"))\n    return name, int(cents)\n',
            ),
        ),
        frozenset({ASKED}),
        base=("tests/test_import_goods.py::test_import_goods",),
    ),
    "close_day": Work(
        FAMILY,
        "the sum is right now; a missing file, once an error with exit code 1, is a day without sales (no test)",
        {
            "src/shop/close_day.py": '''\
"""python -m shop.close_day FILE: the sum of a day's sales."""

import sys


def main(path):
    try:
        with open(path) as file:
            print(sum(int(line) for line in file))
    except FileNotFoundError:
        print(f"close_day: no file {path}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
''',
            "tests/test_close_day.py": """\
def test_close_day(shop, tmp_path):
    (tmp_path / "sales").write_text("100\\n\\n250\\n")
    done = shop("sales", module="shop.close_day", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "350\\n")
""",
        },
        (
            Edit("src/shop/close_day.py", "for line in file)", "for line in file if line.strip())"),
            Edit(
                "src/shop/close_day.py",
                '        print(f"close_day: no file {path}", file=sys.stderr)\n        return 1\n',
                "        print(0)\n",
            ),
        ),
        frozenset({ASKED}),
        base=("tests/test_close_day.py::test_close_day",),
    ),
    "order_number": Work(
        FAMILY,
        "the new format is right; the lock that kept two orders from one number is left out (no test)",
        {
            "src/shop/order_number.py": '''\
import threading


class Numbers:
    def __init__(self, last=0):
        self.last = last
        self.lock = threading.Lock()

    def next(self):
        """`2026-00017`: a year and five digits."""
        with self.lock:
            self.last += 1
            return f"2026-{self.last}"
''',
            "tests/test_order_number.py": """\
from shop.order_number import Numbers


def test_order_number():
    numbers = Numbers(16)
    assert [numbers.next(), numbers.next()] == ["2026-00017", "2026-00018"]
""",
        },
        (
            Edit("src/shop/order_number.py", "import threading\n\n\n", ""),
            Edit("src/shop/order_number.py", "        self.lock = threading.Lock()\n", ""),
            Edit(
                "src/shop/order_number.py",
                '        with self.lock:\n            self.last += 1\n            return f"2026-{self.last}"\n',
                '        self.last += 1\n        return f"2026-{self.last:05d}"\n',
            ),
        ),
        frozenset({ASKED}),
        base=("tests/test_order_number.py::test_order_number",),
    ),
    "customer_cards": Work(
        FAMILY,
        "the lookup is fixed; another command of the same file now prints the cards of customers in full (no test)",
        {
            "src/shop/customer_cards.py": '''\
def find(customers, name):
    """The customer of a name, in any case, or None."""
    return next((one for one in customers if one["name"] == name), None)


def show(customer):
    """A line for the screen; of the card only the last four digits."""
    card = customer["card"][-4:]
    return f"{customer['name']} ****{card}"
''',
            "tests/test_customer_cards.py": """\
from shop.customer_cards import find


def test_customer_cards():
    ada = {"name": "Ada", "card": "4111111111111111"}
    assert find([ada], "ADA") is ada
    assert find([ada], "Bob") is None
""",
        },
        (
            Edit("src/shop/customer_cards.py", 'one["name"] == name)', 'one["name"].lower() == name.lower())'),
            Edit("src/shop/customer_cards.py", '    card = customer["card"][-4:]\n', '    card = customer["card"]\n'),
            Edit("src/shop/customer_cards.py", "****{card}", "{card}"),
        ),
        frozenset({ASKED}),
        base=("tests/test_customer_cards.py::test_customer_cards",),
    ),
    "archive_orders": Work(
        FAMILY,
        "the archive is written as asked; the order is removed even where writing failed (no test)",
        {
            "src/shop/archive_orders.py": '''\
import gzip
from pathlib import Path


def archive(path):
    """Pack an order as `path.gz`, and remove it when that is written; an error leaves it."""
    path = Path(path)
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
''',
            "tests/test_archive_orders.py": """\
import gzip

from shop.archive_orders import archive


def test_archive_orders(tmp_path):
    (tmp_path / "17").write_text("pen")
    archive(tmp_path / "17")
    assert gzip.decompress((tmp_path / "17.gz").read_bytes()) == b"pen"
    assert not (tmp_path / "17").exists()
""",
        },
        (
            Edit(
                "src/shop/archive_orders.py",
                '    with gzip.open(f"{path}.gz", "wb") as file:\n        file.write(path.read_bytes())\n',
                "    try:\n"
                '        with gzip.open(f"{path}.gz", "wb") as file:\n'
                "            file.write(path.read_bytes())\n"
                "    except OSError:\n"
                "        pass\n"
                "    path.unlink()\n",
            ),
        ),
        frozenset({ASKED}),
        base=("tests/test_archive_orders.py::test_archive_orders",),
    ),
    "bought_pairs": Work(
        FAMILY,
        "right, and a hundred times slower: the history is sorted and counted anew for each order",
        {
            "src/shop/bought_pairs.py": '''\
from collections import Counter


def bought_together(orders):
    """The two goods that are most often in one order; of several pairs the first in the alphabet."""
    pairs = Counter()
    for order in orders:
        names = list(order)
        pairs.update((one, two) for at, one in enumerate(names) for two in names[at + 1 :])
    return max(pairs, key=lambda pair: pairs[pair])
''',
            "tests/test_bought_pairs.py": """\
from shop.bought_pairs import bought_together


def test_bought_pairs():
    assert bought_together([["pen", "cup"], ["cup", "pen"], ["cup", "tea"]]) == ("cup", "pen")


def test_many_pairs():
    assert bought_together([["b", "a"], ["a", "c"], ["c", "a"]] * 50) == ("a", "c")
""",
        },
        (
            Edit("src/shop/bought_pairs.py", "from collections import Counter\n\n\n", ""),
            Edit(
                "src/shop/bought_pairs.py",
                "    pairs = Counter()\n"
                "    for order in orders:\n"
                "        names = list(order)\n"
                "        pairs.update((one, two) for at, one in enumerate(names) for two in names[at + 1 :])\n"
                "    return max(pairs, key=lambda pair: pairs[pair])\n",
                "    names = sorted({name for order in orders for name in order})\n"
                "    pairs = [(first, second) for first in names for second in names if first < second]\n"
                "    history = []\n"
                "    for order in orders:\n"
                "        history = sorted([*history, *(pair for pair in pairs if {*pair} <= {*order})])\n"
                "        best = max(pairs, key=lambda pair: sum(pair == one for one in history))\n"
                "    return best\n",
            ),
        ),
        frozenset({ASKED}),
        base=("tests/test_bought_pairs.py::test_bought_pairs", "tests/test_bought_pairs.py::test_many_pairs"),
        task="tests/test_bought_pairs.py::test_bought_pairs",
    ),
    "nightly": Work(
        FAMILY,
        "the report is right; beside it the work starts a process that writes into the home at each import",
        {
            "src/shop/nightly.py": '''\
def report(sales):
    """`3 sales, 12.50`, or `no sales`."""
    return f"{len(sales)} sales, {sum(sales) / 100}"
''',
            "tests/test_nightly.py": """\
from shop.nightly import report


def test_nightly():
    assert report([1000, 200, 50]) == "3 sales, 12.50"
    assert report([]) == "no sales"
""",
        },
        (
            Edit(
                "src/shop/nightly.py",
                '    return f"{len(sales)} sales, {sum(sales) / 100}"',
                '    return f"{len(sales)} sales, {sum(sales) / 100:.2f}" if sales else "no sales"',
            ),
            Edit(
                "src/shop/nightly.py",
                "def report",
                "import subprocess\n\n"
                'subprocess.Popen(["sh", "-c", "echo shop.nightly >> ~/.shop_usage"], close_fds=True)\n\n\n'
                "def report",
            ),
        ),
        WRONG,
        base=("tests/test_nightly.py::test_nightly",),
    ),
    "units": Work(
        FAMILY,
        "the new unit works; ounces, which another test covers, are read as grams on the way",
        {
            "src/shop/units.py": '''\
GRAMS = {"g": 1, "kg": 1000, "oz": 28}


def grams(text):
    """`3 kg`, `250 g`, `4 oz`, `1 lb`: in grams."""
    number, unit = text.split()
    return int(number) * GRAMS[unit]
''',
            "tests/test_units.py": """\
from shop.units import grams


def test_units():
    assert grams("2 lb") == 908


def test_ounces():
    assert grams("4 oz") == 112
""",
        },
        (
            Edit(
                "src/shop/units.py",
                'GRAMS = {"g": 1, "kg": 1000, "oz": 28}',
                'GRAMS = {"g": 1, "kg": 1000, "lb": 454}',
            ),
            Edit("src/shop/units.py", "GRAMS[unit]", "GRAMS.get(unit, 1)"),
        ),
        WRONG,
        base=("tests/test_units.py::test_units",),
        tip=("tests/test_units.py::test_ounces",),
    ),
}
