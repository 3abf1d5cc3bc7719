"""Rows as an aligned table. Makes text, prints nothing; what a cell holds can never steer the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mngr.cli.output.template import lookup, plain_text
from mngr.cli.output.terminal import cut, paint, visible, width
from mngr.named_tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GAP = "  "
_NARROWEST = 8


class Column(NamedTuple):
    """`show` makes the cell from the row, else it is the value of `field`. `style` names a colour for the row's cell.
    A flexible column gives way when the terminal is too narrow."""

    title: str
    field: str
    show: Callable[[Mapping[str, Any]], str] | None = None
    style: Callable[[Mapping[str, Any]], str] | None = None
    flexible: bool = False
    right: bool = False


def table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], *, colour: bool = False, fit: int | None = None
) -> str:
    """The table with its titles, every line ending in a newline. `fit` is the width of the terminal, if any."""
    cells = [[_cell(row, column) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    widths = [max(width(line[at]) for line in [titles, *cells]) for at in range(len(columns))]
    if fit is not None:
        widths = _narrowed(widths, columns, fit)
    lines = [_line(titles, widths, columns, ["dim"] * len(columns) if colour else None)]
    for row, line in zip(rows, cells, strict=True):
        styles = [column.style(row) if column.style else "" for column in columns] if colour else None
        lines.append(_line(line, widths, columns, styles))
    return "".join(lines)


def _cell(row: Mapping[str, Any], column: Column) -> str:
    return visible(column.show(row) if column.show else plain_text(lookup(row, column.field)))


def _narrowed(widths: list[int], columns: Sequence[Column], fit: int) -> list[int]:
    """Take cells from the widest flexible column, one by one, until the line fits or nothing more can give."""
    widths = list(widths)
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - fit
    floors = [max(_NARROWEST, width(column.title)) for column in columns]
    while over > 0:
        can_give = [at for at, column in enumerate(columns) if column.flexible and widths[at] > floors[at]]
        if not can_give:
            break
        widest = max(can_give, key=lambda at: widths[at])
        widths[widest] -= 1
        over -= 1
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[Column], styles: Sequence[str] | None) -> str:
    shown = []
    for at, cell in enumerate(cells):
        text = cut(cell, widths[at])
        space = " " * (widths[at] - width(text))
        painted = paint(text, styles[at]) if styles else text
        shown.append(space + painted if columns[at].right else painted + space)
    return _GAP.join(shown).rstrip() + "\n"
