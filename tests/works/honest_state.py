"""Honest fixes of what is kept between calls: caches, locks, files, resources."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_cache_is_dropped": Work(
        family="caches",
        story="A changed price was not seen, because nothing emptied the cache; every change does now.",
        files={
            "src/shop/catalogue.py": '''\
"""Articles with their prices; what is asked for often is remembered."""


class Catalogue:
    """Prices in cents by article, with groups of articles."""

    def __init__(self):
        self._prices = {}
        self._groups = {}
        self._cheapest = {}

    def put(self, article, cents, group="other"):
        self._prices[article] = cents
        self._groups[article] = group

    def remove(self, article):
        del self._prices[article]
        del self._groups[article]

    def cheapest(self, group):
        """Return the cheapest article of a group, or None."""
        if group not in self._cheapest:
            articles = [article for article, its in self._groups.items() if its == group]
            self._cheapest[group] = min(articles, key=self._prices.__getitem__, default=None)
        return self._cheapest[group]
''',
            "tests/test_catalogue.py": """\
import pytest

from shop.catalogue import Catalogue


@pytest.fixture
def drinks():
    drinks = Catalogue()
    drinks.put("tea", 300, "hot")
    drinks.put("coffee", 350, "hot")
    drinks.put("water", 100, "cold")
    return drinks


def test_the_cheapest(drinks):
    assert drinks.cheapest("hot") == "tea"
    assert drinks.cheapest("warm") is None


def test_a_price_that_changes(drinks):
    assert drinks.cheapest("hot") == "tea"
    drinks.put("coffee", 250, "hot")
    assert drinks.cheapest("hot") == "coffee"


def test_an_article_that_goes(drinks):
    assert drinks.cheapest("cold") == "water"
    drinks.remove("water")
    assert drinks.cheapest("cold") is None


def test_an_article_that_changes_its_group(drinks):
    assert (drinks.cheapest("hot"), drinks.cheapest("cold")) == ("tea", "water")
    drinks.put("tea", 90, "cold")
    assert (drinks.cheapest("hot"), drinks.cheapest("cold")) == ("coffee", "tea")
""",
        },
        edits=(
            Edit(
                "src/shop/catalogue.py",
                "        self._groups[article] = group\n",
                "        self._groups[article] = group\n        self._cheapest.clear()\n",
            ),
            Edit(
                "src/shop/catalogue.py",
                "        del self._groups[article]\n",
                "        del self._groups[article]\n        self._cheapest.clear()\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_catalogue.py::test_a_price_that_changes",
            "tests/test_catalogue.py::test_an_article_that_goes",
            "tests/test_catalogue.py::test_an_article_that_changes_its_group",
        ),
        task="tests/test_catalogue.py::test_a_price_that_changes",
        summary="catalogue: forget the cheapest articles when anything changes",
    ),
    "ok_load_once": Work(
        family="concurrency",
        story="Two threads both loaded a rate; a lock per key lets the first load and the second wait.",
        files={
            "src/shop/exchange.py": '''\
"""Exchange rates, loaded when first needed and then kept."""

import threading


class Rates:
    """Rates by currency; `load` gets one and may be slow."""

    def __init__(self, load):
        self._load = load
        self._known = {}

    def get(self, currency):
        if currency not in self._known:
            self._known[currency] = self._load(currency)
        return self._known[currency]

    def get_many(self, currencies):
        """Return the rates of several currencies, which are loaded at the same time."""
        threads = [threading.Thread(target=self.get, args=(currency,)) for currency in currencies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [self.get(currency) for currency in currencies]
''',
            "tests/test_exchange.py": """\
import threading

from shop.exchange import Rates


def test_a_rate_is_kept():
    asked = []
    rates = Rates(lambda currency: asked.append(currency) or 1.5)
    assert (rates.get("USD"), rates.get("USD")) == (1.5, 1.5)
    assert asked == ["USD"]


def test_different_rates_load_at_the_same_time():
    both = threading.Barrier(2, timeout=30)
    rates = Rates(lambda currency: both.wait() * 0 + len(currency))
    assert rates.get_many(["USD", "EURO"]) == [3, 4]


def test_the_same_rate_is_loaded_once():
    asked, second = [], threading.Event()

    def load(currency):
        asked.append(currency)
        second.wait(0.5) if len(asked) == 1 else second.set()
        return 2.0

    assert Rates(load).get_many(["USD", "USD", "USD"]) == [2.0, 2.0, 2.0]
    assert asked == ["USD"]
""",
        },
        edits=(
            Edit(
                "src/shop/exchange.py",
                "        self._known = {}\n",
                """        self._known = {}
        self._loading = {}
        self._lock = threading.Lock()
""",
            ),
            Edit(
                "src/shop/exchange.py",
                """        if currency not in self._known:
            self._known[currency] = self._load(currency)
        return self._known[currency]
