"""When a program or a server says that it can be asked again: any text or header, read into a point in time.

Only a time that follows a word such as `retry`, `again`, `resets` or `wait` counts, so that status codes, counts of
attempts and other numbers are never taken for one. Pure, but for the time zone of this machine, which is meant by a
clock time without a zone.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_LONGEST_TEXT = 4000
_LONGEST_SECONDS = 366 * 86400.0
# A clock time that has just passed was meant, not the same one of tomorrow.
_JUST_PASSED_SECONDS = 300.0

_TRIGGER = re.compile(
    r"\b(?:retry[-_ ]after|retry\w*|again|resets?(?:_at)?|resetting|wait\w*|available|resum\w+|renew\w*|refresh\w*"
    r"|restor\w+|reached)\b|\bratelimit-[\w-]*reset\b",
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"""(?:[\s:=|"'({\[]+|(?:in|after|for|at|on|until|by|about|approximately|around|another|is|will|be|the|your|limit|"""
    r"""limits|usage|time|next|please|back|again|resets?|access|once|more|it|you|can|try)\b)*""",
    re.IGNORECASE,
)
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNITS = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 7 * 86400.0,
}
_UNIT = (
    r"(?P<ms>ms|msecs?|milliseconds?)|(?P<s>s|secs?|seconds?)|(?P<m>m|mins?|minutes?)"
    r"|(?P<h>h|hrs?|hours?)|(?P<d>d|days?)|(?P<w>w|weeks?)"
)
_PART = re.compile(rf"(?P<number>{_NUMBER}|an?\b)\s*(?:{_UNIT})(?![a-z])", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:,|and\b)?\s*(?:and\b)?\s*", re.IGNORECASE)
_HEADER = re.compile(
    r"""\bretry[-_ ]?after(?:[-_](?P<unit>ms|milliseconds|s|secs|seconds))?["']?\s*[:=]?\s*["']?"""
    rf"(?P<number>{_NUMBER})(?![\w.:/-]|\s*[a-z])",
    re.IGNORECASE,
)
_UNIX = re.compile(r"(?P<number>[1-9]\d{9}(?:\d{3})?)(?:\.\d+)?(?![\w.:/-])")
_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s?(?P<zone>Z|[+-]\d\d:?\d\d)?)?(?!\d)",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?:(?:{'|'.join(_WEEKDAYS)})[a-z]*,?\s+)?{form}(?:,?\s+(?P<year>\d{{4}})(?![\d:]))?", re.IGNORECASE)
    for form in (rf"{_MONTH}\s+{_DAY}(?!\d|:)", rf"{_DAY}\s+{_MONTH}(?![a-z])")
)
_NAMED_DAY = re.compile(rf"(?P<word>today|tomorrow|{'|'.join(_WEEKDAYS)})[a-z]*\b", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::(?P<second>\d\d))?\s*(?P<half>[ap])\.?m\b\.?"
    r"|(?P<hour24>\d{1,2}):(?P<minute24>\d\d)(?::(?P<second24>\d\d))?(?![\d:])"
    r"|(?P<word>noon|midnight)\b",
    re.IGNORECASE,
)
_AT = re.compile(r"(?:\s|,|\bat\b)*", re.IGNORECASE)
_ZONE = re.compile(
    r"\s*\(?(?:(?P<name>[A-Za-z_]+/[A-Za-z_+-]+(?:/[A-Za-z_]+)?)|(?P<offset>(?:UTC|GMT)?[+-]\d{1,2}(?::?\d\d)?)"
    r"|(?P<short>[A-Z]{1,4}))(?![a-z])\)?"
)
_SHORT_ZONES = {"UTC": 0, "GMT": 0, "Z": 0, "BST": 1, "CET": 1, "CEST": 2, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5}
_SHORT_ZONES |= {"MST": -7, "MDT": -6, "PST": -8, "PDT": -7}


def until(text: str, said_at: float, zone: tzinfo | None = None) -> float | None:
    """The moment from which on it can be asked again, never before it was said; None when the text does not tell.
    `zone` is for clock times that name none (default: that of this machine)."""
    text = text[:_LONGEST_TEXT]
    header = _HEADER.search(text)
    found = None
    if header is not None:
        number, unit = float(header["number"]), (header["unit"] or "s")[:2]
        found = _moment(number) if number >= 1e9 else said_at + number * (0.001 if unit in ("ms", "mi") else 1.0)
    for trigger in _TRIGGER.finditer(text) if found is None else ():
        glue = _GLUE.match(text, trigger.end())
        found = _read(text, glue.end() if glue is not None else trigger.end(), said_at, zone)
        if found is not None:
            break
    if found is None or not math.isfinite(found) or found - said_at > _LONGEST_SECONDS:
        return None
    return max(said_at, found)


