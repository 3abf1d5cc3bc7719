"""The demo's agents and their states: redrawn in place on a terminal, elsewhere a line for each change."""

from mngr.cli.output import Output
from mngr.cli.terminal import STATE_STYLES, cut, paint
from mngr.demo.cast import CAST, Part
from mngr.demo.timeline import MARKS, PLAIN_MARKS, Span, Timeline, strip

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_CLEAR_BELOW = "\x1b[J"
_WIDEST_STRIP = 34
_NAME, _STATE = max(len(part.name) for part in CAST), 8
_FIXED = 2 + _NAME + 2 + _STATE + 2 + 2
_TASK = max(len(part.task) for part in CAST)


class Board:
    """`clear` takes it off the screen, so that lines can be printed above it; the next `show` brings it back."""

    def __init__(self, out: Output, *, in_place: bool, speaks: bool) -> None:
        self._out = out
        self._in_place = in_place and speaks
        self._speaks = speaks
        self._drawn = 0
        self._told: dict[str, int] = {}

    def show(self, timeline: Timeline, now: float) -> None:
        if self._in_place:
            self._draw([self._row(part, timeline, now) for part in CAST])
        elif self._speaks:
            self._tell(timeline)

    def clear(self) -> None:
        if self._drawn:
            self._out.stdout.write(f"\x1b[{self._drawn}F{_CLEAR_BELOW}")
            self._drawn = 0

    def close(self) -> None:
        """Leave the last picture where it is, and the cursor as it was."""
        if self._in_place:
            self._out.stdout.write(_SHOW_CURSOR)
            self._out.flush()
            self._drawn = 0

    def _draw(self, rows: list[str]) -> None:
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        self._out.stdout.write(_HIDE_CURSOR + up + "".join(f"{row}\x1b[K\n" for row in rows))
        self._out.flush()
        self._drawn = len(rows)

    def _row(self, part: Part, timeline: Timeline, now: float) -> str:
        columns = self._out.columns or 80
        last = timeline.last(part.name) or Span("", "", 0.0)
        cells = max(0, min(_WIDEST_STRIP, columns - _FIXED - _TASK))
        runs = strip(timeline.spans[part.name], now, self._marks(), width=cells)
        shown = "".join(self._paint(marks, state) for state, marks in runs)
        space = " " * (cells - sum(len(marks) for _, marks in runs))
        what = cut(last.reason if last.state in ("BLOCKED", "FAILED") else part.task, max(0, columns - _FIXED - cells))
        state = self._paint(last.state, last.state) + " " * (_STATE - len(last.state))
        return f"  {part.name:<{_NAME}}  {state}  {shown}{space}  {what}"

    def _tell(self, timeline: Timeline) -> None:
        news = []
        for name, spans in timeline.spans.items():
            news += [(span.at, name, span) for span in spans[self._told.get(name, 0) :]]
            self._told[name] = len(spans)
        for at, name, span in sorted(news, key=lambda item: item[0]):
            self._out.line(f"  {at:4.1f} s  {name:<{_NAME}}  {span.state:<{_STATE}}  {span.reason}".rstrip())
        if news:
            self._out.flush()

    def _marks(self) -> dict[str, str]:
        try:
            "".join(MARKS.values()).encode(self._out.stdout.encoding or "ascii")
        except UnicodeEncodeError:
            return PLAIN_MARKS
        return MARKS

    def _paint(self, text: str, state: str) -> str:
        return paint(text, STATE_STYLES.get(state, "")) if self._out.colour else text
