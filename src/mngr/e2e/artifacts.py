"""What a run of tests leaves on disk: the layout, and its readers and writers. Knows nothing of pytest.

<e2e-dir>/<run>/run.json
<e2e-dir>/<run>/tests/<slug>/test.json, transcript.txt, transcript.jsonl, tutorial_block.txt, *.cast, result.json
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from mngr import json_values
from mngr.e2e import code_state
from mngr.errors import MngrError, UsageError
from mngr.names import slug
from mngr.system import files, inside, tree_removal
from mngr.system.inside import UnsafePath

DEFAULT = os.path.join(".mngr", "e2e")
VARIABLE = "MNGR_E2E_DIR"
SCHEMA = 1
RUN_FILE = "run.json"
TEST_FILE = "test.json"
RESULT_FILE = "result.json"
TRANSCRIPT_TEXT = "transcript.txt"
TRANSCRIPT_EVENTS = "transcript.jsonl"
ENVIRONMENT_FILE = "environment.json"
REMOVE_SCRIPT = "remove-environment.sh"

_LOCK_SECONDS = 30
# What is read of a file: tests write them, and pages and checks have to hold them in memory.
_MOST_BYTES, _MOST_JSON, _MOST_BLOCKS, _LONGEST_BLOCK = 100_000_000, 10_000_000, 1000, 1_000_000
T = TypeVar("T", "RunInfo", "TestInfo", "RecordingInfo", "Failure")
_LARGEST = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingInfo:
    """One asciicast file and what its sidecar says; a sidecar that is missing or torn leaves the defaults."""

    path: str
    kind: str = ""
    number: int | None = None
    title: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def place(self) -> tuple[str, str]:
        """The directory of its run, and its path below that."""
        return _place(os.path.dirname(self.path), self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    phase: str
    message: str
    signature: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestInfo:
    """One test of a run. `outcome` is None for a test that never came to its end; `left_out` are files that were too
    large to keep."""

    __test__ = False  # it is no test itself, whatever module it is imported into

    path: str
    node_id: str
    file: str = ""
    line: int | None = None
    name: str = ""
    doc: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    duration: float | None = None
    outcome: str | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    environment: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        return os.path.basename(self.path)

    def events(self) -> list[dict[str, Any]]:
        """The transcript, event by event; a torn last line is passed over."""
        return files.read_lines(_content(*_place(self.path, TRANSCRIPT_EVENTS)) or b"")

    def transcript(self) -> str:
        return (_content(*_place(self.path, TRANSCRIPT_TEXT)) or b"").decode(errors="backslashreplace")

    def blocks(self) -> list[str]:
        """The tutorial blocks that the test cites, in its order."""
        found: list[str] = []
        while len(found) < _MOST_BLOCKS:
            data = _content(*_place(self.path, block_name(len(found) + 1)), _LONGEST_BLOCK)
            if data is None:
                break
            found.append(data.decode(errors="backslashreplace"))
        return found

    def recording_names(self) -> list[str]:
        return [name for name in _names(*_place(self.path)) if name.endswith(".cast")]

    def recordings(self) -> list[RecordingInfo]:
        """The recordings by the time of their start."""
        found = [
            _record(RecordingInfo, _json(*_place(self.path, f"{name}.json")), path=os.path.join(self.path, name))
            for name in self.recording_names()
        ]
        return sorted(found, key=lambda recording: (recording.started_at or 0, recording.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One run of pytest. `ended_at` is None while it goes on, and for one that was killed. `code` is None if it was not
    in a git repository."""

    path: str
    name: str
    started_at: float
    ended_at: float | None = None
    root: str = ""
    args: tuple[str, ...] = ()
    python: str = ""
    exit_status: int | None = None
    code: code_state.CodeState | None = None

    def tests(self) -> list[TestInfo]:
        return tests(self.path)


def usual_place(here: str, project: str) -> str:
    """Where pytest leaves its runs when it is not told: in its root directory, which is as a rule the project's. Raise
    if that leads out of it."""
    top = here if os.path.isdir(os.path.join(here, DEFAULT)) else project
    return os.path.join(top, inside.resolve(top, DEFAULT))


def runs(directory: str | os.PathLike[str]) -> list[RunInfo]:
    """The runs below an e2e directory, newest first. What is no run of ours is passed over."""
    base = os.fspath(directory)
    found = (run(os.path.join(base, name)) for name in _names(base, directories=True))
    return sorted((r for r in found if r is not None), key=lambda r: (r.started_at, r.name), reverse=True)


def run(directory: str | os.PathLike[str]) -> RunInfo | None:
    path = os.fspath(directory)
    data = _json(path, RUN_FILE)
    started_at = seconds(data.get("started_at"))
    if started_at is None:
        return None
    name = str(data.get("name") or os.path.basename(path))
    return _record(RunInfo, data, path=path, name=name, code=code_state.from_json(data))


def tests(run_directory: str | os.PathLike[str]) -> list[TestInfo]:
    """The tests of one run, in the order of file and line; one that was run again is there once for each attempt."""
    base = os.path.join(os.fspath(run_directory), "tests")
    names = _names(os.fspath(run_directory), "tests", directories=True)
    found = (_test(os.path.join(base, name)) for name in names)
    return sorted((t for t in found if t), key=lambda t: (t.file, t.line or 0, t.node_id, t.started_at or 0))


def slug_of(node_id: str) -> str:
    """The name of a test's directory."""
    file, _, rest = node_id.partition("::")
    return slug(f"{os.path.splitext(os.path.basename(file))[0]}-{rest}", of=node_id, longest=80)


