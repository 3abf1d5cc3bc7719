"""Plants as a table of comma-separated values, for a spreadsheet or another machine."""

import csv
import io
from datetime import date

from sprout.garden import GardenError
from sprout.plant import Plant

COLUMNS = ["name", "room", "every", "last"]


def write(plants: list[Plant]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for plant in plants:
        rows.writerow([plant.name, plant.room or "", plant.every, plant.last or ""])
    return text.getvalue()


def read(text: str) -> list[Plant]:
    plants = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
        try:
            days = [date.fromisoformat(row["last"])] if row["last"] else []
            plants.append(Plant(row["name"], int(row["every"]), row["room"] or None, days))
        except (KeyError, TypeError, ValueError) as error:
            raise GardenError(f"line {number} of the table cannot be read: {error}") from error
    return plants
