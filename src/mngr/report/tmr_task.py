"""The page of one task: what its agent claims beside what was measured, its changes, words, terminal and logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mngr.agents.record import seconds_of
from mngr.files import read_lines
from mngr.mapreduce.state import Attempt, TaskState
from mngr.report import run_files
from mngr.report.source import picked
from mngr.report.tmr_patches import NOTHING, Pair, Patches
from mngr.report.tmr_rows import ReportData, before, cut, task_row
from mngr.tmr.places import expectations, places
from mngr.tmr.questions import questions

MOST_LOG = 200_000
MOST_SAID = 400_000
_MOST_ENTRIES = 3000
_MOST_ENTRY = 40_000
_MOST_SHOWN = 30_000
_MOST_LISTED = 100
# The measurements of a task, by the beginning of their labels.
_JOBS = {
    "verify": "the new tests on the new product",
    "chance": "the same, repeated",
    "old-tests": "the old tests on the new product",
    "old-product": "the new tests on the old product",
    "alone": "without the fix",
}
_SHOWN = (".txt", ".log", ".md", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml", ".csv")


def document(root: str, known: ReportData, task: TaskState, works: Patches) -> dict[str, Any]:
    """All but its recordings, tutorial blocks and past. `root` is the run's directory; nothing outside of it is read,
    but the repository through git."""
    last = task.last
    collected = (last.collected if last is not None else None) or {}
    found, claim = task.verdict, task.claim
    pair, loose = pairs_of(known, task)
    return {
        "task": task_row(known, task, places(known.state).get(task.slug)),
        "id": task.id,
        "doc": cut(str(known.tests.get(task.id, {}).get("doc") or "")),
        "before": _before(before(known, task.id) or None),
        "claim": {**claim, "changes": list(claim.get("changes", ()))} if claim else None,
        "claim_problem": str(collected.get("outcome_problem") or ""),
        "measured": {name: found.get(name) for name in _MEASURED},
        "marks": {name: str(word or "") for name, word in (found.get("marks") or {}).items()},
        "strength": _strength(found.get("strength")),
        "expectations": [_expectation(one) for one in expectations(task)[:_MOST_LISTED]],
        "reasons": [str(reason) for reason in found.get("reasons") or ()],
        "notes": [cut(str(note)) for note in found.get("notes", ())],
        "flags": [{name: str(flag.get(name)) for name in ("kind", "path", "text")} for flag in found.get("flags", ())],
        "patch": works.patch(pair)._asdict() if pair else NOTHING._asdict(),
        "loose": works.patch(loose)._asdict() if loose else NOTHING._asdict(),
        "tip": pair.new if pair else "",
        "commits": works.commits(pair.new) if pair else [],
        "on_branch": _on_branch(known, task),
        "aside": _aside(known, task),
        "attempts": [_attempt(root, task, attempt, known.now) for attempt in task.attempts],
        "problems": [cut(str(problem)) for problem in collected.get("problems", ())],
        "logs": logs(root, known, task),
        "files": _files(root, task),
        "questions": _questions(known, task),
    }


_MEASURED = ("new", "changed", "lost", "gate_exit", "seconds", "implementation", "effect", "stands_alone", "files")


def _questions(known: ReportData, task: TaskState) -> list[dict[str, Any]]:
    """What a person has to decide about this task, and the commands that settle it."""
    one = known.state._replace(tasks={task.id: task})
    return [{"kind": asked.kind, "text": cut(asked.text), "commands": asked.commands} for asked in questions(one)]


def _strength(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """How many edits the test noticed before and after, and those that only one side did."""
    if not found:
        return None
    sides = {name: [int(number) for number in found.get(name) or (0, 0)][:2] for name in ("before", "after")}
    texts = {
        name: [cut(str(text), 500) for text in found.get(name) or ()][:_MOST_LISTED] for name in ("gained", "lost")
    }
    return {"word": str(found.get("word") or ""), "how": str(found.get("how") or ""), **sides, **texts}


def _expectation(one: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: cut(str(one.get(name, "")), 2000) for name in ("path", "before", "after")}
    return {**texts, "line": one.get("line")}


def pairs_of(known: ReportData, task: TaskState) -> tuple[Pair | None, Pair | None]:
    """The commits between which its work is, and between which what it did not commit."""
    base = str(known.state.facts.get("base") or "")
    attempts = [attempt for attempt in task.attempts if attempt.collected]
    collected = (attempts[-1].collected if attempts else None) or {}
    tip, loose = collected.get("tip"), collected.get("uncommitted")
    count = len(((attempts[-1].verdict if attempts else None) or {}).get("files") or ())
    pair = Pair(base, str(tip), count) if tip and tip != base else None
    return pair, Pair(str(tip or base), str(loose)) if loose else None


def logs(root: str, known: ReportData, task: TaskState) -> list[dict[str, Any]]:
    """What the steps of its measurements printed, and their exit codes."""
    found = []
    for job, told in _JOBS.items():
        place = ("jobs", known.logs.get(f"{job}-{task.slug}", f"{job}-{task.slug}"))
        for one in sorted(run_files.listed(root, *place), key=lambda one: _step_order(one.parts[-1])):
            name = one.parts[-1]
            if len(one.parts) > 1 or not name.endswith(".log"):
                continue
            text = run_files.text(root, *place, name, most=MOST_LOG, end=True)
            code = run_files.text(root, *place, f"{name.removesuffix('.log')}.exit", most=20)
            step = name.removesuffix(".log")
            if text is not None:
                found.append(
                    {
                        "name": f"{step}: {told}",
                        "exit_code": code.text.strip()[:10] if code is not None else "",
                        "text": text.text,
                        "note": text.note,
                    }
                )
    return found


def _step_order(name: str) -> tuple[int, str]:
    """In the order in which the steps of a job are run."""
    first = name.partition(".")[0].partition("-")[0]
    return (_STEPS.index(first) if first in _STEPS else len(_STEPS), name.partition(".")[0])


_STEPS = ("prepare", "test", "effect", "gate")


def said(root: str, slug: str, number: int) -> dict[str, Any]:
    """The conversation of an attempt: known fields only, cut where it is too long, with a note."""
    data = run_files.read(root, "tasks", slug, str(number), "transcript.jsonl", most=20_000_000)
    if data is None:
        return {"entries": [], "note": ""}
    entries: list[dict[str, Any]] = []
    left, note = MOST_SAID, ""
    for line in read_lines(data):
        if left <= 0 or len(entries) >= _MOST_ENTRIES:
            note = "The rest of the conversation is in `transcript.jsonl`."
            break
        entry = _entry(line)
        left -= len(entry["text"]) + len(entry["input"])
        entries.append(entry)
    return {"entries": entries, "note": note}


def _entry(line: Mapping[str, Any]) -> dict[str, Any]:
    try:
        at: float | None = seconds_of(str(line.get("timestamp")))
    except ValueError:
        at = None
    code = line.get("exit_code")
    return {
        "at": at,
        "role": str(line.get("role") or ""),
        "text": cut(_text(line.get("text")), _MOST_ENTRY),
        "tool": _text(line.get("tool"))[:200],
        "input": cut(_text(line.get("input")), _MOST_ENTRY),
        "exit_code": code if isinstance(code, int) and not isinstance(code, bool) else None,
    }


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _attempt(root: str, task: TaskState, attempt: Attempt, now: float) -> dict[str, Any]:
    usage = attempt.usage
    screen = run_files.text(root, "tasks", task.slug, str(attempt.number), "screen.txt", most=_MOST_SHOWN, end=True)
    return {
        **picked(attempt, "number", "agent", "host", "intended_at", "started_at", "warned_at", "nudged_at", "ended_at"),
        **picked(attempt, "goes_on", "state", "ended", "retry"),
        "seconds": round((attempt.ended_at or now) - attempt.intended_at, 2),
        "state_reason": cut(attempt.state_reason),
        "because": cut(attempt.because),
        "errors": [cut(text) for text in (attempt.collect_error, attempt.check_error) if text],
        "usage": {**usage._asdict(), "tokens": usage.tokens},
        "said": said(root, task.slug, attempt.number),
        "screen": screen.text if screen is not None else "",
    }


def _before(measured: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "verdict": str(measured.get("verdict")),
        "runs": [str(run) for run in measured.get("runs") or ()],
        "signature": str(measured.get("signature") or ""),
        "text": cut(str(measured.get("text") or ""), 20_000),
        "seconds": measured.get("seconds"),
    }


def _on_branch(known: ReportData, task: TaskState) -> list[dict[str, Any]]:
    return [
        {name: one[name] for name in ("id", "kind", "title", "rank", "because", "needed_by")}
        for one in known.integration.get("commits", ())
        if task.slug in one["slugs"]
    ]


def _aside(known: ReportData, task: TaskState) -> list[dict[str, Any]]:
    return [
        {
            "reason": cut(str(one["reason"])),
            "branch": str(one.get("branch") or ""),
            "against": list(one.get("against", ())),
            "evidence": [cut(str(text)) for text in one.get("evidence", ())[:10]],
        }
        for one in known.integration.get("set_aside", ())
        if task.slug in one["slugs"]
    ]


def _files(root: str, task: TaskState) -> list[dict[str, Any]]:
    """The artifacts of the last attempt, small texts among them with their content."""
    last = task.last
    if last is None:
        return []
    place = ("tasks", task.slug, str(last.number), "artifacts")
    found = []
    left = 10 * _MOST_SHOWN
    for one in run_files.listed(root, *place):
        name = "/".join(one.parts)
        text = None
        if name.endswith(_SHOWN) and one.bytes <= left and one.bytes <= _MOST_SHOWN:
            text = run_files.text(root, *place, *one.parts, most=_MOST_SHOWN)
            left -= one.bytes
        found.append({"name": name, "bytes": one.bytes, "text": text.text if text is not None else None})
    return found
