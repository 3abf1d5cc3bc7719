"""One measurement: the steps that run in a fresh copy of the code at a commit, as a shell script, and their results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mngr import files
from mngr.agents import sandbox
from mngr.errors import MngrError
from mngr.process import join, quote
from mngr.tmr import rows
from mngr.tmr.diagnosis import advice, error_line
from mngr.tmr.rows import Rows

EMPTY, USER = "empty", "user"
PROBE = os.path.join(os.path.dirname(__file__), "probe")
_DRIVER = os.path.join(os.path.dirname(__file__), "measurement.sh")
_LOG_MAX = 1_000_000
_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".go", ".java", ".kt", ".swift", ".zig", ".hs", ".ml")

_KEPT = (*sandbox.VARIABLES, "MNGR_AGENT_INDEX", "MNGR_TMR_TEST_SECONDS", "MNGR_TMR_HIDE")
# Lines for a step, each list in a file that a variable of this name tells.
FileLists = Mapping[str, Sequence[str] | None]


class Shell(NamedTuple):
    """A step that is a shell command line. One that `must` succeed ends the job when it fails."""

    name: str
    command: str
    must: bool = False

    def text(self, environment: SuiteEnvironment) -> str:
        line = f"run() {{\n{self.command}\n}}\nstep {self.name}"
        return line + (" || exit 0\n" if self.must else "\n")

    def lists(self) -> FileLists:
        return {}


class Pytest(NamedTuple):
    """A step that runs tests: these, or all that are collected. With `base` (lines of body and id) also those that are
    new or changed since; new ones are run `again` more times.

    `paths` are files as in the ids of tests, from the directory in which the test command runs pytest; those that do
    not exist at this commit are left out. `named` are files, directories and ids from the top of the repository.

    With `task`, its own tests and those that are new or changed are listed, if they pass, for a step that comes `after`
    this one."""

    name: str
    tests: Sequence[str] | None = None
    args: Sequence[str] = ()
    base: Sequence[str] | None = None
    again: int = 0
    paths: Sequence[str] = ()
    named: Sequence[str] = ()
    task: str = ""

    def text(self, environment: SuiteEnvironment) -> str:
        # Exported, not put before the command: that may be `cd app && pytest` or `. .venv/bin/activate && pytest`.
        given = _exported(self.name, self.lists())
        new = f"$out/{self.name}.new"
        # From the same root always: else a test's id depends on the files that pytest is given.
        words = join(["-p", "mngr_tmr_probe", "--rootdir=.", "--continue-on-collection-errors", *self.args])
        named = "".join(f' "$MNGR_TMR_TOP"/{quote(path)}' for path in self.named)
        line = f"{environment.test_command} {words}{' ' + join(self.paths) if self.paths else ''}{named}"
        first = f'{given}export MNGR_TMR_NEW="{new}"\n' if self.again else given
        if self.task:
            first += f'export MNGR_TMR_TOUCHED="$out/{self.name}.touched"\n'
        text = f"run() {{\n{first}{line}\n}}\ntests {self.name}\n"
        for number in range(1, self.again + 1):
            again = f'{given}unset MNGR_TMR_BASE\nexport MNGR_TMR_TESTS="{new}"\n{line}'
            text += f'if [ -s "{new}" ]; then\nrun() {{\n{again}\n}}\ntests {self.name}-again-{number}\nfi\n'
        return text

    def lists(self) -> FileLists:
        lists = {"MNGR_TMR_TESTS": self.tests, "MNGR_TMR_BASE": self.base, "MNGR_TMR_PATHS": self.paths or None}
        return {**lists, "MNGR_TMR_TASK": [self.task] if self.task else None}


def _exported(step: str, lists: FileLists) -> str:
    """Shell that names the file of each list in a variable."""
    return "".join(f'export {name}="$task/job/{step}.{name}"\n' for name, lines in lists.items() if lines is not None)


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
        command, prepare = environment.test_command, environment.prepare
        given = f'export MNGR_STRENGTH_ROWS="$out/{self.name}.noticed"\nexport MNGR_STRENGTH_TOP="$MNGR_TMR_TOP"\n'
        given += f"export MNGR_STRENGTH_MUTANTS={self.mutants}\nexport MNGR_STRENGTH_EDITS={self.edits}\n"
        given += _exported(self.name, self.lists())
        if prepare and any(path.endswith(_COMPILED) for path in self.product):
            given += f"export MNGR_STRENGTH_PREPARE={quote(prepare)}\n"
        words = join(["-p", "mngr_strength", "--rootdir=.", "-q", "-p", "no:randomly"])
        named = "".join(f' "$MNGR_TMR_TOP"/{quote(path)}' for path in self.named)
        if not self.after:
            return f"run() {{\n{given}{command} {words}{named}\n}}\nstep {self.name}\n"
        listed = f'"$out/{self.after}.touched"'
        given += f"export MNGR_STRENGTH_TESTS={listed}\n"
        return f"if [ -s {listed} ] && untouched; then\nrun() {{\n{given}{command} {words}\n}}\nstep {self.name}\nfi\n"

    def lists(self) -> FileLists:
        return {
            "MNGR_STRENGTH_TESTS": self.tests,
            "MNGR_STRENGTH_PRODUCT": self.product,
            "MNGR_STRENGTH_ONLY": self.only or None,
        }


class Measurement(NamedTuple):
    """What to run at a commit; `label` is for people. The steps come after `[tmr] prepare`, and only if that succeeds,
    unless they are to be run `anyway`. The same steps on the same files are the same measurement, with one result;
    `repeat` tells further runs of it apart."""

    label: str
    commit: str
    steps: Sequence[Shell | Pytest | StrengthStep]
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


def script(environment: SuiteEnvironment, wanted: Measurement) -> dict[str, bytes]:
    """The files of a measurement: `job.sh`, which runs its steps at the top of a checkout, and the lists it names."""
    given = {"kept": [*_KEPT, *environment.env], "linked": sandbox.TOOLS, "home_of_tests": [environment.home]}
    text = "".join(f"{name}={quote(' '.join(words))}\n" for name, words in given.items())
    text += files.content(_DRIVER).decode()
    found: dict[str, bytes] = {}
    if environment.prepare:
        text += Shell("prepare", environment.prepare, must=not wanted.anyway).text(environment)
    for step in wanted.steps:
        text += step.text(environment)
        for name, lines in step.lists().items():
            if lines is not None:
                found[f"{step.name}.{name}"] = "".join(f"{line}\n" for line in lines).encode()
    return {**found, "job.sh": (text + "exit 0\n").encode()}


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
    from mngr.process import find_program, run

    for python in filter(None, (find_program("python3"), sys.executable)):
        if run([python, "-c", "import pytest"], timeout=60).ok:
            return f"{quote(python)} -m pytest"
    raise MngrError(
        "no Python here has pytest",
        hint="say how the tests are run: `mngr config set tmr.test_command 'uv run pytest'`",
    )


def base_lines(found: Mapping[str, rows.CollectedTest]) -> list[str]:
    """What the probe compares with: a line of body and id for each test at base."""
    return [f"{test.body} {test.id}" for test in found.values()]
