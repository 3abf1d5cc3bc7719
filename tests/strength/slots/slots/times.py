"""Minutes of a day, and how people write them."""

from __future__ import annotations

DAY = 24 * 60


def minutes(text: str) -> int:
    """Of `9`, `9:30` or `9:30 pm`."""
    clock, _, half = text.strip().lower().partition(" ")
    hours, _, rest = clock.partition(":")
    hour, minute = int(hours), int(rest or 0)
    if half and not 1 <= hour <= 12:
        raise ValueError(f"no such hour: {text}")
    if half == "pm" and hour != 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    if not (0 <= hour < 24 and 0 <= minute < 60):
        raise ValueError(f"no such time: {text}")
    return hour * 60 + minute


def clock(value: int) -> str:
    return f"{value // 60:02d}:{value % 60:02d}"
