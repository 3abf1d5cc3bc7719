"""A terminal's screen as an SVG picture: text with colours in, markup out. Pure. Nothing on a screen becomes markup."""

from __future__ import annotations

from collections.abc import Iterator

from mngr.cli.terminal import width
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mngr.tools.tmux import Screen

_CELL, _LINE, _FONT, _MARGIN = 8.4, 17.0, 14, 12.0
_FOREGROUND, _BACKGROUND = "#d7dae0", "#16181d"
_FAMILY = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono', monospace"
_COLOURS = (
    *("#2b2f38", "#e5646b", "#7fc06e", "#d9b062", "#6ea3e8", "#c07bd6", "#56b6c2", "#c8ccd4"),
    *("#6b7280", "#ff858c", "#a0dd8f", "#f2cd85", "#94bdf7", "#d9a0ea", "#7fd3dd", "#ffffff"),
)
# What the drawing set of a VT100 shows for each of its letters.
_LINES = dict(zip("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·", strict=True))
_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 8: "hidden", 9: "strike", 21: "underline"}
_UNFLAGS = {
    22: {"bold", "dim"},
    23: {"italic"},
    24: {"underline"},
    27: {"reverse"},
    28: {"hidden"},
    29: {"strike"},
}


class Style(NamedTuple):
    foreground: str = ""
    background: str = ""
    flags: frozenset[str] = frozenset()

    def colours(self) -> tuple[str, str]:
        """Of the text, and behind it."""
        both = (self.foreground or _FOREGROUND, self.background or _BACKGROUND)
        return (both[1], both[0]) if "reverse" in self.flags else both


class Cell(NamedTuple):
    text: str
    cells: int
    style: Style


class Run(NamedTuple):
    """Cells side by side that look alike."""

    column: int
    cells: int
    text: str
    style: Style


def svg(screen: Screen, title: str) -> str:
    rows = list(_rows(screen.text))[: screen.height]
    if screen.cursor is not None:
        _put_cursor(rows, *screen.cursor)
    wide = screen.width * _CELL + 2 * _MARGIN
    high = screen.height * _LINE + 2 * _MARGIN
    size = f'width="{wide:g}" height="{high:g}"'
    body = [
        markup
        for y, row in enumerate(rows)
        for part in (_behind, _letters)
        for run in _runs(row)
        for markup in part(run, y)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {wide:g} {high:g}">',
            f"<title>{_escaped(title)}</title>",
            f'<rect {size} rx="6" fill="{_BACKGROUND}"/>',
            f'<g font-family="{_FAMILY}" font-size="{_FONT}">',
            *body,
            "</g>",
            "</svg>\n",
        ]
    )


def _rows(text: str) -> Iterator[list[Cell]]:
    """Lines of cells. tmux keeps a style on over the end of a line."""
    import re

    style, drawing = Style(), False
    sequence = re.compile(r"\x1b\[([\d;:]*)([@-~])|\x1b\].*?(?:\x1b\\|\x07)|\x1b.")
    for line in text.split("\n"):
        row: list[Cell] = []
        at = 0
        while at < len(line):
            found = sequence.match(line, at)
            at = found.end() if found else at + 1
            char = "" if found else line[at - 1]
            if found is not None:
                if found[2] == "m":
                    style = _styled(style, found[1])
            elif char in "\x0e\x0f":
                drawing = char == "\x0e"
            elif char >= " ":
                char = _LINES.get(char, char) if drawing else char
                cells = width(char)
                if cells:
                    row.append(Cell(char, cells, style))
                elif row:  # an accent, or the next part of an emoji
                    row[-1] = row[-1]._replace(text=row[-1].text + char)
        yield row


def _styled(style: Style, codes: str) -> Style:
    left = [word.partition(":") for word in (codes or "0").split(";")]
    numbers = [int(first or 0) for first, _, _ in left]
    while numbers:
        code, (_, _, detail) = numbers.pop(0), left.pop(0)
        if code in (38, 48, 58):
            taken = 4 if numbers[:1] == [2] else 2
            colour = _colour(numbers[:taken])
            del numbers[:taken], left[:taken]
            style = _coloured(style, code + 1, colour)
        elif code == 0:
            style = Style()
        elif code in _FLAGS:
            flag = frozenset({_FLAGS[code]})
            style = style._replace(flags=style.flags - flag if detail == "0" else style.flags | flag)
        elif code in _UNFLAGS:
            style = style._replace(flags=style.flags - _UNFLAGS[code])
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = style._replace(foreground=_COLOURS[code - 30 if code < 40 else code - 82])
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = style._replace(background=_COLOURS[code - 40 if code < 50 else code - 92])
        elif code in (39, 49):
            style = _coloured(style, code, "")
    return style


