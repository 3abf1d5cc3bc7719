"""Verdicts: what was measured decides, the claim is only held against it."""

from typing import Any

import pytest

from mngr.tmr import baseline, plan, verdict
from mngr.tmr.baseline import Measured
from mngr.tmr.rows import Broken, Ran
from mngr.tmr.verdict import Evidence, judge

TASK = "tests/test_a.py::test_b"
FAILED, PASSED = Measured("fail", ("failed",) * 3), Measured("pass", ("passed",))
DONE: dict[str, Any] = {"status": "done", "changes": [1], "blocked_reason": "", "blocked_needs": ""}


def judged(before: Measured = FAILED, claim: dict[str, Any] | None = DONE, **seen: Any) -> tuple[str, str]:
    found = judge(TASK, before, claim, "no outcome file", Evidence(**{"changed_files": 1, "after": "passed", **seen}))
    return found.verdict, "; ".join(found.reasons)


def test_a_failing_test_that_passes_now_is_fixed() -> None:
    assert judged()[0] == "fixed"


def test_a_passing_test_that_was_changed_is_improved() -> None:
    assert judged(before=PASSED)[0] == "improved"


@pytest.mark.parametrize("after", ["failed", "skipped", "timeout", "crashed", "missing", "not run"])
def test_a_test_that_does_not_pass_refutes_the_claim(after: str) -> None:
    assert judged(after=after) == ("refuted", f"its test is {after} in a clean checkout")


def test_deleted_tests_refute_the_claim() -> None:
    assert judged(lost=(TASK,)) == ("refuted", "its test is deleted")
    assert "`tests/test_z.py::test_y` is deleted" in judged(lost=("tests/test_z.py::test_y",))[1]


def test_a_new_test_that_passes_sometimes_refutes_the_claim() -> None:
    said = judged(new={"tests/test_a.py::test_new": ("passed", "failed", "passed")})
    assert said == ("refuted", "the new test `tests/test_a.py::test_new` is failed in 1 of 3 runs")


def test_a_red_gate_and_a_broken_collection_refute_the_claim() -> None:
    assert judged(gate_exit=2) == ("refuted", "the gate command fails (exit code 2)")
    assert judged(broken=("tests/test_q.py",)) == ("refuted", "`tests/test_q.py` can no longer be collected")


def test_no_change_is_fine_only_for_a_test_that_passes() -> None:
    claim = {**DONE, "changes": []}
    assert judged(before=PASSED, claim=claim, changed_files=0)[0] == "unchanged"
    assert judged(before=FAILED, claim=claim, changed_files=0)[0] == "refuted"
    assert judged(before=PASSED, claim=DONE, changed_files=0)[0] == "refuted"
    assert judged(before=Measured("not measured"), claim=claim, changed_files=0)[0] == "failed"


def test_what_changes_how_all_tests_are_judged_is_held_for_a_person() -> None:
    assert judged(steering=("tests/conftest.py",))[0] == "held"
    assert judged(steering=("tests/conftest.py",), after="failed")[0] == "refuted"


def test_blocked_says_why_and_what_it_needs() -> None:
    claim = {**DONE, "status": "blocked", "blocked_reason": "no network", "blocked_needs": "a proxy"}
    assert judged(claim=claim) == ("blocked", "no network; it needs: a proxy")


def test_work_without_an_outcome_is_unclaimed() -> None:
    assert judged(claim=None) == ("unclaimed", "no outcome file")


def test_what_must_not_be_checked_out_is_refused_whatever_its_tests_do() -> None:
    assert judged(refusals=("`x` is a link",)) == ("refused", "`x` is a link")


def ran(*outcomes: str) -> list[Ran]:
    return [Ran(TASK, outcome, 0.1, "text", "signature") for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["passed"], "pass"),
        (["failed", "failed", "failed"], "fail"),
        (["failed", "passed", "failed"], "flaky"),
        (["crashed", "crashed"], "fail"),
        (["skipped"], "skipped"),
        ([], "not measured"),
    ],
)
def test_the_baseline_tells_stable_from_flaky(outcomes: list[str], expected: str) -> None:
    assert baseline.judge(ran(*outcomes), None).verdict == expected


def test_a_test_whose_file_does_not_collect_is_broken() -> None:
    assert baseline.judge([], Broken("tests/test_a.py", "text", "SyntaxError")).verdict == "broken"


def test_shards_hold_every_test_once_and_keep_files_together() -> None:
    tests = [f"tests/test_{file}.py::test_{number}" for file in range(7) for number in range(file + 1)]
    parts = baseline.shards(tests, 3)
    assert sorted(test for part in parts for test in part) == sorted(tests)
    assert len(parts) == 3 and max(map(len, parts)) - min(map(len, parts)) <= 4
    assert baseline.shards([], 4) == []


def test_slugs_differ_where_names_that_git_allows_do_not() -> None:
    tests = [
        "a.py::test_x[1/2]",
        "a.py::test_x[1-2]",
        "b.py::test_x[1-2]",
        "a.py::TestX::test_x",
        "a.py::test_" + "y" * 99,
    ]
    found = plan.slugs(tests)
    assert len(set(found.values())) == len(tests) and all(len(slug) <= 40 for slug in found.values())
    assert plan.slugs(tests[:1])[tests[0]] == found[tests[0]]


def test_verdicts_that_are_integrated_are_verdicts() -> None:
    assert set(verdict.VERDICTS) > verdict.INTEGRATED


def test_an_expected_failure_is_a_failure_unless_it_was_expected_before() -> None:
    assert judged(after="xfailed") == ("refuted", "its test is xfailed in a clean checkout")
    assert judged(before=Measured("pass", ("xfailed",)), after="xfailed")[0] == "improved"


def test_a_test_that_is_skipped_as_before_is_not_fixed() -> None:
    skipped = Measured("skipped", ("skipped",))
    assert judged(before=skipped, after="skipped") == ("improved", "skipped before and after; 1 file changed")
    assert judged(before=skipped)[0] == "fixed"
