"""What a terminal needs: colour, width, and text that cannot steer it. Writes nothing; imports little, for speed."""

import os

TYPE_CHECKING = False  # the real one would import typing, which costs more than the rest of `mngr --help`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bold red": "1;31",
}

STATE_STYLES = {
    "STARTING": "cyan",
    "QUEUED": "cyan",
    "RUNNING": "green",
    "WAITING": "yellow",
    "BLOCKED": "bold red",
    "DONE": "blue",
    "FAILED": "red",
    "STOPPED": "dim",
    "UNKNOWN": "magenta",
}

ELLIPSIS = "…"
_SHORT_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
# Invisible, but part of how scripts and emoji are joined.
_JOINERS = "\u200c\u200d"


def is_terminal(stream: "TextIO") -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def wants_colour(stream: "TextIO", environ: "Mapping[str, str]") -> bool:
    """Colour only on a terminal that can, and not when NO_COLOR is set to anything."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and is_terminal(stream)


def columns(stream: "TextIO", environ: "Mapping[str, str]") -> int | None:
    """How wide the terminal is; None when the stream is not one."""
    if not is_terminal(stream):
        return None
    wanted = environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def paint(text: str, style: str) -> str:
    code = STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def visible(text: str) -> str:
    """The text with every control character spelled out, so that it stays on its line and cannot steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS or _is_space(c) else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """Like `visible`, but newlines and tabs stay: for the output of other programs."""
    return "\n".join("\t".join(visible(part) for part in line.split("\t")) for line in text.split("\n"))


def visible_coloured(text: str) -> str:
    """Like `visible_lines`, but colours stay: for the output of a program that was asked for them. None of them hides
    text, or lasts longer than the text."""
    import re

    parts = re.split(r"(\x1b\[[0-9;:]*m)", text)
    colours = [part for part in parts[1::2] if _is_colour(part)]
    shown = "".join(part if at % 2 and _is_colour(part) else visible_lines(part) for at, part in enumerate(parts))
    return shown + ("\x1b[0m" if colours and colours[-1] not in ("\x1b[m", "\x1b[0m") else "")


def _is_colour(sequence: str) -> bool:
    """Whether this sequence sets how text looks, and does not hide it."""
    numbers = iter(sequence[2:-1].split(";"))
    for number in numbers:
        if number in ("38", "48", "58"):  # of a colour from a palette, or by its parts
            for _ in range(1 if next(numbers, "") == "5" else 3):
                next(numbers, "")
        elif number.lstrip("0") == "8":
            return False
    return True


def width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(_cells(c, unicodedata.category(c), unicodedata.east_asian_width(c)) for c in text)


def cut(text: str, cells: int) -> str:
    """At most `cells` cells, with an ellipsis where something was cut."""
    if width(text) <= cells:
        return text
    if cells < 1:
        return ""
    taken = 0
    kept = []
    for c in text:
        taken += width(c)
        if taken > cells - 1:
            break
        kept.append(c)
    return "".join(kept) + ELLIPSIS


def _cells(char: str, category: str, east_asian_width: str) -> int:
    if category in ("Mn", "Me", "Cf") or char == "\0":
        return 0
    return 2 if east_asian_width in ("W", "F") else 1


def _is_space(char: str) -> bool:
    """Wide and no-break spaces: not printable to Python, and harmless. Separators of lines are none of them."""
    return char.isspace() and ord(char) > 0x9F and char not in "\u2028\u2029"


def _escape(char: str) -> str:
    number = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8, as Python carries it
        return f"\\x{number - 0xDC00:02x}"
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
