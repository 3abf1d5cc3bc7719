"""The gate of an integration: the project's own tests and gate command, run at a commit in clean checkouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mngr.tmr.branch.gate import UNNAMED, Gate, GateFailure, GateResult
from mngr.tmr.branch.unit import Unit
from mngr.tmr.measure.baseline import shards
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest, Shell, log_tail
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import GOOD, file_of, files_of

LINT = "gate command"
_TEXT_MAX = 4000
_TESTS_MIN = 5  # worth a copy of the code of their own


class SuiteGate(Gate):
    """`tests` are all that the delivered branch may have, `stay` those among them that must be there; `of` those that
    belong to a task's work, by slug; `passed` those that passed at the base, with what they did there: one that is
    skipped or expected to fail now is lost."""

    def __init__(
        self,
        measurer: Measurer,
        *,
        tests: Sequence[str],
        stay: Collection[str],
        of: Mapping[str, Sequence[str]],
        passed: Mapping[str, Sequence[str]] | None = None,
        gate_command: str = "",
    ) -> None:
        self._measurer, self._tests, self._stay, self._of, self._gate_command = measurer, tests, stay, of, gate_command
        self._passed = passed or {}
        self._number = 0
        self._asked: Counter[str] = Counter()

    def check(
        self, commit: str, units: tuple[Unit, ...], *, final: bool = False, focus: tuple[str, ...] = ()
    ) -> GateResult:
        self._number += 1
        label = f"gate-{self._number}{'-final' if final else ''}-{commit[:8]}"
        lint = [Shell("gate", self._gate_command)] if self._gate_command and (not focus or LINT in focus) else []
        tests: Sequence[str] = self._tests
        steps: list[list[Pytest | Shell]]
        if focus:
            tests = [name for name in focus if name != LINT]
            steps = [[Pytest("test", tests=tests)] if tests else []]
        elif final:  # the delivered branch is measured as it is: every test in the files of these
            steps = [[Pytest("test", paths=files_of(part))] for part in self._apart(tests, units)]
        else:  # the whole suite is collected, since that must work too
            slugs = [maker.slug for unit in units for maker in unit.makers]
            tests = sorted({test for slug in slugs for test in self._of[slug]})
            parts = shards(tests, min(self._measurer.at_once, -(-len(tests) // _TESTS_MIN))) or [[]]
            steps = [[Pytest("test", tests=part)] for part in parts]
        steps[0] += lint
        jobs = self._repeated([Measurement(f"{label}-{at}", commit, own) for at, own in enumerate(steps, 1)])
        ended = self._measurer.take_all(jobs)
        for problem in filter(None, map(_problem, ended)):
            self._measurer.forget(*jobs)
            return GateResult(False, (), problem)
        failures = [failure for done in ended for failure in _failures(done, self._passed)]
        failures += self._lost(tests, units, ended)
        return GateResult(not failures, tuple(failures), ", ".join(job.label for job in jobs))

    def _apart(self, tests: Sequence[str], units: tuple[Unit, ...]) -> list[list[str]]:
        """The tests of each file that an agent changed in a process and a copy of their own, so that no file's code can
        speak for another; the others together."""
        touched = {path for unit in units for path in unit.paths}
        changed: dict[str, list[str]] = {}
        for test in tests:
            if file_of(test) in touched:
                changed.setdefault(file_of(test), []).append(test)
        rest = [test for test in tests if file_of(test) not in changed]
        return [*changed.values(), *shards(rest, self._measurer.at_once)] or [[]]

    def _repeated(self, wanted: Sequence[Measurement]) -> list[Measurement]:
        """Whoever asks the same once more wants to see it once more."""
        asked = str([(one.commit, one.steps) for one in wanted])
        self._asked[asked] += 1
        return [one._replace(repeat=self._asked[asked] - 1) for one in wanted]

    def _lost(
        self, tests: Sequence[str], units: tuple[Unit, ...], ended: Sequence[MeasurementResult]
    ) -> list[GateFailure]:
        """Tests that should be there and are not, nor came up under their name elsewhere: what is not run does not
        pass."""
        rows = [done.steps["test"].rows for done in ended if "test" in done.steps]
        found = {test for each in rows for test in each.tests}
        moved = {_name(test) for test in found.difference(self._tests)}
        broken = {file_of(item.id) for each in rows for item in each.broken}
        pieces = [piece for unit in units for piece in unit.pieces]
        made = {
            test
            for piece in pieces
            for maker in piece.makers
            for test in self._of[maker.slug]
            if file_of(test) in piece.part.paths
        }
        due = [test for test in tests if "::" in test and (test in self._stay or test in made)]
        lost = [test for test in due if test not in found and _name(test) not in moved and file_of(test) not in broken]
        return [GateFailure(test, "it is not there any more") for test in lost]


def _name(test: str) -> str:
    return test.partition("::")[2]


def _problem(done: MeasurementResult) -> str:
    """Why nothing was measured; empty when something was."""
    step = done.steps.get("test")
    if not done.problem and step is not None and not step.rows.finished:
        return f"pytest did not come to its end\n{log_tail(step)}"
    return done.problem


def _doubt(done: MeasurementResult) -> list[GateFailure]:
    """A test run that cannot be believed fails by the name of its file, if it has only one."""
    step = done.steps.get("test")
    if step is None or not step.rows.doubt:
        return []
    files = {file_of(test) for test in step.rows.tests}
    return [GateFailure(files.pop() if len(files) == 1 else UNNAMED, f"it cannot be believed: {step.rows.doubt}")]


def _failures(done: MeasurementResult, passed: Mapping[str, Sequence[str]]) -> list[GateFailure]:
    """A file that cannot be collected fails by its own name."""
    found = _doubt(done)
    if "test" in done.steps:
        rows = done.steps["test"].rows
        found += [GateFailure(file_of(item.id), item.text[-_TEXT_MAX:]) for item in rows.broken]
        bad = [ran for ran in rows.ran.values() if ran.outcome not in GOOD | {"skipped"}]
        found += [GateFailure(ran.id, ran.text[-_TEXT_MAX:]) for ran in bad]
        quiet = [ran for ran in rows.ran.values() if ran.outcome in ("skipped", "xfailed")]
        found += [
            GateFailure(ran.id, f"it passed at the base and is {ran.outcome} now\n{ran.text[-_TEXT_MAX:]}")
            for ran in quiet
            if ran.id in passed and ran.outcome not in passed[ran.id]
        ]
    if "gate" in done.steps and done.steps["gate"].exit_code != 0:
        found.append(GateFailure(LINT, log_tail(done.steps["gate"])))
    return found
