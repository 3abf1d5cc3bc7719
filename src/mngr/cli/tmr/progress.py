"""A run while it goes on: a picture redrawn in place on a terminal, elsewhere a line for each thing that happens."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mngr.actions import screen
from mngr.agents import reasons
from mngr.cli.amounts import amount, money, tokens
from mngr.cli.app import App
from mngr.cli.durations import age
from mngr.cli.output import to_json
from mngr.cli.terminal import cut, is_terminal, visible
from mngr.errors import MngrError
from mngr.interrupts import Abandoned
from mngr.mapreduce.ledger_fold import waits
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import HOST_LOST, RUNNING, WAITING, RunState, TaskState
from mngr.tmr import verdict
from mngr.tmr.canary import NOT_ASKED
from mngr.tmr.host_words import NOT_USED, host_change, host_line, host_rows
from mngr.tmr.summary import paused, tasks_of, verdict_of

_HIDE_CURSOR, _SHOW_CURSOR, _CLEAR_BELOW = "\x1b[?25l", "\x1b[?25h", "\x1b[J"
_EVERY = 0.25
_LINES_EVERY = 1.0
_FAR_LINES_EVERY = 5.0  # each is a question to another machine
_AGENTS_SHOWN = 10
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


@contextmanager
def shown(app: App, run: Run) -> Iterator[None]:
    """Show what happens to the run for as long as this lasts."""
    if app.out.format == "jsonl":
        with run.heard_by(lambda entry: _write_json(app, entry)):
            yield
    elif not app.out.human or app.out.quiet:
        yield
    elif is_terminal(app.stderr) and not app.headless:
        with _LiveProgress(app, run).running():
            yield
    else:
        with run.heard_by(lambda entry: _say(app, line(entry, run.state))):
            yield


def line(entry: Mapping[str, Any], state: RunState) -> str:
    """One entry of the ledger in words; empty for one that a person need not see. Pure."""
    kind, task = entry["type"], state.tasks.get(str(entry.get("task")))
    slug = task.slug if task is not None else ""
    number = int(entry.get("number") or 0)
    attempt = task.attempts[number - 1] if task is not None and 0 < number <= len(task.attempts) else None
    match kind:
        case "phase":
            if entry["status"] == "began":
                return PHASES.get(entry["name"], "")
            data = entry.get("data") or {}
            if entry["name"] == "canary":
                return _unasked(data)
            told = ", ".join(f"{value} {key}" for key, value in data.items() if isinstance(value, int) and value)
            if entry["name"] == "baseline" and data.get("timeout"):
                told += " (if the test is slow but healthy, raise `tmr.test_seconds`)"
            return f"  {told}" if told and entry["name"] in ("collect", "baseline", "select") else ""
        case "started":
            on = f" on `{attempt.host}`" if attempt is not None and attempt.host else ""
            return f"{slug}: started{on}" + (f" (attempt {entry['number']})" if entry["number"] > 1 else "")
        case "host":
            return host_change(entry)
        case "back" if attempt is not None:
            return f"{slug}: `{attempt.host}` answers again, its agent is used again"
        case "warned" | "nudged" | "stirred" | "continued" | "restarted" | "returned":
            return f"{slug}: {_SAID[kind]}"
        case "uncollected" | "unreleased":
            why = str(entry["error"]).partition("\n")[0]  # git says more below, for a person at its own prompt
            return f"{slug}: could not be {_NOT_DONE[kind]}, will be tried again: {why}"
        case "waits":
            return _waiting(state, float(entry["until"]), str(entry["because"]))
        case "paused":
            return f"paused: {entry['because']}" if entry["because"] else "agents can continue"
        case "ended" | "lost":
            elsewhere = (
                " on another host" if attempt is not None and attempt.ended == HOST_LOST and attempt.host else ""
            )
            return f"{slug}: {entry['because']}" + (f"; will be tried again{elsewhere}" if entry.get("retry") else "")
        case "verdict":
            found = entry["data"]
            reasons = found.get("reasons") or [entry["error"]] * bool(entry.get("error"))
            return f"{slug}: {found.get('verdict', verdict.FAILED)}" + (f", {reasons[0]}" if reasons else "")
        case "concurrency":
            return f"at most {entry['limit']} agents at once: {entry['because']}"
        case "breaker":
            return f"paused: {len(entry['tasks'])} tasks failed in the same way: {entry['signature']}"
        case "decision":
            about = ", ".join(entry.get("about") or filter(None, [slug]))
            return (
                f"{about}: {entry['what']} ({entry['because']})" if about else f"{entry['what']} ({entry['because']})"
            )
    return ""


def standing(state: RunState, now: float) -> Iterator[str]:
    """What concerns all agents at the moment. Pure."""
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


def _unasked(canary: Mapping[str, Any]) -> str:
    """What to say of a canary that could not tell; nothing when it could, or nobody asked it."""
    if canary.get("test") or canary.get("why") in (None, "", NOT_ASKED):
        return ""
    return f"  not checked whether the tests run this code: {canary['why']}"


class LiveFacts(NamedTuple):
    """What the picture needs beside the state: the last line on each running agent's screen, by agent."""

    said: Mapping[str, str] = {}
    decision: str = ""


