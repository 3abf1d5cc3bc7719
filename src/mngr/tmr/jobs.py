"""Test runs as `command` agents: a fresh copy of the code at a commit, the steps, what came of them, and gone again.

A new copy for every job, since what an agent wrote runs there and could spoil it for the next.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from mngr import files
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.errors import MngrError, TimedOut
from mngr.interrupts import Terminated, held, others_ended
from mngr.process import join, quote
from mngr.records import NamedTuple
from mngr.tmr import rows
from mngr.tmr.diagnosis import advice, error_line
from mngr.tmr.rows import Rows
from mngr.waiting import Deadline

ROLE = "job"
PROBE = os.path.join(os.path.dirname(__file__), "probe")
_STARTS_MAX = 50  # of one pytest that tests keep ending
_NAME_MAX = 63
_LOG_MAX = 1_000_000
_LOOK_SECONDS = 2.0  # how soon a request to stop is seen

DRIVER = r"""
out=$MNGR_ARTIFACTS_DIR
MNGR_TMR_TOP=$(pwd -P)
export MNGR_TMR_TOP
task=$MNGR_TMR_TOP/.mngr/task
probe=$task/job/probe
export PYTHONPATH="$probe${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1

# step NAME: what was defined as the function `run`, its output and exit code beside the artifacts
step() {
    step=$1
    (run) >"$out/$step.log" 2>&1 </dev/null
    code=$?
    echo "$code" >"$out/$step.exit"
    return "$code"
}

# tests NAME: the same with pytest in `run`, started again when a test ended it; each start gets one test further
tests() {
    rows=$out/$1.rows
    : >"$out/$1.log"
    starts=0
    began=0
    while :; do
        before=$began
        (MNGR_TMR_ROWS=$rows; export MNGR_TMR_ROWS; run) >>"$out/$1.log" 2>&1 </dev/null
        code=$?
        starts=$((starts + 1))
        case $(tail -n 1 "$rows" 2>/dev/null) in *'"type": "finished"'*) break ;; esac
        began=$(grep -c '"type": "began"' "$rows" 2>/dev/null)
        [ "${began:-0}" -gt "$before" ] && [ "$starts" -lt STARTS_MAX ] || break
    done
    echo "$code" >"$out/$1.exit"
}
""".replace("STARTS_MAX", str(_STARTS_MAX))


class StopAsked(MngrError):
    """Somebody asked the run to stop while a job was waited for."""

    def __init__(self) -> None:
        super().__init__("the run was asked to stop")


class Shell(NamedTuple):
    """A step that is a shell command line. One that `must` succeed ends the job when it fails."""

    name: str
    command: str
    must: bool = False

    def text(self) -> str:
        line = f"run() {{\n{self.command}\n}}\nstep {self.name}"
        return line + (" || exit 0\n" if self.must else "\n")


class Pytest(NamedTuple):
    """A step that runs tests: these, or all that are collected. With `base` (lines of body and id) also those that are
    new or changed since; new ones are run `again` so many times more.

    `paths` are files as in the ids of tests, from the directory in which the test command runs pytest; those that do
    not exist at this commit are left out. `named` are files, directories and ids from the top of the repository."""

    name: str
    tests: Sequence[str] | None = None
    args: Sequence[str] = ()
    base: Sequence[str] | None = None
    again: int = 0
    paths: Sequence[str] = ()
    named: Sequence[str] = ()

    def text(self, command: str) -> str:
        # Exported, not put before the command: that may be `cd app && pytest` or `. .venv/bin/activate && pytest`.
        given = "".join(f'export {variable}="$task/job/{self.name}.{variable}"\n' for variable in self._lists())
        new = f"$out/{self.name}.new"
        # From the same root always: else a test's id depends on the files that pytest is given.
        words = join(["-p", "mngr_tmr_probe", "--rootdir=.", "--continue-on-collection-errors", *self.args])
        named = "".join(f' "$MNGR_TMR_TOP"/{quote(path)}' for path in self.named)
        line = f"{command} {words}{' ' + join(self.paths) if self.paths else ''}{named}"
        first = f'{given}export MNGR_TMR_NEW="{new}"\n' if self.again else given
        text = f"run() {{\n{first}{line}\n}}\ntests {self.name}\n"
        for number in range(1, self.again + 1):
            again = f'{given}unset MNGR_TMR_BASE\nexport MNGR_TMR_TESTS="{new}"\n{line}'
            text += f'if [ -s "{new}" ]; then\nrun() {{\n{again}\n}}\ntests {self.name}-again-{number}\nfi\n'
        return text

    def files(self) -> dict[str, bytes]:
        return {
            f"{self.name}.{variable}": "".join(f"{line}\n" for line in lines).encode()
            for variable, lines in self._lists().items()
        }

    def _lists(self) -> dict[str, Sequence[str]]:
        lists = {"MNGR_TMR_TESTS": self.tests, "MNGR_TMR_BASE": self.base, "MNGR_TMR_PATHS": self.paths or None}
        return {variable: lines for variable, lines in lists.items() if lines is not None}


class Job(NamedTuple):
    """What to run at a commit; `label` becomes part of the agent's name. The steps come after `[tmr] prepare`, and only
    if that succeeds, unless they are to be run `anyway`."""

    label: str
    commit: str
    steps: Sequence[Shell | Pytest]
    anyway: bool = False


class Step(NamedTuple):
    """What came of one step; `exit_code` is None for one that did not end."""

    exit_code: int | None
    log: str
    rows: Rows


class Done(NamedTuple):
    """What came of a job. `problem` says why it did not come to its end; empty when it did. `lost` says that the job
    itself was ended, or that its results are not all here: nothing follows from that for the code it ran."""

    steps: Mapping[str, Step]
    problem: str
    seconds: float
    directory: str
    lost: bool = False

    @property
    def unprepared(self) -> bool:
        """Whether `[tmr] prepare` is what failed."""
        return "prepare" in self.steps and self.steps["prepare"].exit_code not in (0, None)


class Surroundings(NamedTuple):
    """How this project's tests are run: the same for all jobs of a run."""

    test_command: str
    prepare: str = ""
    env: Mapping[str, str] = {}
    test_seconds: float = 120.0
    job_seconds: float = 1800.0
    extra_paths: Mapping[str, str] = {}


