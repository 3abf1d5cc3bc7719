"""Who needs a person, and for what: the decisions that wait, in one queue, and the groups of all other tasks. Pure.

Terminal, pages, headline, pull request and review ask here, so that they say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mngr.mapreduce.state import SETTLED
from mngr.mapreduce.state import WAITING as NOT_BEGUN
from mngr.system.process import quote
from mngr.tmr.judge import verdict
from mngr.tmr.judge.verdict import BLOCKED, HELD, NEW_BEHAVIOUR, UNPROVEN
from mngr.tmr.run_view import ON_BRANCH, SET_ASIDE, RunView, TaskView

FLAGGED, RAISED, FLAKY = "on the branch", "raised", "flaky"
_ORDER = (FLAGGED, UNPROVEN, HELD, BLOCKED, RAISED, SET_ASIDE, FLAKY)
FOR_A_PERSON = frozenset({HELD, UNPROVEN, BLOCKED})
NOT_TRUE = frozenset({verdict.REFUTED, verdict.REFUSED, verdict.UNCLAIMED, verdict.FAILED})
# The groups of tasks as a reader wants them: what needs a person, what is not true, what is done.
NEEDS_YOU, REFUTED, ASIDE, WORKING, QUEUED = "needs you", "refuted", SET_ASIDE, "working", "queued"
VERIFIED, DONE, UNCHANGED = "verified", ON_BRANCH, verdict.UNCHANGED
GROUPS = (NEEDS_YOU, REFUTED, ASIDE, WORKING, QUEUED, VERIFIED, DONE, UNCHANGED)
# Questions of these kinds are equal whatever numbers are in them.
_ALIKE = frozenset({BLOCKED, SET_ASIDE, FLAKY})
_TOGETHER_MAX = 6


class Question(NamedTuple):
    """`tasks` ask the same; `remarks` are further texts of the first. `commands` settle it, each with what it does.
    `paths` are the files to look at first."""

    kind: str
    tasks: tuple[TaskView, ...]
    text: str
    remarks: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def commits(self) -> tuple[str, ...]:
        """Those on the branch that hold work of these tasks, the last of each."""
        return tuple(dict.fromkeys(task.place.commits[-1] for task in self.tasks if task.place.commits))


def questions(run: RunView) -> list[Question]:
    """All of them, the most dangerous first, one per test."""
    found: dict[tuple[str, str], Question] = {}
    for task in run.tasks:
        one = _asked(task) if task.task.status == SETTLED else None
        if one is None:
            continue
        id = (one.kind, _likeness(one, task))
        before = found.get(id)
        found[id] = one if before is None else _together(before, task)
    new = NEW_BEHAVIOUR
    ordered = sorted(
        _folded(list(found.values()), run), key=lambda one: (_ORDER.index(one.kind), one.tasks[0].word != new)
    )
    return [one._replace(commands=tuple(_commands(one, run.id))) for one in ordered]


def grouped(run: RunView, asked: Sequence[Question]) -> dict[str, list[TaskView]]:
    """All tasks by group, in the order of `GROUPS`; empty groups are left out. Those that need a person are in the
    order of the `asked` questions."""
    needy = [task for one in asked for task in one.tasks]
    slugs = {task.slug for task in needy}
    found: dict[str, list[TaskView]] = {**{name: [] for name in GROUPS}, NEEDS_YOU: needy}
    for task in run.tasks:
        if task.slug not in slugs:
            found[_group(task)].append(task)
    return {name: tasks for name, tasks in found.items() if tasks}


def is_dangerous(task: TaskView) -> bool:
    """Whether a person should look at the work before it is merged, who has not taken responsibility for it."""
    change = task.evidence.change
    return not task.accepted and bool(change.flags or change.expectations or task.verdict.to_look_at)


def _group(task: TaskView) -> str:
    """The group of a task that needs nobody."""
    if task.task.status != SETTLED:
        return QUEUED if task.task.status == NOT_BEGUN else WORKING
    if task.place.word == ON_BRANCH and not task.place.in_part:
        return DONE
    if task.word in NOT_TRUE:
        return REFUTED
    if task.place.word:
        return ASIDE
    return UNCHANGED if task.word == verdict.UNCHANGED else QUEUED if task.word == verdict.NOT_STARTED else VERIFIED


def _together(one: Question, task: TaskView) -> Question:
    """The question with one more task that asks it; what it says of the first test, it then says of each."""
    return one._replace(tasks=(*one.tasks, task), text=one.text.replace(f"`{one.tasks[0].id}`", "its test"))


def _folded(asked: Sequence[Question], run: RunView) -> list[Question]:
    """Questions of one kind about nearly the same edit, and about no other file, are one; what each says is kept."""
    groups = {(one.path, slug): at for at, one in enumerate(run.branch.alike) for slug in one.slugs}
    made: dict[object, Question] = {}
    for one in asked:
        group = groups.get((one.paths[0], one.tasks[0].slug)) if len(one.paths) == 1 else None
        key = id(one) if group is None else (one.kind, group)
        before = made.get(key)
        if before is not None:
            texts = [text for text in (one.text, *one.remarks) if text not in (before.text, *before.remarks)]
            one = before._replace(tasks=(*before.tasks, *one.tasks), remarks=(*before.remarks, *texts))
        made[key] = one
    return list(made.values())


def _asked(task: TaskView) -> Question | None:
    """What a settled task asks of a person."""
    raised = [f"{one.kind}: {one.summary}" for one in task.claim.escalations]
    place, word = task.place, task.word
    if place.commits and is_dangerous(task):
        texts = [*expected(task), *task.flags] or [task.why]
        return Question(FLAGGED, (task,), texts[0], (*texts[1:], *raised), paths=_flag_paths(task))
    if word in FOR_A_PERSON and not place.word:
        reason = (task.claim.blocked_reason if word == BLOCKED else "") or task.why
        needs = [f"Needs: {task.claim.blocked_needs}"] if word == BLOCKED and task.claim.blocked_needs else []
        return Question(word, (task,), reason, (*needs, *raised), paths=_flag_paths(task))
    if place.reason and place.word in (SET_ASIDE, ON_BRANCH) and word not in NOT_TRUE:
        more = ("Part of its work is on the branch.",) if place.in_part else ()
        return Question(SET_ASIDE, (task,), place.reason, (*more, *raised), paths=place.clashes)
    if raised:
        return Question(RAISED, (task,), raised[0], tuple(raised[1:]))
    if task.evidence.flaky and place.word != ON_BRANCH:
        return Question(FLAKY, (task,), "The test both passed and failed at the base.")
    return None


def _likeness(one: Question, task: TaskView) -> str:
    text = "\n".join((one.text, *one.remarks))
    for name in (task.id, task.slug, task.id.rpartition("::")[2]):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", text)
    return re.sub(r"\d+", "0", text) if one.kind in _ALIKE else text


def _commands(one: Question, run: str) -> Iterable[tuple[str, str]]:
    slugs = [task.slug for task in one.tasks]
    some = slugs[:_TOGETHER_MAX]
    if len(slugs) > 1 and one.kind in (FLAGGED, *FOR_A_PERSON - {BLOCKED}):
        yield "look at each", f"mngr tmr review {run}"
    elif one.kind == FLAGGED:
        yield "take it off the branch", f"mngr tmr review {run} {_each('--drop', some)}"
        yield "see the commit", f"git show {one.commits[0][:8]}"
    elif one.kind in (BLOCKED, RAISED, FLAKY):
        chosen = "--verdict blocked" if len(slugs) > _TOGETHER_MAX and one.kind == BLOCKED else _each("--task", some)
        yield "answer, and let it continue", f"mngr tmr retry {run} {chosen} --message TEXT"
        if len(slugs) == 1 and one.kind == BLOCKED:
            yield "or settle it in its terminal", f"mngr tmr connect {quote(slugs[0])} {run}"
            yield "and take its work", f"mngr tmr integrate {run} --collect {quote(slugs[0])}"
    elif one.kind == SET_ASIDE:
        if kept_on := one.tasks[0].place.kept_on:
            yield "see the work", f"git show {quote(kept_on)}"
        yield "let it be done again on top", f"mngr tmr retry {run} {_each('--task', some)}"
    else:
        yield "accept it onto the branch", f"mngr tmr integrate {run} {_each('--accept', some)}"


def _each(option: str, slugs: Sequence[str]) -> str:
    return " ".join(f"{option} {quote(slug)}" for slug in slugs)


def expected(task: TaskView) -> list[str]:
    """The expected values that its work changed, in words."""
    return [
        f"`{one.path}:{one.line}` expects `{str(one.after).strip()}` instead of `{str(one.before).strip()}`"
        for one in task.evidence.change.expectations
    ]


def _flag_paths(task: TaskView) -> tuple[str, ...]:
    change = task.evidence.change
    paths = [one.path for one in change.expectations] + [flag.path for flag in change.flags]
    return tuple(dict.fromkeys(filter(None, paths)))
