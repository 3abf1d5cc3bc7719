"""Lets an agent make the tests match the tutorial. Whether they do is measured at its last commit, as `tmr` measures:
in a copy of its own, with an empty home and none of the user's variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mngr import prompts
from mngr.e2e.code_state import is_left_by_tests
from mngr.e2e.shell_blocks import blocks
from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet
from mngr.json_values import plain
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.system.git import Git
from mngr.system.process import join, quote
from mngr.tmr.branch.objects import Objects, PathChange, TreeEntry
from mngr.tmr.judge import flags, weaker_tests
from mngr.tmr.judge.flags import Flag
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.refusals import LINK, SUBMODULE, refusals
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest, Shell, StepResult, log_tail
from mngr.tmr.measure.measurer import Measurer
from mngr.tutorial import citations
from mngr.tutorial.check import NOT_RUN, TutorialProblem, check
from mngr.tutorial.ran import RecordedRuns, read_every
from mngr.tutorial.sources import Sources
from mngr.tutorial_runs.run import Look, TutorialRecipe, TutorialRequest, branch_of

CHANGED, UNCOMMITTED, FAILING, REFUSED = "script-changed", "uncommitted", "tests-failing", "refused"
DELETED = "test-deleted"
_MOST_TOLD = 60
_OUTPUT = 6000
_NOT_STARTED = (126, 127)  # of a shell


def check_tracked(git: Git, request: TutorialRequest) -> None:
    """Raise if the agent's copy of the code would have no tutorial."""
    script = request.sources.script
    entry = Objects(git).files(request.run.base).get(script)
    if entry is None or entry.mode == LINK:
        why = "is a link" if entry else "is not in the commit that the agent begins at"
        raise MngrError(f"`{script}` {why}", hint=f"`git add -f {quote(script)}`, and commit it")


def check_command(sources: Sources) -> str:
    tests = [word for path in sources.tests for word in ("--tests", path)]
    return join(["mngr", "tutorial", "check", "--script", sources.script, *tests])


def render(
    name: str, sources: Sources, test_command: str, problems: Sequence[TutorialProblem], own: str | None = None
) -> str:
    """A prompt: what the agent has to do, and what is missing."""
    return prompts.render(
        name,
        own,
        script=sources.script,
        tests=sources.tests,
        test_command=test_command,
        check_command=check_command(sources),
        problems=problems[:_MOST_TOLD],
        more=max(0, len(problems) - _MOST_TOLD),
    )


