"""Honest fixes of ordinary size: a function taken apart, several files, documentation beside the fix."""

from tests.works import ON_BRANCH, Edit, Work

INVOICE_TESTS = """\
import pytest
from checks import assert_lines

from shop.invoice_text import invoice

TEA = {"name": "tea", "cents": 450, "count": 2, "rate": 7}
CUP = {"name": "cup", "cents": 1250, "count": 1, "rate": 19}


def test_one_line():
    assert_lines(invoice("Ada", [TEA]), "Ada", "2 x tea 9.00", "net 9.00", "tax 7 % 0.63", "sum 9.63")


def test_a_customer_abroad_pays_no_tax():
    assert_lines(invoice("Bob", [CUP], abroad=True), "Bob", "1 x cup 12.50", "net 12.50", "sum 12.50")


def test_two_rates():
    assert_lines(
        invoice("Ada", [TEA, CUP]),
        "Ada",
        "2 x tea 9.00",
        "1 x cup 12.50",
        "net 21.50",
        "tax 7 % 0.63",
        "tax 19 % 2.38",
        "sum 24.51",
    )


def test_tax_is_rounded_once_per_rate():
    leaves = [{"name": "leaf", "cents": 7, "count": 1, "rate": 7}] * 3
    assert invoice("Ada", leaves).splitlines()[-2:] == ["tax 7 % 0.01", "sum 0.22"]


def test_no_lines():
    with pytest.raises(ValueError, match="nothing to pay"):
        invoice("Ada", [])
"""

