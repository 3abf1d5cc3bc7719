"""One measurement: the steps that run in a fresh copy of the code at a commit, as a shell script, and their results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from mngr import files
from mngr.errors import MngrError
from mngr.process import join, quote
from mngr.records import NamedTuple
from mngr.tmr import rows
from mngr.tmr.diagnosis import advice, error_line
from mngr.tmr.rows import Rows

EMPTY, USER = "empty", "user"
PROBE = os.path.join(os.path.dirname(__file__), "probe")
_STARTS_MAX = 50  # of one pytest that tests keep ending
_LOG_MAX = 1_000_000

DRIVER = r"""
out=$MNGR_ARTIFACTS_DIR
MNGR_TMR_TOP=$(pwd -P)
task=$MNGR_TMR_TOP/.mngr/task
if [ -z "${MNGR_TMR_STARTED:-}" ]; then
    # Nothing of the user's reaches what agents wrote: no keys, no credentials, no home, no remote.
    for remote in $(git remote 2>/dev/null); do git remote remove "$remote"; done
    token=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    mkdir -p "$task/job/sentinels"
    sentinels=$task/job/sentinels/test_$token.py
    printf 'def test_passes():\n    assert 1\n\n\ndef test_fails():\n    assert 0\n' >"$sentinels"
    set --
    for name in KEPT; do
        eval "value=\${$name-}"
        case $value in *://*@*) continue ;; esac
        eval "[ -z \"\${$name+x}\" ]" || set -- "$@" "$name=$value"
    done
    home=HOME_OF_TESTS
    exec env -i "$@" HOME="$home" MNGR_TMR_STARTED=1 MNGR_ARTIFACTS_DIR="$out" \
        MNGR_TMR_SENTINELS="$sentinels" sh "$0"
fi
unset MNGR_TMR_STARTED
export MNGR_TMR_TOP
probe=$task/job/probe
export PYTHONPATH="$probe${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONDONTWRITEBYTECODE=1
export MNGR_E2E_DIR="$out/e2e"

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
    tracked=$(git diff HEAD 2>/dev/null | cksum)
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
    if [ "$tracked" != "$(git diff HEAD 2>/dev/null | cksum)" ]; then git diff HEAD --name-only >"$out/$1.changed"; fi
}
""".replace("STARTS_MAX", str(_STARTS_MAX))
# Of the user's home, what tools need and no credentials are kept in: they are linked into that of the tests.
_LINKED = (
    *(".pyenv", ".rustup", ".nvm", ".asdf", ".rbenv", ".sdkman", ".local/share/mise", ".local/share/uv", ".local/bin"),
    *(".local/lib", ".cargo/bin", ".cargo/registry", ".cargo/git", "go/pkg", ".npm", ".m2/repository", ".ccache"),
    *(".gradle/caches", ".gradle/wrapper", ".cache/pip", ".cache/uv", ".cache/go-build", ".cache/pypoetry"),
)
# Makes the home of the tests: empty, but for these and for a name for commits.
HOME = f"""$task/home
    real=${{HOME:-/nonexistent}}
    for name in {" ".join(_LINKED)}; do
        [ -e "$real/$name" ] || continue
        mkdir -p "$(dirname "$home/$name")" && ln -s "$real/$name" "$home/$name"
    done
    mkdir -p "$home"
    printf '[user]\\n\\tname = mngr\\n\\temail = mngr@localhost\\n' >"$home/.gitconfig\""""
# Of the user's variables, what tests may need and no secret is kept in.
_KEPT = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "RUSTUP_HOME", "NVM_DIR", "JAVA_HOME", "GOROOT"),
    *("GOFLAGS", "GOPROXY", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy"),
    *("https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"),
    *("NPM_CONFIG_REGISTRY", "PYTEST_ADDOPTS", "MNGR_AGENT_INDEX", "MNGR_TMR_TEST_SECONDS", "MNGR_TMR_HIDE"),
)


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