class SyncRecipe(TutorialRecipe):
    """`asked` has the `test_command`, empty if the tests are not run, and whether it is the user's `own`: run as it is,
    and not as `tmr` runs pytest."""

    def __init__(self, run: Run, request: TutorialRequest, fleet: Fleet) -> None:
        super().__init__(run, request)
        self._objects = Objects(self._git)
        self._script = self._objects.files(request.run.base).get(request.sources.script)
        self._measurer = Measurer(
            fleet,
            run,
            repo=request.run.repo,
            directory=os.path.join(run.directory, "jobs"),
            environment=request.run.settings.environment,
            at_once=1,
            base=request.run.base,
            stop_asked=lambda: run.stop_asked,
        )
        self._command = str(request.asked["test_command"])
        self.allowed = (check_command(request.sources),)

    def begin(self) -> None:
        """Run the tests as they are: a command that cannot be started is no fault of the agent."""
        self._measurer.adopt()
        if not self._command:
            return
        wanted = self._measurement("base", self.request.run.base)
        step = self._measurer.must_take(wanted).steps["test"]
        if step.exit_code in _NOT_STARTED:
            self._measurer.forget(wanted)
            raise MngrError(
                f"`{self._command}` cannot be started in a clean checkout (exit code {step.exit_code})",
                details=log_tail(step),
                hint="`mngr config set tmr.prepare 'CMD'` prepares it; `--test-command` names another command",
            )

    def look(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Look:
        tip, left = str(collected["tip"]), collected.get("uncommitted")
        changes = self._objects.changed(self.request.run.base, tip)
        problems = [*self._uncommitted(tip, left), *self._missing(tip, changes)]
        sources = self.request.sources
        message = render("sync_again.md.j2", sources, self._command, problems) if problems else ""
        return Look(len(problems), message, plain({"problems": problems, "flags": self._flags(changes)}))

    def end(self, tip: str) -> str:
        self._measurer.reap()
        branch = branch_of(self._run.id) if tip else ""
        if branch and self._git.commit_of(f"refs/heads/{branch}") != tip:
            self._git.must("update-ref", f"refs/heads/{branch}", tip, "0" * len(tip))
        return branch

    def _measurement(self, label: str, commit: str) -> Measurement:
        if self.request.asked["own"]:
            return Measurement(label, commit, [Shell("test", self._command)])
        return Measurement(label, commit, [Pytest("test", named=self.request.sources.tests)])

    def _uncommitted(self, tip: str, left: str | None) -> list[TutorialProblem]:
        paths = [change.path for change in self._objects.changed(tip, left)] if left else []
        changed = [path for path in paths if not is_left_by_tests(path)]
        if not changed:
            return []
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        message = f"{changed[0]}:1: not committed, so not checked: {shown}"
        return [TutorialProblem(UNCOMMITTED, message, changed[0], 1, hint="commit it")]

    def _missing(self, tip: str, changes: Sequence[PathChange]) -> list[TutorialProblem]:
        """Everything that keeps a commit from being what was asked for."""
        sources, base = self.request.sources, self.request.run.base
        there = self._objects.files(tip)
        script = there.get(sources.script)
        if script is None or script != self._script:
            message = f"{sources.script}:1: the tutorial was changed; it is what the tests are held against"
            hint = f"restore it and commit that: `{join(['git', 'checkout', base, '--', sources.script])}`"
            return [TutorialProblem(CHANGED, message, sources.script, 1, hint=hint)]
        asked = self.request.run
        [refused] = refusals(self._objects, base, [changes], asked.settings.paths, asked.content)
        if refused:  # before anything of it is run
            return [TutorialProblem(REFUSED, f"{sources.tests[0]}:1: {why}", sources.tests[0], 1) for why in refused]
        problems, ran = self._ran(tip) if self._command else ([], None)
        text = self._text(script)
        found = check(sources.script, blocks(text), self._citations(there), ran if sources.artifacts != () else None)
        return [*problems, *found.problems]

    def _ran(self, tip: str) -> tuple[list[TutorialProblem], RecordedRuns | None]:
        """What is wrong with the tests at a commit, and which commands they ran."""
        result = self._measurer.take(self._measurement("check", tip))
        if result.lost:
            raise MngrError(result.problem)
        problems = self._failing(result)
        place = next((test.place for test in result.rows.tests.values()), "")
        ran = read_every(os.path.join(result.directory, "e2e"), place)
        if not ran.tests and not problems and self.request.sources.artifacts != ():
            usual = self.request.sources.usual
            message = f"{usual}:1: `{self._command}` recorded no test that uses `e2e`: what is run is not known"
            problems = [TutorialProblem(NOT_RUN, message, usual, 1)]
        return problems, ran if ran.tests else None

    def _failing(self, result: MeasurementResult) -> list[TutorialProblem]:
        first = self.request.sources.tests[0]
        if result.problem:
            text = log_tail(result.steps["prepare"], _OUTPUT) if result.unprepared else ""
            return [TutorialProblem(FAILING, result.problem, first, 1, text=text)]
        step = result.steps["test"]
        said = f"`{self._command}` failed"
        if self.request.asked["own"]:
            what = f"{said} (exit code {step.exit_code}); the end of its output:"
            return [TutorialProblem(FAILING, what, first, 1, text=log_tail(step, _OUTPUT))] if step.exit_code else []
        wrong = _wrong_with(step)
        return [TutorialProblem(FAILING, f"{said}: {what}", first, 1, text=text[-_OUTPUT:]) for what, text in wrong]

    def _text(self, script: TreeEntry) -> str:
        return self._objects.blobs([script.oid])[script.oid].decode("utf-8", "surrogateescape")

    def _citations(self, there: Mapping[str, TreeEntry]) -> citations.Found:
        """Read from git, so that no link leads out of the work."""
        places = self.request.sources.tests
        oids = {
            path: entry.oid
            for path, entry in sorted(there.items())
            if entry.mode not in (LINK, SUBMODULE) and citations.is_searched(path, places)
        }
        blobs = self._objects.blobs(oids.values())
        return citations.in_sources({path: blobs[oid] for path, oid in oids.items()})

    def _flags(self, changes: Sequence[PathChange]) -> list[Flag]:
        """What a person should look at: what `tmr` flags, removed tests first, and changes of the product."""
        paths, tests = self.request.run.settings.paths, self.request.sources.tests
        product = {
            change.path
            for change in changes
            if paths.kind(change.path) == PathKind.IMPLEMENTATION and not citations.is_searched(change.path, tests)
        }
        files = flags.files_of(self._objects, changes, product=product.__contains__)
        commands = (self.request.run.settings.environment.prepare, self._command)
        found = flags.find(files, test="", commands=commands, paths=paths)
        found += [flag for file in files if not file.implementation for flag in weaker_tests.unmeasured(file)]
        found += [
            Flag("product", path, f"`{path}` is part of the product, not of its tests") for path in sorted(product)
        ]
        return sorted(found, key=lambda flag: flag.kind != DELETED)


def _wrong_with(step: StepResult) -> list[tuple[str, str]]:
    """What keeps a run of pytest from having passed, each with its output. Two tests of ours are part of the run, so
    its exit code says nothing."""
    rows = step.rows
    wrong = [(f"`{one.id}` cannot be collected", one.text) for one in rows.broken]
    wrong += [
        (f"`{ran.id}` {ran.outcome}", ran.text)
        for ran in rows.ran.values()
        if not ran.good and ran.outcome != "skipped"
    ]
    if not wrong and (rows.doubt or not rows.finished):
        wrong = [(rows.doubt or f"pytest did not end (exit code {step.exit_code})", log_tail(step, _OUTPUT))]
    return wrong


def shown(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The flags as lines for a person."""
    lines = []
    for title, removed in (("removed tests:", True), ("look at these changes:", False)):
        chosen = [flag for flag in found if (flag["kind"] == DELETED) == removed]
        lines += [title] if chosen else []
        lines += [
            f"  {flag['text']}" if f"`{flag['path']}`" in flag["text"] else f"  {flag['path']}: {flag['text']}"
            for flag in chosen
        ]
    return lines
