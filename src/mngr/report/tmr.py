"""The pages of a `mngr tmr` run, and what lies beside them: `report.json`, `junit.xml` and `pr.md`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mngr import files, secrets
from mngr.files import claimant
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RUNNING, TaskState
from mngr.report import run_files, site, tmr_branch, tmr_history, tmr_queue, tmr_task
from mngr.report.ledger_reader import LedgerReader
from mngr.report.source import digest, finite, is_id, key
from mngr.report.tmr_matrix import matrix
from mngr.report.tmr_patches import Patches
from mngr.report.tmr_recordings import Recordings
from mngr.report.tmr_rows import ReportData, overview, report, suite
from mngr.report.tmr_screens import Screens
from mngr.report.tmr_verified import VerifiedRuns
from mngr.tmr import junit, pr
from mngr.tmr import rows as test_rows
from mngr.tmr.blocks import cited
from mngr.tmr.summary import tasks_of

T = TypeVar("T")
PAGES = "report"
BESIDE = ("report.json", "junit.xml", "pr.md")
_LOCK = "lock"
_MOST_ROWS = 50_000_000
# Fields that pages use as addresses: never hidden, whatever the value of a variable is.
_ADDRESSES = frozenset({"key", "id", "slug", "kind"})


def write(run: Run, output: str | None = None) -> str:
    """Write the pages of a run, also of one that goes on, and return the path of their index.html: in `report` of the
    run's directory, or in `output`. What programs read goes to the run's directory itself."""
    source = TmrRun(run.directory)
    path = site.write(source, output or os.path.join(run.directory, PAGES))
    known = source.known()
    narrative = str(known.integration.get("narrative") or "")
    hide = source.hide
    contents = (
        files.json_bytes(finite(hide(report(known))), indent=1),
        hide(junit.xml(known.state).decode()).encode(),
        hide(pr.text(known.state, narrative, suite(known))).encode(errors="replace"),
    )
    for name, data in zip(BESIDE, contents, strict=True):
        files.write_atomic(os.path.join(run.directory, name), data)
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
        self._ledger = LedgerReader(self._root)
        self._turn = threading.RLock()
        self._kept: dict[str, tuple[object, Any]] = {}
        facts = self._ledger.refresh().facts
        self.title = str(facts.get("run") or os.path.basename(self._root))
        self._repo = str(facts.get("repo") or "")
        self._works = Patches(self._repo, str(facts.get("base") or ""))
        self._recordings = Recordings(self._root)
        self._verified = VerifiedRuns(self._root)
        self._secret = _secrets(facts)

    def ids(self) -> Iterator[str]:
        """All documents; what git knows of the tasks is read ahead, all at once."""
        yield "run"
        yield "tests"
        known = self.known()
        tasks = tasks_of(known.state)
        pairs = [pair for task in tasks for pair in tmr_task.pairs_of(known, task) if pair is not None]
        self._works.load(pairs)
        for task in tasks:
            yield f"task/{key(task.slug)}"
            yield from (str(one["id"]) for one in self._recordings.of(task))
            yield from self._verified.ids(task)

    def load(self, id: str) -> Any:
        with self._turn:
            return self.hide(self._load(id))

    def version(self, id: str) -> str | None:
        with self._turn:
            self._ledger.refresh()
            kind, _, rest = id.partition("/")
            now = f"{self._ledger.read}-{self._going_on()}"
            if id in ("run", "tests"):
                return now
            if id == "terminals" and self._screens is not None:
                return f"{now}-{self._screens.version(self._working())}"
            task = self._task(rest) if kind == "task" else None
            if task is None:
                return None
            screen = self._screens.version([task]) if self._screens is not None and task.status == RUNNING else ""
            integrated = self._ledger.state.phases.get("integrate")
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
        self._ledger.refresh()
        going_on = self._going_on()
        made = self._once("known", (self._ledger.read, going_on), lambda: self._known(going_on))
        return made._replace(now=time.time())

    def _known(self, going_on: bool) -> ReportData:
        baseline = self._document("baseline.json")
        measured = baseline.get("tests") or {}
        tests = self._document("collect.json").get("tests") or ()
        past = self._past()
        return ReportData(
            state=self._ledger.state,
            told=self._ledger.told,
            logs=self._ledger.measured,
            # A function with parameters has the facts of its first case.
            tests={str(test.get(name) or test["id"]): test for name in ("function", "id") for test in reversed(tests)},
            measured=measured,
            functions=baseline.get("functions") or {},
            at_tip=self._at_tip(),
            trends=tmr_history.trends(measured, past),
            against=past[0].id if past else "",
            going_on=going_on,
        )

    def _load(self, id: str) -> Any:
        kind, *keys = id.split("/")
        if id == "run":
            known = self.known()
            queue = tmr_queue.cards(known, self._works)
            more = {"branch": tmr_branch.branch(known), "queue": queue, "watched": self._screens is not None}
            return {**overview(known), **more}
        if id == "tests":
            return matrix(self.known())
        if id == "terminals" and self._screens is not None:
            return self._screens.document(self._working())
        task = self._task(keys[0]) if keys else None
        if task is None:
            return None
        if kind == "task" and len(keys) == 1:
            return self._task_document(task)
        if kind == "cast" and len(keys) == 3:
            text = self._recordings.text(task, id)
            return self._verified.cast(task, id) if text is None else text
        return None

    def _task_document(self, task: TaskState) -> dict[str, Any]:
        shown = self._screens.of(task) if self._screens is not None and task.status == RUNNING else None
        return {
            **tmr_task.document(self._root, self.known(), task, self._works),
            "recordings": self._recordings.of(task),
            "verified": self._verified.document(task),
            "blocks": self._blocks().get(task.id, ()),
            "history": tmr_history.story(task.id, self._past()),
            "terminal": shown,
        }

    def _task(self, wanted: str) -> TaskState | None:
        tasks = self._once("tasks", self._ledger.read, lambda: {key(t.slug): t for t in tasks_of(self._ledger.state)})
        return tasks.get(wanted)

    def _working(self) -> list[TaskState]:
        return [task for task in self._ledger.state.tasks.values() if task.status == RUNNING]

    def _going_on(self) -> bool:
        return claimant(os.path.join(self._root, _LOCK)) is not None

    def _document(self, name: str) -> Mapping[str, Any]:
        found = run_files.document(self._root, name)
        return found if isinstance(found, dict) else {}

    def _at_tip(self) -> Mapping[str, str]:
        """What the gate of the delivered branch measured, test by test."""
        phase = self._ledger.state.phases.get("integrate")
        gate = (phase.data.get("gate") if phase is not None else None) or {}
        log = str(gate.get("log") or "")
        return self._once("tip", log, lambda: self._outcomes(log.split(", ")))

    def _outcomes(self, labels: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for label in labels:
            name = self._ledger.measured.get(label, label)
            data = run_files.read(self._root, "jobs", name, "test.rows", most=_MOST_ROWS) if is_id(name) else None
            if data is not None:
                read = test_rows.read(data)
                found.update({test: read.outcome(test) for test in read.ran})
        return found

    def _past(self) -> list[tmr_history.Past]:
        return self._once("past", None, lambda: tmr_history.earlier(self._repo, self._root) if self._repo else [])

    def _blocks(self) -> Mapping[str, tuple[str, ...]]:
        """The tutorial blocks that each test cites, as its file is at the base."""
        return self._once("blocks", None, self._read_blocks)

    def _read_blocks(self) -> Mapping[str, tuple[str, ...]]:
        tests = [task.id for task in tasks_of(self._ledger.state)]
        paths = sorted({test.partition("::")[0] for test in tests})
        sources = self._works.files(str(self._ledger.state.facts.get("base") or ""), paths)
        found = {test: texts for path, source in sources.items() for test, texts in cited(path, source).items()}
        return {test: found[plain] for test in tests if (plain := test.partition("[")[0]) in found}

    def _once(self, name: str, stamp: object, make: Callable[[], T]) -> T:
        """What was made for the same stamp is not made again."""
        if name not in self._kept or self._kept[name][0] != stamp:
            self._kept[name] = (stamp, make())
        found: T = self._kept[name][1]
        return found


def _secrets(facts: Mapping[str, Any]) -> tuple[str, ...]:
    settings = facts.get("settings") or {}
    environment = settings.get("environment") or {}
    given = [(facts.get(who) or {}).get("env") or {} for who in ("workers", "integrator")]
    return tuple({str(value) for env in (*given, environment.get("env") or {}) for value in env.values()})
