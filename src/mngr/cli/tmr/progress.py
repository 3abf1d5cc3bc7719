"""A run while it goes on: a picture redrawn in place on a terminal, elsewhere a line for each thing that happens."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mngr.actions import screen
from mngr.cli.app import App
from mngr.cli.output.amounts import amount, money, tokens
from mngr.cli.output.durations import age
from mngr.cli.output.output import to_json
from mngr.cli.output.terminal import cut, is_terminal, visible
from mngr.errors import MngrError
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RUNNING, WAITING, RunState, TaskState
from mngr.named_tuples import NamedTuple
from mngr.system.interrupts import Abandoned
from mngr.tmr.judge import verdict
from mngr.tmr.run_view import tasks_of, verdict_of
from mngr.tmr.words.host_words import NOT_USED
from mngr.tmr.words.log_lines import PHASES, line, phase_text, standing

_HIDE_CURSOR, _SHOW_CURSOR, _CLEAR_BELOW = "\x1b[?25l", "\x1b[?25h", "\x1b[J"
_EVERY = 0.25
_LINES_EVERY = 1.0
_FAR_LINES_EVERY = 5.0  # each is a question to another machine
_AGENTS_SHOWN = 10


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
        canary = state.phases["canary"].data
        lines.append("" if canary.get("test") else phase_text("canary", canary))
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
    parts = [tokens(usage.tokens)] if usage.tokens else []
    parts += [money(usage.cost_usd)] if usage.cost_usd else []
    parts += [f"{amount(usage.unpriced, 'answer')} without a known price"] if usage.unpriced else []
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
