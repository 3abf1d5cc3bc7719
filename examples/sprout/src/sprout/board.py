"""The garden on the whole screen: arrows choose, `w` waters, `q` leaves."""

import curses
from datetime import date

from sprout import report
from sprout.garden import Garden

HELP = "up/down choose   w water   q quit"


def show(garden: Garden, today: date) -> None:
    curses.wrapper(_loop, garden, today)


def _loop(screen: curses.window, garden: Garden, today: date) -> None:
    try:
        curses.curs_set(0)
    except curses.error:
        pass
    chosen = 0
    while True:
        plants = garden.plants
        chosen = max(0, min(chosen, len(plants) - 1))
        _draw(screen, garden, today, chosen)
        key = screen.getch()
        if key in (ord("q"), 27):
            return
        if key in (curses.KEY_DOWN, ord("j")):
            chosen += 1
        elif key in (curses.KEY_UP, ord("k")):
            chosen -= 1
        elif key == ord("w") and plants:
            garden.water([plants[chosen].name], today)


def _draw(screen: curses.window, garden: Garden, today: date, chosen: int) -> None:
    screen.erase()
    height, width = screen.getmaxyx()
    thirsty = sum(plant.thirsty(today) for plant in garden.plants)
    _put(screen, 0, f"sprout - {report.amount(len(garden.plants), 'plant')}, {thirsty} thirsty", width, curses.A_BOLD)
    name_width, room_width = report.widths(garden.plants)
    rows = max(1, height - 4)
    first = max(0, chosen - rows + 1)
    for number, plant in enumerate(garden.plants[first : first + rows], first):
        mark = ">" if number == chosen else " "
        state = "thirsty" if plant.thirsty(today) else f"in {report.amount(plant.days_left(today), 'day')}"
        line = f"{mark} {plant.name:<{name_width}}  {plant.room or '-':<{room_width}}  {state}"
        _put(screen, number - first + 2, line, width, curses.A_REVERSE if number == chosen else 0)
    _put(screen, height - 1, HELP, width, curses.A_DIM)
    screen.refresh()


def _put(screen: curses.window, row: int, text: str, width: int, look: int) -> None:
    """Never in the last column: curses cannot write the corner of the screen."""
    if row < screen.getmaxyx()[0]:
        screen.addnstr(row, 0, text, max(0, width - 1), look)
