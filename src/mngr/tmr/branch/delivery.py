"""From verdicts to a delivered branch: what is handed to integration, its gate, and where the result is put."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mngr.mapreduce.engine import Engine
from mngr.mapreduce.recipe import Recipe
from mngr.mapreduce.run import Run
from mngr.system.git import Git
from mngr.tmr.branch.base_tests import not_passing
from mngr.tmr.branch.gate import IntegrationDecision, KnownTests
from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.integration import Rules, integrate
from mngr.tmr.branch.integrator import AgentResolver, IntegratorRecipe, narrate
from mngr.tmr.branch.objects import Objects
from mngr.tmr.branch.same_edit import Alike, near
from mngr.tmr.branch.suite import LINT, SuiteGate
from mngr.tmr.branch.unit import VerifiedWork
from mngr.tmr.judge import verdict
from mngr.tmr.measure import baseline, rows
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.outcome import IMPLEMENTATION, Outcome
from mngr.tmr.run_request import RunRequest
from mngr.tmr.run_view import TaskView, view


def deliver(
    run: Run,
    git: Git,
    base: BaseCommit,
    request: RunRequest,
    engine: Callable[[Recipe, str], Engine],
    asked: Integrated,
) -> Integrated:
    """Integrate what verification let through and point the run's branch at it. `asked` is what an earlier integration
    delivered, with what a person decided since."""
    tasks = view(run.state).tasks
    flaky = {task.id for task in tasks if task.evidence.flaky}
    inputs = [_without(found, flaky) for task in tasks if (found := verified(task, asked)) is not None]
    of = {task.slug: _tests_of(task, base) for task in tasks}
    tests = [*base.tests, *sorted({test for found in of.values() for test in found} - set(base.tests))]
    stay = set(base.tests) - {test for task in tasks for test in task.evidence.replaced}
    passed = {test: one.runs for test, one in base.measured.items() if one.verdict == baseline.PASS}
    gate = SuiteGate(base.measurer, tests=tests, stay=stay, of=of, passed=passed, gate_command=base.gate_command)
    resolver, recipe = None, None
    if request.integrator is not None:
        recipe = IntegratorRecipe(run, git, base.measurer.environment, request.integrator)
        commands = {slug: [base.command_for(test) for test in found] for slug, found in of.items()}
        resolver = AgentResolver(engine, recipe, run, git, commands=commands)
    agreed = {test for task in tasks if task.slug in asked.overruled for test in task.breaks}
    gate_fails = [LINT for task in tasks if task.slug in asked.overruled and task.evidence.tip.gate_exit]
    known = KnownTests(
        failing=frozenset([*_of_verdict(base, baseline.FAIL, baseline.BROKEN), *agreed, *gate_fails]),
        flaky=frozenset(_of_verdict(base, baseline.FLAKY)),
    )

    def record(decision: IntegrationDecision) -> None:
        run.note("decision", what=decision.what, because=decision.because, about=list(decision.about))

    done = integrate(
        git,
        run.id,
        request.base,
        inputs,
        gate=gate,
        resolver=resolver,
        record=record,
        keep={work.slug for work in inputs} - set(asked.dropped) if asked.dropped else None,
        rules=Rules(paths=base.paths, known=known, content=request.content),
    )
    done = done._replace(
        decisions=(),  # those are entries of their own
        dropped=asked.dropped,
        accepted=asked.accepted,
        overruled=asked.overruled,
        not_passing=not_passing(base, done.tip) if done.green else (),
        alike=_alike(git, base, tasks),
        branch=point(git, run, request, done.tip, asked.tip),
    )
    return done._replace(narrative=narrate(engine, recipe, run, done, tasks) if recipe and done.commits else "")


def verified(task: TaskView, asked: Integrated | None = None) -> VerifiedWork | None:
    """A task's work as integration takes it; None when verification did not let it through, nor a person who was
    `asked`."""
    found, last, asked = task.verdict, task.task.last, asked or Integrated()
    overruled = asked.overruled.get(task.slug, "") if found.word == verdict.REFUTED else ""
    accepted = found.word in verdict.ACCEPTABLE and task.slug in asked.accepted
    if last is None or not task.tip or not (found.word in verdict.INTEGRATED or accepted or overruled):
        return None
    claims = [one.importance for one in task.claim.changes if one.kind == IMPLEMENTATION]
    change = found.evidence.change
    return VerifiedWork(
        task=task.id,
        slug=task.slug,
        agent=last.agent,
        tip=task.tip,
        importance=max(claims, default=None),
        effect=found.effect,
        summary=_words(task.claim),
        stands_alone=found.evidence.halves.stands_alone,
        flags=tuple(sorted({flag.kind for flag in change.flags} | ({verdict.REFUTED} if overruled else set()))),
        repaired=found.repaired,
        place=found.decision.place,
        evidence=tuple(f"{one.path}:{one.line}: `{one.before}` became `{one.after}`" for one in change.expectations),
        overruled=overruled,
    )


def _alike(git: Git, base: BaseCommit, tasks: Sequence[TaskView]) -> tuple[Alike, ...]:
    """What several agents do in nearly the same words, in work that is or may get on the branch."""
    objects, words = Objects(git), verdict.INTEGRATED | verdict.ACCEPTABLE
    works = {task.slug: task.tip for task in tasks if task.word in words and task.tip}
    facts = objects.facts([base.commit, *works.values()])
    pairs = {slug: (facts[base.commit].tree, facts[tip].tree) for slug, tip in works.items() if tip in facts}
    changes = objects.changes(pairs.values()) if len(pairs) > 1 else {}
    return near(objects, {slug: changes[pair] for slug, pair in pairs.items() if pair in changes})


def _without(work: VerifiedWork, flaky: Collection[str]) -> VerifiedWork:
    """The work without the effect that it seemed to have on flaky tests of other tasks, which may have failed at the
    base by chance."""
    if work.effect is None:
        return work
    return work._replace(effect=tuple(test for test in work.effect if test == work.task or test not in flaky))


def _words(claim: Outcome) -> str:
    """What a commit says: the line that the agent wrote for its most important change, then its summary."""
    changes = sorted(claim.changes, key=lambda change: (change.kind != IMPLEMENTATION, -change.importance))
    line = next((change.summary for change in changes if change.summary.strip()), "")
    return f"{line}\n\n{claim.summary}".strip()


def point(git: Git, run: Run, request: RunRequest, tip: str, before: str) -> str:
    """Point the branch of the run at its result. One that somebody moved, or has checked out, is left alone, and the
    result gets a name beside it. Returns the name; empty when nothing got through, and a branch of an earlier
    integration then is at the base."""
    name = request.branch or f"tmr/{run.id}"
    here = git.commit_of(f"refs/heads/{name}")
    checked_out = f"branch refs/heads/{name}\n" in git.must("worktree", "list", "--porcelain") + "\n"
    if tip == request.base:
        if here is not None and here == before and not checked_out:
            git.must("update-ref", f"refs/heads/{name}", tip, here)
        return ""
    if here != tip and (checked_out or here not in (None, before)):
        number = 2
        while git.has_branch(f"{name}-{number}"):
            number += 1
        name, here = f"{name}-{number}", None
    git.must("update-ref", f"refs/heads/{name}", tip, here or "0" * len(tip))
    return name


def _tests_of(task: TaskView, base: BaseCommit) -> list[str]:
    """Its own test with all its cases, and those that its work added or changed."""
    found = task.evidence.tip
    own = found.cases or rows.cases(task.id, base.tests) or [task.id]
    return sorted({*own, *found.new, *found.changed} - set(task.evidence.replaced))


def _of_verdict(base: BaseCommit, *verdicts: str) -> list[str]:
    return [test for test, one in base.measured.items() if one.verdict in verdicts]
