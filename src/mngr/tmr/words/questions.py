"""The decisions of a run that wait for a person: one queue, the most dangerous first, one entry per test. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mngr.mapreduce.state import RunState, TaskState
from mngr.system.process import quote
from mngr.tmr.judge.verdict import BLOCKED, HELD, NEW_BEHAVIOUR, UNPROVEN
from mngr.tmr.words.places import (
    FOR_A_PERSON,
    NOT_TRUE,
    NOWHERE,
    ON_BRANCH,
    SET_ASIDE,
    WorkPlace,
    expectations,
    integration_of,
    is_dangerous,
    places,
)
from mngr.tmr.words.summary import flagged, tasks_of, verdict_of, why

FLAGGED, RAISED, FLAKY = "on the branch", "raised", "flaky"
_ORDER = (FLAGGED, UNPROVEN, HELD, BLOCKED, RAISED, SET_ASIDE, FLAKY)
# Questions of these kinds are equal whatever numbers are in them.
_ALIKE = frozenset({BLOCKED, SET_ASIDE, FLAKY})
_TOGETHER_MAX = 6


class Question(NamedTuple):
    """`tasks` ask the same; `remarks` are further texts of the first. `commands` settle it, each with what it does.
    `paths` are the files to look at first."""

    kind: str
    tasks: tuple[TaskState, ...]
    text: str
    remarks: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    commit: str = ""
    kept_on: str = ""
    paths: tuple[str, ...] = ()


def questions(state: RunState, flaky: Iterable[str] = ()) -> list[Question]:
    """All of them. `flaky` are the tasks whose test sometimes passed and sometimes failed at the base."""
    where, unstable = places(state), set(flaky)
    accepted = set(integration_of(state).get("accepted", ()))
    found: dict[tuple[str, str], Question] = {}
    for task in tasks_of(state):
        one = _asked(task, where.get(task.slug, NOWHERE), task.slug in accepted, task.id in unstable)
        if one is None:
            continue
        id = (one.kind, _likeness(one, task))
        before = found.get(id)
        found[id] = one if before is None else _together(before, task)
    run = str(state.facts.get("run") or "")
    new = NEW_BEHAVIOUR
    ordered = sorted(found.values(), key=lambda one: (_ORDER.index(one.kind), verdict_of(one.tasks[0]) != new))
    return [one._replace(commands=tuple(_commands(one, run))) for one in ordered]


def _together(one: Question, task: TaskState) -> Question:
    """The question with one more task that asks it; what it says of the first test, it then says of each."""
    return one._replace(tasks=(*one.tasks, task), text=one.text.replace(f"`{one.tasks[0].id}`", "its test"))


def _asked(task: TaskState, place: WorkPlace, accepted: bool, unstable: bool) -> Question | None:
    word = verdict_of(task)
    raised = [f"{one['kind']}: {one['summary']}" for one in task.claim.get("escalations", ())]
    commit = place.commits[-1] if place.commits else ""
    if commit and is_dangerous(task) and not accepted:
        texts = [*_expected(task), *flagged(task)] or [why(task)]
        return Question(FLAGGED, (task,), texts[0], (*texts[1:], *raised), commit=commit, paths=_flag_paths(task))
    if word in FOR_A_PERSON and not place.word:
        claim = task.claim if word == BLOCKED else {}
        reason = str(claim.get("blocked_reason") or why(task))
        needs = str(claim.get("blocked_needs") or "")
        remarks = (*([f"Needs: {needs}"] if needs else ()), *raised)
        return Question(word, (task,), reason, remarks, paths=_flag_paths(task))
    if place.reason and place.word in (SET_ASIDE, ON_BRANCH) and word not in NOT_TRUE:
        more = ("Part of its work is on the branch.",) if place.in_part else ()
        return Question(SET_ASIDE, (task,), place.reason, (*more, *raised), kept_on=place.kept_on)
    if raised:
        return Question(RAISED, (task,), raised[0], tuple(raised[1:]), commit=commit)
    if unstable and place.word != ON_BRANCH:
        return Question(FLAKY, (task,), "The test both passed and failed at the base.")
    return None


def _likeness(one: Question, task: TaskState) -> str:
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
        yield "see the commit", f"git show {one.commit[:8]}"
    elif one.kind in (BLOCKED, RAISED, FLAKY):
        chosen = "--verdict blocked" if len(slugs) > _TOGETHER_MAX and one.kind == BLOCKED else _each("--task", some)
        yield "answer, and let it continue", f"mngr tmr retry {run} {chosen} --message TEXT"
        if len(slugs) == 1 and one.kind == BLOCKED:
            yield "or settle it in its terminal", f"mngr tmr connect {quote(slugs[0])} {run}"
            yield "and take its work", f"mngr tmr integrate {run} --collect {quote(slugs[0])}"
    elif one.kind == SET_ASIDE:
        if one.kept_on:
            yield "see the work", f"git show {quote(one.kept_on)}"
        yield "let it be done again on top", f"mngr tmr retry {run} {_each('--task', some)}"
    else:
        yield "accept it onto the branch", f"mngr tmr integrate {run} {_each('--accept', some)}"


def _each(option: str, slugs: Sequence[str]) -> str:
    return " ".join(f"{option} {quote(slug)}" for slug in slugs)


def _expected(task: TaskState) -> list[str]:
    return [
        f"`{one.get('path')}:{one.get('line')}` expects `{str(one.get('after')).strip()}` instead of "
        f"`{str(one.get('before')).strip()}`"
        for one in expectations(task)
    ]


def _flag_paths(task: TaskState) -> tuple[str, ...]:
    flags = [str(flag.get("path") or "") for flag in task.verdict.get("flags", ())]
    return tuple(dict.fromkeys(filter(None, [*(str(one.get("path") or "") for one in expectations(task)), *flags])))
