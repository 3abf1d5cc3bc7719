"""The words of a pull request: an agent's narrative above, tables built by code below. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mngr.mapreduce.state import RunState
from mngr.tmr import verdict
from mngr.tmr.summary import flagged, summary, tasks_of, verdict_of, why

_TITLE_MAX = 100


def text(state: RunState, narrative: str = "") -> str:
    """A title on the first line, then the body. What an agent wrote is text: it starts no comment, quote or mention."""
    found = summary(state)
    integration = found["integration"] or {}
    title, _, words = narrative.strip().partition("\n")
    parts = [f"# {_line(title)[:_TITLE_MAX] or _title(found)}", ""]
    if words.strip():
        parts += [_plain(words.strip()), ""]
    parts += _headline(found, integration)
    parts += _commits(integration.get("commits", ()))
    parts += _aside(integration.get("set_aside", ()))
    parts += _tests(state)
    return "\n".join(parts).rstrip() + "\n"


def _title(found: Mapping[str, Any]) -> str:
    counts = found["verdicts"]
    return f"Tests: {counts.get(verdict.FIXED, 0)} fixed, {counts.get(verdict.IMPROVED, 0)} improved"


def _headline(found: Mapping[str, Any], integration: Mapping[str, Any]) -> list[str]:
    measured = {True: "passes", False: "**does not pass**", None: "was not run"}[integration.get("green")]
    counts = ", ".join(f"{count} {word}" for word, count in found["verdicts"].items())
    start = f"{found['tasks']} tests had an agent each: {counts}. The suite {measured} at the tip of this branch, as "
    rest = "measured in a clean checkout; what failed before any agent worked and was not fixed does not count."
    return [start + rest, ""]


def _commits(commits: Sequence[Mapping[str, Any]]) -> list[str]:
    fixes = [commit for commit in commits if commit["kind"] == "implementation"]
    others = [commit for commit in commits if commit["kind"] != "implementation"]
    lines = []
    if fixes:
        lines += ["## Fixes, most important first", "", "Each is a commit of its own and can be reverted.", ""]
        lines += ["| | Commit | What | Measured | Agents |", "| --- | --- | --- | --- | --- |"]
        for commit in fixes:
            needed = ", ".join(f"`{id[:8]}`" for id in commit["needed_by"])
            more = f"; reverting it takes {needed} along" if needed else ""
            cells = [commit["rank"], f"`{commit['id'][:8]}`", commit["title"], commit["because"] + more]
            lines.append(_row([*cells, ", ".join(commit["agents"])]))
        lines.append("")
    if others:
        lines += ["## Tests, tutorial and docs", "", "| Commit | What | Agents |", "| --- | --- | --- |"]
        lines += [_row([f"`{one['id'][:8]}`", one["title"], ", ".join(one["agents"])]) for one in others]
        lines.append("")
    return lines


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