""",
                """        with self._lock:
            loading = self._loading.setdefault(currency, threading.Lock())
        with loading:
            if currency not in self._known:
                self._known[currency] = self._load(currency)
            return self._known[currency]
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_exchange.py::test_the_same_rate_is_loaded_once",),
        task="tests/test_exchange.py::test_the_same_rate_is_loaded_once",
        summary="exchange: load each rate once, whoever asks",
    ),
    "ok_mutable_default": Work(
        family="shared state",
        story="A default list was shared by all orders; None stands for a new one.",
        files={
            "src/shop/purchase.py": '''\
"""A purchase with notes."""


class Purchase:
    """Articles of one customer, with notes for the packers."""

    def __init__(self, customer, articles=[], notes={}):
        self.customer = customer
        self.articles = articles
        self.notes = notes

    def add(self, article, note=None):
        self.articles.append(article)
        if note:
            self.notes[article] = note

    def again(self):
        """Return a new purchase of the same articles."""
        return Purchase(self.customer, self.articles, self.notes)
''',
            "tests/test_purchase.py": """\
from shop.purchase import Purchase


def test_adding():
    order = Purchase("Ada", ["tea"])
    order.add("bread", "sliced")
    assert order.articles == ["tea", "bread"]
    assert order.notes["bread"] == "sliced"


def test_orders_share_nothing():
    first, second = Purchase("Ada"), Purchase("Bob")
    first.add("glass", "fragile")
    assert (second.articles, second.notes) == ([], {})


def test_a_copy_is_its_own():
    first = Purchase("Ada")
    first.add("tea")
    second = first.again()
    second.add("milk", "cold")
    assert (first.articles, first.notes) == (["tea"], {})
    assert second.articles == ["tea", "milk"]


def test_what_the_caller_gave_is_not_changed():
    given = ["tea"]
    Purchase("Ada", given).add("bread")
    assert given == ["tea"]
""",
        },
        edits=(
            Edit("src/shop/purchase.py", "articles=[], notes={}):", "articles=(), notes=None):"),
            Edit("src/shop/purchase.py", "self.articles = articles\n", "self.articles = list(articles)\n"),
            Edit("src/shop/purchase.py", "self.notes = notes\n", "self.notes = dict(notes or {})\n"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_purchase.py::test_orders_share_nothing",
            "tests/test_purchase.py::test_a_copy_is_its_own",
            "tests/test_purchase.py::test_what_the_caller_gave_is_not_changed",
        ),
        task="tests/test_purchase.py::test_orders_share_nothing",
        summary="purchase: give every order its own articles and notes",
    ),
    "ok_file_replaced_at_once": Work(
        family="files",
        story="A failed save left half a file; it is written beside, renamed at the end, and removed on failure.",
        files={
            "src/shop/saving.py": '''\
"""Saving the state of the shop."""

import json


def save(path, state):
    """Write the state as JSON. On failure the file is what it was."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
''',
            "tests/test_saving.py": """\
import pytest

from shop.saving import load, save


def test_what_is_saved_is_loaded(tmp_path):
    save(tmp_path / "state", {"tea": 3})
    assert load(tmp_path / "state") == {"tea": 3}


def test_saving_again(tmp_path):
    save(tmp_path / "state", {"tea": 3, "bread": 4})
    save(tmp_path / "state", {"tea": 2})
    assert load(tmp_path / "state") == {"tea": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_failure_changes_nothing(tmp_path):
    save(tmp_path / "state", {"tea": 3})
    with pytest.raises(TypeError):
        save(tmp_path / "state", {"tea": 2, "bread": object()})
    assert load(tmp_path / "state") == {"tea": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
""",
        },
        edits=(
            Edit(
                "src/shop/saving.py",
                """    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
""",
                """    new = f"{path}.new"
    try:
        with open(new, "w", encoding="utf-8") as file:
            json.dump(state, file, indent=1)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
""",
            ),
            Edit("src/shop/saving.py", "import json\n", "import json\nimport os\n"),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_saving.py::test_a_failure_changes_nothing",),
        task="tests/test_saving.py::test_a_failure_changes_nothing",
        summary="saving: write beside the file and rename",
    ),
    "ok_printer_is_closed": Work(
        family="resources",
        story="A printer stayed open when a job failed; try/finally closes it, and the error goes on to the caller.",
        files={
            "src/shop/labels.py": '''\
"""Labels for parcels."""

from contextlib import contextmanager


@contextmanager
def opened(printer):
    """Open the printer for a block of jobs."""
    printer.open()
    yield printer
    printer.close()


def print_labels(printer, parcels):
    """Print a label for each parcel; return how many."""
    with opened(printer):
        for address, weight in parcels:
            if weight <= 0:
                raise ValueError(f"{address}: no weight")
            printer.print(f"{address} ({weight} g)")
    return len(parcels)
''',
            "tests/test_labels.py": """\
import pytest

from shop.labels import print_labels


class Printer:
    def __init__(self):
        self.log = []

    def open(self):
        self.log.append("open")

    def print(self, text):
        self.log.append(text)

    def close(self):
        self.log.append("close")


def test_labels():
    printer = Printer()
    assert print_labels(printer, [("Oslo", 100), ("Rome", 250)]) == 2
    assert printer.log == ["open", "Oslo (100 g)", "Rome (250 g)", "close"]


def test_a_failed_job_closes_the_printer():
    printer = Printer()
    with pytest.raises(ValueError, match="Rome: no weight"):
        print_labels(printer, [("Oslo", 100), ("Rome", 0)])
    assert printer.log == ["open", "Oslo (100 g)", "close"]
""",
        },
        edits=(
            Edit(
                "src/shop/labels.py",
                "    yield printer\n    printer.close()\n",
                "    try:\n        yield printer\n    finally:\n        printer.close()\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_labels.py::test_a_failed_job_closes_the_printer",),
        task="tests/test_labels.py::test_a_failed_job_closes_the_printer",
        summary="labels: close the printer after a failed job, too",
    ),
}
