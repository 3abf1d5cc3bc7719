"""A pytest plugin that tells what was collected and what came of each test, as JSON lines in `$MNGR_TMR_ROWS`.
`$MNGR_TMR_JOB` says what to do: `measurement.py` writes it.

Stands alone: it is loaded by path into the Python of the project under test, and imports only what is there. A pytest
that was killed, or ended itself over a test that hung, is started again with the same file and goes on after that test.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import inspect
import json
import os
import pathlib
import re
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from posixpath import normpath
from typing import Any

import pytest
from mngr_tmr_watch import Real, Watch

# What the job says, out of reach of the tests and of what they run.
_GIVEN = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("MNGR_TMR_")}
ROWS = _GIVEN.get("MNGR_TMR_ROWS", "")
SENTINELS = _GIVEN.get("MNGR_TMR_SENTINELS", "")
TOP = os.path.realpath(_GIVEN.get("MNGR_TMR_TOP") or os.getcwd())
TASK = os.path.join(TOP, ".mngr", "task")


JOB: dict[str, Any] = json.loads(pathlib.Path(_GIVEN["MNGR_TMR_JOB"]).read_text()) if "MNGR_TMR_JOB" in _GIVEN else {}
# Options of a project that end a test run early, pick some of its tests by an earlier run, or spread them over
# processes: a measurement is of all tests that are asked for, each once, in this process.
_WHOLE: dict[str, Any] = {"numprocesses": 0, "dist": "no", "tx": [], "reruns": 0, "lf": False, "failedfirst": False}
_WHOLE.update({"newfirst": False, "stepwise": False, "stepwise_skip": False})
# By these a product could know that it is being tested.
_MARKS = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION")
GAVE_UP = 97
CHECKOUT = "<checkout>"
_TEXT_MAX = 20_000
_SHARED = 5  # times the limit of one test: what a fixture that many tests share may take
_GRACE = 5.0
# What pytest-timeout writes when it ends a test.
_TIMED_OUT = re.compile(r"^E\s+Failed: Timeout \(?>\d", re.MULTILINE)


def listed() -> list[str] | None:
    """The tests that are asked for: those that an earlier step has listed, or those of the job; None for all."""
    if path := _GIVEN.get("MNGR_TMR_LISTED"):
        return [line for line in pathlib.Path(path).read_text("utf-8").split("\n") if line]
    return JOB.get("tests")


def pytest_configure(config: pytest.Config) -> None:
    if ROWS and not hasattr(config, "workerinput"):
        gone = {path for path in map(from_top, JOB.get("paths", ())) if not os.path.exists(path)}
        # With a file that is not there at this commit, pytest would run nothing at all.
        config.args[:] = [arg for arg in config.args if arg not in gone]
        config.pluginmanager.register(Probe(), "mngr-tmr-probe-active")


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Iterator[None]:
    if ROWS:
        Place.prefix = os.path.join(os.path.relpath(config.rootpath, TOP), "").replace("./", "", 1)
        for name, value in {**_WHOLE, "maxfail": JOB.get("failures_max", 0)}.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
    yield


class Probe:
    """Writes a row as soon as a fact is known."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stacks = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.seconds = float(JOB.get("test_seconds", 0))
        tests = listed()
        self.wanted = None if tests is None else set(tests)
        self.base: dict[str, str] | None = None if "MNGR_TMR_LISTED" in _GIVEN else JOB.get("base")
        self.sentinels: dict[str, str] = {}
        self.task = JOB.get("task", "")
        self.touched: list[str] = []
        self.done = self._go_on()
        self.all_good = not self.done
        self.reports: list[pytest.TestReport] = []
        self.failed = 0  # reports, as pytest itself counts them
        self.limits: dict[str, float | None] = {}
        self.running = ""
        self.watch = Watch(self._give_up)

    def _go_on(self) -> set[str]:
        """Tests that an earlier start is through with. One that it began and never ended took it down."""
        rows = []
        if os.path.exists(ROWS):
            with open(ROWS, encoding="utf-8") as file:
                for line in file:
                    with contextlib.suppress(ValueError):
                        rows.append(json.loads(line))
        done = {row["id"] for row in rows if row["type"] == "ran"}
        for row in [row for row in rows if row["type"] == "began"][-1:]:
            took, limit = Real.now() - row["at"], row["limit"]
            if row["id"] in done:
                continue
            if limit and took >= limit:  # pytest-timeout ends pytest as a whole where it cannot interrupt a test
                self._late(row["id"], took, f"the test did not end within {limit:g} s")
            else:
                text = "the test ended the whole test run"
                self.row("ran", id=row["id"], outcome="crashed", seconds=0.0, text=text, signature=text)
            done.add(row["id"])
        return done

    def row(self, kind: str, **facts: object) -> None:
        with self._lock:
            Real.append(ROWS, {"type": kind, "at": Real.now(), **facts})

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: pathlib.Path) -> bool | None:
        """Nothing of a measurement is a test of the project, whatever directories that collects from."""
        return True if str(collection_path).startswith(TASK) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed += 1
            self.row("broken", id=portable(report.nodeid), text=str(report.longrepr)[-_TEXT_MAX:])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave the tests that are asked for, by their ids or those of their functions; with a base to compare with,
        also those that are new or do something else."""
        left: list[pytest.Item] = []
        gone: list[pytest.Item] = []
        new: list[str] = []
        for item in items:
            facts = described(item)
            test = str(facts["id"])
            self.limits[test] = own_limit(item)
            self.row("collected", **facts)
            if self.base is not None and test not in self.base:
                new.append(test)
            changed = self.base is not None and self.base.get(test) != facts["body"]
            chosen = changed or self.wanted is None or bool({test, facts["function"]} & self.wanted)
            (left if chosen and test not in self.done else gone).append(item)
            if self.task and (changed or self.task in (test, facts["function"])):
                self.touched.append(test)
        _list("new", new)
        if gone:
            config.hook.pytest_deselected(items=gone)
        items[:] = [*left, *self._sentinels(session)]

    def _sentinels(self, session: pytest.Session) -> list[pytest.Item]:
        """Two tests of our own, one that passes and one that fails: a test run that says otherwise says nothing. They
        need no fixture, and get none of the project's."""
        if not SENTINELS or session.config.option.collectonly:
            return []
        module = pytest.Module.from_parent(session, path=pathlib.Path(SENTINELS))
        # By name: what the project calls its tests may be something else.
        found: list[pytest.Item] = []
        for name in ("test_passes", "test_fails"):
            item = pytest.Function.from_parent(module, name=name)
            item.fixturenames[:] = []
            self.sentinels[item.nodeid] = name
            found.append(item)
        self.row("sentinels")
        return found

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What will be run, after every plugin has had its say: each of these is to have one result."""
        if not session.config.option.collectonly:
            selected = [portable(item.nodeid) for item in session.items if item.nodeid not in self.sentinels]
            self.row("selected", tests=selected)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Hide from the product that it is being tested: from here on pytest sets no mark any more."""
        run = item.runtest

        def without_marks() -> None:
            hidden = {name: Real.environ.pop(name) for name in _MARKS if name in Real.environ}
            try:
                run()
            finally:
                Real.environ.update(hidden)

        if JOB.get("hides"):
            item.runtest = without_marks  # type: ignore[method-assign]
        yield
        vars(item).pop("runtest", None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.reports, self.running = [], portable(nodeid)
        if nodeid in self.sentinels:
            self.watch.begin("the test", 0)
            return
        own = self.limits.get(self.running)
        self.row("began", id=self.running, limit=own)
        # pytest-timeout keeps a limit that the project gave; this comes after it.
        self.watch.begin("the test", self.seconds if own is None else own and max(own + _GRACE, self.seconds))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What many tests share is not held against the first of them."""
        shared = fixturedef.scope != "function"
        if shared:
            what = f"the set-up of the {fixturedef.scope} fixture `{fixturedef.argname}`"
            self.watch.begin(what, self.seconds * _SHARED)
        yield
        if shared:
            self.watch.end()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Nor is the end of what they share held against the last of them."""
        last = nextitem is None or nextitem.parent is not item.parent
        if last:
            self.watch.begin("the tear-down after the test", self.seconds * _SHARED)
        yield
        if last:
            self.watch.end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)
        if report.failed and not hasattr(report, "wasxfail"):
            self.failed += 1

    def pytest_runtest_logfinish(self) -> None:
        # A plugin that runs a test again, as its mark says, ends an earlier try without a tear-down.
        if any(report.when == "teardown" for report in self.reports):
            self._ran()
        self.watch.end()

    def _ran(self) -> None:
        outcome, report = judged(self.reports)
        for nodeid, name in self.sentinels.items():
            if portable(nodeid) == self.running:
                self.row("sentinel", id=name, outcome=outcome)
                return
        text = (report.longreprtext or "")[-_TEXT_MAX:] if report is not None else ""
        if outcome == "failed" and _TIMED_OUT.search(text):
            outcome = "timeout"
        if self.running in self.touched and outcome not in ("passed", "skipped", "xfailed"):
            self.all_good = False
        self.row("ran", id=self.running, outcome=outcome, seconds=round(self.watch.took(), 3), text=text)

    def _give_up(self, what: str, seconds: float) -> None:
        faulthandler.dump_traceback(self._stacks, all_threads=True)
        self._stacks.seek(0)
        words = f"{what} did not end within {seconds:g} s"
        self._late(self.running, self.watch.took(), words, self._stacks.read())
        sys.stdout.flush()
        Real.exit(GAVE_UP)

    def _late(self, test: str, took: float, words: str, more: str = "") -> None:
        text = f"{words}\n{more}"[:_TEXT_MAX]
        said = f"timeout: {words}"
        self.row("ran", id=test, outcome="timeout", seconds=round(took, 3), text=text, signature=said)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.all_good:
            _list("touched", self.touched)
        stopped = str(session.shouldfail or session.shouldstop or "")
        counts = {"failed": self.failed, "failed_by_pytest": session.testsfailed}
        self.row("finished", exit_code=int(session.exitstatus), stopped=stopped, **counts)


