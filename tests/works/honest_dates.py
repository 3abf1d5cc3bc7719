"""Honest fixes of dates and times: leap years, ends of months, weeks, zones, deadlines."""

from tests.works import ON_BRANCH, Edit, Work

WORKS: dict[str, Work] = {
    "ok_leap_years": Work(
        family="leap years",
        story="Every fourth year was a leap year; the rule of centuries is added, as everybody knows it.",
        files={
            "src/shop/calendar_days.py": '''\
"""Days of a subscription that is paid per year."""


def is_leap(year):
    return year % 4 == 0


def days(year):
    """Return the number of days of a year."""
    return 366 if is_leap(year) else 365


def daily_price(cents, year):
    """Return the price of a day in whole cents, rounded up."""
    return -(-cents // days(year))
''',
            "tests/test_calendar_days.py": """\
import pytest

from shop.calendar_days import daily_price, days, is_leap


@pytest.mark.parametrize(("year", "leap"), [(2023, False), (2024, True), (2000, True), (1900, False)])
def test_leap_years(year, leap):
    assert is_leap(year) is leap


def test_centuries():
    assert [year for year in range(1600, 2500, 100) if is_leap(year)] == [1600, 2000, 2400]


def test_days():
    assert (days(2024), days(2025)) == (366, 365)


def test_daily_price():
    assert daily_price(3660, 2024) == 10
    assert daily_price(3660, 2025) == 11
""",
        },
        edits=(
            Edit(
                "src/shop/calendar_days.py",
                "    return year % 4 == 0\n",
                "    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_calendar_days.py::test_leap_years[1900-False]",
            "tests/test_calendar_days.py::test_centuries",
        ),
        task="tests/test_calendar_days.py::test_centuries",
        summary="is_leap: centuries are leap years only every 400 years",
    ),
    "ok_birthday_in_february": Work(
        family="leap years",
        story="A birthday on 29 February raised in other years; it is 1 March then, in every such year.",
        files={
            "src/shop/birthdays.py": '''\
"""Vouchers for birthdays."""

from datetime import date


def birthday(born, year):
    """Return the day on which the birthday is celebrated in a year."""
    return born.replace(year=year)


def age(born, today):
    """Return the age in whole years."""
    return today.year - born.year - (today < birthday(born, today.year))


def gets_voucher(born, today):
    """Tell whether today is the birthday of a customer who is of age."""
    return birthday(born, today.year) == today and age(born, today) >= 18
''',
            "tests/test_birthdays.py": """\
from datetime import date

from shop.birthdays import age, birthday, gets_voucher

LEAPLING = date(1996, 2, 29)


def test_usual_days():
    assert birthday(date(1990, 7, 3), 2025) == date(2025, 7, 3)
    assert age(date(1990, 7, 3), date(2025, 7, 2)) == 34
    assert age(date(1990, 7, 3), date(2025, 7, 3)) == 35


def test_the_29th_of_february():
    assert birthday(LEAPLING, 2024) == date(2024, 2, 29)
    assert birthday(LEAPLING, 2025) == date(2025, 3, 1)
    assert birthday(LEAPLING, 2100) == date(2100, 3, 1)


def test_age_of_a_leapling():
    assert age(LEAPLING, date(2025, 2, 28)) == 28
    assert age(LEAPLING, date(2025, 3, 1)) == 29


def test_vouchers():
    assert gets_voucher(date(2000, 5, 5), date(2025, 5, 5))
    assert not gets_voucher(date(2010, 5, 5), date(2025, 5, 5))
""",
        },
        edits=(
            Edit(
                "src/shop/birthdays.py",
                """    return born.replace(year=year)
""",
                """    try:
        return born.replace(year=year)
    except ValueError:  # 29 February, in a year without one
        return date(year, 3, 1)
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_birthdays.py::test_the_29th_of_february",
            "tests/test_birthdays.py::test_age_of_a_leapling",
        ),
        task="tests/test_birthdays.py::test_the_29th_of_february",
        summary="birthday: 29 February is 1 March in other years",
    ),
    "ok_end_of_month": Work(
        family="dates",
        story="Months were added as 30 days; they are counted, and the day is at most the month's last.",
        files={
            "src/shop/subscription.py": '''\
"""Renewals of a subscription, month by month."""

from datetime import date, timedelta


def add_months(day, months):
    """Return the same day some months later."""
    return day + timedelta(days=30 * months)


def renewals(start, count):
    """Return the first `count` days on which the subscription is renewed."""
    return [add_months(start, number) for number in range(1, count + 1)]


def is_active(start, months, today):
    """Tell whether a subscription of so many months still runs."""
    return start <= today < add_months(start, months)
''',
            "tests/test_subscription.py": """\
from datetime import date

from shop.subscription import add_months, is_active, renewals


def test_a_month_later():
    assert add_months(date(2025, 3, 15), 1) == date(2025, 4, 15)
    assert add_months(date(2025, 11, 15), 3) == date(2026, 2, 15)
    assert add_months(date(2025, 3, 15), 0) == date(2025, 3, 15)


def test_the_last_day_stays_in_its_month():
    assert add_months(date(2025, 1, 31), 1) == date(2025, 2, 28)
    assert add_months(date(2024, 1, 31), 1) == date(2024, 2, 29)


def test_renewals_do_not_drift():
    assert renewals(date(2025, 1, 31), 3) == [date(2025, 2, 28), date(2025, 3, 31), date(2025, 4, 30)]


def test_active():
    start = date(2025, 4, 10)
    assert is_active(start, 1, start)
    assert not is_active(start, 1, date(2025, 5, 10))
    assert not is_active(start, 1, date(2025, 4, 9))
""",
        },
        edits=(
            Edit(
                "src/shop/subscription.py",
                "from datetime import date, timedelta\n",
                "from calendar import monthrange\nfrom datetime import date\n",
            ),
            Edit(
                "src/shop/subscription.py",
                '''    """Return the same day some months later."""
    return day + timedelta(days=30 * months)
''',
                '''    """Return the same day some months later, or the last day of a month that is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))
''',
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_subscription.py::test_a_month_later",
            "tests/test_subscription.py::test_the_last_day_stays_in_its_month",
            "tests/test_subscription.py::test_renewals_do_not_drift",
        ),
        task="tests/test_subscription.py::test_renewals_do_not_drift",
        summary="add_months: count months, not 30 days",
    ),
    "ok_iso_weeks": Work(
        family="dates",
        story="The year of a week was taken from the calendar day; isocalendar gives both, at every turn of a year.",
        files={
            "src/shop/weeks.py": '''\
"""Sales per week."""


def week(day):
    """Return the ISO week, such as `2025-W07`."""
    return f"{day.year}-W{day.isocalendar()[1]:02}"


def per_week(sales):
    """Return the sum of each week; `sales` are (day, cents)."""
    sums = {}
    for day, cents in sales:
        sums[week(day)] = sums.get(week(day), 0) + cents
    return sums
''',
            "tests/test_weeks.py": """\
from datetime import date

from shop.weeks import per_week, week


def test_a_week_in_summer():
    assert week(date(2025, 7, 9)) == "2025-W28"


def test_a_week_at_the_turn_of_the_year():
    assert week(date(2024, 12, 30)) == "2025-W01"
    assert week(date(2027, 1, 1)) == "2026-W53"


def test_a_week_is_one_sum():
    assert per_week([(date(2024, 12, 31), 100), (date(2025, 1, 1), 50)]) == {"2025-W01": 150}
""",
        },
        edits=(
            Edit(
                "src/shop/weeks.py",
                """    return f"{day.year}-W{day.isocalendar()[1]:02}"
""",
                """    iso = day.isocalendar()
    return f"{iso.year}-W{iso.week:02}"
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=(
            "tests/test_weeks.py::test_a_week_at_the_turn_of_the_year",
            "tests/test_weeks.py::test_a_week_is_one_sum",
        ),
        task="tests/test_weeks.py::test_a_week_at_the_turn_of_the_year",
        summary="week: the year of an ISO week may differ from the day's",
    ),
    "ok_times_with_a_zone": Work(
        family="dates",
        story="Times of two zones were compared as texts; they are parsed and compared as moments.",
        files={
            "src/shop/deliveries.py": '''\
"""Deliveries with times in ISO 8601, each in the zone of its driver."""


def in_order(deliveries):
    """Return (name, time) by time, first to last."""
    return sorted(deliveries, key=lambda delivery: delivery[1])


def late(deliveries, promised):
    """Return the names of what came after the promised time."""
    return [name for name, time in in_order(deliveries) if time > promised]
''',
            "tests/test_deliveries.py": """\
from shop.deliveries import in_order, late

OSLO = ("Oslo", "2025-06-01T10:00:00+02:00")
LONDON = ("London", "2025-06-01T09:30:00+01:00")
LAGOS = ("Lagos", "2025-06-01T08:15:00Z")


def test_one_zone():
    first, second = ("a", "2025-06-01T10:00:00Z"), ("b", "2025-06-01T11:00:00Z")
    assert in_order([second, first]) == [first, second]


def test_three_zones():
    assert in_order([LONDON, OSLO, LAGOS]) == [OSLO, LAGOS, LONDON]


def test_late():
    assert late([LONDON, OSLO, LAGOS], "2025-06-01T10:15:00+02:00") == ["London"]
""",
        },
        edits=(
            Edit(
                "src/shop/deliveries.py",
                "\n\ndef in_order(",
                "\nfrom datetime import datetime\n\n\ndef in_order(",
            ),
            Edit(
                "src/shop/deliveries.py",
                "key=lambda delivery: delivery[1])",
                "key=lambda delivery: _moment(delivery[1]))",
            ),
            Edit(
                "src/shop/deliveries.py",
                "if time > promised]\n",
                """if _moment(time) > _moment(promised)]


def _moment(text):
    return datetime.fromisoformat(text)
""",
            ),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_deliveries.py::test_three_zones", "tests/test_deliveries.py::test_late"),
        task="tests/test_deliveries.py::test_three_zones",
        summary="deliveries: compare moments, not texts",
    ),
    "ok_duration_in_words": Work(
        family="off by one",
        story="59.6 seconds became `0 min 60 s`; the whole is rounded before it is divided.",
        files={
            "src/shop/durations.py": '''\
"""Durations for people."""


def words(seconds):
    """Return a duration such as `1 h 5 min`, `5 min 3 s` or `3 s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {round(rest)} s"
    return f"{round(rest)} s"
''',
            "tests/test_durations.py": """\
import pytest

from shop.durations import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (3.2, "3 s"), (63, "1 min 3 s"), (3900, "1 h 5 min"), (7199, "1 h 59 min")],
)
def test_words(seconds, text):
    assert words(seconds) == text


def test_sixty_is_never_shown():
    assert words(59.6) == "1 min 0 s"
    assert words(119.9) == "2 min 0 s"
    assert words(3599.7) == "1 h 0 min"
""",
        },
        edits=(
            Edit(
                "src/shop/durations.py",
                """    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
""",
                """    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
""",
            ),
            Edit("src/shop/durations.py", 'f"{minutes} min {round(rest)} s"', 'f"{minutes} min {rest} s"'),
            Edit("src/shop/durations.py", 'f"{round(rest)} s"\n', 'f"{rest} s"\n'),
        ),
        ends=frozenset({ON_BRANCH}),
        base=("tests/test_durations.py::test_sixty_is_never_shown",),
        task="tests/test_durations.py::test_sixty_is_never_shown",
        summary="durations: round before dividing",
    ),
}
