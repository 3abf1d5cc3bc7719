"""Entries of a run's ledger in words, for the terminal and the pages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from mngr.agent import reasons
from mngr.mapreduce.ledger_fold import waits
from mngr.mapreduce.state import HOST_LOST, RUNNING, RunState
from mngr.tmr.judge import verdict
from mngr.tmr.measure.canary import NOT_ASKED
from mngr.tmr.words.host_words import NOT_USED, host_change, host_line, host_rows
from mngr.tmr.words.summary import paused

PHASES = {
    "collect": "collecting the tests",
    "gate": "running the gate command as it is",
    "canary": "asking whether the tests run this code",
    "baseline": "running all tests as they are",
    "select": "choosing the tasks",
    "integrate": "integrating what was verified",
}
_SAID = {
    "warned": "told that its time is almost over",
    "nudged": "asked for its outcome",
    "stirred": "asked whether it is stuck",
    "continued": "told to continue",
    "restarted": "started again",
    "returned": "asked to write its outcome file again",
}
_NOT_DONE = {"uncollected": "collected", "unreleased": "stopped"}
_OF_RUN = {"resumed": "the run was resumed", "stop": "the run was asked to stop"}


def line(entry: Mapping[str, Any], state: RunState) -> str:
    """One entry of the ledger in words; empty for one that a person need not see."""
    kind, task = entry["type"], state.tasks.get(str(entry.get("task")))
    slug = task.slug if task is not None else ""
    number = int(entry.get("number") or 0)
    attempt = task.attempts[number - 1] if task is not None and 0 < number <= len(task.attempts) else None
    host = attempt.host if attempt is not None else ""
    match kind:
        case "phase" if entry["status"] == "began":
            return PHASES.get(entry["name"], "")
        case "phase":
            told = phase_text(entry["name"], entry.get("data") or {})
            return f"  {told}" if told else ""
        case "started":
            again = f" (attempt {number})" if number > 1 else ""
            return f"{slug}: started{f' on `{host}`' if host else ''}{again}"
        case "host":
            return host_change(entry)
        case "back" if host:
            return f"{slug}: `{host}` answers again, its agent is used again"
        case "uncollected" | "unreleased":
            why = str(entry["error"]).partition("\n")[0]  # git says more below, for a person at its own prompt
            return f"{slug}: could not be {_NOT_DONE[kind]}, will be tried again: {why}"
        case "waits":
            return _waiting(state, float(entry["until"]), str(entry["because"]))
        case "paused":
            return f"paused: {entry['because']}" if entry["because"] else "agents can continue"
        case "ended" | "lost":
            elsewhere = " on another host" if host and attempt is not None and attempt.ended == HOST_LOST else ""
            return f"{slug}: {entry['because']}" + (f"; will be tried again{elsewhere}" if entry.get("retry") else "")
        case "verdict":
            found = entry["data"]
            why = next(iter(found.get("reasons") or ()), entry.get("error") or "")
            return f"{slug}: {found.get('verdict', verdict.FAILED)}" + (f", {why}" if why else "")
        case "concurrency":
            return f"at most {entry['limit']} agents at once: {entry['because']}"
        case "breaker":
            return f"paused: {len(entry['tasks'])} tasks failed in the same way: {entry['signature']}"
        case "decision":
            about = ", ".join(entry.get("about") or filter(None, [slug]))
            return (f"{about}: " if about else "") + f"{entry['what']} ({entry['because']})"
        case "retry":
            return f"{slug}: another attempt: {entry['because']}"
    return f"{slug}: {_SAID[kind]}" if kind in _SAID else _OF_RUN.get(kind, "")


def phase_text(name: str, data: Mapping[str, Any]) -> str:
    """What a phase before the agents found; empty for the others, and for a check that nobody asked for."""
    match name:
        case "collect":
            broken = data.get("broken") or ()
            more = f"; {len(broken)} files cannot be collected: {', '.join(map(str, broken))}" if broken else ""
            return f"{data.get('tests')} tests in the suite, {data.get('chosen')} chosen{more}"
        case "canary":
            if data.get("test"):
                why = f": {data['why']}" if data.get("why") else ""
                return f"the code was broken on purpose, and `{data['test']}` noticed{why}"
            unasked = data.get("why") in (None, "", NOT_ASKED)
            return "" if unasked else f"not checked whether the tests run this code: {data['why']}"
        case "baseline":
            slow = " (if the test is slow but healthy, raise `tmr.test_seconds`)" if data.get("timeout") else ""
            return (", ".join(f"{count} {word}" for word, count in data.items()) or "not measured") + slow
        case "select":
            more = f", {data['left_out']} left out because they pass" if data.get("left_out") else ""
            return f"{data.get('tasks')} tasks{more}"
    return ""


def standing(state: RunState, now: float) -> Iterator[str]:
    """What concerns all agents at the moment."""
    if now < state.waits_until:
        yield _waiting(state, state.waits_until, state.waits_because)
    if cause := paused(state):
        yield f"paused: {cause}"
    for row in host_rows(state):
        if row["state"] in NOT_USED:
            yield f"host {row['host']} {host_line(row)}"


def _waiting(state: RunState, until: float, because: str) -> str:
    """Agents that are not limited work on; whether they will be, nobody knows."""
    soon = until - time.time() < 20 * 3600
    clock = time.strftime("%H:%M" if soon else "%b %d %H:%M", time.localtime(until))
    working = [task.last for task in state.tasks.values() if task.status == RUNNING and task.last is not None]
    limited = sum(map(waits, working))
    who = "all agents wait" if limited == len(working) else f"{limited} of {len(working)} agents wait"
    others = "" if limited == len(working) else ", and no other one is started"
    return f"{who} until {clock}{others}: {reasons.without_time(because)}"
