"""Which literals of a test may be others, and what they become."""

import datetime
import sys
from decimal import Decimal

import pytest

from mngr.tmr.measure.measurement import PROBE

sys.path.append(PROBE)  # its modules stand alone

import mngr_generality_variants as variants


def test_what_the_product_knows_and_what_is_short_stays() -> None:
    given = ["Ann buys 13 GET /shop, x=1", 0, 1, True, None, -24, 2.5, b"Bob", {"key": [7, "utf-8"]}, "2024-02-29", "é"]
    assert variants.atoms(given, {"shop", "get", "7"}) == [
        "Ann",
        "buys",
        "13",
        "24",
        "2.5",
        "Bob",
        "key",
        "8",
        "2024-02-29",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ann has 13", "Bob has 26"),
        (-13, -26),
        (13.0, 13.0),
        (2.5, 5.0),
        (b"Ann", b"Bob"),
        ({"Ann": [13, (13,)]}, {"Bob": [26, (26,)]}),
        ("2024-02-29", "2052-02-29"),
        (datetime.date(2024, 2, 29), datetime.date(2052, 2, 29)),
        (datetime.datetime(2024, 2, 29, 13), datetime.datetime(2052, 2, 29, 13)),
        (datetime.timedelta(days=13, seconds=2), datetime.timedelta(days=26, seconds=2)),
        (datetime.timedelta(days=-13), datetime.timedelta(days=-26)),
        (Decimal("-2.5"), Decimal("-5.0")),
        (True, True),
        (datetime, datetime),
    ],
)
def test_equal_literals_are_equal_again_wherever_they_are(old: object, new: object) -> None:
    literals = {"Ann": "Bob", "13": "26", "2.5": "5.0", "2024-02-29": "2052-02-29"}
    assert variants.applied(old, literals) == new and type(old) is type(new)


def test_variants_are_distinct_and_keep_the_kind_of_each_literal() -> None:
    free = ["Ann", "berry", "13", "2.50", "2024", "2024-02-29", "Ünal"]
    found = variants.variants(free)
    assert len(found) == 12 and [one.whole for one in found[:4]] == [True] * 4
    assert len({tuple(one.literals.items()) for one in found}) == 12
    for one in found:
        for old, new in one.literals.items():
            assert variants.atoms([new], ()) == [new] and old[0].isdigit() == new[0].isdigit()
            assert old[0].isupper() == new[0].isupper() and ("." in old) == ("." in new)
    assert {one.literals["2024"] for one in found if "2024" in one.literals} == {"2028", "2424", "2025", "2016"}
    assert variants.variants([]) == [] and "`Ann` → " in found[0].text and "1 more" in found[0].text
