"""What the probe wrote, read: which tests there are and what came of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.signature import signature
from mngr.system import files

PASSED = "passed"
# Two tests of our own that are part of every test run, and what must come of them.
SENTINELS = {"test_passes": "passed", "test_fails": "failed"}
# Outcomes in which a test did what it should. A skipped test measured nothing.
GOOD = frozenset({PASSED, "xfailed"})
# What the probe says of a test that is no function: nothing can be told from it.
NO_BODY = "-" * 16
_NAMED = re.compile(r"[\w.]+(?:Error|Exception|Exit|Failed|Interrupt|Warning)\b")


class CollectedTest(NamedTuple):
    """One collected test, whose id and file are from the top of the repository; pytest's own id is the rest after
    `place`. `body` is a hash of what it does, whatever it is called. `function` is its id without parameters, the same
    for all cases of a parametrised test."""

    id: str
    file: str
    line: int
    name: str
    doc: str
    body: str
    function: str = ""
    place: str = ""


class RanTest(NamedTuple):
    """One test that was run. `outcome` is passed, failed, skipped, xfailed, xpassed, timeout or crashed."""

    id: str
    outcome: str
    seconds: float
    text: str
    signature: str

    @property
    def good(self) -> bool:
        return self.outcome in GOOD


class Broken(NamedTuple):
    """A file, or another collector, that could not be collected."""

    id: str
    text: str
    signature: str


class Rows(NamedTuple):
    """`finished` is whether pytest came to its end, by itself and at the last. `doubt` is why nothing that these rows
    say can be believed; empty when it can."""

    tests: Mapping[str, CollectedTest] = {}
    ran: Mapping[str, RanTest] = {}
    broken: tuple[Broken, ...] = ()
    finished: bool = False
    doubt: str = ""

    def outcome(self, test: str) -> str:
        """What came of a test, or of all cases of a function; `missing` when it was not collected, `not run` when it
        was and nothing came of it."""
        if test in self.ran:
            return self.ran[test].outcome
        if test in self.tests:
            return "not run"
        if found := cases(test, self.tests):
            return worst([self.outcome(case) for case in found])
        file = file_of(test)
        return "broken" if any(file_of(item.id) == file for item in self.broken) else "missing"


def file_of(test: str) -> str:
    """The file of a test, as in its id."""
    return test.partition("::")[0]


def files_of(tests: Iterable[str]) -> list[str]:
    return sorted(set(map(file_of, tests)))


def cases(function: str, tests: Iterable[str]) -> list[str]:
    """Those of the tests that are this one, or its cases if it has parameters."""
    return [test for test in tests if test == function or test.startswith(f"{function}[")]


def worst(outcomes: Sequence[str]) -> str:
    """One outcome for several cases: the first that is bad, otherwise one that says more than `skipped`."""
    order = (lambda one: one not in GOOD | {"skipped"}, lambda one: one == "xfailed", lambda one: one == PASSED)
    return next((one for fits in order for one in outcomes if fits(one)), next(iter(outcomes), ""))


def doubtful(rows: Rows, tests: Iterable[str]) -> list[str]:
    """Those of the tests that were run and did not pass: by chance, as long as they were run only once."""
    return [test for test in tests if test in rows.ran and rows.ran[test].outcome not in GOOD | {"skipped"}]


def cleared(rows: Rows, tests: Iterable[str], again: Sequence[Rows], beside: Collection[str] = ()) -> Rows:
    """The rows in which those of the doubtful tests that passed every further run count as passed. Of the tests
    `beside` the work one good run is enough: they are flaky, whoever changed what."""
    found = dict(rows.ran)
    for test in tests:
        runs = [each.ran[test] for each in again if test in each.ran]
        good = [ran for ran in runs if ran.good]
        if good and (good == runs or test in beside):
            found[test] = good[-1]
    return rows._replace(ran=found)


def read(data: bytes) -> Rows:
    """The rows of one step, whose pytest may have been started several times. Torn lines are passed over."""
    return gathered(files.read_lines(data))


class _Account:
    """What a step's rows add up to: which tests were to be run, which were begun and ended, what our own tests did, and
    what pytest itself says of its end."""

    def __init__(self) -> None:
        self.selected: set[str] = set()
        self.began: set[str] = set()
        self.ended: set[str] = set()
        self.sentinels: dict[str, str] = {}
        self.announced = False
        self.finished = False
        self.end: Mapping[str, Any] = {}
        self.doubt = ""

    def add(self, row: Mapping[str, Any]) -> None:
        kind, test = row.get("type"), row.get("id", "")
        if kind == "selected":
            self.selected.update(row["tests"])
        elif kind == "began":
            self.began.add(test)
        elif kind == "sentinels":
            self.announced = True
        elif kind == "sentinel":
            self.sentinels[test] = row["outcome"]
        elif kind == "finished":
            self.end = row
        elif kind == "ran":
            if test in self.ended:
                self.doubt = self.doubt or f"there are two results of `{test}`"
            elif test not in self.began:
                self.doubt = self.doubt or f"there is a result of `{test}`, which was never begun"
            self.ended.add(test)
        self.finished = kind == "finished" or (self.finished and kind != "collected")

    def problem(self) -> str:
        """Why nothing follows from these rows; empty when every test that was to be run has one result, our own tests
        did what they always do, and pytest's counts and exit code say the same."""
        if self.doubt or not (self.announced and self.finished):
            return self.doubt
        exit_code, stopped = self.end.get("exit_code", 1), self.end.get("stopped", "")
        if missing := sorted(self.selected - self.ended):
            done = len(self.selected) - len(missing)
            why = f": {stopped}" if stopped else f" (exit code {exit_code})"
            return f"pytest ended after {done} of {len(self.selected)} tests{why}; `{missing[0]}` was not run"
        if self.sentinels != SENTINELS:
            wrong = next(name for name, outcome in SENTINELS.items() if self.sentinels.get(name) != outcome)
            outcome = self.sentinels.get(wrong)
            seen = f"is reported as {outcome}" if outcome else "was not run"
            return f"a test that always {wrong.removeprefix('test_')} {seen}"
        if exit_code == 0:
            return "pytest says that all tests passed, and one always fails"
        if exit_code != 1:
            return f"pytest ended with exit code {exit_code}{f': {stopped}' if stopped else ''}"
        if self.end.get("failed") != self.end.get("failed_by_pytest"):
            return f"pytest counts {self.end.get('failed_by_pytest')} failures, and {self.end.get('failed')} were seen"
        return ""


