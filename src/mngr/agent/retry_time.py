"""When a program or a server says that it can be asked again: a text, read into a point in time.

Only a time that follows a word such as `retry`, `again`, `resets` or `wait` counts, so that status codes, counts of
attempts and other numbers are never taken for one. Pure, but for the time zone of this machine, which is meant by a
clock time without a zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

_LONGEST_TEXT = 4000
_LONGEST_SECONDS = 366 * 86400.0
# A clock time that has just passed was meant, not the same one of tomorrow.
_JUST_PASSED_SECONDS = 300.0

_LEAD = re.compile(
    r"(?:\b(?:retry\w*|again|resets?(?:_at)?|wait\w*|reached)\b|\bratelimit-[\w-]*reset\b)"
    r"""(?:[\s:=|"'({\[]+|(?:in|after|for|at|on|until|about|is|will|be|the|your|limits?|usage|time|next|please|again|"""
    r"""resets?|it|you|can|try)\b)*""",
    re.IGNORECASE,
)
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
# A header, or what looks like one: a number without a unit is seconds.
_HEADER = re.compile(rf"""\bretry[-_ ]after["']?\s*[:=]?\s*["']?({_NUMBER})(?![\w.:/-]|\s*[a-z])""", re.IGNORECASE)
_UNIX = re.compile(r"([1-9]\d{9})(\d{3})?(?![\w.:/-])")
_PART = re.compile(
    rf"({_NUMBER})\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
    r"\s*,?\s*(?:and\s+)?",
    re.IGNORECASE,
)
_UNITS = (("ms", 0.001), ("mil", 0.001), ("m", 60.0), ("s", 1.0), ("h", 3600.0), ("d", 86400.0))
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# `Nov 20, 3am`, `1:22am`, `15:00 UTC`, `3am (Europe/Berlin)`, `Nov 20th, 2026 3:14 PM`.
_CALENDAR = re.compile(
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:)"
    r"(?:,?\s+(?P<year>\d{4})(?![\d:]))?(?:\s|,|\bat\b)*)?"
    r"(?:(?P<hour>\d{1,2})(?:(?::(?P<minute>\d\d))?\s*(?P<half>[ap])\.?m\b|:(?P<minute24>\d\d)(?![\d:]))"
    r"(?:\s*\(?(?P<zone>UTC|GMT|[A-Z][a-z_]+/[A-Za-z_/+-]+))?)?",
    re.IGNORECASE,
)


def until(text: str, said_at: float, zone: tzinfo | None = None) -> float | None:
    """The moment from which on it can be asked again, never before it was said; None when the text does not tell.
    `zone` is for clock times that name none (default: that of this machine)."""
    text = text[:_LONGEST_TEXT]
    header = _HEADER.search(text)
    found = said_at + float(header[1]) if header is not None else None
    for lead in _LEAD.finditer(text) if found is None else ():
        try:
            found = _read(text, lead.end(), said_at, zone)
        except (ValueError, OverflowError, OSError, KeyError):  # no such day, hour or zone
            continue
        if found is not None:
            break
    return None if found is None or found - said_at > _LONGEST_SECONDS else max(said_at, found)


def _read(text: str, at: int, said_at: float, zone: tzinfo | None) -> float | None:
    """The time that is written at this very place."""
    if unix := _UNIX.match(text, at):
        return float(unix[1])
    if part := _PART.match(text, at):
        seconds = 0.0
        while part is not None:
            unit = part[2].lower()
            seconds += float(part[1]) * next(size for start, size in _UNITS if unit.startswith(start))
            part = _PART.match(text, part.end())
        return said_at + seconds
    if iso := _ISO.match(text, at):
        moment = datetime.fromisoformat(iso[0].upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    calendar = _CALENDAR.match(text, at)
    return _calendar(calendar, said_at, zone) if calendar is not None and calendar[0] else None


def _calendar(found: re.Match[str], said_at: float, zone: tzinfo | None) -> float:
    """A day, a clock time, or both."""
    if found["zone"]:
        from zoneinfo import ZoneInfo

        zone = UTC if found["zone"].upper() in ("UTC", "GMT") else ZoneInfo(found["zone"])
    said = datetime.fromtimestamp(said_at, zone)
    hour = int(found["hour"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"{hour} o'clock")
        hour = hour % 12 + 12 * (found["half"] in "pP")
    minute = int(found["minute"] or found["minute24"] or 0)
    moment = said.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if found["month"]:
        month, year = _MONTHS.index(found["month"].lower()) + 1, int(found["year"] or said.year)
        moment = moment.replace(year=year, month=month, day=int(found["day"]))
        if not found["year"] and moment.timestamp() < said_at - 86400:
            moment = moment.replace(year=year + 1)
    elif moment.timestamp() < said_at - _JUST_PASSED_SECONDS:
        moment += timedelta(days=1)
    return moment.timestamp()