def _list(name: str, tests: list[str]) -> None:
    """For the steps that come after this one."""
    if tests:
        path = pathlib.Path(f"{ROWS[: -len('.rows')]}.{name}")
        path.write_text("".join(f"{test}\n" for test in tests), "utf-8")


def judged(reports: list[pytest.TestReport]) -> tuple[str, pytest.TestReport | None]:
    """Outcome and the report that tells why. A phase may have several reports, of its subtests too: any that failed
    decides. Whether the test was skipped or expected to fail is said by the last of each phase."""
    if failed := [report for report in reports if report.failed]:
        return "failed", failed[0]
    phases = {report.when: report for report in reports}
    for when in ("setup", "call", "teardown"):
        report = phases.get(when)
        if report is not None and report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), report
        if report is not None and hasattr(report, "wasxfail") and when == "call":
            return "xpassed", report
    return "passed", None


def own_limit(item: pytest.Item) -> float | None:
    """The seconds that the project gives to a test, as pytest-timeout reads them: 0 for no limit, None if it says
    nothing."""
    mark = item.get_closest_marker("timeout")
    try:
        if mark is not None:
            return float(mark.args[0] if mark.args else mark.kwargs["timeout"])
        return float(item.config.getini("timeout"))
    except (KeyError, TypeError, ValueError):  # also without pytest-timeout, which has this setting
        return None


