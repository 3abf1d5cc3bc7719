"""One measurement: the steps that run in a fresh copy of the code at a commit, as a shell script, and their results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.agent import sandbox
from mngr.errors import MngrError
from mngr.system import files
from mngr.system.process import join, quote
from mngr.tmr.measure import prepared, rows
from mngr.tmr.measure.diagnosis import advice, error_line
from mngr.tmr.measure.prepared import PreparedFiles
from mngr.tmr.measure.rows import Rows

EMPTY, USER = "empty", "user"
PROBE = os.path.join(os.path.dirname(__file__), "probe")
_DRIVER = os.path.join(os.path.dirname(__file__), "measurement.sh")
_LOG_MAX = 1_000_000
_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".go", ".java", ".kt", ".swift", ".zig", ".hs", ".ml")

# By its id, what a test leaves running is found and ended.
_KEPT = (*sandbox.VARIABLES, "MNGR_AGENT_INDEX", "MNGR_AGENT_ID")


class Shell(NamedTuple):
    """A step that is a shell command line."""

    name: str
    command: str

    def text(self, environment: SuiteEnvironment) -> str:
        return f"run() {{\n{self.command}\n}}\nstep {self.name}\n"

    def job(self, environment: SuiteEnvironment) -> dict[str, Any]:
        return {}


class Pytest(NamedTuple):
    """A step that runs tests: these, or all that are collected. With `base` (the body of each test, by id) also those
    that are new or changed since; new ones are run `again` more times.

    `paths` are files; those that do not exist at this commit are left out. `named` are files, directories and ids. All
    are from the top of the repository, wherever the test command runs pytest.

    With `task`, its own tests and those that are new or changed are listed, if they pass, for a step that comes `after`
    this one. Only with `failures_max` does pytest end before all tests were run."""

    name: str
    tests: Sequence[str] | None = None
    args: Sequence[str] = ()
    base: Mapping[str, str] | None = None
    again: int = 0
    paths: Sequence[str] = ()
    named: Sequence[str] = ()
    task: str = ""
    failures_max: int = 0

    def text(self, environment: SuiteEnvironment) -> str:
        # From the same root always: else a test's id depends on the files that pytest is given.
        words = ["-p", "mngr_tmr_probe", "--rootdir=.", "--continue-on-collection-errors", *self.args]
        line = _pytest(environment, self.name, words, [*self.paths, *self.named])
        text = f"run() {{\n{line}}}\ntests {self.name}\n"
        new = f'"$out/{self.name}.new"'
        for number in range(1, self.again + 1):
            again = f"run() {{\nexport MNGR_TMR_LISTED={new}\n{line}}}\ntests {self.name}-again-{number}\n"
            text += f"if [ -s {new} ]; then\n{again}fi\n"
        return text

    def job(self, environment: SuiteEnvironment) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in ("tests", "base", "paths", "task", "failures_max")}
        return {**found, "test_seconds": environment.test_seconds, "hides": environment.hides}


def _pytest(environment: SuiteEnvironment, step: str, words: Sequence[str], named: Sequence[str]) -> str:
    """Shell that runs pytest with the job of a step. The variable is exported, not put before the command: that may be
    `cd app && pytest` or `. .venv/bin/activate && pytest`."""
    places = "".join(f' "$MNGR_TMR_TOP"/{quote(path)}' for path in named)
    return f'export MNGR_TMR_JOB="$task/job/{step}.json"\n{environment.test_command} {join(words)}{places}\n'


class StrengthStep(NamedTuple):
    """A step that measures what tests notice; its rows are in `NAME.noticed`. `product` are the files that may be
    mutated; if some of them are compiled, `prepare` is run for every mutant. `only` are the ids of what is tried.
    Without `tests`, all that are collected; `named` is as in `Pytest`. With `after`, the tests are those that the step
    of that name has listed; without such a list, or when tests left files behind, nothing is measured."""

    name: str
    tests: Sequence[str] | None
    product: Sequence[str]
    mutants: int
    only: Sequence[str] = ()
    named: Sequence[str] = ()
    edits: int = 300
    after: str = ""

    def text(self, environment: SuiteEnvironment) -> str:
        words = ["-p", "mngr_strength", "--rootdir=.", "-q", "-p", "no:randomly"]
        line = f'export MNGR_TMR_ROWS="$out/{self.name}.noticed"\n'
        line += _pytest(environment, self.name, words, self.named)
        if not self.after:
            return f"run() {{\n{line}}}\nstep {self.name}\n"
        listed = f'"$out/{self.after}.touched"'
        run = f"run() {{\nexport MNGR_TMR_LISTED={listed}\n{line}}}\nstep {self.name}\n"
        return f"if [ -s {listed} ] && untouched; then\n{run}fi\n"

    def job(self, environment: SuiteEnvironment) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in ("tests", "product", "mutants", "edits")}
        compiled = any(path.endswith(_COMPILED) for path in self.product)
        return {**found, "only": self.only or None, "prepare": environment.prepare if compiled else ""}


class PluginStep(NamedTuple):
    """A step that does something else with these tests than to run them once: `plugin` of the probe does it, with these
    `facts`. Its rows are in `NAME.rows`."""

    name: str
    plugin: str
    tests: Sequence[str]
    facts: Mapping[str, Any] = {}

    def text(self, environment: SuiteEnvironment) -> str:
        words = ["-p", self.plugin, "--rootdir=.", "-q", "-p", "no:randomly"]
        line = _pytest(environment, self.name, words, rows.files_of(self.tests))
        return f'run() {{\nexport MNGR_TMR_ROWS="$out/{self.name}.rows"\n{line}}}\nstep {self.name}\n'

    def job(self, environment: SuiteEnvironment) -> dict[str, Any]:
        found = {"tests": self.tests, "paths": rows.files_of(self.tests), **self.facts}
        return {**found, "test_seconds": environment.test_seconds, "hides": environment.hides}


class Measurement(NamedTuple):
    """What to run at a commit; `label` is for people. The steps come after `[tmr] prepare`, and only if that succeeds,
    unless they are to be run `anyway`. The same steps on the same files are the same measurement, with one result;
    `repeat` tells further runs of it apart."""

    label: str
    commit: str
    steps: Sequence[Shell | Pytest | StrengthStep | PluginStep]
    anyway: bool = False
    repeat: int = 0


class StepResult(NamedTuple):
    """What came of one step; `exit_code` is None for one that did not end. `changed` are files of git that the tests
    changed."""

    exit_code: int | None
    log: str
    rows: Rows
    changed: tuple[str, ...] = ()


class MeasurementResult(NamedTuple):
    """What came of a measurement. `problem` says why it did not come to its end; empty when it did. `lost` says that it
    was ended from outside, or that its files are not all here: nothing follows from that for the code it ran."""

    steps: Mapping[str, StepResult]
    problem: str
    seconds: float
    directory: str
    lost: bool = False

    @property
    def rows(self) -> Rows:
        """Of the step `test`; empty if that was not run."""
        return self.steps["test"].rows if "test" in self.steps else Rows()

    @property
    def unprepared(self) -> bool:
        """Whether `[tmr] prepare` is what failed."""
        return "prepare" in self.steps and self.steps["prepare"].exit_code not in (0, None)


class Ended(NamedTuple):
    """How the agent of a measurement ended: `problem` says why not by itself, if so."""

    seconds: float
    problem: str = ""
    timed_out: bool = False


class SuiteEnvironment(NamedTuple):
    """How this project's tests are run: the same for all measurements of a run. `home` is `empty` or `user`. `hides` is
    whether the marks of a test run are hidden from the product; `sandbox` is as in the record of an agent."""

    test_command: str
    prepare: str = ""
    env: Mapping[str, str] = {}
    test_seconds: float = 120.0
    job_seconds: float = 1800.0
    extra_paths: Mapping[str, str] = {}
    home: str = EMPTY
    hides: bool = True
    sandbox: str = ""


def script(
    environment: SuiteEnvironment, wanted: Measurement, given: PreparedFiles | None = None, *, keeps: bool = False
) -> dict[str, bytes]:
    """The files of a measurement: `job.sh`, which runs its steps at the top of a checkout, and what each is to do. The
    copy is prepared by the files that are `given`, or with what it `keeps` for others."""
    words = {"kept": [*_KEPT, *environment.env], "linked": sandbox.TOOLS, "home_of_tests": [environment.home]}
    text = "".join(f"{name}={quote(' '.join(each))}\n" for name, each in words.items())
    text += f"elsewhere={quote(_elsewhere(environment))}\n{files.content(_DRIVER).decode()}"
    found: dict[str, bytes] = {}
    if environment.prepare:
        text += prepared.step(environment.prepare, must=not wanted.anyway, given=given, keeps=keeps)
    for step in wanted.steps:
        text += step.text(environment)
        if job := step.job(environment):
            found[f"{step.name}.json"] = json.dumps(job).encode()
    return {**found, "job.sh": (text + "exit 0\n").encode()}


def _elsewhere(environment: SuiteEnvironment) -> str:
    """Directories, beside those of PATH, where what `prepare` makes would not be in further copies: what belongs to the
    Python of the tests, and in a sandbox what only this agent has."""
    runner = os.path.dirname(next(iter(environment.test_command.split()), ""))
    return ":".join([*([runner] if os.path.isabs(runner) else []), *(["/tmp"] if environment.sandbox else [])])


def read(environment: SuiteEnvironment, wanted: Measurement, directory: str, ended: Ended) -> MeasurementResult:
    """The result, from the files that a measurement left."""
    names = ["prepare"] if environment.prepare else []
    for step in wanted.steps:
        names.append(step.name)
        if isinstance(step, Pytest):
            names += [f"{step.name}-again-{number}" for number in range(1, step.again + 1)]
    steps = {name: _step(directory, name) for name in names if os.path.exists(os.path.join(directory, f"{name}.log"))}
    problem, lost = ended.problem, bool(ended.problem) and not ended.timed_out
    if not problem and any(step.exit_code is None for step in steps.values()):
        problem, lost = "some of its results are lost", True
    done = MeasurementResult(steps, problem, ended.seconds, directory, lost)
    if done.unprepared and not problem:
        said = error_line(log_tail(steps["prepare"], _LOG_MAX))
        failed = f"`[tmr] prepare` failed (exit code {steps['prepare'].exit_code})"
        done = done._replace(problem=f"{failed}: {said}" if said else failed)
    return done


def _step(directory: str, name: str) -> StepResult:
    path = os.path.join(directory, name)
    code = files.content(f"{path}.exit").strip()
    changed = tuple(files.content(f"{path}.changed").decode(errors="replace").splitlines())
    return StepResult(
        int(code) if code.isdigit() else None, f"{path}.log", rows.read(files.content(f"{path}.rows")), changed
    )


def changed_in(directories: Iterable[str]) -> frozenset[str]:
    """The files of git that tests changed in the measurements of these directories."""
    found = [os.path.join(place, name) for place in directories for name in os.listdir(place)]
    lines = [files.content(path).decode(errors="replace").splitlines() for path in found if path.endswith(".changed")]
    return frozenset(line for each in lines for line in each)


def log_tail(step: StepResult, size: int = 4000) -> str:
    """The end of what a step printed, for a person."""
    data, _ = files.read_tail(step.log, size)
    return data.decode(errors="replace").strip("\n")


def checked(done: MeasurementResult) -> MeasurementResult:
    """The result, or an error that shows what its steps printed."""
    if done.problem:
        logs = [log_tail(step) for step in done.steps.values() if step.exit_code != 0]
        hint = advice(error_line(log_tail(done.steps["prepare"], _LOG_MAX))) if done.unprepared else ""
        where = f"its files are in `{quote(done.directory)}`"
        details = "\n".join(filter(None, logs))
        raise MngrError(done.problem, details=details, hint=f"{hint}; {where}" if hint else where)
    return done


def default_command() -> str:
    """How pytest is started when no setting says so: the `python3` on PATH, as a person would."""
    from mngr.system.process import find_program, run

    for python in filter(None, (find_program("python3"), sys.executable)):
        if run([python, "-c", "import pytest"], timeout=60, cwd="/").ok:
            return f"{quote(python)} -m pytest"
    raise MngrError(
        "no Python here has pytest",
        hint="say how the tests are run: `mngr config set tmr.test_command 'uv run pytest'`",
    )
