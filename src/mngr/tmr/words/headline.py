"""What a reader of a run wants to know first: may I merge, and what must I look at before? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mngr.mapreduce.state import SETTLED, RunState, TaskState
from mngr.tmr.judge.verdict import UNCHANGED
from mngr.tmr.words.places import ASIDE, NEEDS_YOU, REFUTED, grouped, integration_of, is_dangerous, places
from mngr.tmr.words.summary import CAN_GO_ON, paused, remedy, tasks_of, verdict_of

GOOD, LOOK, BAD, BUSY, CALM = "good", "look", "bad", "busy", "calm"


class Suite(NamedTuple):
    """All tests, at the base and at the tip of the branch: how many pass, and how many passed at the base and do not
    pass at the tip. None for what was not measured."""

    before: int | None = None
    after: int | None = None
    worse: int | None = None


class Headline(NamedTuple):
    """`title` is the answer in one sentence, `more` says what to look at and what did not get there. `commands` are
    each what it does and what to type."""

    tone: str
    title: str
    more: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        return " ".join((self.title, *self.more))


def headline(state: RunState, doing: str, suite: Suite) -> Headline:
    """`doing` is what the run does (see `summary.doing`)."""
    run = str(state.facts.get("run") or "")
    tasks = tasks_of(state)
    if doing == "running":
        return _running(state, run, tasks)
    if doing in CAN_GO_ON:
        return _unfinished(state, doing, tasks)
    found = integration_of(state)
    branch = str(found.get("branch") or "")
    if not branch:
        more = (*_rest(state, with_verdicts=False), *_spent(state))
        return Headline(CALM, _nothing(tasks, bool(found)), more, _continue(state, run, tasks))
    see = ("see it", f"git log -p {str(state.facts.get('base') or '')[:8]}..{branch}")
    commits = _count(len(found.get("commits", ())), "commit")
    if found.get("green") is False or suite.worse:
        got_worse = f": {_count(suite.worse, 'test')} got worse" if suite.worse else ": its tests are red"
        title = f"Do not merge `{branch}` yet{got_worse}."
        return Headline(BAD, title, (f"It has {commits}.", *_rest(state)), (_review(run), see))
    measured = "" if found.get("green") else ", but its tests were not run"
    known = suite.before is not None and suite.after is not None
    passing = f", {suite.before} → {suite.after} tests pass, nothing got worse" if known else ""
    title = f"Branch `{branch}` is ready{measured}: {commits}{passing}."
    first = _flagged(state)
    merge = ("merge it", f"git merge {branch}")
    if first:
        look = f"Look at {_count(first, 'flagged commit')} before you merge."
        return Headline(LOOK, title, (look, *_rest(state)), (_review(run), merge))
    return Headline(
        GOOD if found.get("green") else LOOK,
        title,
        (*_rest(state), *_spent(state)),
        (merge, _review(run), *_continue(state, run, tasks)),
    )


def _spent(state: RunState) -> tuple[str, ...]:
    limit = (state.facts.get("limits") or {}).get("budget_usd")
    return (
        (f"${state.usage.cost_usd:.2f} of ${limit:.2f} are spent.",) if limit and state.usage.cost_usd >= limit else ()
    )


def _continue(state: RunState, run: str, tasks: Sequence[TaskState]) -> tuple[tuple[str, str], ...]:
    """How to go on with tasks that were not started, collected or verified."""
    if all(task.status == SETTLED for task in tasks):
        return ()
    return (("continue", f"mngr tmr resume {run}{' --budget-usd USD' if _spent(state) else ''}"),)


def _running(state: RunState, run: str, tasks: Sequence[TaskState]) -> Headline:
    settled = sum(task.status == SETTLED for task in tasks)
    title = f"Running: {settled} of {_count(len(tasks), 'task')} settled." if tasks else "Running: no tasks yet."
    needs = len(grouped(state).get(NEEDS_YOU, ()))
    more = (f"{_count(needs, 'task')} {'need' if needs != 1 else 'needs'} you.",) if needs else ()
    return Headline(BUSY, title, more, (("watch it", f"mngr tmr serve {run}"),))


def _unfinished(state: RunState, doing: str, tasks: Sequence[TaskState]) -> Headline:
    settled = sum(task.status == SETTLED for task in tasks)
    cause = paused(state)
    title = f"Nothing to merge yet: the run is {doing}{f' ({cause})' if cause else ''}."
    command = remedy(state).rpartition(": ")[2].strip("`")
    return Headline(LOOK, title, (f"{settled} of {_count(len(tasks), 'task')} settled.",), (("continue", command),))


def _nothing(tasks: Sequence[TaskState], integrated: bool) -> str:
    counts = Counter(verdict_of(task) for task in tasks)
    if not tasks:
        return "Nothing to merge: the run has no tasks."
    if len(counts) == 1:
        word = next(iter(counts))
        every = "the only task is" if len(tasks) == 1 else f"all {len(tasks)} tasks are"
        return f"Nothing to merge: {'no change was needed' if word == UNCHANGED else f'{every} {word}'}."
    why = "" if integrated else ", and nothing was integrated"
    return f"Nothing to merge: {_told(counts)}{why}."


def _flagged(state: RunState) -> int:
    """How many commits of the branch hold work that a person should look at and has not accepted."""
    accepted = set(integration_of(state).get("accepted", ()))
    where = places(state)
    dangerous = [task for task in tasks_of(state) if is_dangerous(task) and task.slug not in accepted]
    return len({id for task in dangerous if task.slug in where for id in where[task.slug].commits[-1:]})


def _rest(state: RunState, with_verdicts: bool = True) -> tuple[str, ...]:
    groups, where = grouped(state), places(state)
    held = [task for task in groups.get(NEEDS_YOU, ()) if task.slug not in where or not where[task.slug].commits]
    missed = [*groups.get(REFUTED, ()), *held]
    parts = []
    if missed and with_verdicts:
        parts.append(f"{_count(len(missed), 'task')} did not make it ({_told(Counter(map(verdict_of, missed)))})")
    if aside := len(groups.get(ASIDE, ())):
        parts.append(f"{aside} set aside")
    return (f"{', '.join(parts)}.",) if parts else ()


def _review(run: str) -> tuple[str, str]:
    return ("review it", f"mngr tmr review {run}")


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
