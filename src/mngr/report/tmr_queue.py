"""The queue of decisions as the first page shows it: a card each, with the lines of the change that are in question."""

from __future__ import annotations

import re
from typing import Any

from mngr.report.excerpt import excerpt
from mngr.report.source import picked
from mngr.report.tmr_patches import Patches
from mngr.report.tmr_rows import ReportData, before, cut, line, linked
from mngr.report.tmr_task import pairs_of
from mngr.tmr import baseline
from mngr.tmr.places import expectations
from mngr.tmr.questions import Question, questions
from mngr.tmr.summary import flagged, tasks_of, verdict_of

_MOST = 300
_MOST_EXCERPTS = 60
_MOST_TESTS = 200


def cards(known: ReportData, works: Patches) -> list[dict[str, Any]]:
    """What waits for a person, the most dangerous first. Patches are read for the first ones only."""
    tasks = tasks_of(known.state)
    flaky = [task.id for task in tasks if before(known, task.id).get("verdict") == baseline.FLAKY]
    asked = questions(known.state, flaky)[:_MOST]
    pairs = [pairs_of(known, one.tasks[0])[0] for one in asked[:_MOST_EXCERPTS]]
    works.load([pair for pair in pairs if pair is not None])
    made = []
    for at, one in enumerate(asked):
        pair = pairs[at] if at < len(pairs) else None
        text = works.patch(pair).text if pair is not None else ""
        made.append({**_card(known, one), "excerpt": _excerpt(one, text)})
    return made


def _card(known: ReportData, one: Question) -> dict[str, Any]:
    first = one.tasks[0]
    evidence = [str(each.get("evidence") or "") for each in first.claim.get("escalations", ())]
    return {
        "kind": one.kind,
        "verdict": verdict_of(first),
        "count": len(one.tasks),
        "tests": [linked(task.id, known.state) for task in one.tasks[:_MOST_TESTS]],
        "text": line(one.text, 1000),
        "remarks": [cut(text) for text in one.remarks[:10]],
        "evidence": [cut(text) for text in evidence if text][:5],
        **picked(one, "commands", "commit", "kept_on"),
    }


def _excerpt(one: Question, patch: str) -> dict[str, Any] | None:
    found = excerpt(patch, one.paths, _line(one))
    return None if found is None else {"path": found.path, "text": "\n".join(found.lines), "left": found.left}


def _line(one: Question) -> int | None:
    """The line in question, where a changed expectation or a flag names one."""
    first = one.tasks[0]
    lines = [each.get("line") for each in expectations(first)]
    lines += [int(found[1]) for text in flagged(first) if (found := re.search(r"\bline (\d{1,7})\b", text))]
    return next((number for number in lines if isinstance(number, int)), None)
