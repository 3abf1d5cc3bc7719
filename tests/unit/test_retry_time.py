"""Texts of real programs and servers about when they can be asked again, and texts that say nothing of the kind."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agent import reasons, retry_time

# A Wednesday.
SAID = datetime(2026, 11, 18, 1, 0, 0, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60, 3600, 86400


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> float:
    """In seconds after it was said."""
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() - SAID


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("rate limit: retry in 30 s", 30),
        ("rate limit: retry in 0.2 s", 0.2),
        ("rate limit: overloaded: retry in 45s", 45),
        ("rate limit: Please try again in 3 hours 12 minutes.", 3 * HOUR + 12 * MINUTE),
        ("Try again in 2 days", 2 * DAY),
        ("try again in 2 days, 3 hours and 1 minute", 2 * DAY + 3 * HOUR + MINUTE),
        ("Please try again in 6m0s. Visit the account page", 360),
        ("Please try again in 1.5h", 1.5 * HOUR),
        ("Please try again in 328ms", 0.328),
        ("Limit reached. Wait 20 seconds before the next request", 20),
        ("resets in 1 hr 5 mins", HOUR + 5 * MINUTE),
        ("5-hour limit reached · resets 3am (Europe/Berlin)", HOUR),
        ("You've hit your limit · resets 1:22am", 22 * MINUTE),
        ("resets 12am", at(2026, 11, 19)),
        ("resets 12pm", at(2026, 11, 18, 12)),
        ("limit resets at 15:00 UTC", 14 * HOUR),
        ("Your limit will reset at 9pm (America/New_York).", HOUR),
        ("resets 0:58", 0),
        ("resets 0:50", at(2026, 11, 19, 0, 50)),
        ("resets Nov 20, 3am", at(2026, 11, 20, 3)),
        ("Weekly limit reached ∙ resets Nov 20 at 3am (Europe/Berlin)", at(2026, 11, 20, 2)),
        ("You've hit your usage limit. Upgrade, or try again at Nov 20th, 2026 3:14 AM.", at(2026, 11, 20, 3, 14)),
        ("try again at 3:14 AM.", at(2026, 11, 18, 3, 14)),
        ("resets at 2026-11-18T04:30:00Z", 3.5 * HOUR),
        ("resets at 2026-11-18 04:30:00+01:00", 2.5 * HOUR),
        ("resets at 2026-11-18T04:30:00.123456Z", 3.5 * HOUR + 0.123),
        ("resets on 2026-11-20", at(2026, 11, 20)),
        (f"Claude AI usage limit reached|{SAID + 7200:.0f}", 7200),
        (f"x-ratelimit-reset: {SAID + 90:.0f}", 90),
        (f'"resets_at": {(SAID + 90) * 1000:.0f}', 90),
        (f"reset: {(SAID + 90) * 1000:.0f}", 90),
        ("retry-after: 120", 120),
        ("Retry-After: 0", 0),
        ('{"retry_after": 2.5}', 2.5),
        ("HTTP 429, retry after 90", 90),
        ("anthropic-ratelimit-requests-reset: 2026-11-18T01:10:00Z", 600),
        ("retrying (attempt 3 of 10) ... try again in 5 s", 5),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("rate limit: last status: 429", None),
        ("retry 3 of 10 attempts", None),
        ("3 of 10 attempts", None),
        ("try again after 3 attempts", None),
        ("retry limit 429", None),
        ("retrying, attempt 12", None),
        ("You used 5 hours of your plan", None),
        ("try again later", None),
        ("wait 5 models", None),
        ("resets 25:99", None),
        ("resets at 13pm", None),
        ("try again in 999999999 weeks", None),
        ("resets Feb 31 2026", None),
        ("resets Jan 2 at 8am", at(2027, 1, 2, 8)),
        ("rate limit", None),
        ("", None),
    ],
)
def test_a_time_is_read_from_whatever_says_it(text: str, seconds: float | None) -> None:
    found = retry_time.until(text, SAID, UTC)
    assert (None if found is None else round(found - SAID, 3)) == (None if seconds is None else round(seconds, 3))


def test_a_clock_time_without_a_zone_is_of_this_machine() -> None:
    local = datetime.fromtimestamp(SAID + 2 * HOUR)
    found = retry_time.until(f"resets {local:%H:%M}", SAID)
    assert found == pytest.approx(SAID + 2 * HOUR, abs=60)


VOCABULARY = (
    "retry again resets in at after wait until 3 12 429 1:22 3am pm 0 31 99 Nov Feb 2026 2026-11-20 T 04:30:00Z s h "
    "hours minutes days ms a an and , : - ( ) (Europe/Berlin) UTC +02:00 +99:99 tomorrow Friday 1795000000 "
    "retry-after: reached| noon 00:00 29 . e9 -5"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.lists(WORDS).map("".join)), st.floats(0, 4e9))
def test_no_text_breaks_it_and_no_time_is_in_the_past_or_out_of_reach(text: str, said_at: float) -> None:
    found = retry_time.until(text, said_at, UTC)
    assert found is None or (math.isfinite(found) and said_at <= found <= said_at + 367 * DAY)


@given(
    st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.sampled_from(["{}h{}m{}s", "{} h, {} min {} sec"])
)
def test_every_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int, form: str) -> None:
    found = retry_time.until("try again in " + form.format(hours, minutes, seconds), SAID)
    assert found == pytest.approx(SAID + hours * HOUR + minutes * MINUTE + seconds)


@pytest.mark.parametrize(
    ("reason", "limit", "account"),
    [
        ("rate limit: retry in 3 s", True, False),
        ("rate limit", True, False),
        ("rate limits are fine", False, False),
        ("login: token expired", False, True),
        ("credit: balance is too low", False, True),
        ("model: no such model", False, True),
        ("modelling: x", False, False),
        ("permission: rm", False, False),
        ("", False, False),
    ],
)
def test_the_first_words_of_a_reason_are_its_class(reason: str, limit: bool, account: bool) -> None:
    assert (reasons.is_rate_limit(reason), reasons.is_account(reason)) == (limit, account)