def gathered(lines: Iterable[Mapping[str, Any]]) -> Rows:
    tests: dict[str, CollectedTest] = {}
    ran: dict[str, RanTest] = {}
    broken: dict[str, Broken] = {}
    account = _Account()
    for row in lines:
        kind = row.get("type")
        try:
            account.add(row)
            if kind == "collected":
                tests[row["id"]] = CollectedTest(**{name: row.get(name, "") for name in CollectedTest._fields})
            elif kind == "ran":
                failed = row["outcome"] in ("failed", "timeout")
                said = row.get("signature", failure(row["text"]) if failed else "")
                ran[row["id"]] = RanTest(row["id"], row["outcome"], row["seconds"], row["text"], said)
            elif kind == "broken":
                broken[row["id"]] = Broken(row["id"], row["text"], failure(row["text"]))
        except (KeyError, TypeError, AttributeError):
            account.doubt = account.doubt or f"a row `{kind}` of the test run is damaged"
    return Rows(tests, ran, tuple(broken.values()), account.finished, account.problem())


def failure(text: str) -> str:
    """The signature of a failure: of the line that says what went wrong."""
    marked = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    lines = marked or [line.strip() for line in reversed(text.splitlines()) if line.strip()] or [""]
    return signature(next(filter(_NAMED.match, lines), lines[0]))
