"""Which state each agent was in, and when. Pure: the clock is the caller's."""

from collections.abc import Iterable, Mapping

from mngr.records import NamedTuple

SECONDS_PER_MARK = 0.25
MARKS = {"STARTING": "·", "RUNNING": "━", "BLOCKED": "!", "WAITING": "─", "DONE": "─", "FAILED": "x"}
PLAIN_MARKS = {"STARTING": ".", "RUNNING": "=", "BLOCKED": "!", "WAITING": "-", "DONE": "-", "FAILED": "x"}


class Span(NamedTuple):
    """From `at` seconds after the beginning until the next one."""

    state: str
    reason: str
    at: float


class Timeline:
    def __init__(self, names: Iterable[str]) -> None:
        self.spans: dict[str, list[Span]] = {name: [] for name in names}

    def see(self, name: str, state: str, reason: str, at: float) -> bool:
        """Note what was seen; whether it is another state than before. The reason is that of the first look."""
        spans = self.spans[name]
        if spans and spans[-1].state == state:
            return False
        spans.append(Span(state, reason, at))
        return True

    def last(self, name: str) -> Span | None:
        return self.spans[name][-1] if self.spans[name] else None


def strip(
    spans: Iterable[Span], until: float, marks: Mapping[str, str] = MARKS, *, width: int = 1000
) -> list[tuple[str, str]]:
    """The states as runs of equal marks, (state, marks); of all marks, the newest `width`."""
    known = list(spans)
    cells = []
    for number in range(int(until / SECONDS_PER_MARK) + 1):
        begun = [span.state for span in known if span.at <= number * SECONDS_PER_MARK]
        cells.append(begun[-1] if begun else "")
    runs: list[tuple[str, str]] = []
    for state in cells[-width:] if width > 0 else ():
        mark = marks.get(state, " ")
        if runs and runs[-1][0] == state:
            runs[-1] = (state, runs[-1][1] + mark)
        else:
            runs.append((state, mark))
    return runs
