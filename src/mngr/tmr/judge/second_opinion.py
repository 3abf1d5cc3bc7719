"""A second opinion on a fix: an agent that does not see it writes a variant of the failing test, with other names and
values. The variant must fail on the old product and pass on the new one. For every fix if the settings ask for it, and
for those that a person names in a review."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mngr import prompts
from mngr.mapreduce import task_names
from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import Recipe, Task
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import TaskState
from mngr.tmr.blocks import Blocks
from mngr.tmr.branch.integrator import proposed, settled
from mngr.tmr.branch.objects import NewCommit, Objects, PathChange, ours
from mngr.tmr.judge import echo
from mngr.tmr.judge.decide import claim_of, decide
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.verdict import FIXES, HELD, REFUTED, Verdict
from mngr.tmr.judge.work import work_of
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.measurement import Measurement, Pytest
from mngr.tmr.measure.rows import PASSED
from mngr.tmr.run_view import measured, tasks_of


def take(
    run: Run,
    base: BaseCommit,
    recipe: Recipe,
    engine: Callable[[Recipe, str], Engine],
    command: str,
    only: Collection[str] | None = None,
) -> None:
    """Ask about every fix that has none yet, or only about those of these slugs, and write the verdicts that follow
    from the answers. Twice is safe."""
    asked = [task for task in tasks_of(run.state) if can_be_asked_about(task) and (only is None or task.slug in only)]
    opinions = settled(engine, recipe, run, task_names.OPINION, [_task(base, task, command) for task in asked])
    for task, opinion in zip(asked, opinions, strict=True):
        tip = proposed(opinion, base.commit)
        if tip and task.last is not None:
            data = _judged(base, task, tip).as_json()
            run.note("verdict", task=task.id, number=task.last.number, data=data, error="")


def can_be_asked_about(task: TaskState) -> bool:
    """Fixes, and those that are held because they echo their test; each once."""
    found = measured(task)
    held = found.word == HELD and any(flag.kind in echo.HOLDING for flag in found.evidence.change.flags)
    return (found.word in FIXES or held) and not found.second_opinion


def _task(base: BaseCommit, task: TaskState, command: str) -> Task:
    number = len(task.attempts)
    name = f"second opinion on {task.slug}" + (f" ({number})" if number > 1 else "")
    text = prompts.render(
        "second_opinion.md.j2",
        task=name,
        test=task.id,
        failure=base.before(task.id).text[-4000:],
        blocks=Blocks(base.git, base.commit).of(task.id),
        command=command,
    )
    data = {"role": task_names.OPINION, "about": task.slug, "start": base.commit, "prompt": text}
    return Task(name, f"opinion-{task.slug}-{number}", data)


def _judged(base: BaseCommit, task: TaskState, tip: str) -> Verdict:
    """The verdict on the fix, with what the variant at `tip` says of it."""
    last = task.last
    assert last is not None and last.collected is not None
    found = measured(task)
    objects = Objects(base.git)
    fix = str(last.collected["tip"])
    opinion = objects.changed(base.commit, tip)
    variant = [one for one in opinion if one.old is None and base.paths.kind(one.path) == PathKind.TEST]
    if not variant:
        return _noted(found, "the second opinion has no new test file")
    work = work_of(base, objects, task.id, task.slug, fix, objects.changed(base.commit, fix), ())
    before, after = _outcomes(base, objects, task.slug, variant, (base.commit, work.old_tests))
    names = ", ".join(f"`{one.path}`" for one in variant)
    if not before or set(before.values()) == {PASSED}:
        return _noted(found, f"the second opinion, {names}, does not show the failure: it passes at the base")
    bad = [test for test, outcome in after.items() if outcome != PASSED]
    if bad or not after:
        test = (bad or list(before))[0]
        reason = f"refuted by a second opinion: `{test}`, with other names and values, fails with this fix"
        refuted = found.decision._replace(word=REFUTED, reasons=(reason, *found.decision.reasons))
        return _noted(found._replace(decision=refuted), f"kept as commit {tip[:12]}")
    note = f"confirmed by a second opinion: {names} fails at the base and passes with this fix"
    return _noted(_confirmed(task, found), note)


def _confirmed(task: TaskState, found: Verdict) -> Verdict:
    """The verdict without what the variant overrules: that the fix may know its test."""
    change = found.evidence.change
    kept = change._replace(flags=tuple(flag for flag in change.flags if flag.kind not in echo.HOLDING))
    seen = found.evidence._replace(change=kept)
    claim = (task.last.collected if task.last else None) or {}
    return found._replace(evidence=seen, decision=decide(seen, claim_of(claim.get("outcome"), "")))


def _outcomes(
    base: BaseCommit, objects: Objects, slug: str, variant: Sequence[PathChange], commits: Sequence[str]
) -> list[dict[str, str]]:
    files = {one.path: one.new for one in variant}
    made = objects.write([NewCommit(one, files, f"A variant for {slug}\n", ours(), ours()) for one in commits])
    paths = sorted(files)
    wanted = [
        Measurement(f"opinion-{at + 1}-{slug}", commit, [Pytest("test", paths=paths)]) for at, commit in enumerate(made)
    ]
    each = [done.rows for done in base.measurer.take_all(wanted)]
    return [
        {
            **{ran.id: ran.outcome for ran in rows.ran.values()},
            **dict.fromkeys((item.id for item in rows.broken), "broken"),
        }
        for rows in each
    ]


def _noted(found: Verdict, note: str) -> Verdict:
    change = found.evidence.change
    seen = found.evidence._replace(change=change._replace(notes=(*change.notes, note)))
    return found._replace(second_opinion=note, evidence=seen)