def block_name(number: int) -> str:
    return "tutorial_block.txt" if number == 1 else f"tutorial_block-{number}.txt"


def open_run(directory: str, name: str, *, run_id: str, details: Callable[[], Mapping[str, Any]]) -> tuple[str, int]:
    """Make the run's directory, or join it when another process of the same run has; its path, and a lock to close at
    the end. A finished run of the same name is replaced; a directory that is no run is refused and left as it is. Only
    the process that makes it calls `details`."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}", name):
        raise UsageError(f"invalid run name `{name}`: use letters, digits, `_`, `-`, `.` and `+`")
    _make_ignored(directory)
    path = os.path.join(directory, name)
    with files.locked(os.path.join(directory, ".lock"), timeout=_LOCK_SECONDS, what="the e2e directory"):
        known = json_values.file(os.path.join(path, RUN_FILE))
        if not known and os.path.isdir(path) and os.listdir(path):
            raise MngrError(f"`{path}` exists and is not a test run: choose another run name or directory")
        os.makedirs(os.path.join(path, "tests"), exist_ok=True)
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _nobody_uses(lock) and known.get("id") != run_id:
                tree_removal.remove_tree(os.path.join(path, "tests"))
                os.mkdir(os.path.join(path, "tests"))
                known = {}
            if not known:
                write_json(os.path.join(path, RUN_FILE), {"schema": SCHEMA, "id": run_id, "name": name, **details()})
        except BaseException:
            os.close(lock)
            raise
    return path, lock


def end_run(path: str, *, run_id: str, ended_at: float, exit_status: int) -> None:
    """Note the end of a run, if it is this one's: a run in which no test used `e2e` has no directory."""
    file = os.path.join(path, RUN_FILE)
    known = json_values.file(file)
    if known.get("id") == run_id:
        write_json(file, {**known, "ended_at": ended_at, "exit_status": exit_status})


def start_test(run_directory: str, details: Mapping[str, Any]) -> str:
    """A new directory for a test, with its `test.json`. A test that is run again in this run has another one."""
    slug, number = slug_of(details["node_id"]), 1
    while True:
        path = os.path.join(run_directory, "tests", slug if number == 1 else f"{slug}-{number}")
        try:
            os.makedirs(path)
            break
        except FileExistsError:
            number += 1
    write_json(os.path.join(path, TEST_FILE), {"schema": SCHEMA, **details})
    return path


def write_json(path: str, value: Mapping[str, Any]) -> None:
    files.write_atomic(path, files.json_bytes(value, indent=1), mode=0o644)


def _make_ignored(directory: str) -> None:
    """The e2e directory, kept out of git by itself; one that somebody else made is not touched."""
    try:
        os.makedirs(directory)
    except FileExistsError:
        return
    files.write_atomic(os.path.join(directory, ".gitignore"), b"*\n", mode=0o644)


def _nobody_uses(fd: int) -> bool:
    """Whether no living process has this run open. From now on this one has it open, either way."""
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except BlockingIOError:
        alone = False
    fcntl.flock(fd, fcntl.LOCK_SH)
    return alone


def _test(path: str) -> TestInfo | None:
    data = _json(*_place(path, TEST_FILE))
    if "node_id" not in data:
        return None
    result = _json(*_place(path, RESULT_FILE))
    phases, failure = json_values.table(result.get("phases")), result.get("failure")
    return _record(
        TestInfo,
        {**result, **data},
        path=path,
        outcome=str(result["outcome"]) if "outcome" in result else None,
        phases={str(k): float(v) for k, v in phases.items() if seconds(v) is not None},
        failure=_record(Failure, failure) if isinstance(failure, dict) else None,
        environment=json_values.string(_json(*_place(path, ENVIRONMENT_FILE)).get("root")) or None,
    )


def _record(kind: type[T], data: Mapping[str, Any], **known: Any) -> T:
    """A record whose texts, numbers and lists of texts come from JSON, as far as that has them."""
    found = {one.name: _READ[str(one.type)](data.get(one.name)) for one in fields(kind) if str(one.type) in _READ}
    return kind(**{**found, **known})


def _place(test_path: str, *names: str) -> tuple[str, str]:
    """The directory of a test's run, and a path below it: of what is in there, nothing is followed."""
    tests_path, name = os.path.split(test_path)
    return os.path.dirname(tests_path), os.path.join(os.path.basename(tests_path), name, *names)


def _names(root: str, path: str = "", *, directories: bool = False) -> Sequence[str]:
    """What is in a directory, by name; links are not."""
    wanted = stat.S_ISDIR if directories else stat.S_ISREG
    try:
        return sorted(name for name, facts in inside.entries(root, path).items() if wanted(facts.st_mode))
    except (UnsafePath, OSError):
        return []


def _content(root: str, path: str, most: int = _MOST_BYTES) -> bytes | None:
    """The beginning of a file; None when there is none that is regular."""
    try:
        data = inside.read(root, path, most)
    except (UnsafePath, OSError):
        return None
    return None if data is None else data[:most]


def _json(root: str, path: str) -> dict[str, Any]:
    return json_values.loads(_content(root, path, _MOST_JSON) or b"")


def seconds(value: object) -> float | None:
    """A time or duration out of JSON; None for what can be none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        return None
    return float(value)


_READ: Mapping[str, Callable[[Any], object]] = {
    "str": lambda value: str(value or ""),
    "float": seconds,
    "float | None": seconds,
    "int | None": lambda value: value if type(value) is int else None,
    "tuple[str, ...]": lambda value: tuple(map(str, value)) if isinstance(value, list) else (),
}
