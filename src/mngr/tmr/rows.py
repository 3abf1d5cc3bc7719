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
    """One collected test; `body` is a hash of what it does, whatever it is called. `function` is its id without
    parameters, the same for all cases of a parametrised test."""

    id: str
    file: str
    line: int
    name: str
    doc: str
    body: str
    function: str = ""


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


def place(tests: Mapping[str, CollectedTest]) -> str:
    """Where in the repository pytest runs, as what comes before the file in a test's id: empty at the top."""
    for test in tests.values():
        if test.file.endswith("/" + (file := file_of(test.id))):
            return test.file.removesuffix(file)
    return ""


def read(data: bytes) -> Rows:
    """The rows of one step, whose pytest may have been started several times. Torn lines are passed over."""
    return gathered(files.read_lines(data))


def gathered(lines: Iterable[Mapping[str, Any]]) -> Rows:
    tests: dict[str, CollectedTest] = {}
    ran: dict[str, RanTest] = {}
    broken: dict[str, Broken] = {}
    finished = False
    sentinels: dict[str, str] = {}
    announced = False
    began: set[str] = set()
    doubts: list[str] = []
    exit_code = 1
    for row in lines:
        kind = row.get("type")
        if kind == "began":
            began.add(row["id"])
        elif kind == "sentinels":
            announced = True
        elif kind == "sentinel":
            sentinels[row["id"]] = row["outcome"]
        elif kind == "finished":
            exit_code = row.get("exit_code", 1)
        elif kind == "ran" and row["id"] in ran:
            doubts.append(f"there are two results of `{row['id']}`")
        elif kind == "ran" and row["id"] not in began:
            doubts.append(f"there is a result of `{row['id']}`, which was never begun")
        finished = kind == "finished" or (finished and kind != "collected")
        if kind == "collected":
            tests[row["id"]] = CollectedTest(**{name: row.get(name, "") for name in CollectedTest._fields})
        elif kind == "ran":
            failed = row["outcome"] in ("failed", "timeout")
            said = row.get("signature", failure(row["text"]) if failed else "")
            ran[row["id"]] = RanTest(row["id"], row["outcome"], row["seconds"], row["text"], said)
        elif kind == "broken":
            broken[row["id"]] = Broken(row["id"], row["text"], failure(row["text"]))
    if sentinels and sentinels != SENTINELS:
        wrong = next(name for name, outcome in SENTINELS.items() if sentinels.get(name) != outcome)
        doubts.append(f"a test that always {wrong.removeprefix('test_')} is reported as {sentinels.get(wrong)}")
    elif sentinels and exit_code == 0:
        doubts.append("pytest says that all tests passed, and one always fails")
    elif announced and not sentinels and finished and all(one.outcome in GOOD | {"skipped"} for one in ran.values()):
        doubts.append("pytest is said to have come to its end, and a test that always fails was not run")
    return Rows(tests, ran, tuple(broken.values()), finished, doubts[0] if doubts else "")


def failure(text: str) -> str:
    """The signature of a failure: of the line that says what went wrong."""
    marked = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    lines = marked or [line.strip() for line in reversed(text.splitlines()) if line.strip()] or [""]
    return signature(next(filter(_NAMED.match, lines), lines[0]))
