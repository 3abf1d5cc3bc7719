"""Other literals for a test: which of its words, numbers and dates may be others, and in which ways.

Pure. What stays alike: equal literals are equal again, letters keep their case and kind, numbers their order, so that
what made a product fail with the literals of the test does so with most of these too.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_ATOM = re.compile(r"\d{4}-\d\d-\d\d(?!\d)|\d+\.\d+|\d+|[^\W\d_]+")
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
# Words of Python itself and of its libraries, which mean something.
_KNOWN = frozenset(("utf", "ascii", "latin", "strict", "ignore", "replace", "rb", "wb", "test", "tests", "pytest"))
_YEARS = range(1900, 2101)
_MOST = 12
_DAY = len("2026-11-30")  # of a date, in a date with its time
_SHOWN = 6


class Variant(NamedTuple):
    """New literals for old ones. `whole` is whether none of those that may change stays as it is."""

    literals: Mapping[str, str]
    whole: bool

    @property
    def text(self) -> str:
        shown = [f"`{old}` → `{new}`" for old, new in self.literals.items()]
        return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")


def atoms(values: Iterable[Any], known: Collection[str]) -> list[str]:
    """The words, numbers and dates in these values that may be others: none that the product knows, and nothing as
    short as a flag."""
    found: dict[str, None] = {}
    for value in values:
        for text in _texts(value):
            found.update(dict.fromkeys(_ATOM.findall(text)))
    return [atom for atom in found if _may_change(atom) and not {atom, atom.casefold()} & {*known, *_KNOWN}]


def _texts(value: Any) -> list[str]:
    if isinstance(value, (bool, type(None))):
        return []
    if isinstance(value, (int, float)):
        return [_number(abs(value))]
    if isinstance(value, bytes):
        return [value.decode("latin-1")]
    if isinstance(value, str):
        return [value]
    if isinstance(value, datetime.timedelta):
        return [str(abs(value.days)), str(value.seconds)]
    if isinstance(value, datetime.date):
        return [value.isoformat()[:_DAY]]
    if isinstance(value, decimal.Decimal):
        return [str(abs(value))]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [text for one in value for text in _texts(one)] if isinstance(value, (list, tuple, set, frozenset)) else []


def _number(value: float) -> str:
    """As it is written; what is written in another way does not change."""
    text = repr(value)
    return text if _ATOM.fullmatch(text) else ""


def _may_change(atom: str) -> bool:
    if atom[0].isdigit():
        return float(atom) >= 2 or "." in atom if "-" not in atom else _date(atom) is not None
    return len(atom) >= 2


def variants(free: Sequence[str]) -> list[Variant]:
    """Ways to change these atoms: all of them, all of one kind, and one at a time."""
    found: list[Variant] = []

    def add(chosen: Iterable[str], way: int) -> None:
        literals = {atom: new for atom in chosen if (new := _changed(atom, way)) != atom}
        distinct = literals and len(set(literals.values())) == len(literals)
        if distinct and len(found) < _MOST and all(one.literals != literals for one in found):
            found.append(Variant(literals, set(literals) == set(free)))

    for way in range(4):
        add(free, way)
    kinds: list[Callable[[str], bool]] = [lambda atom: atom[0].isdigit(), lambda atom: not atom[0].isdigit()]
    for is_kind in kinds:
        chosen = [atom for atom in free if is_kind(atom)]
        for way in range(2) if len(chosen) < len(free) else ():
            add(chosen, way)
    for way in range(6):
        for atom in free:
            add([atom], way)
    return found


def _changed(atom: str, way: int) -> str:
    if not atom[0].isdigit():
        return _word(atom, way)
    if "-" in atom:
        return _other_day(atom, way)
    if "." in atom:
        decimals = len(atom.partition(".")[2])
        value = [float(atom) * 2, float(atom) * 3, float(atom) + 1, float(atom) + 2, float(atom) + 10, float(atom) * 10]
        return f"{value[way]:.{decimals}f}"
    number = int(atom)
    if number in _YEARS:
        return str(number + [4, 400, 1, -8, 28, -1][way])
    new = [number * 2, number * 3, number + 1, max(2, number - 1), number + 10, number * 10][way]
    return str(new).zfill(len(atom))


def _word(word: str, way: int) -> str:
    """With other letters; in some ways its end stays, by which words are inflected, and in some it is longer."""
    if way == 2:
        return word + _turned(word[-2:].lower() if not word.isupper() else word[-2:], 5)
    kept = len(word) - 3 if way % 2 and len(word) >= 5 else len(word)
    return _turned(word[:kept], 1 + way) + word[kept:]


def _turned(text: str, by: int) -> str:
    """Vowels stay vowels and consonants consonants; letters of other alphabets stay as they are."""
    found = []
    for letter in text:
        for letters in (_VOWELS, _CONSONANTS):
            if letter.lower() in letters:
                new = letters[(letters.index(letter.lower()) + by) % len(letters)]
                letter = new.upper() if letter.isupper() else new
                break
        found.append(letter)
    return "".join(found)


def _date(atom: str) -> datetime.date | None:
    try:
        return datetime.date(*map(int, atom.split("-")))
    except ValueError:
        return None


def _other_day(atom: str, way: int) -> str:
    day = _date(atom)
    if day is None or not 1000 <= day.year <= 9000:
        return atom
    if way in (0, 4, 5):  # a year that is a leap year if this one is
        return f"{day.year + {0: 28, 4: 400, 5: 56}[way]}{atom[4:]}"
    return str(day + datetime.timedelta(days={1: 1, 2: -1, 3: 32}[way]))


def applied(value: Any, literals: Mapping[str, str]) -> Any:
    """A value with the new literals wherever it has the old ones; what is no plain value stays as it is."""
    if isinstance(value, str):
        return _ATOM.sub(lambda match: literals.get(match[0], match[0]), value)
    if isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        return str(applied(value.decode("latin-1"), literals)).encode("latin-1", "replace")
    if isinstance(value, (int, float)):
        new = literals.get(_number(abs(value)), "")
        return type(value)(new) * (-1 if value < 0 else 1) if new else value
    if type(value) in (datetime.date, datetime.datetime):
        new = value.isoformat()
        return type(value).fromisoformat(literals.get(new[:_DAY], new[:_DAY]) + new[_DAY:])
    if type(value) is datetime.timedelta:
        days, seconds = (int(literals.get(str(abs(part)), abs(part))) for part in (value.days, value.seconds))
        days = -days if value.days < 0 else days
        return datetime.timedelta(days=days, seconds=seconds, microseconds=value.microseconds)
    if type(value) is decimal.Decimal:
        return decimal.Decimal(literals.get(str(abs(value)), str(abs(value)))).copy_sign(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(applied(one, literals) for one in value)
    if type(value) is dict:
        return {applied(key, literals): applied(one, literals) for key, one in value.items()}
    return value
