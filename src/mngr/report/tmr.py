"""The pages of a `mngr tmr` run, and what lies beside them: `report.json`, `junit.xml` and `pr.md`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mngr import secrets
from mngr.agent.record import seconds_of
from mngr.errors import MngrError
from mngr.mapreduce import ledger
from mngr.mapreduce.ledger import Ledger
from mngr.mapreduce.ledger_fold import fold
from mngr.mapreduce.run import Run, private_facts, secret_values
from mngr.mapreduce.state import RUNNING, RunState, TaskState
from mngr.report import run_files, site, tmr_queue, tmr_suite, tmr_task
from mngr.report.source import digest, finite, is_id, key
from mngr.report.tmr_patches import Patches
from mngr.report.tmr_recordings import Recordings
from mngr.report.tmr_rows import overview, report
from mngr.report.tmr_screens import Screens
from mngr.report.tmr_suite import ReportData
from mngr.system import files, inside
from mngr.system.git import Git
from mngr.tmr.blocks import Blocks
from mngr.tmr.measure import rows as test_rows
from mngr.tmr.run_view import TaskView, tasks_of, view
from mngr.tmr.words import junit, pr

T = TypeVar("T")
PAGES = "report"
BESIDE = ("report.json", "junit.xml", "pr.md")
_MOST_ROWS = 50_000_000
_MOST_TOLD = 5000
# Entries that the state does not keep, and the pages show.
_TOLD = frozenset({"decision", "concurrency", "breaker", "resumed", "retry", "stop", "paused", "waits", "host"})
# Fields that pages use as addresses: never hidden, whatever the value of a variable is.
_ADDRESSES = frozenset({"key", "id", "slug", "kind"})


def write(run: Run, output: str | None = None) -> str:
    """Write the pages of a run, also of one that goes on, and return the path of their index.html: in `report` of the
    run's directory, or in `output`. What programs read goes to the run's directory itself."""
    source = TmrRun(run.directory)
    path = site.write(source, output, (run.directory, PAGES))
    known, hide = source.known(), source.hide
    contents = (
        files.json_bytes(finite(hide(report(known))), indent=1),
        hide(junit.xml(known.run).decode()).encode(),
        hide(pr.text(known.run, tmr_suite.suite(known))).encode(errors="replace"),
    )
    for name, data in zip(BESIDE, contents, strict=True):
        inside.write(run.directory, name, data)
    return path


class TmrRun:
    """A `Source` over the directory of a run. Reads, never writes; several threads may ask."""

    home = "run"
    scripts: tuple[str, ...] = (
        *("tmr_parts.js", "tmr_chart.js", "transcript.js", "tmr_measured.js", "tmr_task.js", "tmr_overview.js"),
        "tmr.js",
    )

    def __init__(self, directory: str, screens: Screens | None = None) -> None:
        self._root = os.path.abspath(directory)
        self._screens = screens
        self._turn = threading.RLock()
        self._kept: dict[str, tuple[object, Any]] = {}
        self._read = -1
        self._state = RunState()
        self._told: tuple[Mapping[str, Any], ...] = ()
        self._logs: dict[str, str] = {}
        self._refresh()
        facts = self._state.facts
        self.title = str(facts.get("run") or os.path.basename(self._root))
        self._repo = str(facts.get("repo") or "")
        self._works = Patches(self._repo, str(facts.get("base") or ""))
        self._blocks = Blocks(Git.of_user(self._repo), str(facts.get("base") or ""))
        self._recordings = Recordings(self._root)
        self._secret = secret_values(private_facts(self._root) or {})

    def ids(self) -> Iterator[str]:
        """All documents; what git knows of the tasks is read ahead, all at once."""
        yield "run"
        yield "tests"
        known = self.known()
        tasks = known.run.tasks
        self._works.load(pair for task in tasks for pair in tmr_task.pairs_of(known, task) if pair is not None)
        for task in tasks:
            yield f"task/{key(task.slug)}"
            yield from self._recordings.ids(task.task)

    def load(self, id: str) -> Any:
        with self._turn:
            return self.hide(self._load(id))

    def version(self, id: str) -> str | None:
        with self._turn:
            self._refresh()
            kind, _, rest = id.partition("/")
            now = f"{self._read}-{self._going_on()}"
            if id in ("run", "tests"):
                return now
            if id == "terminals" and self._screens is not None:
                return f"{now}-{self._screens.version(self._working())}"
            task = self._task(rest) if kind == "task" else None
            if task is None:
                return None
            screen = self._screens.version([task]) if self._screens is not None and task.status == RUNNING else ""
            integrated = self._state.phases.get("integrate")
            return digest(task, integrated.ended_at if integrated is not None else None, screen)

    def hide(self, value: Any) -> Any:
        """Without the values of the variables that the agents were given, and without keys."""
        if isinstance(value, str):
            return secrets.mask(value, self._secret) if len(value) >= secrets.SHORTEST else value
        if isinstance(value, Mapping):
            return {name: item if name in _ADDRESSES else self.hide(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(item) for item in value]
        return value

    def known(self) -> ReportData:
        """All that the pages are made of, as it is now."""
        self._refresh()
        going_on = self._going_on()
        made = self._once("known", (self._read, going_on), lambda: self._known(going_on))
        return made._replace(now=time.time())

    def _refresh(self) -> None:
        """Read the ledger again if it has grown. A torn last line is passed over."""
        path = os.path.join(self._root, ledger.FILE)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        if size == self._read:
            return
        entries = list(Ledger(path).entries())
        told = [{**entry, "at": seconds_of(str(entry["at"]))} for entry in entries if entry["type"] in _TOLD]
        measured = [entry for entry in entries if entry["type"] == "measured"]
        self._state, self._told, self._read = fold(entries), tuple(told[-_MOST_TOLD:]), size
        self._logs = {str(entry.get("label")): str(entry.get("directory")) for entry in measured}

    def _known(self, going_on: bool) -> ReportData:
        baseline, collected = (self._document(name) for name in ("baseline.json", "collect.json"))
        measured, tests = baseline.get("tests") or {}, collected.get("tests") or ()
        against, earlier = self._once("before", None, self._run_before)
        return ReportData(
            run=view(self._state),
            told=self._told,
            logs=self._logs,
            # A function with parameters has the facts of its first case.
            tests={str(test.get(name) or test["id"]): test for name in ("function", "id") for test in reversed(tests)},
            measured=measured,
            functions=baseline.get("functions") or {},
            at_tip=self._at_tip(),
            trends=tmr_suite.trends(measured, earlier),
            against=against,
            going_on=going_on,
        )

    def _load(self, id: str) -> Any:
        kind, *keys = id.split("/")
        if id == "run":
            known = self.known()
            return {
                **overview(known),
                "queue": tmr_queue.cards(known, self._works),
                "watched": self._screens is not None,
            }
        if id == "tests":
            return tmr_suite.matrix(self.known())
        if id == "terminals" and self._screens is not None:
            return self._screens.document(self._working())
        task = self._task(keys[0]) if keys else None
        if task is None:
            return None
        if kind == "task" and len(keys) == 1:
            found = self.known().run.task(task.slug)
            return self._task_document(found) if found else None
        return self._recordings.text(task, *keys[1:]) if kind == "cast" and len(keys) == 3 else None

    def _task_document(self, task: TaskView) -> dict[str, Any]:
        try:
            blocks = self._blocks.of(task.id)
        except (MngrError, OSError):
            blocks = ()
        return {
            **tmr_task.document(self._root, self.known(), task, self._works),
            "recordings": self._recordings.of(task.task),
            "verified": self._recordings.verified(task.task),
            "blocks": blocks,
            "terminal": self._screens.of(task.task) if self._screens and task.task.status == RUNNING else None,
        }

    def _task(self, wanted: str) -> TaskState | None:
        tasks = self._once("tasks", self._read, lambda: {key(task.slug): task for task in tasks_of(self._state)})
        return tasks.get(wanted)

    def _working(self) -> list[TaskState]:
        return [task for task in self._state.tasks.values() if task.status == RUNNING]

    def _going_on(self) -> bool:
        return files.claimant(os.path.join(self._root, "lock")) is not None

    def _document(self, name: str) -> Mapping[str, Any]:
        found = run_files.document(self._root, name)
        return found if isinstance(found, dict) else {}

    def _run_before(self) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
        return tmr_suite.run_before(self._repo, self._root) if self._repo else ("", {})

    def _at_tip(self) -> Mapping[str, str]:
        """What the gate of the delivered branch measured, test by test."""
        phase = self._state.phases.get("integrate")
        gate = (phase.data.get("gate") if phase is not None else None) or {}
        log = str(gate.get("log") or "")
        return self._once("tip", log, lambda: self._outcomes(log.split(", ")))

    def _outcomes(self, labels: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for label in labels:
            name = self._logs.get(label, label)
            data = run_files.read(self._root, "jobs", name, "test.rows", most=_MOST_ROWS) if is_id(name) else None
            read = test_rows.read(data or b"")
            found |= {test: read.outcome(test) for test in read.ran}
        return found

    def _once(self, name: str, stamp: object, make: Callable[[], T]) -> T:
        """What was made for the same stamp is not made again."""
        if name not in self._kept or self._kept[name][0] != stamp:
            self._kept[name] = (stamp, make())
        found: T = self._kept[name][1]
        return found
