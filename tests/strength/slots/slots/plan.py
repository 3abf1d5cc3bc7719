"""Appointments, and what is free between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from slots.times import DAY, clock


@dataclass(frozen=True, order=True)
class Slot:
    begin: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end <= DAY:
            raise ValueError("a slot ends after it begins")

    @property
    def length(self) -> int:
        return self.end - self.begin

    def overlaps(self, other: Slot) -> bool:
        return self.begin < other.end and other.begin < self.end

    def __str__(self) -> str:
        return f"{clock(self.begin)}-{clock(self.end)}"


@dataclass
class Plan:
    taken: list[Slot] = field(default_factory=list)
    refused: int = 0

    def book(self, slot: Slot) -> bool:
        if any(slot.overlaps(other) for other in self.taken):
            self.refused += 1
            return False
        self.taken.append(slot)
        self.taken.sort()
        return True

    def free(self, day: Slot, at_least: int = 1) -> list[Slot]:
        found, begin = [], day.begin
        for slot in [*self.taken, Slot(day.end - 1, day.end)] if day.end else []:
            end = min(slot.begin, day.end)
            if end - begin >= at_least:
                found.append(Slot(begin, end))
            begin = max(begin, slot.end)
        return found
