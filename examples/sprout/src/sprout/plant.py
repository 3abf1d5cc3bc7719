"""One plant: how often it wants water, and when it had some."""

from datetime import date, timedelta


class Plant:
    def __init__(self, name: str, every: int = 7, room: str | None = None, waterings: list[date] | None = None) -> None:
        self.name = name
        self.every = every
        self.room = room
        self.waterings = waterings or []

    @property
    def last(self) -> date | None:
        return max(self.waterings, default=None)

    def days_left(self, today: date) -> int:
        """Days until it wants water: 0 is today, less is late. A plant that never had any wants it today."""
        if self.last is None:
            return 0
        return (self.last + timedelta(days=self.every) - today).days

    def thirsty(self, today: date) -> bool:
        return self.days_left(today) <= 0

    def waterings_since(self, day: date, today: date) -> int:
        return sum(day <= watering <= today for watering in self.waterings)

    def as_json(self, today: date) -> dict[str, object]:
        return {
            "name": self.name,
            "room": self.room,
            "every": self.every,
            "last": self.last.isoformat() if self.last else None,
            "days_left": self.days_left(today),
        }
