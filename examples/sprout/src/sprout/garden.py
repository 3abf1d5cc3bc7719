"""All plants, kept in one file. Knows nothing of the terminal."""

import json
import os
from datetime import date
from pathlib import Path

from sprout.plant import Plant


class GardenError(Exception):
    """What a user can put right."""


class Garden:
    def __init__(self, path: Path, plants: list[Plant]) -> None:
        self.path = path
        self.plants = plants

    @classmethod
    def open(cls, path: Path) -> "Garden":
        """The garden of that file; an empty one when there is none yet."""
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            plants = [
                Plant(row["name"], row["every"], row["room"], [date.fromisoformat(day) for day in row["waterings"]])
                for row in rows
            ]
        except FileNotFoundError:
            plants = []
        except (ValueError, KeyError, TypeError) as error:
            raise GardenError(f"{path} is not a garden: {error}") from error
        return cls(path, plants)

    def save(self) -> None:
        rows = [
            {
                "name": plant.name,
                "every": plant.every,
                "room": plant.room,
                "waterings": [day.isoformat() for day in plant.waterings],
            }
            for plant in self.plants
        ]
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        os.replace(draft, self.path)

    def has(self, name: str) -> bool:
        return any(plant.name.casefold() == name.casefold() for plant in self.plants)

    def find(self, name: str) -> Plant:
        for plant in self.plants:
            if plant.name.casefold() == name.casefold():
                return plant
        raise GardenError(f"no plant is called {name}")

    def add(self, plant: Plant) -> None:
        if self.has(plant.name):
            raise GardenError(f"there is a {self.find(plant.name).name} already")
        self.plants.append(plant)
        self.save()

    def remove(self, name: str) -> Plant:
        plant = self.find(name)
        self.plants.remove(plant)
        self.save()
        return plant

    def water(self, names: list[str], day: date) -> list[Plant]:
        watered = []
        for name in names:
            plant = self.find(name)
            plant.waterings.append(day)
            self.save()
            watered.append(plant)
        return watered

    def by_thirst(self, today: date) -> list[Plant]:
        """The thirstiest first."""
        return sorted(self.plants, key=lambda plant: (plant.days_left(today), plant.name.casefold()))

    def in_room(self, room: str) -> list[Plant]:
        return [plant for plant in self.plants if (plant.room or "").casefold() == room.casefold()]
