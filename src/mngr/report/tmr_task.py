"""The page of one task: what its agent claims beside what was measured, its changes, words, terminal and logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mngr.agent.record import seconds_of
from mngr.json_values import plain
from mngr.mapreduce.state import Attempt, TaskState
from mngr.report import run_files
from mngr.report.source import cut, picked
from mngr.report.tmr_patches import NOTHING, Pair, Patches
from mngr.report.tmr_rows import task_row
from mngr.report.tmr_suite import ReportData, before
from mngr.system.files import read_lines
from mngr.tmr.run_view import TaskView
from mngr.tmr.words.questions import questions

_MOST_LOG = 200_000
_MOST_SAID = 400_000
_MOST_ENTRIES = 3000
_MOST_ENTRY = 40_000
_MOST_SHOWN = 30_000
# The measurements of a task, by the beginning of their labels; and their steps, in the order in which they are run.
_JOBS = {
    "verify": "the new tests on the new product",
    "chance": "the same, repeated",
    "old-tests": "the old tests on the new product",
    "old-product": "the new tests on the old product",
    "alone": "without the fix",
}
_STEPS = ("prepare", "test", "effect", "gate")
_MEASURED = ("new", "changed", "lost", "gate_exit", "seconds")


def document(root: str, known: ReportData, task: TaskView, works: Patches) -> dict[str, Any]:
    """All but its recordings and tutorial blocks. `root` is the run's directory; nothing outside of it is read, but the
    repository through git."""
    state = task.task
    collected = (state.last.collected if state.last is not None else None) or {}
    found, own = task.evidence, before(known, task.id)
    strength = found.noticed.strength
    pair, loose = pairs_of(known, task)
    asked = questions(known.run._replace(tasks=(task,)))
    aside = [one for one in known.run.branch.set_aside if task.slug in one.slugs]
    return {
        "task": task_row(known, task),
        "id": task.id,
        "doc": cut(str(known.tests.get(task.id, {}).get("doc") or "")),
        "before": {**own, "text": cut(str(own.get("text") or ""), 20_000)} if own else None,
        "claim": plain(task.claim) if task.claim.status else None,
        "claim_problem": str(collected.get("outcome_problem") or ""),
        "measured": {
            **picked(found.tip, *_MEASURED),
            "effect": task.verdict.effect,
            "stands_alone": found.halves.stands_alone,
            "files": found.change.files,
        },
        "marks": found.marks._asdict(),
        "strength": strength.as_json() if strength else None,
        "expectations": plain(found.change.expectations),
        "reasons": [*task.verdict.decision.reasons],
        "notes": [cut(note) for note in found.change.notes],
        "flags": plain(found.change.flags),
        "patch": (works.patch(pair) if pair else NOTHING)._asdict(),
        "loose": (works.patch(loose) if loose else NOTHING)._asdict(),
        "commits": works.commits(pair.new) if pair else [],
        "on_branch": [plain(one) for one in known.run.branch.commits if task.slug in one.slugs],
        "aside": [{**plain(one), "evidence": [cut(text) for text in one.evidence[:10]]} for one in aside],
        "attempts": [_attempt(root, state, attempt, known.now) for attempt in state.attempts],
        "problems": [cut(str(problem)) for problem in collected.get("problems", ())],
        "logs": logs(root, known, task.slug),
        "files": _files(root, state),
        "questions": [picked(one, "kind", "text", "commands") for one in asked],
    }


def pairs_of(known: ReportData, task: TaskView) -> tuple[Pair | None, Pair | None]:
    """The commits between which its work is, and between which what it did not commit."""
    base = str(known.state.facts.get("base") or "")
    attempt = next((attempt for attempt in reversed(task.task.attempts) if attempt.collected), None)
    collected = (attempt.collected if attempt else None) or {}
    tip, loose = collected.get("tip"), collected.get("uncommitted")
    pair = Pair(base, str(tip), len(task.evidence.change.files)) if tip and tip != base else None
    return pair, Pair(str(tip or base), str(loose)) if loose else None


def logs(root: str, known: ReportData, slug: str) -> list[dict[str, Any]]:
    """What the steps of its measurements printed, and their exit codes."""
    found = []
    for job, told in _JOBS.items():
        place = ("jobs", known.logs.get(f"{job}-{slug}", f"{job}-{slug}"))
        names = [one.parts[0] for one in run_files.listed(root, *place) if len(one.parts) == 1]
        steps = [name.removesuffix(".log") for name in names if name.endswith(".log")]
        for step in sorted(steps, key=_step_order):
            text = run_files.text(root, *place, f"{step}.log", most=_MOST_LOG, end=True)
            code = run_files.text(root, *place, f"{step}.exit", most=20)
            exit_code = code.text.strip()[:10] if code is not None else ""
            if text is not None:
                found.append({"name": f"{step}: {told}", "exit_code": exit_code, **text._asdict()})
    return found


def _step_order(step: str) -> tuple[int, str]:
    first = step.partition("-")[0]
    return (_STEPS.index(first) if first in _STEPS else len(_STEPS), step)


def said(root: str, slug: str, number: int) -> dict[str, Any]:
    """The conversation of an attempt: known fields only, cut where it is too long, with a note."""
    data = run_files.read(root, "tasks", slug, str(number), "transcript.jsonl", most=20_000_000)
    entries: list[dict[str, Any]] = []
    left = _MOST_SAID
    for line in read_lines(data or b""):
        if left <= 0 or len(entries) >= _MOST_ENTRIES:
            return {"entries": entries, "note": "The rest of the conversation is in `transcript.jsonl`."}
        entry = _entry(line)
        left -= len(entry["text"]) + len(entry["input"])
        entries.append(entry)
    return {"entries": entries, "note": ""}


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
    screen = run_files.text(root, "tasks", task.slug, str(attempt.number), "screen.txt", most=_MOST_SHOWN, end=True)
    return {
        **picked(attempt, "number", "agent", "host", "intended_at", "started_at", "warned_at", "nudged_at"),
        **picked(attempt, "goes_on", "state", "ended", "retry"),
        "seconds": round((attempt.ended_at or now) - attempt.intended_at, 2),
        "state_reason": cut(attempt.state_reason),
        "because": cut(attempt.because),
        "errors": [cut(text) for text in (attempt.collect_error, attempt.check_error) if text],
        "usage": picked(attempt.usage, "tokens", "cost_usd"),
        "said": said(root, task.slug, attempt.number),
        "screen": screen.text if screen is not None else "",
    }


def _files(root: str, task: TaskState) -> list[dict[str, Any]]:
    """The artifacts of the last attempt, by name."""
    place = ("tasks", task.slug, str(len(task.attempts)), "artifacts")
    return [{"name": "/".join(one.parts), "bytes": one.bytes} for one in run_files.listed(root, *place)]
