"""A run as a person reads it in the terminal: the answer, its tasks by what needs a person, then what to type."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator

from mngr.cli.app import App
from mngr.cli.output.amounts import amount, money, tokens
from mngr.cli.output.durations import age, took
from mngr.cli.output.terminal import cut
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RunState, TaskState
from mngr.tmr.judge import verdict
from mngr.tmr.words import places
from mngr.tmr.words.headline import Headline, headline
from mngr.tmr.words.host_words import NOT_USED, host_line, host_rows
from mngr.tmr.words.questions import questions
from mngr.tmr.words.summary import OVER, doing, ended_at, seconds, verdict_of, why

VERDICT_STYLES = {
    **dict.fromkeys(verdict.INTEGRATED, "green"),
    **dict.fromkeys((verdict.SAME, verdict.UNCHANGED, verdict.NOT_STARTED), "dim"),
    **dict.fromkeys((verdict.EXPECTATION_CHANGED, *places.FOR_A_PERSON), "yellow"),
    **dict.fromkeys(places.NOT_TRUE, "red"),
}
_FOLDED = frozenset({places.DONE, places.UNCHANGED, places.QUEUED})
_FOLD_FROM = 6
_NAME_MAX = 40


def show(app: App, run: Run, report: str = "") -> None:
    """All of it, on standard output. `report` is the path of its pages, where they are."""
    out, state = app.out, run.state
    state_word = doing(state, run.orchestrator() is not None)
    answer = _headline(run, state_word)
    out.line(" · ".join(_facts(state, state_word)), "bold")
    out.line(answer.title, {"good": "green", "bad": "red", "look": "yellow"}.get(answer.tone, ""))
    if answer.more:
        out.line(" ".join(answer.more))
    if state.hosts:
        _hosts(app, state)
    _groups(app, state)
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


def _headline(run: Run, state_word: str) -> Headline:
    from mngr.report.tmr import TmrRun
    from mngr.report.tmr_suite import suite

    return headline(run.state, state_word, suite(TmrRun(run.directory).known()))


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


def _groups(app: App, state: RunState) -> None:
    out = app.out
    where = places.places(state)
    asked = {task.slug: (one.kind, one.text) for one in questions(state) for task in one.tasks}
    order = {slug: at for at, slug in enumerate(asked)}  # dangerous ones first
    for name, tasks in places.grouped(state).items():
        out.line(f"\n{name.upper()} ({len(tasks)})", "bold")
        if name in _FOLDED and len(tasks) >= _FOLD_FROM:
            names = ", ".join(task.slug for task in tasks)
            for line in textwrap.wrap(names, (out.columns or 100) - 2, break_on_hyphens=False):
                out.line(f"  {line}", "dim")
            continue
        tasks = sorted(tasks, key=lambda task: order.get(task.slug, len(order)))
        told = [(task.slug, *_told(task, name, where.get(task.slug, places.NOWHERE), asked)) for task in tasks]
        slugs = min(_NAME_MAX, max(len(slug) for slug, _, _ in told))
        words = max(len(word) for _, word, _ in told)
        for slug, word, text in told:
            start = f"  {slug:<{slugs}}  {word:<{words}}  "
            room = max(20, (out.columns or 200) - len(start))
            style = "yellow" if name in (places.NEEDS_YOU, places.ASIDE) else VERDICT_STYLES.get(word, "")
            out.line((start + cut(" ".join(text.split()), room)).rstrip(), style)


def _told(task: TaskState, group: str, place: places.WorkPlace, asked: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Its verdict, or what needs a person, and why."""
    if group == places.NEEDS_YOU and task.slug in asked:
        return asked[task.slug]
    if group == places.ASIDE:
        kept = f"; kept on `{place.kept_on}`" if place.kept_on else ""
        return verdict_of(task), place.reason + kept
    if task.last is None or task.status == "settled":
        return verdict_of(task), why(task)
    place_of = f"on `{task.last.host}`" if task.last.host else ""
    tries = f"attempt {len(task.attempts)}" if len(task.attempts) > 1 else ""
    return verdict_of(task), ": ".join(filter(None, [", ".join(filter(None, [place_of, tries])), why(task)]))
