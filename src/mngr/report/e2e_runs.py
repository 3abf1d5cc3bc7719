"""The documents of end-to-end test runs: all runs, the tests of one, one test, one recording. Reads, never writes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mngr.e2e import artifacts
from mngr.e2e.artifacts import RunInfo, TestInfo, seconds
from mngr.errors import NotFoundError, TimedOut
from mngr.report import casts
from mngr.report.source import digest, key, picked
from mngr.system import files

_LOCK_SECONDS = 1
MOST_OUTPUT = 1_000_000
_TEXTS = {
    "command": ("command", "comment", "cwd"),
    "spawn": ("command", "comment", "recording"),
    "output": ("stream", "text"),
    "exit": (),
    "keys": ("keys",),
    "expect": ("text",),
    "note": ("text",),
}


class E2eRuns:
    """A `Source` over an e2e directory, or over one run alone."""

    title = "e2e runs"
    home = "runs"
    scripts: tuple[str, ...] = ("transcript.js", "test_page.js", "e2e.js")

    def __init__(self, directory: str) -> None:
        self._directory = os.path.abspath(directory)
        self._ended: dict[tuple[str, float], dict[str, Any]] = {}
        self._listed: dict[tuple[str, str], tuple[RunInfo, TestInfo]] = {}
        self._single = artifacts.run(self._directory) is not None
        if self._single:
            self.title = artifacts.run(self._directory).name  # type: ignore[union-attr]  # it was just there
            self.home = f"run/{key(os.path.basename(self._directory))}"

    def check(self) -> None:
        """Raise unless there is something to show."""
        if not os.path.isdir(self._directory):
            raise NotFoundError(
                f"there is no directory `{self._directory}`",
                hint="run `pytest` with tests that use the fixture `e2e`, or name the directory of such a run",
            )
        if not self._runs():
            raise NotFoundError(
                f"no test run was found in `{self._directory}`",
                hint="name the directory given to `pytest --e2e-dir` (default: `.mngr/e2e`), or one run in it",
            )

    def counts(self) -> tuple[int, int]:
        """How many runs and tests there are."""
        runs = self._runs()
        return len(runs), sum(len(run.tests()) for run in runs)

    def ids(self) -> Iterator[str]:
        """All documents. A test that was listed is not looked for again when it is loaded."""
        yield "runs"
        for run in self._runs():
            yield f"run/{_run_key(run)}"
            for test in run.tests():
                self._listed[_run_key(run), key(test.slug)] = (run, test)
                yield f"test/{_run_key(run)}/{key(test.slug)}"
                for recording in test.recordings():
                    yield f"cast/{_run_key(run)}/{key(test.slug)}/{key(recording.name)}"

    def load(self, id: str) -> Any:
        kind, *keys = id.split("/")
        if kind == "runs" and not keys:
            return {"runs": [self._summary(run) for run in self._runs()]}
        if kind == "run" and len(keys) == 1:
            run = self._run(keys[0])
            return None if run is None else self._run_document(run)
        found = self._test(keys[0], keys[1]) if len(keys) > 1 else None
        if found is None:
            return None
        run, test = found
        if kind == "test" and len(keys) == 2:
            return test_document(run, test)
        if kind == "cast" and len(keys) == 3:
            places = [recording.place for recording in test.recordings() if key(recording.name) == keys[2]]
            return casts.read(*places[0]).text if places else None
        return None

    def version(self, id: str) -> str | None:
        kind, *keys = id.split("/")
        if kind == "runs" and not keys:
            return digest(*((run.path, _run_stamp(run)) for run in self._runs()))
        run = self._run(keys[0]) if keys else None
        if run is None:
            return None
        if kind == "run" and len(keys) == 1:
            return digest(_run_stamp(run))
        if kind == "test" and len(keys) == 2:
            found = self._test(*keys)
            return None if found is None else digest(_stamp(found[1].path), _is_going_on(run))
        return None

    def _runs(self) -> list[RunInfo]:
        if self._single:
            run = artifacts.run(self._directory)
            return [run] if run else []
        return artifacts.runs(self._directory)

    def _run(self, wanted: str) -> RunInfo | None:
        return next((run for run in self._runs() if _run_key(run) == wanted), None)

    def _test(self, run_key: str, test_key: str) -> tuple[RunInfo, TestInfo] | None:
        known = self._listed.get((run_key, test_key))
        run = None if known else self._run(run_key)
        if run is None:
            return known
        return next(((run, test) for test in run.tests() if key(test.slug) == test_key), None)

    def _summary(self, run: RunInfo) -> dict[str, Any]:
        """The run in one line. One that has ended does not change, and its tests are not read again."""
        known = self._ended.get((run.path, run.ended_at or 0.0))
        if known is not None:
            return known
        going_on = _is_going_on(run)
        made = _run_facts(run, Counter(_outcome(test, going_on) for test in run.tests()), going_on)
        if run.ended_at is not None:
            self._ended[run.path, run.ended_at] = made
        return made

    def _run_document(self, run: RunInfo) -> dict[str, Any]:
        going_on = _is_going_on(run)
        tests = [_test_facts(test, going_on) for test in run.tests()]
        return {"run": _run_facts(run, Counter(test["outcome"] for test in tests), going_on), "tests": tests}


def _run_key(run: RunInfo) -> str:
    return key(os.path.basename(run.path))


def _run_facts(run: RunInfo, counts: Counter[str], going_on: bool) -> dict[str, Any]:
    return {
        "key": _run_key(run),
        **picked(run, "name", "root", "started_at", "exit_status"),
        "args": list(run.args),
        "python": run.python.split()[0] if run.python else "",
        "duration": None if run.ended_at is None else run.ended_at - run.started_at,
        "running": going_on,
        "counts": dict(counts),
        "total": counts.total(),
    }


def _test_facts(test: TestInfo, going_on: bool) -> dict[str, Any]:
    return {
        "key": key(test.slug),
        "name": test.node_id.partition("::")[2] or test.name or test.node_id,
        **picked(test, "file", "line", "started_at", "duration"),
        "doc": _first_line(test.doc),
        "outcome": _outcome(test, going_on),
        "cites": [_first_line(block) for block in test.blocks()],
        "failure": _first_line(test.failure.message) if test.failure else "",
        "recordings": len(test.recording_names()),
    }


def test_document(run: RunInfo, test: TestInfo) -> dict[str, Any]:
    """All that the page of a test shows, but the content of its recordings."""
    return {
        "test": _test_facts(test, _is_going_on(run)),
        **picked(test, "node_id", "doc", "phases"),
        "failure": picked(test.failure, "phase", "message", "text") if test.failure else None,
        "blocks": test.blocks(),
        "events": events_of(test.events(), test.started_at or run.started_at),
        "recordings": [_recording(run, test, recording) for recording in test.recordings()],
        "kept": test.environment,
    }


def _recording(run: RunInfo, test: TestInfo, recording: artifacts.RecordingInfo) -> dict[str, Any]:
    return {
        "id": f"cast/{_run_key(run)}/{key(test.slug)}/{key(recording.name)}",
        **picked(recording, "name", "title", "kind", "number", "ended_at", "exit_code"),
        "started_at": recording.started_at if recording.started_at is not None else run.started_at,
        **casts.read(*recording.place).facts(),
    }


def _outcome(test: TestInfo, going_on: bool) -> str:
    return test.outcome or ("running" if going_on else "unfinished")


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "")


def _is_going_on(run: RunInfo) -> bool:
    """Whether pytest still works on it: it holds a lock on the run's directory. A killed run has no end either."""
    import fcntl

    lock = os.path.join(os.path.dirname(run.path), ".lock")
    if run.ended_at is not None or not os.path.exists(lock):
        return False
    try:
        with files.locked(lock, timeout=_LOCK_SECONDS, what="the e2e directory"):
            fd = os.open(run.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(fd)
    except (BlockingIOError, TimedOut):
        return True
    except OSError:
        return False  # it was removed, or is somebody else's
    return False


def _run_stamp(run: RunInfo) -> tuple[object, ...]:
    """Changes when a test of the run starts, ends or gets a file, and at the end of the run."""
    return run.ended_at, _is_going_on(run), *_stamp(os.path.join(run.path, "tests"))


def _stamp(path: str) -> tuple[object, ...]:
    """Changes when a file comes to a directory or leaves it, is written, or gets something of its own."""
    try:
        with os.scandir(path) as entries:
            facts = ((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
            return tuple(sorted((name, found.st_mtime_ns, found.st_size) for name, found in facts))
    except OSError:
        return ()


def events_of(raw: Iterable[Mapping[str, Any]], started_at: float, most: int = MOST_OUTPUT) -> list[dict[str, Any]]:
    """The events, with output beyond `most` characters replaced by a line that says how much it was."""
    found: list[dict[str, Any]] = []
    left = most
    missing: dict[int | None, int] = {}
    for event in raw:
        made = _event(event, started_at)
        if made is None:
            continue
        if made["type"] == "output":
            text = made["text"]
            made["text"] = text[:left]
            if len(text) > left:
                missing[made["number"]] = missing.get(made["number"], 0) + len(text) - left
            left = max(0, left - len(text))
            if not made["text"]:
                continue
        found.append(made)
    for number, characters in missing.items():
        text = f"{characters:,} more characters of output are not on this page; `transcript.txt` has them."
        found.append({"type": "cut", "time": started_at, "number": number, "text": text})
    return found


def _event(event: Mapping[str, Any], started_at: float) -> dict[str, Any] | None:
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _TEXTS:
        return None
    time = seconds(event.get("time"))
    made: dict[str, Any] = {"type": kind, "time": started_at if time is None else time, "number": None}
    number = event.get("number")
    if isinstance(number, int) and not isinstance(number, bool):
        made["number"] = number
    for name in _TEXTS[kind]:
        made[name] = _text(event.get(name))
    if kind == "exit":
        made["exit_code"] = event["exit_code"] if isinstance(event.get("exit_code"), int) else None
        made["duration"] = seconds(event.get("duration"))
        made["timed_out"] = event.get("timed_out") is True
    if kind == "expect":
        made["passed"] = event.get("passed") is True
    return made


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
