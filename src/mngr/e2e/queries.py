"""What a terminal answers when a program asks it: a program that asks may wait for the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.e2e.display import Display

PRIMARY = "\x1b[?62;22c"  # a VT220 with colours
_SECONDARY = "\x1b[>1;10;0c"
_TERTIARY = "\x1bP!|00000000\x1b\\"
_NAME = "\x1bP>|mngr-e2e\x1b\\"
_COLOURS = {"10": "rgb:cccc/cccc/cccc", "11": "rgb:0000/0000/0000", "12": "rgb:cccc/cccc/cccc"}
_ALTERNATE = (47, 1047, 1049)


def answer(prefix: str, values: Sequence[int], between: str, final: str, display: Display) -> str:
    """To a control sequence; empty when it is no question."""
    first = values[0] if values else 0
    asked = (prefix, between, final)
    if final == "c" and not between and first == 0:
        return {"": PRIMARY, ">": _SECONDARY, "=": _TERTIARY}.get(prefix, "")
    if asked == ("", "", "n") and first == 5:
        return "\x1b[0n"
    if final == "n" and not between and first == 6:
        return _cursor(prefix, display)
    if asked == (">", "", "q") and first == 0:
        return _NAME
    if between == "$" and final == "p":
        return f"\x1b[{prefix}{first};{_mode(prefix, first, display)}$y"
    if asked == ("", "", "t") and first in (18, 19):
        return f"\x1b[{first - 10};{display.lines};{display.columns}t"
    return ""


def string_answer(kind: str, text: str) -> str:
    """To a question in the form of a string: a colour, a setting, a capability."""
    if kind == "]":
        code, _, rest = text.partition(";")
        return f"\x1b]{code};{_COLOURS[code]}\x1b\\" if rest == "?" and code in _COLOURS else ""
    if kind == "P" and text.startswith("$q"):
        return "\x1bP0$r\x1b\\"
    if kind == "P" and text.startswith("+q"):
        return "\x1bP0+r\x1b\\"
    return ""


def _cursor(prefix: str, display: Display) -> str:
    column = min(display.cursor.x, display.columns - 1) + 1
    row = display.cursor.y + 1
    if display.in_origin_mode and display.margins is not None:
        row -= display.margins.top
    return f"\x1b[{prefix}{row};{column}R" if prefix in ("", "?") else ""


def _mode(prefix: str, number: int, display: Display) -> int:
    """1 set, 2 not set, 0 unknown here."""
    if prefix == "?" and number in _ALTERNATE:
        return 1 if display.alternate else 2
    if prefix == "?" and number in (1, 6, 7, 25, 2004):
        return 1 if number << 5 in display.mode else 2
    return 0
