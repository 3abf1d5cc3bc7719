"""The words of a pull request: an agent's narrative above, tables built by code below. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.mapreduce.state import RunState
from mngr.tmr import verdict
from mngr.tmr.headline import Suite, headline
from mngr.tmr.places import integration_of, places
from mngr.tmr.questions import FLAGGED, questions
from mngr.tmr.summary import OVER, flagged, tasks_of, verdict_of, why
from mngr.tmr.unit import EXPECTATION

# GitHub takes 65,536 characters; the rest is for the line that says what is missing.
_MOST = 65_000
_TITLE_MAX = 100
_NARRATIVE_MAX = 20_000


def text(state: RunState, narrative: str = "", suite: Suite | None = None) -> str:
    """A title on the first line, then the body, which fits into a pull request: what does not is counted and left to
    the report. What an agent wrote is text: it starts no comment, quote or mention."""
    integration = integration_of(state)
    title, _, words = narrative.strip().partition("\n")
    parts = [f"# {_line(title)[:_TITLE_MAX] or _title(state)}", ""]
    if words.strip():
        parts += [_plain(words.strip())[:_NARRATIVE_MAX], ""]
    parts += [*_headline(state, suite or Suite()), ""]
    for lines in (
        _first(state),
        *_commits(integration.get("commits", ())),
        _aside(integration.get("set_aside", ())),
        _tests(state),
    ):
        parts = _fitting(parts, lines)
    return "\n".join(parts).rstrip() + "\n"


def _fitting(parts: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The parts and as many of the lines as fit, with a note about those that do not."""
    left = _MOST - sum(len(part) + 1 for part in parts)
    taken = list(parts)
    for at, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            rows = sum(other.startswith("| ") for other in lines[at:])
            return [*taken, "", f"{rows} more rows are in the report of the run.", ""] if rows else taken
        taken.append(line)
    return taken


def _title(state: RunState) -> str:
    there = {slug for slug, place in places(state).items() if place.commits}
    counts = Counter(verdict_of(task) for task in tasks_of(state) if task.slug in there)
    return f"Tests: {', '.join(f'{count} {word}' for word, count in counts.most_common()) or 'no change'}"


def _headline(state: RunState, suite: Suite) -> list[str]:
    tasks = tasks_of(state)
    counts = Counter(verdict_of(task) for task in tasks)
    told = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    found = headline(state, OVER, suite)
    return [
        _plain(found.text),
        "",
        _plain(f"{len(tasks)} tests had an agent each: {told}. Everything was measured in clean checkouts."),
    ]


def _first(state: RunState) -> list[str]:
    asked = [one for one in questions(state) if one.kind == FLAGGED]
    if not asked:
        return []
    lines = ["## Look at these first", "", "| Commit | Test | What |", "| --- | --- | --- |"]
    for one in asked:
        tests = ", ".join(f"`{task.id}`" for task in one.tasks[:5])
        lines.append(_row([f"`{one.commit[:8]}`", tests, "; ".join((one.text, *one.remarks))]))
    return [*lines, ""]


def _commits(commits: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    fixes = [commit for commit in commits if commit["kind"] == "implementation"]
    changed = [commit for commit in commits if commit.get("place") == EXPECTATION]
    others = [commit for commit in commits if commit not in fixes and commit not in changed]
    lines: list[str] = []
    rest = _plain_commits("Changed expectations, a commit each", changed) if changed else []
    if fixes:
        lines += ["## Fixes, most important first", "", "Each is a commit of its own and can be reverted.", ""]
        lines += ["| | Commit | What | Measured | Agents |", "| --- | --- | --- | --- | --- |"]
        for commit in fixes:
            needed = ", ".join(f"`{id[:8]}`" for id in commit["needed_by"])
            more = f"; needed by {needed}" if needed else ""
            cells = [commit["rank"], f"`{commit['id'][:8]}`", commit["title"], commit["because"] + more]
            lines.append(_row([*cells, ", ".join(commit["agents"])]))
        lines.append("")
    if others:
        rest += _plain_commits("Tests, tutorial and docs", others)
    return lines, rest


def _plain_commits(title: str, commits: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [_row([f"`{one['id'][:8]}`", one["title"], ", ".join(one["agents"])]) for one in commits]
    return [f"## {title}", "", "| Commit | What | Agents |", "| --- | --- | --- |", *rows, ""]


def _aside(set_aside: Sequence[Mapping[str, Any]]) -> list[str]:
    if not set_aside:
        return []
    lines = ["## Set aside", "", "| Task | Why | Where |", "| --- | --- | --- |"]
    for one in set_aside:
        lines.append(_row([", ".join(one["tasks"]), one["reason"], f"`{one['branch']}`" if one["branch"] else ""]))
    return [*lines, ""]


def _tests(state: RunState) -> list[str]:
    lines = ["## Tests", "", "| Test | Verdict | Why | To look at |", "| --- | --- | --- | --- |"]
    order = {word: number for number, word in enumerate(verdict.VERDICTS)}
    for task in sorted(tasks_of(state), key=lambda task: (order.get(verdict_of(task), 99), task.id)):
        lines.append(_row([f"`{task.id}`", verdict_of(task), why(task), "; ".join(flagged(task))]))
    return lines


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(_line(str(cell))[:300] for cell in cells) + " |"


def _line(value: str) -> str:
    return _plain(" ".join(value.split())).replace("|", "\\|")


def _plain(value: str) -> str:
    """Agents wrote some of this: no HTML, and nobody is notified."""
    printable = "".join(c for c in value if c == "\n" or c.isprintable())
    return printable.replace("<", "&lt;").replace("@", "@\u200b")
