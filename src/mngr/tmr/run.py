"""A whole run of test map-reduce, phase by phase: each is done once, whoever is killed and resumes.

Only what a user's script could do: agents are made, watched, pulled from and stopped through the fleet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr.errors import FAILED, PARTIAL, TIMED_OUT, UNDECIDED, MngrError
from mngr.fleet.fleet import Fleet
from mngr.json_values import plain, typed
from mngr.mapreduce import decide
from mngr.mapreduce.engine import Engine, EngineResult
from mngr.mapreduce.host_pool import HostPool, HostRules
from mngr.mapreduce.ledger import fact
from mngr.mapreduce.recipe import Recipe, Task
from mngr.mapreduce.run import Run
from mngr.system import files
from mngr.system.git import Git
from mngr.tmr import detect, plan, run_request
from mngr.tmr.branch import integrated
from mngr.tmr.branch.delivery import deliver
from mngr.tmr.branch.integrator import IntegratorRecipe
from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge import second_opinion, verdict
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.tmr.measure import baseline, canary
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import BaselineTest
from mngr.tmr.measure.measurement import Measurement, Shell, changed_in, log_tail
from mngr.tmr.measure.measurer import Measurer, StopAsked
from mngr.tmr.measure.rows import NO_BODY, CollectedTest
from mngr.tmr.recipe import TestRecipe
from mngr.tmr.run_view import tasks_of, view

COLLECT, GATE, CANARY, BASELINE = "collect", "gate", "canary", "baseline"
SELECT, MAP, INTEGRATE = "select", "map", "integrate"
_LINES_SHOWN = 12
_CHECKS_MAX = 64  # threads that verify work at once, however many hosts measure for them


class TestRun:
    """The caller holds the run's lock."""

    __test__ = False  # not one for pytest

    def __init__(self, fleet: Fleet, run: Run) -> None:
        self.fleet, self.run = fleet, run
        self.request = run_request.of_run(run)
        self.git = Git.of_user(self.request.repo)
        settings = self.request.settings
        self.pool = self._hosts()
        self.measurer = Measurer(
            fleet,
            run,
            repo=self.request.repo,
            directory=os.path.join(run.directory, "jobs"),
            environment=settings.environment._replace(hides=not self._knows_of_tests()),
            at_once=max(1, settings.max_jobs) if self.pool is None else self.pool.room_for_jobs,
            pool=self.pool,
            base=self.request.base,
            # The engine sees to it by itself, and lets a measurement that has begun come to its end.
            stop_asked=lambda: run.stop_asked and not self._in_engine,
        )
        self._in_engine = False

    def _hosts(self) -> HostPool | None:
        """The other machines that agents and tests run on, if the run was asked for that."""
        request = self.request
        if not request.provider:
            return None
        per_host = max(1, request.agents_per_host)
        most = -(-request.limits.max_agents // per_host)
        pool = HostPool(
            self.run,
            self.fleet.hosts,
            HostRules(request.provider, per_host, most, max(1, request.settings.max_jobs), request.snapshot),
        )
        pool.open()
        return pool

    def go(self) -> int:
        """All phases that are not over yet. Returns the exit code, which is also the last entry of the ledger."""
        if self.pool is not None:
            self.pool.check()
        self.measurer.adopt()
        try:
            self._phase(COLLECT, self._collect)
            if self.pool is not None:
                self.pool.keep_prepared()
            if self.request.settings.gate_command and self.request.baseline:
                self._phase(GATE, self._gate)
            self._phase(CANARY, self._canary)
            self._phase(BASELINE, self._baseline)
            self._phase(SELECT, self._select)
            gone = self._map()
            if gone.why in (decide.BREAKER, decide.PAUSED, decide.STOPPED):
                return self._finish(gone, FAILED if gone.why == decide.STOPPED else UNDECIDED)
            if self.request.settings.second_opinion:
                self.second_opinions()
            self.integrate()
        except StopAsked as stop:
            return self._finish(EngineResult(decide.STOPPED, str(stop), self.run.state), FAILED)
        return self._finish(gone, None)

    def second_opinions(self, only: Sequence[str] | None = None) -> None:
        """Let other agents test every fix with a variant of its test, or only those of these slugs."""
        workers = self.request.integrator or self.request.workers
        recipe = IntegratorRecipe(self.run, self.git, self.measurer.environment, workers)
        base = self.base()
        second_opinion.take(self.run, base, recipe, self._engine, self.measurer.environment.test_command, only)

    def integrate(
        self, drop: Sequence[str] = (), accept: Sequence[str] = (), overrule: Mapping[str, str] | None = None
    ) -> None:
        """Integrate what was verified, also once more. `drop` are the slugs of fixes that a person does not want,
        `accept` those of held or dropped work that a person takes, `overrule` those of refuted work that a person
        takes, each with the reason; all with those before, which an integration that was broken off does not forget."""
        phase = self.run.state.phases.get(INTEGRATE)
        before = integrated.from_json({} if phase is None else phase.asked if phase.ended_at is None else phase.data)
        overrule = overrule or {}
        taken = {*accept, *overrule}
        asked = before._replace(
            dropped=tuple(sorted({*before.dropped, *drop} - taken)),
            accepted=tuple(sorted({*before.accepted, *taken} - set(drop))),
            overruled={slug: why for slug, why in {**before.overruled, **overrule}.items() if slug not in drop},
        )
        names = ("dropped", "accepted", "overruled", "tip")
        self.run.begin_phase(INTEGRATE, {name: plain(getattr(asked, name)) for name in names})
        done = deliver(self.run, self.git, self.base(), self.request, self._engine, asked)
        self.run.end_phase(INTEGRATE, plain(done))

    def stop(self) -> None:
        """Take over the work of every agent that is not through, and stop it."""
        self.measurer.reap()
        if self.run.phase(BASELINE) is not None:
            self._engine(self._recipe(), MAP).stop()

    def collect_again(self, tasks: Sequence[str]) -> None:
        """Collect the work of these tasks' agents again, after a person continued in them, and measure it."""
        self._engine(self._recipe(), MAP).collect_again(tasks)

    def exit_code(self) -> int:
        """0 green, 1 the branch is red, 3 green but some tasks did not come to a good end."""
        run = view(self.run.state)
        if run.integrated is None or run.integrated.green is False:
            return FAILED
        good = verdict.INTEGRATED | {verdict.UNCHANGED}
        return 0 if all(task.word in good and not task.place.reason for task in run.tasks) else PARTIAL

    def base(self) -> BaseCommit:
        """What tasks are measured against; known once the baseline is over."""
        settings, before = self.request.settings, self._kept(BASELINE)
        measured = self.measurer.directories("baseline-")
        return BaseCommit(
            measurer=self.measurer,
            git=self.git,
            commit=self.request.base,
            tests={test["id"]: typed(CollectedTest, test) for test in self._kept(COLLECT)["tests"]},
            measured={test: typed(BaselineTest, one) for test, one in before["tests"].items()},
            functions={test: typed(BaselineTest, one) for test, one in before.get("functions", {}).items()},
            paths=self._paths(),
            content=self.request.content,
            gate_command=settings.gate_command,
            effect_runs=settings.effect_runs,
            tutorial=settings.tutorial,
            mutants=settings.mutants,
            recorded=[os.path.join(place, "e2e") for place in measured],
            dirtied=changed_in(measured),
        )

    def _paths(self) -> Paths:
        """The paths of the settings, with the files that tests were collected from. Doctests of modules are in files of
        the product."""
        collected = self._kept(COLLECT)["tests"]
        tests = {test["file"] for test in collected if test["body"] != NO_BODY or not test["file"].endswith(".py")}
        return self.request.settings.paths.with_tests(tests, Objects(self.git).files(self.request.base))

    def _knows_of_tests(self) -> bool:
        """Whether the project itself looks at the marks of a test run, which are hidden from it otherwise. What its
        documentation and settings say of them is no matter."""
        marks = "PYTEST_CURRENT_TEST|PYTEST_VERSION"
        found = self.git.run("grep", "-lzE", marks, self.request.base)
        paths = [one.partition(":")[2] for one in found.stdout.decode(errors="surrogateescape").split("\0")[:-1]]
        kinds = {self.request.settings.paths.kind(path) for path in paths}
        return found.ok and bool(kinds & {PathKind.IMPLEMENTATION, PathKind.TEST})

    def _phase(self, name: str, do: Callable[[], Mapping[str, Any]]) -> None:
        if self.run.phase(name) is None:
            self.run.begin_phase(name)
            self.run.end_phase(name, do())

    def _collect(self) -> Mapping[str, Any]:
        found = plan.collect(self.measurer, self.request.base, paths=self.request.paths, args=self.request.args)
        self._keep(COLLECT, plain(found._asdict() | {"tests": list(found.tests.values())}))
        return {"tests": len(found.tests), "chosen": len(found.chosen), "broken": [item.id for item in found.broken]}

    def _gate(self) -> Mapping[str, Any]:
        """A gate that is red before anybody worked would refute them all."""
        command = self.request.settings.gate_command
        wanted = Measurement("gate", self.request.base, [Shell("gate", command)])
        step = self.measurer.must_take(wanted).steps["gate"]
        if step.exit_code != 0:
            self.measurer.forget(wanted)
            raise MngrError(
                f"the gate command `{command}` fails at the base already (exit code {step.exit_code})",
                details=log_tail(step),
                hint="fix that first, or run without a gate: `-S tmr.gate_command=`",
            )
        return {"exit_code": 0}

    def _canary(self) -> Mapping[str, Any]:
        if not self.request.canary:
            return {"test": None, "why": canary.NOT_ASKED}
        chosen = self._kept(COLLECT)["chosen"]
        answer = canary.ask(self.measurer, self.git, self.request.base, chosen, self._paths())
        return {"test": answer.test, "why": answer.why}

    def _baseline(self) -> Mapping[str, Any]:
        kept = self._kept(COLLECT)
        measured: dict[str, BaselineTest] = {}
        if self.request.baseline:
            # All of the suite: a branch is judged by all of it, whatever was chosen.
            tests = [test["id"] for test in kept["tests"]]
            repeats = self.request.settings.baseline_repeats
            measured = baseline.measure(self.measurer, self.request.base, tests, repeats=repeats)
            if tests and all(one.verdict == baseline.UNKNOWN for one in measured.values()):
                raise MngrError(
                    f"not one of {len(tests)} collected tests is run when pytest is given their files: `{tests[0]}`",
                    hint="the test command must run pytest at the top of the repository: "
                    "`mngr config get tmr.test_command` shows it",
                )
        for item in kept["broken"]:
            measured[item["id"]] = BaselineTest(baseline.BROKEN, (), item["signature"], item["text"])
        cause = baseline.all_fail(measured)
        if cause is not None:
            raise self._all_fail(cause, len(measured), measured[cause.example])
        self._keep(BASELINE, plain({"tests": measured, "functions": self._functions(kept, measured)}))
        verdicts = ["timeout" if one.timed_out else one.verdict for one in measured.values()]
        return {word: verdicts.count(word) for word in sorted(set(verdicts))}

    def _functions(self, kept: Mapping[str, Any], measured: Mapping[str, BaselineTest]) -> dict[str, BaselineTest]:
        """What the functions with parameters do, all cases of each together."""
        cases: dict[str, dict[str, BaselineTest]] = {}
        for test in kept["tests"]:
            id, function = test["id"], test.get("function") or test["id"]
            if function != id and id in measured:
                cases.setdefault(function, {})[id] = measured[id]
        return {function: baseline.folded(those) for function, those in cases.items()}

    def _all_fail(self, cause: baseline.Cause, count: int, example: BaselineTest) -> MngrError:
        """Agents would be paid to find out what is wrong with the copies that they are given."""
        guess = next((guess for guess in detect.look(self.request.repo) if guess.key == "prepare"), None)
        hint = "if the agents should fix them all: `--no-baseline`"
        if guess is not None and not self.request.settings.environment.prepare:
            hint = f"`mngr tmr init` sets `tmr.prepare` to `{guess.value}` ({guess.because}); {hint}"
        lines = example.text.strip("\n").splitlines()
        return MngrError(
            f"not one of {count} tests passes at the base, and no agent was started: {cause.text}",
            details="\n".join([cause.example, *lines[:_LINES_SHOWN], *["..."] * (len(lines) > _LINES_SHOWN)]),
            hint=hint,
        )

    def _select(self) -> Mapping[str, Any]:
        kept, measured = self._kept(COLLECT), self._kept(BASELINE)["tests"]
        found = {test["id"]: typed(CollectedTest, test) for test in kept["tests"]}
        tests = plan.functions(found, [*kept["chosen"], *(item["id"] for item in kept["broken"])])
        good = (baseline.PASS, baseline.SKIPPED)
        picked = {test for test in kept["chosen"] if measured.get(test, {}).get("verdict") not in good}
        needy = set(plan.functions(found, picked)) | {item["id"] for item in kept["broken"]}
        left_out = {test for test in tests if self.request.failing and test not in needy}
        slugs = plan.slugs(tests)
        chosen = [test for test in tests if test not in left_out]
        self.run.note_all([fact("task", task=test, slug=slugs[test], data={}) for test in chosen])
        return {"tasks": len(chosen), "left_out": len(left_out)}

    def _map(self) -> EngineResult:
        tasks = [Task(task.id, task.slug, task.data) for task in tasks_of(self.run.state)]
        self._in_engine = True
        try:
            return self._engine(self._recipe(), MAP).go(tasks)
        finally:
            self._in_engine = False

    def _recipe(self) -> TestRecipe:
        seconds = self.request.limits.timeout_seconds
        return TestRecipe(self.run, self.git, self.base(), self.request.workers, seconds)

    def _engine(self, recipe: Recipe, role: str) -> Engine:
        checks = min(_CHECKS_MAX, 2 * self.measurer.at_once)
        limits = self.request.limits._replace(max_checking=checks, max_collecting=max(4, os.cpu_count() or 1))
        return Engine(self.run, recipe, self.fleet, limits, role=role, pool=self.pool)

    def _finish(self, gone: EngineResult, code: int | None) -> int:
        self.measurer.reap()
        if self.pool is not None:
            self.pool.cancel_queued()
        if code is None:
            for problem in self.pool.finish() if self.pool is not None else ():
                self.run.note("decision", what=problem, because="the run is over")
            code = TIMED_OUT if gone.why == decide.DEADLINE else self.exit_code()
        self.run.note("finished", exit_code=code, summary={"why": gone.why, "because": gone.because})
        return code

    def _keep(self, phase: str, value: Mapping[str, Any]) -> None:
        """What is too long for the ledger is on disk before the ledger says that the phase is over."""
        files.write_atomic(self._path(phase), files.json_bytes(value))

    def _kept(self, phase: str) -> Any:
        with open(self._path(phase), encoding="utf-8", errors="surrogateescape") as file:
            return json.load(file)

    def _path(self, phase: str) -> str:
        return os.path.join(self.run.directory, f"{phase}.json")
