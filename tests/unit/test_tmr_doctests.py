"""Code with the docstrings of another version of it."""

from mngr.tmr.judge.doctests import as_function, with_docs_of

OLD = '''\
"""Naïve words."""


class Words:
    """Some.

    >>> Words().count("é")
    1
    """

    def count(self, text):
        "one line"; return 1


def plain():
    return 1


async def gone():
    """>>> 1"""
'''
NEW = '''\
"""Other words, ü."""
import os


class Words:
    """>>> 2"""

    x = """no docstring"""

    def count(self, text):
        """Two
        lines."""
        return 2


def plain():
    """Has one now."""
    return 2
'''


def test_docstrings_are_those_of_the_other_version_and_code_is_not() -> None:
    mixed = with_docs_of(NEW, OLD)
    assert mixed == NEW.replace('"""Other words, ü."""', '"""Naïve words."""').replace(
        '""">>> 2"""', '"""Some.\n\n    >>> Words().count("é")\n    1\n    """'
    ).replace('"""Two\n        lines."""', '"one line"')
    assert with_docs_of(with_docs_of(OLD, NEW), OLD) == OLD


def test_what_is_no_python_stays_as_it_is() -> None:
    assert with_docs_of("def (", OLD) == "def ("
    assert with_docs_of(NEW, "def (") == NEW


def test_a_doctest_as_a_function_says_what_it_gives_and_what_it_expects() -> None:
    text = (
        "Use it:\n\n>>> import shop\n>>> shop.greet('Ada',\n...     2)\n'hello Ada'\n>>> shop\n<module shop>\n>>> (\n"
    )
    assert as_function(text, "docs/use.txt::use.txt").splitlines() == [
        "def _doctest():",
        "    import shop",
        "    assert (shop.greet('Ada', 2)) == ('hello Ada')",
        "    assert (shop) == ('<module shop>')",
        "    pass",
    ]
    assert as_function(OLD, "app/words.py::words.Words").splitlines()[1] == "    assert (Words().count('é')) == (1)"
    assert as_function("def (", "words.py::words.Words") == "def _doctest():\n    pass"
