"""A run in rows and words: what the terminal, the pages and a pull request say. Pure over the ledger's state."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mngr.agent.record import seconds_of
from mngr.json_values import plain
from mngr.mapreduce import decide
from mngr.mapreduce.state import RunState, TaskState
from mngr.programs.kind import PERMISSIONS
from mngr.tmr.run_view import RunView, TaskView, tasks_of, verdict_of
from mngr.tmr.words.host_words import host_rows, lost_on


def row(task: TaskView) -> dict[str, Any]:
    """One task, as JSON: `measured` is what its test did before and after, `claim` what its agent says of that."""
    state, found, claim = task.task, task.verdict, task.claim
    return {
        "task": task.id,
        "slug": task.slug,
        "status": state.status,
        "verdict": task.word,
        "why": task.why,
        "agent": state.last.agent if state.last else None,
        "host": state.last.host or None if state.last else None,
        "lost_hosts": lost_on(state),
        "attempts": len(state.attempts),
        "claim": {name: getattr(claim, name) or None for name in ("status", "before", "after")},
        "after": found.evidence.marks.t1p1 or None,
        "flags": [flag._asdict() for flag in found.evidence.change.flags],
        "files": [*found.evidence.change.files],
        "new_tests": [*found.evidence.tip.new],
        "effect": None if found.effect is None else [*found.effect],
        "escalations": plain(claim.escalations),
        "summary": claim.summary,
        "tokens": state.usage.tokens,
        "cost_usd": round(state.usage.cost_usd, 6),
        "unpriced": state.usage.unpriced,
        "seconds": round(seconds_on(state), 3),
        "place": task.place.word,
        "commit": task.place.commits[-1] if task.place.commits else "",
    }


def seconds_on(task: TaskState) -> float:
    """How long its attempts that have ended took."""
    return sum((one.ended_at or one.intended_at) - one.intended_at for one in task.attempts)


def rows(run: RunView) -> list[dict[str, Any]]:
    """All tasks as JSON: `place` is where the work is, `commit` the last commit on the branch that holds some of it."""
    return [row(task) for task in run.tasks]


def summary(state: RunState) -> dict[str, Any]:
    """A whole run, as JSON."""
    tasks = tasks_of(state)
    counts = Counter(verdict_of(task) for task in tasks)
    integrated = state.phases.get("integrate")
    baseline = state.phases.get("baseline")
    usage = state.usage
    return {
        "run": state.facts.get("run"),
        "base": state.facts.get("base"),
        "exit_code": (state.finished or {}).get("exit_code"),
        "tasks": len(tasks),
        "verdicts": {word: counts[word] for word in sorted(counts)},
        "baseline": dict(baseline.data) if baseline is not None else {},
        "canary": dict(state.phases["canary"].data) if "canary" in state.phases else {},
        "integration": dict(integrated.data) if integrated is not None and integrated.ended_at is not None else None,
        "tokens": usage.tokens,
        "cost_usd": round(usage.cost_usd, 6),
        "unpriced": usage.unpriced,
        "waits_until": state.waits_until or None,
        "paused": paused(state) or None,
        "not_stopped": sorted(one.agent for task in state.tasks.values() for one in task.attempts if one.release_error),
        "hosts": host_rows(state),
        "began_at": state.began_at,
        "seconds": round(seconds(state, ended_at(state)), 3),
    }


def ended_at(state: RunState) -> float:
    """When the run ended; for one that did not, the time of its last entry."""
    at = (state.finished or {}).get("at")
    try:
        return seconds_of(str(at)) if at else state.last_at
    except ValueError:
        return state.last_at


def seconds(state: RunState, until: float) -> float:
    """How long was worked on a run, without the time in which no process did, such as that before a review."""
    gaps = sum(max(0.0, min(end, until) - start) for start, end in state.gaps)
    return max(0.0, until - state.began_at - gaps)


def paused(state: RunState) -> str:
    """Why a run goes on only once a person has seen to something; empty when it does not pause."""
    if state.trip is not None:
        return f"{len(state.trip.tasks)} tasks failed in the same way: {state.trip.example}"
    return state.paused


def remedy(state: RunState) -> str:
    """The command that continues a run that pauses."""
    command = f"mngr tmr resume {state.facts.get('run')}"
    if state.trip is None or not state.trip.example.startswith("blocked: permission"):
        return f"`{command}`"
    given = str((state.facts.get("workers") or {}).get("permissions") or "ask")
    more = next((name for name in ("tests", "bypass") if name in PERMISSIONS and name != given), "bypass")
    return f"let agents do more without asking: `{command} --permissions {more}`"


OVER, BROKEN_OFF, STOPPED, PAUSED = "over", "broken off", "stopped", "paused"
CAN_GO_ON = frozenset({BROKEN_OFF, STOPPED, PAUSED})


def doing(state: RunState, going_on: bool) -> str:
    """What a run does, in a word; `going_on` is whether a process works on it, which no ledger can tell."""
    if going_on:
        return "running"
    if paused(state):
        return PAUSED
    if state.finished is not None:
        return STOPPED if (state.finished.get("summary") or {}).get("why") == decide.STOPPED else OVER
    return STOPPED if state.stopped_at is not None else BROKEN_OFF
