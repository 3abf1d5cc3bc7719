"""The language of filters. It was compared with another implementation of CEL when it was written: see 030."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli import filters
from mngr.errors import UsageError

NAMES = ("name", "state", "exit_code", "idle_seconds", "attached", "labels", "host")
FIELDS = {
    "name": "try-1",
    "state": "DONE",
    "exit_code": None,
    "idle_seconds": 7.5,
    "attached": False,
    "labels": {"team": "web", "a-b": "c"},
    "host": {"name": "local", "tags": {}},
}


def matches(expression: str, **changed: object) -> bool:
    return filters.parse_over(expression, NAMES, ("name", "state"))({**FIELDS, **changed})


@pytest.mark.parametrize(
    "expression",
    [
        'state == "DONE"',
        "state != 'RUNNING' && name.startsWith(\"try-\")",
        'name.endsWith("-1") && name.contains("ry") && name.matches("^try-[0-9]+$")',
        'state in ["RUNNING", "DONE"]',
        'labels.team == "web" && labels["a-b"] == "c" && "team" in labels',
        'has(labels.team) && !has(labels.x) && host.name == "local"',
        "idle_seconds > 7 && idle_seconds <= 7.5 && idle_seconds >= -1",
        "exit_code == null && !attached && attached == false",
        'state == "A" || state == "B" || state == "DONE"',
        'state == "DONE" || labels.x == "y"',  # one part that decides is enough
        '!(state == "A" || attached) && !!true',
        'name == "\\u0074ry-1"',
        "exit_code in [1, null]",
    ],
)
def test_what_is_true(expression: str) -> None:
    assert matches(expression)


@pytest.mark.parametrize(
    "expression",
    [
        'labels.x == "y"',
        'labels.x != "y"',  # a label that is missing is neither
        '!(labels.x == "y")',
        "exit_code > 0",
        "!exit_code",
        "attached == 0",
        "exit_code.foo == 1",
        'host.name.matches("[")',
        'host in ["local"]',
        "idle_seconds == true",
    ],
)
def test_what_is_not_true(expression: str) -> None:
    assert not matches(expression)


def test_whole_numbers_and_fractions_compare() -> None:
    assert matches("exit_code == 3.0 && exit_code < 3.5 && exit_code in [3.0]", exit_code=3)
    assert not matches("exit_code == 1", exit_code=True)


@pytest.mark.parametrize(
    ("expression", "said", "hint"),
    [
        ("state = DONE", "`=` is not an operator, but `==` is (position 7)", "for example"),
        ("state == DONE", "there is no field `DONE` (position 10)", 'in quotes: `"DONE"`'),
        ('stat == "DONE"', "there is no field `stat` (position 1)", "the closest field is `state`"),
        ('state == "DONE', "a text has no closing quote", "for example"),
        ("state > 5", "`>` cannot compare text with a number (position 7)", "for example"),
        ('name in "try"', "`in` needs a list, not text", 'state in ["DONE", "FAILED"]'),
        ('name.like("t")', "`like()` is unknown; there are startsWith, endsWith, contains, matches", "for example"),
        ("name.startsWith(5)", "`startsWith` compares a text with one text", 'name.startsWith("try")'),
        ("size(name) == 1", "`size(...)` is unknown; there is `has(labels.NAME)`", "for example"),
        ("has(name)", "there is `has(labels.NAME)`", "for example"),
        ("idle_seconds + 1 > 2", "`+` is not an operator (position 14)", "for example"),
        ('name.startsWith("a" &&', "a field or a value is expected, not the end", "for example"),
        ('state == "DONE" attached', "`attached` is not expected here", "for example"),
        ("true && name", "`&&` needs true or false, not text", "for example"),
        ("name.startsWith.x.y(", "a field or a value is expected", "for example"),
        ("name", "is not a yes-or-no question, but text", "for example"),
        ("", "a field or a value is expected, not the end (position 1)", "for example"),
        ("(" * 9999, "nested too deeply", "for example"),
    ],
)
def test_what_cannot_be_right_is_an_error_that_says_where(expression: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        matches(expression)
    assert said in raised.value.message and hint in raised.value.hint


words = st.sampled_from(
    [
        *(
            "name",
            "labels",
            "exit_code",
            "host",
            ".",
            "team",
            "[",
            "]",
            "(",
            ")",
            "==",
            "<",
            "in",
            "&&",
            "||",
            "!",
            ",",
        ),
        *(
            "has",
            "startsWith",
            "matches",
            '"a"',
            "'['",
            "3",
            "-1.5",
            "true",
            "null",
            "=",
            "\\",
            '"',
            "é",
            "\udcff",
            " ",
        ),
    ]
)


@given(st.lists(words).map(" ".join) | st.text())
def test_any_text_is_a_filter_or_a_usage_error_with_a_hint(expression: str) -> None:
    try:
        found: object = matches(expression)
    except UsageError as error:
        found = error.hint
    assert isinstance(found, bool) or found
