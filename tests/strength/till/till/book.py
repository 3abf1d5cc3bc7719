"""The entries, in `till.csv` of the current directory."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    number: int
    cents: int
    category: str
    note: str


def read(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [Entry(int(number), int(cents), category, note) for number, cents, category, note in csv.reader(file)]


def write(path: Path, entries: list[Entry]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        for entry in entries:
            rows.writerow([entry.number, entry.cents, entry.category, entry.note])


def next_number(entries: list[Entry]) -> int:
    return max((entry.number for entry in entries), default=0) + 1


def totals(entries: list[Entry]) -> list[tuple[str, int]]:
    """Of each category, the largest first; equal ones by name."""
    found: dict[str, int] = {}
    for entry in entries:
        found[entry.category] = found.get(entry.category, 0) + entry.cents
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
