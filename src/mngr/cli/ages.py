"""Lengths of time as people write them: `3 min` to read, `10m` to type. Pure."""

from mngr.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 100 * 365.25 * 86400


def age(seconds: float | None) -> str:
    """How long ago, in one unit, rounded down: `8 s`, `3 min`, `2 h`, `5 d`. Unknown is empty; the future is `0 s`."""
    if seconds is None:
        return ""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h"
    return f"{whole // 86400} d"


def parse_duration(text: str) -> float:
    """Seconds from `90`, `30s`, `10m`, `2h`, `1d`, `1h30m` or `1.5h`."""
    left = text.strip().lower()
    if not left:
        raise _not_a_duration(text)
    total = 0.0
    first = True
    while left:
        number, left = _leading(left, "0123456789.")
        unit, left = _leading(left.lstrip(), "abcdefghijklmnopqrstuvwxyz")
        left = left.lstrip()
        bare = first and not unit and not left
        if not number.replace(".", "", 1).isdecimal() or (unit not in _UNITS and not bare):
            raise _not_a_duration(text)
        total += float(number) * _UNITS.get(unit, 1.0)
        first = False
    if total > _LONGEST:
        raise UsageError(f"{text!r} is longer than a hundred years")
    return total


def _leading(text: str, alphabet: str) -> tuple[str, str]:
    rest = text.lstrip(alphabet)
    return text[: len(text) - len(rest)], rest


def _not_a_duration(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a length of time", hint="write seconds or a unit: `90`, `30s`, `10m`, `2h`, `1d`"
    )
