"""Lengths of time as people write them: `3 min` to read, `10m` to type. Pure."""

from mngr.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 100 * 365.25 * 86400


def age(seconds: float | None) -> str:
    """How long ago, in one unit, rounded down: `8 s`, `3 min`, `2 h`, `5 d`. Unknown is empty; the future is `0 s`."""
    if seconds is None:
        return ""
    whole = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def took(seconds: float) -> str:
    """`4.2 s`, `48 s`, `1 min 30 s`, `2 h 05 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def parse_duration(text: str) -> float:
    """Seconds from `90`, `30s`, `10m`, `2h`, `1d`, `1h30m` or `1.5h`."""
    import re

    shown = text.strip().lower()
    parts = re.findall(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([a-z]*)\s*", shown)
    bare = len(parts) == 1 and not parts[0][1]
    length = sum(len(number) + len(unit) for number, unit in parts)
    if not parts or length != len("".join(shown.split())) or not (bare or all(unit in _UNITS for _, unit in parts)):
        raise _not_a_duration(text)
    total = sum(float(number) * _UNITS.get(unit, 1.0) for number, unit in parts)
    if total > _LONGEST:
        raise UsageError(f"{text!r} is longer than a hundred years")
    return total


def _not_a_duration(text: str) -> UsageError:
    return UsageError(
        f"{text!r} is not a length of time", hint="write seconds or a unit: `90`, `30s`, `10m`, `2h`, `1d`"
    )
