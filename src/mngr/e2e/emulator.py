"""A terminal of the xterm family in memory: what a program writes becomes lines of text and a cursor.

pyte keeps the screen. The reading of escape sequences is ours: pyte's reader prints pieces of those it does not know,
has no alternate screen, and raises on some that are merely odd. Nothing that a program writes raises here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyte.streams import Stream

from mngr.e2e import queries
from mngr.e2e.display import Display

_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
# Text that only fills lines and scrolls.
_PLAIN = re.compile(r"[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_STRING = re.compile(r"[^\x07\x18\x1a\x1b\x9c]+")
_LONGEST_SEQUENCE = 256
_LONGEST_STRING = 4096
_CANCEL = "\x18\x1a"
_STRING_STARTS = {"P": "P", "]": "]", "X": "X", "^": "X", "_": "X"}
_C1 = {"\x9b": "[", "\x90": "P", "\x9d": "]", "\x98": "X", "\x9e": "X", "\x9f": "X"}
_CSI = re.compile(r"([<=>?]*)([0-9:;]*)([ -/]*)(.)", re.DOTALL)
_LARGEST = 9999
# How many numbers a sequence takes; pyte refuses more. All others take one.
_COUNTS = {"H": 2, "f": 2, "r": 2}
_ODD = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)


class Emulator:
    """Fed with text in pieces of any size. `answer` gets what the terminal itself sends back to the program."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        self.display = Display(columns, rows)
        self._answer = answer
        self._state = ""  # "" text, "e" after an escape, "[" a control sequence, "P", "]" or "X" a string
        self._held = ""
        self._last = " "

    def feed(self, text: str) -> None:
        at = plain_until = 0
        while at < len(text):
            if not self._state and at >= plain_until:
                at, plain_until = self._scrolled_past(text, at)
            if self._state in ("P", "]", "X"):
                at = self._string(text, at)
            elif self._state or (found := _TEXT.match(text, at)) is None:
                self._guarded(self._character, text[at])
                at += 1
            else:
                at = found.end()
                self._last = text[at - 1]
                self._guarded(self.display.draw, found.group())

    def resize(self, columns: int, rows: int) -> None:
        self._guarded(self.display.resize, rows, columns)

    def _guarded(self, step: Callable[..., None], *values: object) -> None:
        try:
            step(*values)
        except _ODD:
            pass  # an odd sequence to which pyte has no answer: a terminal ignores it

    def _scrolled_past(self, text: str, at: int) -> tuple[int, int]:
        """Where to go on, and where the plain text there ends. Lines that would scroll out of sight at once are left
        out, which makes a flood a hundred times cheaper and changes nothing on the screen."""
        found = _PLAIN.match(text, at)
        if found is None:
            return at, at + 1
        rows, end = self.display.lines, found.end()
        if text.count("\n", at, end) <= 3 * rows or self.display.margins is not None:
            return at, end
        cut = end
        for _ in range(rows + 1):
            cut = text.rfind("\n", at, cut)
        if text[cut - 1] == "\r":
            self.display.cursor.x, self.display.cursor.y = 0, rows - 1
            return cut + 1, end
        return at, end

    def _character(self, character: str) -> None:
        if character in _CANCEL:
            self._state = ""
        elif character == "\x1b":
            self._state, self._held = "e", ""
        elif character in _C1:
            self._state, self._held = _C1[character], ""
        elif character in Stream.basic:
            getattr(self.display, Stream.basic[character])()
        elif character < " " or "\x7f" <= character <= "\x9f":
            self._c1(character)
        elif self._state == "e":
            self._escape(character)
        else:
            self._control(character)

    def _c1(self, character: str) -> None:
        """The eight-bit form of an escape and a letter."""
        name = {"\x84": "D", "\x85": "E", "\x88": "H", "\x8d": "M"}.get(character, "")
        if name and not self._state:
            self._simple(name)

    def _escape(self, character: str) -> None:
        if not self._held and character == "[":
            self._state = "["
        elif not self._held and character in _STRING_STARTS:
            self._state = _STRING_STARTS[character]
        elif " " <= character <= "/":
            self._held = (self._held + character)[-4:]
        else:
            self._state = ""
            if not self._held:
                self._simple(character)
            elif self._held in ("(", ")"):
                self.display.define_charset(character, self._held)
            elif self._held + character == "#8":
                self.display.alignment_display()

    def _simple(self, name: str) -> None:
        if name == "Z":
            self._answer(queries.PRIMARY)
        elif name == "E":
            self.display.carriage_return()
            self.display.index()
        elif name in Stream.escape:
            getattr(self.display, Stream.escape[name])()

    def _control(self, character: str) -> None:
        self._held += character
        if not "@" <= character <= "~":
            if len(self._held) > _LONGEST_SEQUENCE or character > "~":
                self._state = ""
            return
        self._state = ""
        found = _CSI.fullmatch(self._held)
        if found:
            prefix, numbers, between, final = found.groups()
            # A number with parts (`4:3`, a curly underline) is of no matter to the text.
            values = [min(int(n or 0), _LARGEST) for n in numbers.split(";") if ":" not in n]
            self._dispatch(prefix, values, between, final)

    def _dispatch(self, prefix: str, values: list[int], between: str, final: str) -> None:
        answer = queries.answer(prefix, values, between, final, self.display)
        if answer:
            self._answer(answer)
        elif between or prefix not in ("", "?"):
            if (between, final) == ("!", "p"):
                self.display.soft_reset()
        elif final in "hl":
            self.display.switch(values, on=final == "h", private=bool(prefix))
        elif prefix and final not in "JK":
            return
        elif final == "b":
            room = self.display.columns * self.display.lines
            self.display.draw(self._last * min(max(1, values[0]), room))
        elif final == "m":
            self.display.select_graphic_rendition(*values)
        elif final in self.display.further:
            self.display.further[final](*values[:1])
        elif final in Stream.csi:
            getattr(self.display, Stream.csi[final])(*values[: _COUNTS.get(final, 1)])

    def _string(self, text: str, at: int) -> int:
        """Text for the terminal itself (a title, a question), up to its terminator; most of it means nothing here."""
        found = _STRING.match(text, at)
        if found:
            self._held = (self._held + found.group())[:_LONGEST_STRING]
            return found.end()
        character = text[at]
        if character == "\x1b":
            # The terminator is an escape and a backslash; any other escape ends the string as well.
            self._finish_string()
            self._state, self._held = "e", ""
        elif character in ("\x07", "\x9c"):
            if character == "\x9c" or self._state == "]":
                self._finish_string()
        else:
            self._state = ""
        return at + 1

    def _finish_string(self) -> None:
        kind, self._state = self._state, ""
        if kind == "]" and self._held[:2] in ("0;", "2;"):
            self.display.set_title(self._held[2:])
        elif answer := queries.string_answer(kind, self._held):
            self._answer(answer)
