"""Lengths of time, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.output.durations import age, parse_duration
from mngr.errors import UsageError


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"), (8.9, "8 s"), (59.99, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (7300, "2 h"),
        (86399, "23 h"), (86400, "1 d"), (5.5 * 86400, "5 d"), (-3, "0 s"), (None, ""),
    ],
)  # fmt: skip
def test_ages_have_one_unit(seconds, shown):
    assert age(seconds) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("30s", 30), ("10m", 600), ("10 min", 600), ("2h", 7200), ("1d", 86400), ("1h30m", 5400),
        ("1.5h", 5400), ("0", 0), ("250ms", 0.25), (" 5 ", 5), ("0.5", 0.5),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "soon", "10x", "-5", "1h30", "h", "1..5", ".", "1e3", "9" * 400, "nan", "inf", "５"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(UsageError):
        parse_duration(text)


@given(st.text())
def test_any_text_is_a_duration_or_a_usage_error(text):
    try:
        assert parse_duration(text) >= 0
    except UsageError:
        pass