class Bench:
    """Runs jobs, at most `at_once` at a time; thread-safe. Every job's files stay in `directory`/LABEL."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        run: str,
        repo: str,
        directory: str,
        surroundings: Surroundings,
        at_once: int,
        record: Callable[..., None] = lambda kind, **facts: None,
        stop_asked: Callable[[], bool] = lambda: False,
    ) -> None:
        self._fleet, self._run, self._repo, self._directory = fleet, run, repo, directory
        self.surroundings = surroundings
        self._places = threading.BoundedSemaphore(at_once)
        self._record, self._stop_asked = record, stop_asked
        self.at_once = at_once

    def run(self, job: Job) -> Done:
        """Blocks until the job has ended. Its agent is gone afterwards, whatever happened. Raises `StopAsked` as soon
        as somebody asks the run to stop."""
        with self._places:
            if self._stop_asked():
                raise StopAsked
            began = time.monotonic()
            name = f"{self._run}-job-{job.label}"[: _NAME_MAX - 7] + "-" + os.urandom(3).hex()
            target = os.path.join(self._directory, job.label)
            files.remove_tree(target)
            agent: Agent | None = None
            try:
                agent = self._start(name, job)
                problem, timed_out = self._wait(agent)
                self._fleet.pull_artifacts(agent, target)
            finally:
                if agent is not None:
                    self._remove(agent)
            done = self._read(job, target, problem, timed_out, time.monotonic() - began)
            self._record("job", job=job.label, commit=job.commit, seconds=round(done.seconds, 3), problem=done.problem)
            return done

    def run_all(self, jobs: Sequence[Job]) -> list[Done]:
        """The same for many, side by side, in order. The first error is raised after all have ended. An interrupt ends
        them as a kill would: what is left of them is for `reap`."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(1, min(self.at_once, len(jobs)))) as pool:
            try:
                return list(pool.map(self.run, jobs))
            except (KeyboardInterrupt, Terminated):
                with held(), others_ended():
                    pool.shutdown(wait=True, cancel_futures=True)
                raise

    def reap(self) -> list[str]:
        """End what a killed orchestrator of this run left. Nothing of it is needed: jobs are run again."""
        labels = {"mngr-run": self._run, "mngr-role": ROLE}
        left = [agent for agent in self._fleet.list().agents if labels.items() <= dict(agent.record.labels).items()]
        for agent in left:
            self._remove(agent)
        return [agent.name for agent in left]

    def _remove(self, agent: Agent) -> None:
        """What it ran is a commit of the repository, and its results are here by now or not wanted."""
        self._fleet.destroy(agent, discard=True)

    def _start(self, name: str, job: Job) -> Agent:
        """The script stays beside the results: what was run, to the letter."""
        place = os.path.join(self._directory, f"{job.label}.job")
        files.remove_tree(place)
        files.make_private_dir(place)
        for file, data in script(self.surroundings, job).items():
            files.write_atomic(os.path.join(place, file), data)
        return self._fleet.create(
            name,
            command="sh .mngr/task/job/job.sh",
            source=self._repo,
            transfer="git-mirror",
            branch=f"{job.commit}:mngr-job/{name}",
            unclean="exclude",
            env={**self.surroundings.env, "MNGR_TMR_TEST_SECONDS": f"{self.surroundings.test_seconds:g}"},
            labels={"mngr-run": self._run, "mngr-role": ROLE},
            extra_paths=self.surroundings.extra_paths,
            uploads=((place, ".mngr/task/job"), (PROBE, ".mngr/task/job/probe")),
        )

    def _wait(self, agent: Agent) -> tuple[str, bool]:
        """Why it did not come to its end, if it did not, and whether that is because of its time."""
        deadline = Deadline(self.surroundings.job_seconds)
        ended: Sequence[Agent] = ()
        while not ended:
            try:
                ended = self._fleet.wait([agent], ("DONE", "FAILED", "STOPPED"), timeout=deadline.left(_LOOK_SECONDS))
            except TimedOut:
                if self._stop_asked():
                    raise StopAsked from None
                if deadline.passed:
                    self._fleet.stop(agent)
                    return f"the job did not end within {self.surroundings.job_seconds:g} s", True
        state = ended[0]
        if state.state == "DONE":
            return "", False
        return f"the job ended as {state.state}" + (f": {state.status.reason}" if state.status.reason else ""), False

    def _read(self, job: Job, target: str, problem: str, timed_out: bool, seconds: float) -> Done:
        names = ["prepare"] if self.surroundings.prepare else []
        for step in job.steps:
            names.append(step.name)
            if isinstance(step, Pytest):
                names += [f"{step.name}-again-{number}" for number in range(1, step.again + 1)]
        steps = {name: _step(target, name) for name in names if os.path.exists(os.path.join(target, f"{name}.log"))}
        lost = bool(problem) and not timed_out
        if not problem and any(step.exit_code is None for step in steps.values()):
            problem, lost = "some of its results are lost", True
        done = Done(steps, problem, seconds, target, lost)
        if done.unprepared and not problem:
            said = error_line(log_tail(steps["prepare"], _LOG_MAX))
            failed = f"`[tmr] prepare` failed (exit code {steps['prepare'].exit_code})"
            done = done._replace(problem=f"{failed}: {said}" if said else failed)
        return done


