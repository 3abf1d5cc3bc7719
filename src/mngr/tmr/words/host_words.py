"""The other machines of a run in words: which answer, which were lost, and what became of the tasks there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.mapreduce.state import HOST_LOST, RunState, TaskState

NOT_USED = ("lost", "unreached")


def _amount(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)


def lost_on(task: TaskState) -> list[str]:
    """The hosts that were lost with an attempt at this task."""
    return [attempt.host for attempt in task.attempts if attempt.host and attempt.ended == HOST_LOST]


def host_rows(state: RunState) -> list[dict[str, Any]]:
    """Each host, as JSON: `agents` were made there, `working` of them are at work, `lost` are repeated elsewhere."""
    attempts = [attempt for task in state.tasks.values() for attempt in task.attempts]
    rows = []
    for name, host in state.hosts.items():
        there = [attempt for attempt in attempts if attempt.host == name]
        rows.append(
            {
                "host": name,
                "provider": host.provider,
                "state": host.state,
                "because": host.because,
                "since": host.since,
                "agents": len(there),
                "working": sum(attempt.goes_on for attempt in there),
                "lost": sum(attempt.ended == HOST_LOST and attempt.retry for attempt in there),
            }
        )
    return rows


def host_line(row: Mapping[str, Any]) -> str:
    """What is to be said of a host, without its name."""
    agents = _amount(row["agents"], "agent")
    if row["state"] not in NOT_USED:
        ended = f"could not be created: {row['because']}" if row["because"] else f"destroyed after {agents}"
        told = {"making": "is being created", "destroyed": ended}.get(str(row["state"]))
        return told or agents + (f", {row['working']} at work" if row["working"] else "")
    what = "is gone" if row["state"] == "lost" else "does not answer"
    lost = f"; {_amount(row['lost'], 'task')} moved to other hosts" if row["lost"] else ""
    return f"{what}: {row['because']}; {agents}{lost}"


def host_change(entry: Mapping[str, Any]) -> str:
    """An entry of the ledger about a host; empty for one that a person need not see."""
    name, because = entry["name"], entry.get("because")
    texts = {
        "making": f"creating host `{name}`",
        "ready": f"host `{name}` answers again" if entry.get("back") else "",
        "unreached": f"host `{name}` does not answer, no new agents there: {because}",
        "lost": f"host `{name}` is gone: {because}",
        "destroyed": f"host `{name}` could not be created: {because}" if because else "",
    }
    return texts.get(str(entry["state"]), "")
