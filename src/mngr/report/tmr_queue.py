"""The queue of decisions as the first page shows it: a card each, with the lines of the change that are in question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mngr.report.source import cut, one_line
from mngr.report.tmr_patches import Patches
from mngr.report.tmr_suite import ReportData, linked
from mngr.report.tmr_task import pairs_of
from mngr.tmr.words.questions import Question, questions

_MOST = 300
_MOST_EXCERPTS = 60
_MOST_TESTS = 200
_MOST_LINES = 14
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def cards(known: ReportData, works: Patches) -> list[dict[str, Any]]:
    """What waits for a person, the most dangerous first. Patches are read for the first ones only."""
    asked = questions(known.run)[:_MOST]
    pairs = [pairs_of(known, one.tasks[0])[0] if at < _MOST_EXCERPTS else None for at, one in enumerate(asked)]
    works.load([pair for pair in pairs if pair is not None])
    return [_card(known, one, works.patch(pair).text if pair else "") for one, pair in zip(asked, pairs, strict=True)]


def _card(known: ReportData, one: Question, patch: str) -> dict[str, Any]:
    first = one.tasks[0]
    evidence = [each.evidence for each in first.claim.escalations]
    return {
        "kind": one.kind,
        "verdict": first.word,
        "count": len(one.tasks),
        "tests": [linked(task.id, known.state) for task in one.tasks[:_MOST_TESTS]],
        "text": one_line(one.text, 1000),
        "remarks": [cut(text) for text in one.remarks[:10]],
        "evidence": [cut(text) for text in evidence if text][:5],
        "commands": one.commands,
        "commit": next(iter(one.commits), ""),
        "excerpt": excerpt(patch, one.paths, _line(one)),
    }


def _line(one: Question) -> int | None:
    """The line in question, where a changed expectation or a flag names one."""
    first = one.tasks[0]
    lines = [each.line for each in first.evidence.change.expectations]
    lines += [int(found[1]) for text in first.flags if (found := re.search(r"\bline (\d{1,7})\b", text))]
    return next(iter(lines), None)


def excerpt(patch: str, paths: Sequence[str] = (), line: int | None = None) -> dict[str, Any] | None:
    """A few lines of a patch: from the first of these files that is in it, otherwise from its first file; the hunk with
    a line of the new file, otherwise its first hunk. `left` is how many lines of change are not among them. None when
    the patch shows no change."""
    files = {_name(part): hunks for part in re.split(r"(?m)^(?=diff --git )", patch) if (hunks := _hunks(part))}
    if not files:
        return None
    path = next((path for path in paths if path in files), next(iter(files)))
    first, hunk = next((one for one in files[path] if line in range(*one[0])), files[path][0])
    changed = [at for at, text in enumerate(hunk) if text[:1] in ("+", "-")]
    start = max(0, changed[0] - 1)
    wanted = _index(hunk, first[0], line)
    if wanted is not None and wanted - start > _MOST_LINES - 2:
        start = wanted - 3
    shown = hunk[start : min(changed[-1] + 2, start + _MOST_LINES)]
    every = [text for hunks in files.values() for _, lines in hunks for text in lines]
    left = sum(text[:1] in ("+", "-") for text in every) - sum(text[:1] in ("+", "-") for text in shown)
    return {"path": path, "text": "\n".join(shown).rstrip(), "left": left}


def _name(part: str) -> str:
    head = part.partition("\n")[0]
    found = re.match(r'diff --git "?a/.*? "?b/(.*?)"?$', head)
    return found[1] if found else head


def _hunks(part: str) -> list[tuple[tuple[int, int], list[str]]]:
    """The hunks of a file that change something, each with the lines of the new file that it covers."""
    found: list[tuple[tuple[int, int], list[str]]] = []
    for text in part.rstrip("\n").split("\n"):
        if head := _HUNK.match(text):
            found.append(((int(head[1]), int(head[1]) + int(head[2] or 1)), []))
        elif found:
            found[-1][1].append(text)
    return [one for one in found if any(text[:1] in ("+", "-") for text in one[1])]


def _index(hunk: Sequence[str], number: int, line: int | None) -> int | None:
    """Where in a hunk that begins at line `number` of the new file another line of it is."""
    for at, text in enumerate(hunk):
        if number == line and not text.startswith("-"):
            return at
        number += not text.startswith("-")
    return None
