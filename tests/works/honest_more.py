"""Honest fixes that come with tests of their own."""

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
}
