"""The screen of the terminal in memory: pyte's, with an alternate screen, and right where programs of today need it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pyte
from pyte import modes
from pyte.screens import Margins, wcwidth

_ALTERNATE = (47, 1047, 1049)
_SAVED_CURSOR = (1048, 1049)
_APPLICATION_CURSOR = 1 << 5
_WIDTH_132 = 3  # a switch that no terminal of today obeys without being told to
_MOST_MARKS = 8  # accents on one character


class Display(pyte.Screen):
    """What is shown, and the modes that are set."""

    def __init__(self, columns: int, rows: int) -> None:
        self._behind: dict[int, Any] | None = None  # the main screen, while the alternate one is shown
        super().__init__(columns, rows)
        # Control sequences that pyte does not know, by their last letter.
        self.further: dict[str, Callable[..., None]] = {
            "S": self.scroll_up,
            "T": self.scroll_down,
            "I": self.tab_forward,
            "Z": self.tab_back,
            "s": lambda *_: self.save_cursor(),
            "u": lambda *_: self.restore_cursor(),
        }

    @property
    def application_cursor(self) -> bool:
        return _APPLICATION_CURSOR in self.mode

    @property
    def in_origin_mode(self) -> bool:
        return modes.DECOM in self.mode

    @property
    def alternate(self) -> bool:
        return self._behind is not None

    def rows(self) -> list[str]:
        """All lines, without blanks at their ends. Of a wide character that was half overwritten nothing is left."""
        return [self._row(y) for y in range(self.lines)]

    def _row(self, y: int) -> str:
        if y not in self.buffer:
            return ""
        line = self.buffer[y]
        cells = [line[x].data for x in range(self.columns)] + [" "]
        shown = []
        for x, cell in enumerate(cells[:-1]):
            if not cell:  # the second half of a wide character
                lead = cells[x - 1] if x else ""
                shown.append("" if lead and wcwidth(lead[0]) == 2 else " ")
            elif wcwidth(cell[0]) == 2 and cells[x + 1]:
                shown.append(" ")
            else:
                shown.append(cell)
        return "".join(shown).rstrip()

    def draw(self, data: str) -> None:
        """pyte drops all that follows a character without a width; here such a character alone is left out."""
        piece = ""
        for character in data:
            width = wcwidth(character)
            if width == 1:
                piece += character
                continue
            if piece:
                super().draw(piece)
                piece = ""
            if width == 2:
                if self.cursor.x == self.columns - 1 and modes.DECAWM in self.mode:
                    super().draw(" ")  # the next one then starts a line
                if self.columns > 1:
                    super().draw(character)
            elif width == 0 and unicodedata.combining(character):
                self._mark(character)
        if piece:
            super().draw(piece)

    def _mark(self, accent: str) -> None:
        """Put an accent on the character before the cursor."""
        line = self.buffer[self.cursor.y]
        x = min(self.cursor.x, self.columns) - 1
        if x > 0 and not line[x].data:
            x -= 1
        if x >= 0 and line[x].data and len(line[x].data) <= _MOST_MARKS:
            line[x] = line[x]._replace(data=unicodedata.normalize("NFC", line[x].data + accent))

    def switch(self, values: Sequence[int], *, on: bool, private: bool) -> None:
        for value in values:
            if private and value in (*_ALTERNATE, *_SAVED_CURSOR):
                self._switch_screen(value, on)
            elif private and value == _WIDTH_132:
                continue
            elif on:
                self.set_mode(value, private=private)
            else:
                self.reset_mode(value, private=private)

    def _switch_screen(self, value: int, on: bool) -> None:
        if on and value in _SAVED_CURSOR:
            self.save_cursor()
        if value in _ALTERNATE and on != self.alternate:
            if on:
                self._behind = dict(self.buffer)
                self.buffer.clear()
            elif self._behind is not None:
                kept, self._behind = self._behind, None
                self.buffer.clear()
                self._put_back(kept)
        if not on and value in _SAVED_CURSOR:
            self.restore_cursor()

    def _put_back(self, kept: dict[int, Any]) -> None:
        """Lines of a screen whose size may have been another one."""
        for y, line in kept.items():
            if y < self.lines:
                for x in [x for x in line if x >= self.columns]:
                    del line[x]
                self.buffer[y] = line

    def save_cursor(self) -> None:
        """One place to save, as terminals have it; pyte would keep every one."""
        self.savepoints.clear()
        super().save_cursor()

    def restore_cursor(self) -> None:
        saved = bool(self.savepoints)
        super().restore_cursor()
        if saved:
            super().save_cursor()

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Lines go at the bottom, and at the top only as far as the cursor must stay in sight."""
        lines, columns = lines or self.lines, columns or self.columns
        gone = max(0, self.cursor.y - lines + 1)
        kept = {y - gone: line for y, line in self.buffer.items() if y >= gone}
        self.lines, self.columns, self.margins = lines, columns, None
        self.buffer.clear()
        self._put_back(kept)
        self.cursor.x, self.cursor.y = min(self.cursor.x, columns - 1), self.cursor.y - gone
        self.tabstops = set(range(8, columns, 8))

    def reset(self) -> None:
        self._behind = None
        self.savepoints.clear()
        super().reset()

    def soft_reset(self) -> None:
        self.margins = None
        self.mode -= {modes.IRM, modes.DECOM, _APPLICATION_CURSOR}
        self.mode |= {modes.DECTCEM, modes.DECAWM}
        self.cursor.hidden = False
        self.charset = 0
        self.select_graphic_rendition(0)

    def set_margins(self, top: int | None = None, bottom: int | None = None) -> None:
        super().set_margins(top or None, bottom or (self.lines if top else None))
        self.cursor_position()

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        if how in (0, 1, 2):  # 3 is the lines above the screen, of which this one has none
            super().erase_in_display(how)

    def scroll_up(self, count: int = 1) -> None:
        self._scroll(self.delete_lines, count)

    def scroll_down(self, count: int = 1) -> None:
        self._scroll(self.insert_lines, count)

    def _scroll(self, move: Callable[[int], None], count: int) -> None:
        top, _ = self.margins or Margins(0, self.lines - 1)
        x, y = self.cursor.x, self.cursor.y
        self.cursor.y = top
        move(min(max(1, count), self.lines))
        self.cursor.x, self.cursor.y = x, y

    def tab_forward(self, count: int = 1) -> None:
        for _ in range(min(max(1, count), self.columns)):
            self.tab()

    def tab_back(self, count: int = 1) -> None:
        for _ in range(min(max(1, count), self.columns)):
            self.cursor.x = max((stop for stop in self.tabstops if stop < self.cursor.x), default=0)