def _read(text: str, at: int, said_at: float, zone: tzinfo | None) -> float | None:
    """The time that is written at this very place."""
    unix = _UNIX.match(text, at)
    if unix is not None:
        return _moment(float(unix["number"]))
    seconds = _duration(text, at)
    if seconds is not None:
        return said_at + seconds
    try:
        iso = _ISO.match(text, at)
        if iso is not None:
            return _iso(iso, text, zone)
        return _calendar(text, at, said_at, zone)
    except (ValueError, OverflowError, OSError):
        return None


def _moment(number: float) -> float:
    """Of seconds or milliseconds since 1970."""
    return number / 1000 if number >= 1e12 else number


def _duration(text: str, at: int) -> float | None:
    """`3 hours 12 minutes`, `6m0s`, `1.5h`, `2 days and 3 hours`."""
    total: float | None = None
    while (part := _PART.match(text, at)) is not None:
        number = 1.0 if part["number"][0] in "aA" else float(part["number"])
        unit = next(name for name in _UNITS if part[name])
        total = (total or 0.0) + number * _UNITS[unit]
        between = _BETWEEN.match(text, part.end())
        at = between.end() if between is not None else part.end()
    return total


def _iso(found: re.Match[str], text: str, zone: tzinfo | None) -> float:
    offset = (found["zone"] or "").upper().replace("Z", "+00:00")
    moment = datetime.fromisoformat(f"{found['date']}T{found['time'] or '00:00'}{offset}")
    if moment.tzinfo is None:
        named = _zone(text, found.end()) if found["time"] else None
        return _timestamp(moment, named or zone)
    return moment.timestamp()


def _calendar(text: str, at: int, said_at: float, zone: tzinfo | None) -> float | None:
    """A day, a clock time, or both: `Nov 20, 3am`, `1:22am`, `tomorrow at 9:00 (Europe/Berlin)`, an HTTP date."""
    date = next((found for form in _DATES if (found := form.match(text, at)) is not None), None)
    named = _NAMED_DAY.match(text, at) if date is None else None
    day = date or named
    gap = _AT.match(text, day.end()) if day is not None else None
    clock = _CLOCK.match(text, gap.end() if gap is not None else at)
    if day is None and clock is None:
        return None
    zone = (_zone(text, clock.end()) if clock is not None else None) or zone
    said = datetime.fromtimestamp(said_at, zone) if zone is not None else datetime.fromtimestamp(said_at).astimezone()
    hour, minute, second = _hours(clock) if clock is not None else (0, 0, 0)
    start = said.replace(tzinfo=None, hour=hour, minute=minute, second=second, microsecond=0)
    if date is not None:
        return _on_date(date, start, said_at, zone)
    if named is not None:
        return _timestamp(start + timedelta(days=_days_to(named["word"].lower(), said.weekday())), zone)
    moment = _timestamp(start, zone)
    return moment if moment >= said_at - _JUST_PASSED_SECONDS else _timestamp(start + timedelta(days=1), zone)


def _on_date(date: re.Match[str], start: datetime, said_at: float, zone: tzinfo | None) -> float:
    start = start.replace(month=_MONTHS.index(date["month"].lower()) + 1, day=1) + timedelta(days=int(date["day"]) - 1)
    if date["year"]:
        return _timestamp(start.replace(year=int(date["year"])), zone)
    moment = _timestamp(start, zone)
    return moment if moment >= said_at - 86400 else _timestamp(start.replace(year=start.year + 1), zone)


def _days_to(word: str, today: int) -> int:
    if word in ("today", "tomorrow"):
        return int(word == "tomorrow")
    return (_WEEKDAYS.index(word) - today) % 7 or 7


def _hours(clock: re.Match[str]) -> tuple[int, int, int]:
    if clock["word"]:
        return (12 if clock["word"].lower() == "noon" else 0), 0, 0
    if clock["half"]:
        hour = int(clock["hour"])
        if not 1 <= hour <= 12:
            raise ValueError(f"{hour} o'clock")
        return hour % 12 + 12 * (clock["half"] in "pP"), int(clock["minute"] or 0), int(clock["second"] or 0)
    return int(clock["hour24"]), int(clock["minute24"]), int(clock["second24"] or 0)


def _zone(text: str, at: int) -> tzinfo | None:
    """The zone that follows a clock time, if one does that is known."""
    found = _ZONE.match(text, at)
    if found is None:
        return None
    if found["name"]:
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(found["name"])
        except (KeyError, ValueError, OSError):
            return None
    if found["offset"]:
        sign = -1 if "-" in found["offset"] else 1
        digits = re.sub(r"\D", "", found["offset"])
        hours, minutes = int(digits[:-2] if len(digits) > 2 else digits), int(digits[-2:] if len(digits) > 2 else 0)
        return timezone(sign * timedelta(hours=hours, minutes=minutes))
    hours = _SHORT_ZONES.get(found["short"], 99)
    return None if hours == 99 else UTC if hours == 0 else timezone(timedelta(hours=hours))


def _timestamp(local: datetime, zone: tzinfo | None) -> float:
    return (local.replace(tzinfo=zone) if zone is not None else local).timestamp()
