"""The words of a pull request: an agent's narrative above, tables built by code below. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from mngr.tmr.branch.unit import EXPECTATION
from mngr.tmr.judge import verdict
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.run_view import RunView
from mngr.tmr.words.headline import Suite, headline
from mngr.tmr.words.questions import FLAGGED, questions
from mngr.tmr.words.summary import OVER

# GitHub takes 65,536 characters; the rest is for the line that says what is missing.
_MOST = 65_000
_TITLE_MAX = 100
_NARRATIVE_MAX = 20_000
_COMMIT = ("Commit", "What", "Agents")


def text(run: RunView, suite: Suite | None = None) -> str:
    """A title on the first line, then the body, which fits into a pull request: what does not is counted and left to
    the report. What an agent wrote is text: it starts no comment, quote or mention."""
    title, _, words = run.branch.narrative.strip().partition("\n")
    made = _counted(task.word for task in run.tasks if task.place.commits) or "no change"
    counts = _counted(task.word for task in run.tasks)
    parts = [f"# {_line(title)[:_TITLE_MAX] or f'Tests: {made}'}", ""]
    parts += [_plain(words.strip())[:_NARRATIVE_MAX], ""] if words.strip() else []
    parts += [_plain(headline(run, OVER, suite or Suite()).text), ""]
    parts += [
        _plain(f"{len(run.tasks)} tests had an agent each: {counts}. Everything was measured in clean checkouts."),
        "",
    ]
    for title, names, rows in _tables(run):
        parts = _fitting(parts, title, names, rows)
    return "\n".join(parts).rstrip() + "\n"


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def _tables(run: RunView) -> Iterable[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, names of the columns, and rows, in the order in which they are wanted."""
    asked = [
        [
            ", ".join(f"`{commit[:8]}`" for commit in one.commits[:5]),
            ", ".join(f"`{task.id}`" for task in one.tasks[:5]),
            "; ".join((one.text, *one.remarks)),
        ]
        for one in questions(run)
        if one.kind == FLAGGED
    ]
    yield "Look at these first", ("Commit", "Test", "What"), asked
    fixes: list[list[str]] = []
    changed: list[list[str]] = []
    others: list[list[str]] = []
    for one in run.branch.commits:
        id, agents = f"`{one.id[:8]}`", ", ".join(one.agents)
        if one.kind == PathKind.IMPLEMENTATION:
            needed = ", ".join(f"`{other[:8]}`" for other in one.needed_by)
            measured = one.because + (f"; needed by {needed}" if needed else "")
            fixes.append([str(one.rank), id, one.title, measured, agents])
        else:
            (changed if one.place == EXPECTATION else others).append([id, one.title, agents])
    yield "Fixes, most important first", ("", "Commit", "What", "Measured", "Agents"), fixes
    yield "Changed expectations, a commit each", _COMMIT, changed
    yield "Tests, tutorial and docs", _COMMIT, others
    aside = run.branch.set_aside
    where = [[", ".join(one.tasks), one.reason, f"`{one.branch}`" if one.branch else ""] for one in aside]
    yield "Set aside", ("Task", "Why", "Where"), where
    order = {word: number for number, word in enumerate(verdict.VERDICTS)}
    tasks = sorted(run.tasks, key=lambda task: (order.get(task.word, 99), task.id))
    rows = [[f"`{task.id}`", task.word, task.why, "; ".join(task.flags)] for task in tasks]
    yield "Tests", ("Test", "Verdict", "Why", "To look at"), rows


def _fitting(parts: Sequence[str], title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The parts and as many rows of the table as fit, with a note about those that do not."""
    if not rows:
        return [*parts]
    lines = [f"## {title}", "", _row(names), _row(["---"] * len(names)), *map(_row, rows), ""]
    left = _MOST - sum(len(part) + 1 for part in parts)
    fit = sum(end <= left for end in accumulate(len(line) + 1 for line in lines))
    missing = sum(line.startswith("| ") for line in lines[max(fit, 4) :])
    return [*parts, *lines[:fit], *(["", f"{missing} more rows are in the report of the run.", ""] if missing else [])]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_line(cell)[:300] for cell in cells) + " |"


def _line(value: str) -> str:
    return _plain(" ".join(value.split())).replace("|", "\\|")


def _plain(value: str) -> str:
    """Agents wrote some of this: no HTML, and nobody is notified."""
    printable = "".join(c for c in value if c == "\n" or c.isprintable())
    return printable.replace("<", "&lt;").replace("@", "@\u200b")
