"""The command line: reads what is wanted, prints what came of it."""

import argparse
import json
import os
import sys
from datetime import date
from pathlib import Path

from sprout import report
from sprout.garden import Garden, GardenError
from sprout.plant import Plant


def main() -> None:
    args = parser().parse_args()
    try:
        args.run(args, Garden.open(Path.home() / ".sprout.json"), today())
    except (GardenError, OSError) as error:
        sys.exit(f"sprout: {error}")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="sprout", description="Remember when your houseplants want water.")
    verbs = top.add_subparsers(title="verbs", required=True, metavar="VERB")

    add = verbs.add_parser("add", help="a new plant")
    add.add_argument("name")
    add.add_argument("--every", type=days, default=7, metavar="DAYS", help="how often it wants water (default: 7)")
    add.add_argument("--room", help="where it stands")
    add.set_defaults(run=run_add)

    show = verbs.add_parser("list", help="all plants, the thirsty ones marked")
    show.add_argument("--room", help="only those in this room")
    show.set_defaults(run=run_list)

    remove = verbs.add_parser("remove", help="forget a plant")
    remove.add_argument("name")
    remove.set_defaults(run=run_remove)

    water = verbs.add_parser("water", help="say which plants had water")
    water.add_argument("names", nargs="+", metavar="NAME")
    water.add_argument("--on", type=date.fromisoformat, metavar="DATE", help="when (default: today)")
    water.set_defaults(run=run_water)

    due = verbs.add_parser("due", help="who wants water")
    due.add_argument("--within", type=days, metavar="DAYS", help="today or in the next days")
    due.add_argument("--json", action="store_true", help="for a script")
    due.set_defaults(run=run_due)

    look_back = verbs.add_parser("report", help="the garden by room")
    look_back.add_argument("--week", action="store_true", help="who had water this week, and how often")
    look_back.set_defaults(run=run_report)

    export = verbs.add_parser("export", help="write all plants to a CSV file")
    export.add_argument("file", type=Path)
    export.set_defaults(run=run_export)

    fetch = verbs.add_parser("import", help="add the plants of a CSV file")
    fetch.add_argument("file", type=Path)
    fetch.set_defaults(run=run_import)

    verbs.add_parser("board", help="the garden on the whole screen").set_defaults(run=run_board)
    verbs.add_parser("tip", help="a word of advice").set_defaults(run=run_tip)
    return top


def run_add(args: argparse.Namespace, garden: Garden, today: date) -> None:
    garden.add(Plant(args.name, args.every, args.room))
    print(f"added {args.name}: water every {report.amount(args.every, 'day')}")


def run_list(args: argparse.Namespace, garden: Garden, today: date) -> None:
    plants = garden.plants if args.room is None else garden.in_room(args.room)
    name_width, room_width = report.widths(plants)
    for plant in plants:
        mark = "*" if plant.thirsty(today) else " "
        columns = f"{plant.name:<{name_width}}  {plant.room or '-':<{room_width}}"
        print(f"{mark} {columns}  every {report.amount(plant.every, 'day')}")


def run_remove(args: argparse.Namespace, garden: Garden, today: date) -> None:
    print(f"removed {garden.remove(args.name).name}")


def run_water(args: argparse.Namespace, garden: Garden, today: date) -> None:
    day = args.on or today
    for plant in garden.water(args.names, day):
        print(f"watered {plant.name}")


def run_due(args: argparse.Namespace, garden: Garden, today: date) -> None:
    plants = [
        plant
        for plant in garden.by_thirst(today)
        if plant.thirsty(today) or (args.within is not None and plant.days_left(today) <= args.within)
    ]
    if args.json:
        print(json.dumps({"today": today.isoformat(), "due": [plant.as_json(today) for plant in plants]}))
        return
    for plant in plants:
        print(f"{plant.name}: {when(plant.days_left(today), today)}")
    if not plants:
        print("nobody is thirsty")


def run_report(args: argparse.Namespace, garden: Garden, today: date) -> None:
    print("\n".join(report.week(garden.plants, today) if args.week else report.rooms(garden.plants, today)))


def run_export(args: argparse.Namespace, garden: Garden, today: date) -> None:
    from sprout import table

    args.file.write_text(table.write(garden.plants), encoding="utf-8")
    print(f"wrote {report.amount(len(garden.plants), 'plant')} to {args.file}")


def run_import(args: argparse.Namespace, garden: Garden, today: date) -> None:
    from sprout import table

    new = [plant for plant in table.read(args.file.read_text(encoding="utf-8")) if not garden.has(plant.name)]
    for plant in new:
        garden.add(plant)
    print(f"imported {report.amount(len(new), 'plant')}")


def run_board(args: argparse.Namespace, garden: Garden, today: date) -> None:
    from sprout import board

    board.show(garden, today)


def run_tip(args: argparse.Namespace, garden: Garden, today: date) -> None:
    from sprout import tips

    print(tips.tip())


def when(left: int, today: date) -> str:
    if left < 0:
        return f"{report.amount(-left, 'day')} late"
    if left == 0:
        return "today"
    return f"in {report.amount(left, 'day')}, on {date.fromordinal(today.toordinal() + left).isoformat()}"


def days(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def today() -> date:
    """The day in `SPROUT_TODAY`, for scripts and tests; else the real one."""
    return date.fromisoformat(os.environ.get("SPROUT_TODAY") or date.today().isoformat())
