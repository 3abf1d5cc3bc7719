"""A run as a person reads it in the terminal: the answer, its tasks by what needs a person, then what to type."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator, Sequence

from mngr.cli.app import App
from mngr.cli.output.amounts import amount, money, tokens
from mngr.cli.output.durations import age, took
from mngr.cli.output.terminal import cut
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import SETTLED, RunState
from mngr.tmr.judge import verdict
from mngr.tmr.run_view import RunView, TaskView
from mngr.tmr.words.headline import Suite, headline
from mngr.tmr.words.host_words import NOT_USED, host_line, host_rows
from mngr.tmr.words.questions import (
    ASIDE,
    DONE,
    FOR_A_PERSON,
    NEEDS_YOU,
    NOT_TRUE,
    QUEUED,
    UNCHANGED,
    Question,
    grouped,
    questions,
)
from mngr.tmr.words.summary import OVER, doing, ended_at, seconds

VERDICT_STYLES = {
    **dict.fromkeys(verdict.INTEGRATED, "green"),
    **dict.fromkeys((verdict.SAME, verdict.UNCHANGED, verdict.NOT_STARTED), "dim"),
    **dict.fromkeys((verdict.EXPECTATION_CHANGED, *FOR_A_PERSON), "yellow"),
    **dict.fromkeys(NOT_TRUE, "red"),
}
_FOLDED = frozenset({DONE, UNCHANGED, QUEUED})
_FOLD_FROM = 6
_NAME_MAX = 40


def show(app: App, run: Run, report: str = "") -> None:
    """All of it, on standard output. `report` is the path of its pages, where they are."""
    out, state = app.out, run.state
    state_word = doing(state, run.orchestrator() is not None)
    seen, suite = _seen(run)
    asked = questions(seen)
    answer = headline(seen, state_word, suite, asked)
    out.line(" · ".join(_facts(state, state_word)), "bold")
    out.line(answer.title, {"good": "green", "bad": "red", "look": "yellow"}.get(answer.tone, ""))
    if answer.more:
        out.line(" ".join(answer.more))
    if state.hosts:
        _hosts(app, state)
    _asked(app, asked)
    _groups(app, seen, asked)
    left = sorted(one.agent for task in state.tasks.values() for one in task.attempts if one.release_error)
    if left:
        out.line(f"\ncould not be stopped, still running: {', '.join(left)}", "red")
    out.line("")
    commands = [*answer.commands, *([("report", report)] if report else [])]
    widest = max((len(label) for label, _ in commands), default=0)
    for label, command in commands:
        out.line(f"{label + ':':<{widest + 1}}  {command}")


def report_of(run: Run) -> str:
    """Where the pages of a run are; empty when they were never written."""
    path = os.path.join(run.directory, "report", "index.html")
    return path if os.path.exists(path) else ""


def _seen(run: Run) -> tuple[RunView, Suite]:
    from mngr.report.tmr import TmrRun
    from mngr.report.tmr_suite import suite

    known = TmrRun(run.directory).known()
    return known.run, suite(known)


def _facts(state: RunState, state_word: str) -> Iterator[str]:
    run = str(state.facts.get("run") or "")
    if state_word == OVER:
        end = ended_at(state)
        yield f"{run}  finished {age(time.time() - end)} ago, took {took(seconds(state, end))}"
    else:
        yield f"{run}  {state_word}, started {age(time.time() - state.began_at)} ago"
    if state.usage.cost_usd or (state.usage.tokens and not state.usage.unpriced):
        yield money(state.usage.cost_usd)
    if state.usage.tokens:
        yield tokens(state.usage.tokens)
    if state.usage.unpriced:
        yield f"{amount(state.usage.unpriced, 'answer')} without a known price"


def _hosts(app: App, state: RunState) -> None:
    """The other machines of the run: a line for each."""
    rows = host_rows(state)
    app.out.line(f"\nHOSTS of `{rows[0]['provider']}` ({len(rows)})", "bold")
    widest = max(len(row["host"]) for row in rows)
    for row in rows:
        style = "red" if row["state"] in NOT_USED else ""
        app.out.line(f"  {row['host']:<{widest}}  {host_line(row)}", style)


def _asked(app: App, asked: Sequence[Question]) -> None:
    """What waits for a person, a line for each question, however many tests ask it."""
    if asked:
        app.out.line(f"\n{NEEDS_YOU.upper()} ({len(asked)})", "bold")
    told = [(one.tasks[0].slug, len(one.tasks) - 1, one.kind, one.text) for one in asked]
    _lines(
        app, [(f"{slug} and {more} more" if more else slug, kind, text, "yellow") for slug, more, kind, text in told]
    )


def _groups(app: App, run: RunView, asked: Sequence[Question]) -> None:
    """All other tasks."""
    out = app.out
    for name, tasks in grouped(run, asked).items():
        if name == NEEDS_YOU:
            continue
        out.line(f"\n{name.upper()} ({len(tasks)})", "bold")
        if name in _FOLDED and len(tasks) >= _FOLD_FROM:
            names = ", ".join(task.slug for task in tasks)
            for line in textwrap.wrap(names, (out.columns or 100) - 2, break_on_hyphens=False):
                out.line(f"  {line}", "dim")
        else:
            _lines(
                app, [(task.slug, task.word, _told(task, name), VERDICT_STYLES.get(task.word, "")) for task in tasks]
            )


def _lines(app: App, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Name, word and text of each, and the style of the line."""
    names = min(_NAME_MAX, max((len(row[0]) for row in rows), default=0))
    words = max((len(row[1]) for row in rows), default=0)
    for name, word, text, style in rows:
        start = f"  {name:<{names}}  {word:<{words}}  "
        room = max(20, (app.out.columns or 200) - len(start))
        app.out.line((start + cut(" ".join(text.split()), room)).rstrip(), style)


def _told(task: TaskView, group: str) -> str:
    """Why it has this verdict, or is where it is."""
    last = task.task.last
    if group == ASIDE:
        return task.place.reason + (f"; kept on `{task.place.kept_on}`" if task.place.kept_on else "")
    if last is None or task.task.status == SETTLED:
        return task.why
    tries = f"attempt {len(task.task.attempts)}" if len(task.task.attempts) > 1 else ""
    place = ", ".join(filter(None, [f"on `{last.host}`" if last.host else "", tries]))
    return ": ".join(filter(None, [place, task.why]))