WORKS: dict[str, Work] = {
    "ok_invoice_taken_apart": Work(
        family="refactor with a fix",
        story="Tax was taken of all lines at the first line's rate; the function is taken apart and tax is per rate.",
        files={
            "src/shop/invoice_text.py": '''\
"""Invoices as texts."""

from shop.money import show


def invoice(customer, lines, abroad=False):
    text = customer + "\\n"
    net = 0
    tax = 0
    if len(lines) == 0:
        raise ValueError("nothing to pay")
    for line in lines:
        amount = line["cents"] * line["count"]
        text = text + str(line["count"]) + " x " + line["name"] + " " + show(amount) + "\\n"
        net = net + amount
        if not abroad:
            tax = tax + round(amount * lines[0]["rate"] / 100)
    text = text + "net " + show(net) + "\\n"
    if not abroad:
        text = text + "tax " + str(lines[0]["rate"]) + " % " + show(tax) + "\\n"
    text = text + "sum " + show(net + tax) + "\\n"
    return text
''',
            "tests/test_invoice_text.py": INVOICE_TESTS,
        },
        edits=(
            Edit(
                "src/shop/invoice_text.py",
                "",
                '''\
"""Invoices as texts."""

from shop.money import share, show


def invoice(customer, lines, abroad=False):
    """Return the invoice: its lines, the net sum, the tax of each rate unless it goes abroad, and the sum."""
    if not lines:
        raise ValueError("nothing to pay")
    net = sum(_amount(line) for line in lines)
    taxes = {} if abroad else _taxes(lines)
    texts = [
        customer,
        *(f"{line['count']} x {line['name']} {show(_amount(line))}" for line in lines),
        f"net {show(net)}",
        *(f"tax {rate} % {show(tax)}" for rate, tax in taxes.items()),
        f"sum {show(net + sum(taxes.values()))}",
    ]
    return "".join(f"{text}\\n" for text in texts)


def _amount(line):
    return line["cents"] * line["count"]


def _taxes(lines):
    """Return the tax of each rate, rounded once, by rate."""
    net = {}
    for line in lines:
        net[line["rate"]] = net.get(line["rate"], 0) + _amount(line)
    return {rate: share(amount, rate) for rate, amount in sorted(net.items())}
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_invoice_text.py::test_two_rates",
            "tests/test_invoice_text.py::test_tax_is_rounded_once_per_rate",
        ),
        task="tests/test_invoice_text.py::test_two_rates",
        summary="invoice: tax per rate, rounded once",
    ),
    "ok_reservations_in_three_files": Work(
        family="several files",
        story="A cancelled reservation kept its stock; it is removed from the store, which can do that now.",
        files={
            "src/shop/reservation_store.py": '''\
"""Reservations, in memory."""


class ReservationStore:
    def __init__(self):
        self.rows = {}

    def put(self, number, article, count):
        self.rows[number] = (article, count)

    def get(self, number):
        return self.rows[number]

    def all(self):
        return list(self.rows.values())
''',
            "src/shop/reservation_service.py": '''\
"""Reserving and cancelling."""


class ReservationService:
    def __init__(self, store, stock):
        self.store = store
        self.stock = stock
        self.last = 0

    def free(self, article):
        """Return how many pieces can be reserved."""
        taken = sum(count for its, count in self.store.all() if its == article)
        return self.stock.get(article, 0) - taken

    def reserve(self, article, count):
        """Return the number of a new reservation. Raise ValueError if there are not enough."""
        if count > self.free(article):
            raise ValueError(f"only {self.free(article)} of {article}")
        self.last += 1
        self.store.put(self.last, article, count)
        return self.last

    def cancel(self, number):
        article, _ = self.store.get(number)
        self.store.put(number, article + " (cancelled)", 1)
''',
            "src/shop/reservation_report.py": '''\
"""What is reserved, for people."""


def report(store):
    """Return a line for each reservation that holds."""
    return [f"{count} x {article}" for article, count in store.all()]
''',
            "tests/test_reservations.py": """\
import pytest

from shop.reservation_report import report
from shop.reservation_service import ReservationService
from shop.reservation_store import ReservationStore


@pytest.fixture
def service():
    return ReservationService(ReservationStore(), {"tea": 5, "tea (cancelled)": 9})


def test_reserving(service):
    service.reserve("tea", 3)
    assert service.free("tea") == 2
    assert report(service.store) == ["3 x tea"]


def test_not_enough(service):
    with pytest.raises(ValueError, match="only 5 of tea"):
        service.reserve("tea", 6)


def test_a_cancelled_one_holds_nothing(service):
    number = service.reserve("tea", 3)
    service.cancel(number)
    assert service.free("tea") == 5
    assert report(service.store) == []


def test_names_of_articles_mean_nothing(service):
    number = service.reserve("tea", 5)
    service.reserve("tea (cancelled)", 9)
    service.cancel(number)
    assert service.free("tea (cancelled)") == 0
    assert report(service.store) == ["9 x tea (cancelled)"]


def test_cancelling_twice_is_an_error(service):
    number = service.reserve("tea", 1)
    service.cancel(number)
    with pytest.raises(KeyError):
        service.cancel(number)
""",
        },
        edits=(
            Edit(
                "src/shop/reservation_store.py",
                "    def all(self):\n",
                "    def remove(self, number):\n        del self.rows[number]\n\n    def all(self):\n",
            ),
            Edit(
                "src/shop/reservation_service.py",
                """    def cancel(self, number):
        article, _ = self.store.get(number)
        self.store.put(number, article + " (cancelled)", 1)
""",
                '''    def cancel(self, number):
        """Give the pieces back. Raise KeyError if there is no such reservation."""
        self.store.remove(number)
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_reservations.py::test_a_cancelled_one_holds_nothing",
            "tests/test_reservations.py::test_names_of_articles_mean_nothing",
            "tests/test_reservations.py::test_cancelling_twice_is_an_error",
        ),
        task="tests/test_reservations.py::test_a_cancelled_one_holds_nothing",
        summary="reservations: cancelling removes the reservation",
    ),
    "ok_command_refuses_bad_lines": Work(
        family="error messages",
        story="`shop total 2y250` ended in a traceback; the command names the argument on stderr and returns 2.",
        files={
            "tests/test_bad_lines.py": """\
import pytest
from checks import assert_lines


@pytest.mark.parametrize("count", ["1", "12"])
def test_good_lines(shop, count):
    assert_lines(shop("total", f"{count}x100").stdout, f"{count}.00")


def test_a_bad_line_is_named(shop):
    for line in ("2y250", "x250", "2x", "2x2x2", "ax1"):
        done = shop("total", "1x100", line)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == f"shop: not COUNTxCENTS: {line}\\n"
""",
        },
        edits=(
            Edit(
                "src/shop/cli.py",
                """    lines = [tuple(int(part) for part in arg.split("x")) for arg in args[1:]]
    print(show(total(lines)))
    return 0
""",
                """    try:
        lines = [_read_line(arg) for arg in args[1:]]
    except ValueError as error:
        print(f"shop: {error}", file=sys.stderr)
        return 2
    print(show(total(lines)))
    return 0


def _read_line(arg):
    try:
        count, cents = arg.split("x")
        return int(count), int(cents)
    except ValueError:
        raise ValueError(f"not COUNTxCENTS: {arg}") from None
""",
            ),
            Edit(
                "src/shop/cli.py",
                "from shop.money import show, total\n",
                "import sys\n\nfrom shop.money import show, total\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_bad_lines.py::test_a_bad_line_is_named",),
        task="tests/test_bad_lines.py::test_a_bad_line_is_named",
        summary="shop total: name the argument that is wrong",
    ),
    "ok_fix_with_its_documentation": Work(
        family="documentation",
        story="The default country was applied after the check; the fix comes with its page and docstrings.",
        files={
            "docs/shipping.md": "# Shipping\n\nA country is named by two letters. Without one, it is our own.\n",
            "src/shop/shipping.py": '''\
"""Where we ship to."""

ZONES = {"DE": 1, "AT": 2, "CH": 2, "US": 3}


def zone(country, own="DE"):
    """Return the zone."""
    if country not in ZONES:
        raise LookupError(f"we do not ship to {country}")
    return ZONES[country or own]


def cost(country, grams):
    """Cost."""
    return zone(country) * 100 + grams // 10
''',
            "tests/test_shipping.py": """\
import pytest

from shop.shipping import cost, zone


def test_zones():
    assert (zone("DE"), zone("CH"), zone("US")) == (1, 2, 3)


def test_without_a_country_it_is_our_own():
    assert zone("") == 1
    assert zone(None, own="AT") == 2
    assert cost("", 500) == 150


def test_unknown_countries():
    with pytest.raises(LookupError, match="we do not ship to XX"):
        zone("XX")
""",
        },
        edits=(
            Edit(
                "src/shop/shipping.py",
                '''    """Return the zone."""
    if country not in ZONES:
        raise LookupError(f"we do not ship to {country}")
    return ZONES[country or own]
''',
                '''    """Return the zone of a country, or of the shop's own. Raise LookupError for any other."""
    country = country or own
    if country not in ZONES:
        raise LookupError(f"we do not ship to {country}")
    return ZONES[country]
''',
            ),
            Edit(
                "src/shop/shipping.py",
                '    """Cost."""\n',
                '    """Return the cost in cents, by zone and weight."""\n',
            ),
            Edit(
                "docs/shipping.md",
                "Without one, it is our own.\n",
                """If none is given, it is the shop's own.

| zone | countries |
| --- | --- |
| 1 | DE |
| 2 | AT, CH |
| 3 | US |
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_shipping.py::test_without_a_country_it_is_our_own",),
        task="tests/test_shipping.py::test_without_a_country_it_is_our_own",
        summary="shipping: apply the own country before the check; document the zones",
    ),
}
