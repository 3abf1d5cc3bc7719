"""Honest fixes of 60 lines and more, and one that brings tests of its own."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_fix_with_more_tests": Work(
        family="fix and tests",
        story="The search ignored case on one side only; the fix comes with two more tests beside the given one.",
        files={
            "src/shop/find_articles.py": '''\
"""Searching the catalogue."""


def search(articles, words):
    """Return the articles whose names hold all words, in any case."""
    return [article for article in articles if all(word in article.lower() for word in words.split())]
''',
            "tests/test_find_articles.py": """\
from shop.find_articles import search

ARTICLES = ["Green Tea", "Black Tea", "Tea Cup", "STRASSE"]


def test_lower_case():
    assert search(ARTICLES, "tea green") == ["Green Tea"]


def test_any_case():
    assert search(ARTICLES, "CUP Tea") == ["Tea Cup"]
""",
        },
        edits=(
            Edit(
                "src/shop/find_articles.py",
                "[article for article in articles if all(word in article.lower() for word in words.split())]",
                "[name for name in articles if all(word in name.casefold() for word in words.casefold().split())]",
            ),
            Edit(
                "tests/test_find_articles.py",
                """    assert search(ARTICLES, "CUP Tea") == ["Tea Cup"]
""",
                """    assert search(ARTICLES, "CUP Tea") == ["Tea Cup"]


def test_letters_without_a_simple_lower_case():
    assert search(ARTICLES, "straße") == ["STRASSE"]


