"""The gate of an integration: what it makes of the rows that pytest wrote at a commit."""

from collections.abc import Sequence
from typing import cast

from mngr.tmr.branch.objects import PathChange, TreeEntry
from mngr.tmr.branch.suite import SuiteGate
from mngr.tmr.branch.unit import ChangePart, Unit, VerifiedWork, WorkPiece
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, StepResult
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import Broken, CollectedTest, RanTest, Rows

OLD, NEW = "tests/test_a.py::test_old", "tests/test_a.py::test_new"


class Collected:
    """A measurer whose every measurement finds these tests, and all of them pass."""

    at_once = 1

    def __init__(self, *tests: str, broken: str = "") -> None:
        found = {test: CollectedTest(test, test.partition("::")[0], 1, test, "", "body") for test in tests}
        ran = {test: RanTest(test, "passed", 0.1, "", "") for test in tests}
        self.rows = Rows(found, ran, (Broken(broken, "no such module", ""),) if broken else (), finished=True)

    def take_all(self, wanted: Sequence[Measurement]) -> list[MeasurementResult]:
        return [MeasurementResult({"test": StepResult(0, "", self.rows)}, "", 0.1, "") for _ in wanted]


def unit(path: str) -> Unit:
    part = ChangePart("b" * 40, (PathChange(path, None, TreeEntry("100644", "c" * 40)),))
    return Unit(None, (WorkPiece(part, (VerifiedWork("t", "a", "r-a-1", "d" * 40),)),))


def failures(bench: Collected, *, path: str = "tests/test_a.py", final: bool = True) -> list[str]:
    gate = SuiteGate(cast(Measurer, bench), tests=[OLD, NEW], stay={OLD}, of={"a": [OLD, NEW]})
    return [failure.test for failure in gate.check("e" * 40, (unit(path),), final=final).failures]


def test_a_test_that_is_not_there_any_more_does_not_pass() -> None:
    assert failures(Collected(OLD, NEW)) == failures(Collected(OLD, NEW), final=False) == []
    assert failures(Collected(OLD)) == failures(Collected(OLD), final=False) == [NEW]
    assert failures(Collected(NEW)) == [OLD]


def test_a_new_test_is_only_missed_where_the_change_that_brings_it_is() -> None:
    assert failures(Collected(OLD), path="src/a.py") == []


def test_a_test_that_moved_to_another_file_is_there() -> None:
    assert failures(Collected(OLD, "tests/test_b.py::test_new")) == []


def test_of_a_file_that_cannot_be_collected_only_the_file_is_named() -> None:
    assert failures(Collected(broken="tests/test_a.py")) == ["tests/test_a.py"]