class StrengthStep(NamedTuple):
    """A step that measures what tests notice; its rows are in `NAME.noticed`. `product` are the files that may be
    mutated, `builds` whether they have to be built again for that. `only` are the ids of what is tried, if not all.
    Without `tests`, all that are collected; `paths` and `named` are as in `Pytest`."""

    name: str
    tests: Sequence[str] | None
    paths: Sequence[str]
    product: Sequence[str]
    mutants: int
    builds: bool = False
    only: Sequence[str] = ()
    named: Sequence[str] = ()
    edits: int = 300

    def text(self, command: str, prepare: str) -> str:
        lists = "".join(f'export {variable}="$task/job/{self.name}.{variable}"\n' for variable in self._lists())
        builds = f"export MNGR_STRENGTH_PREPARE={quote(prepare)}\n" if self.builds and prepare else ""
        words = join(["-p", "mngr_strength", "--rootdir=.", "-q", "-p", "no:randomly", *self.paths])
        given = f'export MNGR_STRENGTH_ROWS="$out/{self.name}.noticed"\nexport MNGR_STRENGTH_TOP="$MNGR_TMR_TOP"\n'
        given += f"export MNGR_STRENGTH_MUTANTS={self.mutants}\nexport MNGR_STRENGTH_EDITS={self.edits}\n"
        named = "".join(f' "$MNGR_TMR_TOP"/{quote(path)}' for path in self.named)
        return f"run() {{\n{given}{lists}{builds}{command} {words}{named}\n}}\nstep {self.name}\n"

    def files(self) -> dict[str, bytes]:
        return {
            f"{self.name}.{variable}": "".join(f"{line}\n" for line in lines).encode()
            for variable, lines in self._lists().items()
        }

    def _lists(self) -> dict[str, Sequence[str]]:
        lists = {
            "MNGR_STRENGTH_TESTS": self.tests,
            "MNGR_STRENGTH_PRODUCT": self.product,
            "MNGR_STRENGTH_ONLY": self.only or None,
        }
        return {variable: lines for variable, lines in lists.items() if lines is not None}


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


class Result(NamedTuple):
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
    whether the marks of a test run are hidden from the product."""

    test_command: str
    prepare: str = ""
    env: Mapping[str, str] = {}
    test_seconds: float = 120.0
    job_seconds: float = 1800.0
    extra_paths: Mapping[str, str] = {}
    home: str = EMPTY
    hides: bool = True


def script(environment: SuiteEnvironment, wanted: Measurement) -> dict[str, bytes]:
    """The files of a measurement: `job.sh`, which runs its steps at the top of a checkout, and the lists it names."""
    kept = dict.fromkeys([*_KEPT, *environment.env])
    text = DRIVER.replace("KEPT", " ".join(kept)).replace(
        "HOME_OF_TESTS", HOME if environment.home == EMPTY else "${HOME:-/nonexistent}"
    )
    found: dict[str, bytes] = {}
    if environment.prepare:
        text += Shell("prepare", environment.prepare, must=not wanted.anyway).text()
    for step in wanted.steps:
        if isinstance(step, Pytest):
            text += step.text(environment.test_command)
            found.update(step.files())
        elif isinstance(step, StrengthStep):
            text += step.text(environment.test_command, environment.prepare)
            found.update(step.files())
        else:
            text += step.text()
    return {**found, "job.sh": (text + "exit 0\n").encode()}


def read(environment: SuiteEnvironment, wanted: Measurement, directory: str, ended: Ended) -> Result:
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
    done = Result(steps, problem, ended.seconds, directory, lost)
    if done.unprepared and not problem:
        said = error_line(log_tail(steps["prepare"], _LOG_MAX))
        failed = f"`[tmr] prepare` failed (exit code {steps['prepare'].exit_code})"
        done = done._replace(problem=f"{failed}: {said}" if said else failed)
    return done


def _step(directory: str, name: str) -> StepResult:
    path = os.path.join(directory, name)
    code = _content(f"{path}.exit").strip()
    changed = tuple(_content(f"{path}.changed").decode(errors="replace").splitlines())
    return StepResult(
        int(code) if code.isdigit() else None, f"{path}.log", rows.read(_content(f"{path}.rows")), changed
    )


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def changed_in(directories: Iterable[str]) -> frozenset[str]:
    """The files of git that tests changed in the measurements of these directories."""
    found = [os.path.join(place, name) for place in directories for name in os.listdir(place)]
    lines = [_content(path).decode(errors="replace").splitlines() for path in found if path.endswith(".changed")]
    return frozenset(line for each in lines for line in each)


def log_tail(step: StepResult, size: int = 4000) -> str:
    """The end of what a step printed, for a person."""
    data, _ = files.read_tail(step.log, size)
    return data.decode(errors="replace").strip("\n")


def checked(done: Result) -> Result:
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


def base_lines(found: Mapping[str, rows.Found]) -> list[str]:
    """What the probe compares with: a line of body and id for each test at base."""
    return [f"{test.body} {test.id}" for test in found.values()]