def test_no_words_find_everything():
    assert search(ARTICLES, " ") == ARTICLES
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_find_articles.py::test_any_case",),
        task="tests/test_find_articles.py::test_any_case",
        summary="search: ignore case on both sides",
    ),
    "ok_formula_parser": Work(
        family="parsing",
        story="Formulas were computed from left to right; a small parser with precedence and brackets takes its place.",
        files={
            "src/shop/formula.py": '''\
"""Formulas of prices: `2 * (base + 50) - rebate`, in whole cents."""

import re


def compute(text, names):
    """Return the value. Raise ValueError if the formula cannot be read."""
    tokens = re.findall(r"[a-z]+|[0-9]+|[-+*/]", text)
    result = int(names.get(tokens[0], 0)) if tokens[0].isalpha() else int(tokens[0])
    for operator, token in zip(tokens[1::2], tokens[2::2]):
        value = int(names.get(token, 0)) if token.isalpha() else int(token)
        if operator == "+":
            result += value
        elif operator == "-":
            result -= value
        elif operator == "*":
            result *= value
        else:
            result //= value
    return result
''',
            "tests/test_formula.py": """\
import pytest

from shop.formula import compute

NAMES = {"base": 300, "rebate": 20}


def value(text):
    return compute(text, NAMES)


def test_one_operator():
    assert value("base + 50") == 350
    assert value("7 / 2") == 3
    assert value("base") == 300


def test_left_to_right():
    assert value("10 - 3 - 2") == 5
    assert value("100 / 5 / 2") == 10


def test_products_come_first():
    assert value("10 + 2 * 3") == 16
    assert value("base - 4 * rebate + 1") == 221


def test_brackets():
    assert value("2 * (base + 50)") == 700
    assert value("((2)) * (1 + (2 + 3) * 4)") == 42


def test_signs():
    assert value("-3 + 5") == 2
    assert value("2 * -(1 + 2)") == -6


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "the formula ends too early"),
        ("1 +", "the formula ends too early"),
        ("(1", "the formula ends too early"),
        ("1 )", "unexpected `)`"),
        ("1 2", "unexpected `2`"),
        ("2 $ 3", "unexpected `$`"),
        ("bace + 1", "unknown name `bace`"),
        ("1 / (2-2)", "division by zero"),
    ],
)
def test_errors(text, error):
    with pytest.raises(ValueError) as caught:
        value(text)
    assert str(caught.value) == error
""",
        },
        edits=(
            Edit(
                "src/shop/formula.py",
                "",
                '''\
"""Formulas of prices: `2 * (base + 50) - rebate`, in whole cents."""

import re

_TOKEN = re.compile(r"[a-z]+|[0-9]+|\\S")


def compute(text, names):
    """Return the value; divisions are rounded down. Raise ValueError if the formula cannot be read."""
    reader = _Reader(_TOKEN.findall(text), names)
    value = reader.sum()
    if reader.next:
        raise ValueError(f"unexpected `{reader.next}`")
    return value


class _Reader:
    """Reads a formula from left to right: sums of products of values."""

    def __init__(self, tokens, names):
        self.tokens = tokens
        self.names = names

    @property
    def next(self):
        return self.tokens[0] if self.tokens else ""

    def take(self):
        if not self.tokens:
            raise ValueError("the formula ends too early")
        return self.tokens.pop(0)

    def sum(self):
        value = self.product()
        while self.next in ("+", "-"):
            if self.take() == "+":
                value += self.product()
            else:
                value -= self.product()
        return value

    def product(self):
        value = self.value()
        while self.next in ("*", "/"):
            if self.take() == "*":
                value *= self.value()
            else:
                value = self.divide(value, self.value())
        return value

    def divide(self, value, by):
        if by == 0:
            raise ValueError("division by zero")
        return value // by

    def value(self):
        token = self.take()
        if token == "-":
            return -self.value()
        if token == "(":
            value = self.sum()
            closing = self.take()
            if closing != ")":
                raise ValueError(f"unexpected `{closing}`")
            return value
        if token.isalpha():
            if token not in self.names:
                raise ValueError(f"unknown name `{token}`")
            return self.names[token]
        if not token.isdecimal():
            raise ValueError(f"unexpected `{token}`")
        return int(token)
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_formula.py::test_products_come_first",
            "tests/test_formula.py::test_brackets",
            "tests/test_formula.py::test_signs",
            *(
                f"tests/test_formula.py::test_errors[{case}]"
                for case in (
                    "-the formula ends too early",
                    "1 +-the formula ends too early",
                    "(1-the formula ends too early",
                    "1 )-unexpected `)`",
                    "1 2-unexpected `2`",
                    "2 $ 3-unexpected `$`",
                    "bace + 1-unknown name `bace`",
                    "1 / (2-2)-division by zero",
                )
            ),
        ),
        task="tests/test_formula.py::test_products_come_first",
        summary="formula: precedence, brackets, signs and errors",
    ),
    "ok_receipt_page": Work(
        family="refactor with a fix",
        story="Names were put into HTML as they are, in four places; one function escapes them all.",
        files={
            "src/shop/receipt_page.py": '''\
"""Receipts as pages."""


def page(customer, lines, note=""):
    """Return a whole page; `lines` are (article, cents)."""
    html = "<!doctype html>\\n<title>Receipt for " + customer + "</title>\\n"
    html += "<h1>" + customer + "</h1>\\n"
    html += "<table>\\n"
    for article, cents in lines:
        html += "<tr><td>" + article + "</td><td>" + f"{cents / 100:.2f}" + "</td></tr>\\n"
    html += "</table>\\n"
    if note:
        html += "<p>" + note + "</p>\\n"
    return html


def link(number, text):
    """Return a link to a receipt."""
    return "<a href='/receipts?number=" + number + "'>" + text + "</a>"
''',
            "tests/test_receipt_page.py": """\
from html.parser import HTMLParser

from shop.receipt_page import link, page


class Reader(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.links = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data):
        self.texts += [data.strip()] if data.strip() else []


def test_a_page():
    read = Reader(page("Ada", [("tea", 300), ("bread", 210)], "thanks"))
    assert read.texts == ["Receipt for Ada", "Ada", "tea", "3.00", "bread", "2.10", "thanks"]


def test_names_are_texts():
    odd = "<b>Ada & 'Bob'</b>"
    read = Reader(page(odd, [(odd, 5)], odd))
    assert read.texts == [f"Receipt for {odd}", odd, odd, "0.05", odd]
    assert "b" not in read.tags


def test_a_link():
    read = Reader(link("12 & '3", "<12>"))
    assert read.links == ["/receipts?number=12+%26+%273"]
    assert read.texts == ["<12>"]


def test_no_note():
    assert "p" not in Reader(page("Ada", [])).tags
""",
        },
        edits=(
            Edit(
                "src/shop/receipt_page.py",
                "",
                '''\
"""Receipts as pages. Every text goes through `_element` or `escape`."""

from html import escape
from urllib.parse import urlencode


def page(customer, lines, note=""):
    """Return a whole page; `lines` are (article, cents)."""
    parts = [
        "<!doctype html>",
        _element("title", f"Receipt for {customer}"),
        _element("h1", customer),
        "<table>",
        *(_row(article, cents) for article, cents in lines),
        "</table>",
    ]
    if note:
        parts.append(_element("p", note))
    return "".join(f"{part}\\n" for part in parts)


def link(number, text):
    """Return a link to a receipt."""
    target = "/receipts?" + urlencode({"number": number})
    return f'<a href="{escape(target)}">{escape(text)}</a>'


def _row(article, cents):
    cells = _element("td", article) + _element("td", f"{cents / 100:.2f}")
    return f"<tr>{cells}</tr>"


def _element(tag, text):
    """Return an element that holds a text and nothing else."""
    return f"<{tag}>{escape(text)}</{tag}>"
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_receipt_page.py::test_names_are_texts", "tests/test_receipt_page.py::test_a_link"),
        task="tests/test_receipt_page.py::test_names_are_texts",
        summary="receipt page: escape every text in one place",
    ),
}
