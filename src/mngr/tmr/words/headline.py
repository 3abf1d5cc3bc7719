"""What a reader of a run wants to know first: may I merge, and what must I look at before? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mngr.mapreduce.state import SETTLED, RunState
from mngr.tmr.judge.verdict import UNCHANGED
from mngr.tmr.run_view import RunView
from mngr.tmr.words.questions import FLAGGED, FOR_A_PERSON, NOT_TRUE, Question, questions
from mngr.tmr.words.summary import CAN_GO_ON, paused, remedy

GOOD, LOOK, BAD, BUSY, CALM = "good", "look", "bad", "busy", "calm"


class Suite(NamedTuple):
    """How many tests of the base pass there, and as they are there also with the product of the branch; how many do not
    pass any more. None for what was not measured. `changed` are those that pass at the tip as they are now: new ones,
    and those whose own version of the base does not pass, of which `loosened` passed at the base. `agreed` are those
    that got worse by work that a person accepted although it was refuted."""

    before: int | None = None
    after: int | None = None
    worse: int | None = None
    changed: int = 0
    loosened: int = 0
    agreed: int = 0

    @property
    def text(self) -> str:
        """What became of the tests, for the headline; empty when that was not measured."""
        if self.before is None or self.after is None:
            return ""
        more = f" and {self.changed} new or changed" if self.changed else ""
        worse = f"{_count(self.agreed, 'test')} got worse as a person accepted" if self.agreed else ""
        loosened = f"{_count(self.loosened, 'test')} that passed before only as changed" if self.loosened else ""
        return f", {self.before} → {self.after} tests pass{more}, {worse or loosened or 'nothing got worse'}"


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


def headline(run: RunView, doing: str, suite: Suite, asked: Sequence[Question] | None = None) -> Headline:
    """`doing` is what the run does (see `summary.doing`), `asked` are its questions, where they are known already."""
    asked = questions(run) if asked is None else asked
    if doing == "running":
        return _running(run, asked)
    if doing in CAN_GO_ON:
        return _unfinished(run, doing)
    found = run.branch
    branch = found.branch
    if not branch:
        more = (*_rest(run, with_verdicts=False), *_spent(run.state))
        return Headline(CALM, _nothing(run), more, _continue(run))
    see = ("see it", f"git log -p {str(run.state.facts.get('base') or '')[:8]}..{branch}")
    commits = _count(len(found.commits), "commit")
    if found.green is False or suite.worse:
        got_worse = f": {_count(suite.worse, 'test')} got worse" if suite.worse else ": its tests are red"
        title = f"Do not merge `{branch}` yet{got_worse}."
        return Headline(BAD, title, (f"It has {commits}.", *_rest(run)), (_review(run.id), see))
    measured = "" if found.green else ", but its tests were not run"
    title = f"Branch `{branch}` is ready{measured}: {commits}{suite.text}."
    merge = ("merge it", f"git merge {branch}")
    if first := len({commit for one in asked if one.kind == FLAGGED for commit in one.commits}):
        look = f"Look at {_count(first, 'flagged commit')} before you merge."
        return Headline(LOOK, title, (look, *_rest(run)), (_review(run.id), merge))
    return Headline(
        GOOD if found.green and not suite.loosened and not suite.agreed else LOOK,
        title,
        (*_rest(run), *_spent(run.state)),
        (merge, _review(run.id), *_continue(run)),
    )


def _spent(state: RunState) -> tuple[str, ...]:
    limit = (state.facts.get("limits") or {}).get("budget_usd")
    return (
        (f"${state.usage.cost_usd:.2f} of ${limit:.2f} are spent.",) if limit and state.usage.cost_usd >= limit else ()
    )


def _continue(run: RunView) -> tuple[tuple[str, str], ...]:
    """How to go on with tasks that were not started, collected or verified."""
    if all(task.task.status == SETTLED for task in run.tasks):
        return ()
    return (("continue", f"mngr tmr resume {run.id}{' --budget-usd USD' if _spent(run.state) else ''}"),)


def _settled(run: RunView) -> str:
    settled = sum(task.task.status == SETTLED for task in run.tasks)
    return f"{settled} of {_count(len(run.tasks), 'task')} settled."


def _running(run: RunView, asked: Sequence[Question]) -> Headline:
    title = f"Running: {_settled(run)}" if run.tasks else "Running: no tasks yet."
    more = (f"{_count(len(asked), 'question')} {'wait' if len(asked) != 1 else 'waits'} for you.",) if asked else ()
    return Headline(BUSY, title, more, (("watch it", f"mngr tmr serve {run.id}"),))


def _unfinished(run: RunView, doing: str) -> Headline:
    cause = paused(run.state)
    title = f"Nothing to merge yet: the run is {doing}{f' ({cause})' if cause else ''}."
    command = remedy(run.state).rpartition(": ")[2].strip("`")
    return Headline(LOOK, title, (_settled(run),), (("continue", command),))


def _nothing(run: RunView) -> str:
    counts = Counter(task.word for task in run.tasks)
    if not run.tasks:
        return "Nothing to merge: the run has no tasks."
    if len(counts) == 1:
        word = next(iter(counts))
        every = "the only task is" if len(run.tasks) == 1 else f"all {len(run.tasks)} tasks are"
        return f"Nothing to merge: {'no change was needed' if word == UNCHANGED else f'{every} {word}'}."
    why = "" if run.integrated else ", and nothing was integrated"
    return f"Nothing to merge: {_told(counts)}{why}."


def _rest(run: RunView, with_verdicts: bool = True) -> tuple[str, ...]:
    """How much of the work is not on the branch."""
    out = [task for task in run.tasks if task.task.status == SETTLED and not task.place.commits]
    missed = [task for task in out if task.word in NOT_TRUE or (task.word in FOR_A_PERSON and not task.place.word)]
    aside = [task for task in run.tasks if task not in missed and task.place.reason]
    parts = []
    if missed and with_verdicts:
        words = Counter(task.word for task in missed)
        parts.append(f"{_count(len(missed), 'task')} did not make it ({_told(words)})")
    if aside:
        parts.append(f"{len(aside)} set aside")
    if overruled := [task for task in run.tasks if task.overruled and task.place.commits]:
        parts.append(f"{len(overruled)} refuted and accepted by a person")
    return (f"{', '.join(parts)}.",) if parts else ()


def _review(run: str) -> tuple[str, str]:
    return ("review it", f"mngr tmr review {run}")


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
