"""What the garden looks like as a whole. Pure."""

from datetime import date, timedelta

from sprout.plant import Plant


def rooms(plants: list[Plant], today: date) -> list[str]:
    """A line for each room, with how many of its plants are thirsty."""
    names = sorted({plant.room or "nowhere" for plant in plants})
    lines = []
    for name in names:
        inside = [plant for plant in plants if (plant.room or "nowhere") == name]
        thirsty = sum(plant.thirsty(today) for plant in inside)
        lines.append(f"{name}: {amount(len(inside), 'plant')}, {thirsty} thirsty")
    return lines


def week_start(today: date) -> date:
    """The Monday of this week."""
    return today - timedelta(days=today.weekday())


def week(plants: list[Plant], today: date) -> list[str]:
    """A line for each plant that had water this week, with how often."""
    since = week_start(today)
    lines = [f"since {since.isoformat()}"]
    for plant in plants:
        times = plant.waterings_since(since, today)
        if times:
            lines.append(f"{plant.name}: {amount(times, 'time')}")
    return lines


def widths(plants: list[Plant]) -> tuple[int, int]:
    """Of a column of names and one of rooms."""
    names = max((len(plant.name) for plant in plants), default=0)
    return names, max((len(plant.room or "-") for plant in plants), default=0)


def amount(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