class Place:
    """Where in the repository pytest runs, as what comes before the file in its own ids: empty at the top."""

    prefix = ""


def from_top(path: str) -> str:
    return os.path.join(TOP, path)


def portable(nodeid: str) -> str:
    """The id of a test from the top of the repository, the same in every copy of the code: without the place of this
    checkout, which a parameter may contain."""
    nodeid = Place.prefix + nodeid
    if "/../" in nodeid:  # beside the directory that pytest runs in
        file, colons, rest = nodeid.partition("::")
        nodeid = normpath(file) + colons + rest
    return anywhere(nodeid)


def anywhere(text: str) -> str:
    """A text without the place of this checkout."""
    for written in (TOP, TOP.encode("unicode_escape").decode("ascii")):
        text = text.replace(written, CHECKOUT)
    return text


def described(item: pytest.Item) -> dict[str, object]:
    path, line, _ = item.location
    path = os.path.relpath(os.path.join(str(item.config.rootpath), path), TOP)
    function = getattr(item, "function", None)
    nodeid, name = portable(item.nodeid), anywhere(item.name)
    facts = {"id": nodeid, "file": path, "line": (line or 0) + 1, "name": name, "doc": "", "body": "-" * 16}
    facts["place"] = Place.prefix
    # Without its parameters: the function, of which this is one case.
    plain = getattr(item, "originalname", None) or item.name
    is_case = name.startswith(f"{plain}[") and nodeid.endswith(name)
    facts["function"] = nodeid[: len(nodeid) - len(name)] + plain if is_case else nodeid
    if function is not None:
        function = inspect.unwrap(function)
        facts["doc"] = inspect.getdoc(function) or ""
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            return facts
        # What it does, whatever it is called: a renamed test is known by this.
        body = re.sub(rf"\bdef\s+{re.escape(function.__name__)}\b", "def", source, count=1)
        facts["body"] = hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return facts