def picture(state: RunState, sight: LiveFacts, *, now: float, width: int) -> list[str]:
    """The lines of the live view. Pure."""
    tasks = tasks_of(state)
    settled = [task for task in tasks if task.status == "settled"]
    phase = next((name for name, one in reversed([*state.phases.items()]) if one.ended_at is None), "")
    lines = [f"{state.facts.get('run', '')}  {_bar(len(settled), len(tasks))}  {age(now - state.began_at)}"]
    if phase:
        lines.append(PHASES.get(phase, phase) + (f": {sight.decision}" if sight.decision else ""))
    if "canary" in state.phases:
        lines.append(_unasked(state.phases["canary"].data))
    lines += standing(state, now)
    if tasks:
        lines.append(_counts(tasks, settled))
        lines.append(_costs(state, len(settled), len(tasks), now))
    working = [task for task in state.tasks.values() if task.status == RUNNING and task.last is not None]
    working.sort(key=lambda task: task.last.started_at or 0.0 if task.last else 0.0)
    widest = max((len(task.slug) for task in working[:_AGENTS_SHOWN]), default=0)
    hosts = max((len(task.last.host) for task in working[:_AGENTS_SHOWN] if task.last), default=0)
    for task in working[:_AGENTS_SHOWN]:
        last = task.last
        assert last is not None
        shown = last.state_reason if last.state == "BLOCKED" else sight.said.get(last.agent, "")
        name = f"{task.slug:<{widest}}  " + (f"{last.host:<{hosts}}  " if hosts else "")
        lines.append(f"  {name}{last.state:<8}  {age(now - (last.started_at or now)):>6}  {shown}")
    if len(working) > _AGENTS_SHOWN:
        lines.append(f"  ... and {len(working) - _AGENTS_SHOWN} more")
    return [cut(visible(text), width) for text in lines if text]


def _bar(done: int, of: int, width: int = 24) -> str:
    full = round(width * done / of) if of else 0
    return f"[{'#' * full}{'.' * (width - full)}] {done}/{of}"


def _counts(tasks: Sequence[TaskState], settled: Sequence[TaskState]) -> str:
    where = Counter(task.status for task in tasks if task.status != "settled")
    came = Counter(verdict_of(task) for task in settled)
    parts = [f"{count} {'queued' if word == WAITING else word}" for word, count in where.items()]
    parts += [f"{came[word]} {word}" for word in verdict.VERDICTS if came[word]]
    return "  " + ", ".join(parts)


def _costs(state: RunState, settled: int, of: int, now: float) -> str:
    usage = state.usage
    parts = []
    if usage.tokens:
        parts.append(tokens(usage.tokens))
    if usage.cost_usd:
        parts.append(money(usage.cost_usd))
    if usage.unpriced:
        parts.append(f"{amount(usage.unpriced, 'answer')} without a known price")
    first = min((one.intended_at for task in state.tasks.values() for one in task.attempts), default=now)
    if settled and settled < of and now >= state.waits_until:
        each = (now - first) / settled
        parts.append(f"{60 / each:.1f} tasks a minute" if each > 0 else "")
        parts.append(f"about {age(each * (of - settled))} left")
    return "  " + ", ".join(filter(None, parts)) if parts else ""


class _LiveProgress:
    def __init__(self, app: App, run: Run) -> None:
        self._app, self._run = app, run
        self._over = threading.Event()
        self._drawn = 0
        self._sight = LiveFacts()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._go, name="progress", daemon=True)
        with self._run.heard_by(self._hear):
            thread.start()
            # Apart from the picture: a host that does not answer is waited for.
            threading.Thread(target=self._read_screens, name="screens", daemon=True).start()
            try:
                yield
            finally:
                self._over.set()
                thread.join()

    def _hear(self, entry: Mapping[str, Any]) -> None:
        if entry["type"] == "decision":
            self._sight = self._sight._replace(decision=line(entry, self._run.state))

    def _go(self) -> None:
        while not self._over.wait(_EVERY):
            self._draw()
        self._draw()
        self._app.stderr.write(_SHOW_CURSOR)
        self._app.stderr.flush()

    def _read_screens(self) -> None:
        while not self._over.wait(_FAR_LINES_EVERY if self._run.state.hosts else _LINES_EVERY):
            self._look()

    def _look(self) -> None:
        said, state, fleet = {}, self._run.state, self._app.fleet
        running = [task for task in state.tasks.values() if task.status == RUNNING][:_AGENTS_SHOWN]
        for attempt in filter(None, (task.last for task in running)):
            host = state.hosts.get(attempt.host)
            if self._over.is_set() or (host is not None and host.state in NOT_USED):
                continue
            try:
                site = fleet.local if host is None else fleet.hosts.site(attempt.host, host.provider)
                lines = site.run(screen.read, attempt.agent_id).split("\n")
            except (MngrError, Abandoned):
                continue  # it has just ended, or all of this has
            said[attempt.agent] = next((text.strip() for text in reversed(lines) if text.strip()), "")
        self._sight = self._sight._replace(said=said)

    def _draw(self) -> None:
        lines = picture(self._run.state, self._sight, now=time.time(), width=self._app.out.columns or 80)
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        text = "".join(f"{row}\x1b[K\n" for row in lines)
        self._app.stderr.write(f"{_HIDE_CURSOR}{up}{text}{_CLEAR_BELOW}")
        self._app.stderr.flush()
        self._drawn = len(lines)


def _say(app: App, text: str) -> None:
    if text:
        app.out.note(text)


def _write_json(app: App, entry: Mapping[str, Any]) -> None:
    app.stdout.write(to_json(entry) + "\n")
    app.out.flush()