def _coloured(style: Style, code: int, colour: str) -> Style:
    """By the code that takes the colour away; others, such as that of the line under text, are not drawn."""
    if code == 39:
        return style._replace(foreground=colour)
    return style._replace(background=colour) if code == 49 else style


def _colour(numbers: list[int]) -> str:
    """`2, red, green, blue` or `5, index`; empty when it is neither."""
    if len(numbers) == 4 and numbers[0] == 2:
        return "#" + "".join(f"{min(number, 255):02x}" for number in numbers[1:])
    if len(numbers) != 2 or numbers[0] != 5 or numbers[1] > 255:
        return ""
    index = numbers[1]
    if index < 16:
        return _COLOURS[index]
    if index >= 232:
        return "#" + f"{8 + 10 * (index - 232):02x}" * 3
    parts = ((index - 16) // 36, (index - 16) // 6 % 6, (index - 16) % 6)
    return "#" + "".join(f"{55 + 40 * part if part else 0:02x}" for part in parts)


def _put_cursor(rows: list[list[Cell]], x: int, y: int) -> None:
    while len(rows) <= y:
        rows.append([])
    row, column = rows[y], 0
    for at, cell in enumerate(row):
        if column <= x < column + cell.cells:
            row[at] = cell._replace(style=cell.style._replace(flags=cell.style.flags ^ {"reverse"}))
            return
        column += cell.cells
    row += [Cell(" ", 1, Style())] * (x - column) + [Cell(" ", 1, Style(flags=frozenset({"reverse"})))]


def _runs(row: list[Cell]) -> Iterator[Run]:
    """Letters of other fonts than the rest, and wide ones, are apart: each run is then stretched to its cells."""
    begun: Run | None = None
    column, kind = 0, 0
    for cell in row:
        its_kind = 0 if cell.text.isascii() else cell.cells
        if begun is not None and begun.style == cell.style and kind == its_kind:
            begun = begun._replace(cells=begun.cells + cell.cells, text=begun.text + cell.text)
        else:
            if begun is not None:
                yield begun
            begun, kind = Run(column, cell.cells, cell.text, cell.style), its_kind
        column += cell.cells
    if begun is not None:
        yield begun


def _behind(run: Run, y: int) -> Iterator[str]:
    colour = run.style.colours()[1]
    if colour != _BACKGROUND:
        x, top = _MARGIN + run.column * _CELL, _MARGIN + y * _LINE
        yield f'<rect x="{x:g}" y="{top:g}" width="{run.cells * _CELL:g}" height="{_LINE:g}" fill="{colour}"/>'


def _letters(run: Run, y: int) -> Iterator[str]:
    flags = run.style.flags
    lines = [line for flag, line in (("underline", "underline"), ("strike", "line-through")) if flag in flags]
    if "hidden" in flags or (run.text.isspace() and not lines):
        return
    facts = {
        "x": f"{_MARGIN + run.column * _CELL:g}",
        "y": f"{_MARGIN + y * _LINE + 0.75 * _LINE:g}",
        "textLength": f"{run.cells * _CELL:g}",
        "lengthAdjust": "spacingAndGlyphs",
        "fill": run.style.colours()[0],
        "font-weight": "bold" if "bold" in flags else "",
        "font-style": "italic" if "italic" in flags else "",
        "opacity": "0.6" if "dim" in flags else "",
        "text-decoration": " ".join(lines),
    }
    attributes = "".join(f' {name}="{value}"' for name, value in facts.items() if value)
    yield f'<text xml:space="preserve"{attributes}>{_escaped(run.text)}</text>'


def _escaped(text: str) -> str:
    """Text inside an element. Characters that XML cannot carry become the sign for such."""
    text = "".join(
        c if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\x7f\ufffe\uffff" else "\ufffd" for c in text
    )
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
