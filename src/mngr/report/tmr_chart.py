"""A run over time: agents at work, their limit, and the phases. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.mapreduce.state import SETTLED, RunState
from mngr.tmr.summary import tasks_of

_MOST = 600


def chart(state: RunState, told: Sequence[Mapping[str, Any]], end: float) -> dict[str, Any]:
    """Agents at work over time, in seconds since the beginning: steps of count and limit, and the phases."""
    began = state.began_at
    changes: Counter[float] = Counter()
    for attempt in (one for task in state.tasks.values() for one in task.attempts if one.started_at is not None):
        changes[attempt.started_at or 0.0] += 1
        changes[attempt.ended_at if attempt.ended_at is not None else end] -= 1
    steps, count = [], 0
    for at in sorted(changes):
        count += changes[at]
        steps.append((round(at - began, 2), count))
    limits = [
        (round(max(0.0, entry["at"] - began), 2), entry.get("limit"))
        for entry in told
        if entry["type"] == "concurrency" and isinstance(entry.get("limit"), int)
    ]
    return {
        "seconds": round(max(0.0, end - began), 2),
        "agents": _thinned(steps),
        "limits": limits[-_MOST:],
        "phases": phases(state, told, end),
        "most": max((count for _, count in steps), default=0),
    }


def phases(state: RunState, told: Sequence[Mapping[str, Any]], end: float) -> list[dict[str, Any]]:
    """The phases in their order; `map`, which is no phase of the ledger, lasts from the first attempt to the last that
    was measured."""
    spans = {name: (one.began_at, one.ended_at) for name, one in state.phases.items()}
    attempts = [attempt for task in tasks_of(state) for attempt in task.attempts]
    if attempts and "map" not in spans:
        ends = [attempt.ended_at for attempt in attempts if attempt.ended_at is not None]
        ends += [
            entry["at"]
            for entry in told
            if entry["type"] == "measured" and str(entry.get("label")).startswith("verify-")
        ]
        over = all(task.status == SETTLED for task in tasks_of(state)) or "integrate" in spans
        spans["map"] = (min(attempt.intended_at for attempt in attempts), max(ends, default=None) if over else None)
    return [
        {
            "name": name,
            "from": round(began - state.began_at, 2),
            "to": round((ended if ended is not None else end) - state.began_at, 2),
            "over": ended is not None,
        }
        for name, (began, ended) in sorted(spans.items(), key=lambda item: item[1][0])
    ]


def _thinned(steps: Sequence[tuple[float, int]], most: int = _MOST) -> list[tuple[float, int]]:
    """As many steps as a chart can show, the highest of each stretch kept."""
    if len(steps) <= most:
        return list(steps)
    size = -(-len(steps) // (most // 2))
    kept: list[tuple[float, int]] = []
    for at in range(0, len(steps), size):
        part = steps[at : at + size]
        kept += sorted({max(part, key=lambda step: step[1]), part[-1]})
    return kept