def script(surroundings: Surroundings, job: Job) -> dict[str, bytes]:
    """The files of a job: `job.sh`, which runs the steps at the top of a checkout, and the lists that it names."""
    text = DRIVER
    found: dict[str, bytes] = {}
    if surroundings.prepare:
        text += Shell("prepare", surroundings.prepare, must=not job.anyway).text()
    for step in job.steps:
        if isinstance(step, Pytest):
            text += step.text(surroundings.test_command)
            found.update(step.files())
        else:
            text += step.text()
    return {**found, "job.sh": (text + "exit 0\n").encode()}


def _step(directory: str, name: str) -> Step:
    path = os.path.join(directory, name)
    code = _content(f"{path}.exit").strip()
    return Step(int(code) if code.isdigit() else None, f"{path}.log", rows.read(_content(f"{path}.rows")))


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def log_tail(step: Step, size: int = 4000) -> str:
    """The end of what a step printed, for a person."""
    data, _ = files.read_tail(step.log, size)
    return data.decode(errors="replace").strip("\n")


def checked(done: Done) -> Done:
    """The job, or an error that shows what its steps printed."""
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


def base_lines(found: Mapping[str, rows.Found]) -> list[str]:
    """What the probe compares with: a line of body and id for each test at base."""
    return [f"{test.body} {test.id}" for test in found.values()]
