"""Verdicts: what was measured decides, the claim is only held against it."""

import json
from typing import Any

import pytest

from mngr.tmr import plan
from mngr.tmr.judge import verdict
from mngr.tmr.judge.decide import claim_of, decide
from mngr.tmr.judge.evidence import (
    AtTip,
    Beyond,
    Change,
    ChangedExpectation,
    Evidence,
    Halves,
    Marks,
    Noticed,
    Trouble,
)
from mngr.tmr.judge.flags import Flag
from mngr.tmr.judge.verdict import Decision, Verdict
from mngr.tmr.measure import baseline
from mngr.tmr.measure.baseline import BaselineTest
from mngr.tmr.measure.rows import Broken, RanTest
from mngr.tmr.measure.strength import Strength

TASK = "tests/test_a.py::test_b"
FAILED, PASSED = BaselineTest("fail", ("failed",) * 3), BaselineTest("pass", ("passed",))
SKIPPED, FLAKY = BaselineTest("skipped", ("skipped",)), BaselineTest("flaky", ("failed", "passed"))
DONE: dict[str, Any] = {"status": "done", "changes": [1], "blocked_reason": "", "blocked_needs": ""}
GOOD = Marks("failed", "passed", "failed", "passed")


def judged(before: BaselineTest = FAILED, claim: dict[str, Any] | None = DONE, **seen: Any) -> tuple[str, str]:
    facts = {"files": ("a.py",), "product_changed": True, "marks": GOOD, **seen}
    decision = decide(evidence(before, **facts), claim_of(claim, "no outcome file"))
    return decision.word, "; ".join(decision.reasons)


def evidence(was: BaselineTest, marks: Marks, **facts: Any) -> Evidence:
    """With the facts in the parts that they belong to."""

    def part(kind: Any) -> Any:
        return kind(**{name: facts.pop(name) for name in kind._fields if name in facts})

    parts = [part(kind) for kind in (Change, AtTip, Halves, Noticed, Beyond, Trouble)]
    assert not facts
    return Evidence(TASK, was, marks, *parts)


def measured(t0p0: str, t0p1: str, t1p0: str, t1p1: str = "pass", **seen: Any) -> str:
    """The verdict by the four measurements, in one word."""
    words = {"pass": "passed", "fail": "failed"}
    marks = Marks(*(words[one] for one in (t0p0, t0p1, t1p0, t1p1)))
    return judged(PASSED if t0p0 == "pass" else FAILED, marks=marks, **seen)[0]


def test_the_base_s_own_test_proves_a_fix_whatever_happened_to_the_test() -> None:
    assert measured("fail", "pass", "fail") == "fixed"
    assert measured("fail", "pass", "pass", tests_changed=True) == "fixed"


def test_product_and_test_that_need_each_other_are_fixed_together() -> None:
    assert measured("fail", "fail", "fail", tests_changed=True) == "fixed together"


def test_a_test_that_changed_its_mind_is_no_fix() -> None:
    assert measured("fail", "fail", "pass", tests_changed=True, product_changed=False) == "expectation changed"
    word, why = judged(marks=Marks("failed", "failed", "passed", "passed"), tests_changed=True)
    assert word == "held" and "without the change of the product" in why


def test_a_product_change_that_only_its_own_new_test_asks_for_is_new_behaviour_and_no_fix() -> None:
    found = ("t.py::test_new",)
    assert measured("pass", "pass", "pass", tests_changed=True, found=found) == "new behaviour"
    assert measured("pass", "pass", "pass", tests_changed=True, found=found, effect=("t.py::test_old",)) == "fixed"


def test_a_product_change_that_no_test_needs_is_unproven() -> None:
    assert measured("pass", "pass", "pass") == "unproven"
    assert measured("pass", "pass", "pass", tests_changed=True) == "unproven"


@pytest.mark.parametrize(
    ("word", "shorter", "expected"),
    [
        ("stronger", False, "stronger"),
        ("same", True, "same"),
        ("same", False, "held"),
        ("weaker", True, "refuted"),
        ("mixed", False, "held"),
        ("not measured", False, "improved"),
    ],
)
def test_a_changed_test_is_judged_by_what_it_notices(word: str, shorter: bool, expected: str) -> None:
    facts: dict[str, Any] = {"tests_changed": True, "product_changed": False, "shorter": shorter}
    assert measured("pass", "pass", "pass", strength=Strength(word, (5, 9), (7, 9)), **facts) == expected


def test_a_test_that_cannot_fail_and_one_that_lost_its_citation_are_refuted() -> None:
    assert "cannot fail" in judged(cannot_fail=(TASK,))[1]
    assert judged(unfaithful=("the citation of `x` was removed",)) == ("refuted", "the citation of `x` was removed")


def test_a_fix_whose_test_passes_with_a_spoiled_product_is_held() -> None:
    assert judged(unspoiled=(TASK,)) == (
        "held",
        f"`{TASK}` passes with a spoiled product too; its test failed before and passes now; 1 file changed",
    )


def test_a_flaky_test_that_is_steady_since_it_was_changed_is_looked_at_like_a_changed_expectation() -> None:
    marks = Marks("failed", "failed", "passed", "passed")
    seen = evidence(FLAKY, marks, files=("t.py",), tests_changed=True)
    decision = decide(seen, claim_of(DONE, ""))
    assert (decision.word, decision.place) == ("fixed", "expectation") and Verdict(decision, seen).to_look_at
    assert judged(FLAKY, marks=Marks("failed", "passed", "passed", "passed"))[0] == "fixed"


def test_what_the_base_s_own_version_of_a_touched_test_says_is_for_a_person() -> None:
    word, why = judged(tests_changed=True, as_before={"t.py::test_c": "failed"})
    assert word == "held" and "`t.py::test_c` as it is at the base passed before and is failed now" in why
    facts: dict[str, Any] = {"tests_changed": True, "as_before": {TASK: "failed"}, "found": (TASK,)}
    assert measured("pass", "fail", "fail", **facts) == "new behaviour"


def test_what_other_measurements_say_holds_a_fix_and_is_in_its_reasons() -> None:
    for facts in (
        {"depends": ("`t` is failed elsewhere: it depends on the day",)},
        {"touched": ("its product looks at the stack of calls (`f`)",)},
        {"general": "only for this input", "only": "it is fixed only for this input"},
    ):
        word, why = judged(**facts)
        assert word == "held" and next(iter(facts.values())) in ((why.partition(";")[0],), "only for this input")
    named: dict[str, Any] = {"general": "general", "unreached": "3 of 4 changed lines", "shown": ("it reads `a`",)}
    assert judged(**named)[0] == "fixed"


def test_a_test_in_whose_place_others_are_is_not_deleted() -> None:
    facts: dict[str, Any] = {"tests_changed": True, "product_changed": False, "lost": ("t.py::test_c", "t.py::test_d")}
    marks = Marks("passed", "passed", "passed", "passed")
    assert judged(PASSED, marks=marks, **facts)[0] == "refuted"
    assert judged(PASSED, marks=marks, **facts, kept=("t.py::test_c",))[1] == "`t.py::test_d` is deleted"
    assert judged(PASSED, marks=marks, **facts, kept=facts["lost"])[0] == "improved"
    word, why = judged(PASSED, marks=marks, **facts, kept=("t.py::test_c",), unsure=("t.py::test_d",))
    assert word == "held" and "`t.py::test_d` is gone" in why


@pytest.mark.parametrize("after", ["failed", "skipped", "timeout", "crashed", "missing", "not run"])
def test_a_test_that_does_not_pass_refutes_the_claim(after: str) -> None:
    assert judged(marks=Marks(t1p1=after)) == ("refuted", f"its test is {after} in a clean checkout")


def test_deleted_tests_refute_the_claim() -> None:
    assert judged(lost=(TASK,)) == ("refuted", "its test is deleted")
    assert "`tests/test_z.py::test_y` is deleted" in judged(lost=("tests/test_z.py::test_y",))[1]


def test_a_neighbour_that_passed_and_is_skipped_now_refutes_the_claim() -> None:
    assert judged(worse={"t.py::test_c": "skipped"}) == ("refuted", "`t.py::test_c` passed before and is skipped now")


def test_a_new_test_that_passes_sometimes_refutes_the_claim() -> None:
    new = "tests/test_a.py::test_new"
    said = judged(new=(new,), outcomes={new: ("passed", "failed", "passed")})
    assert said == ("refuted", "the new test `tests/test_a.py::test_new` is failed in 1 of 3 runs")


def test_a_red_gate_and_a_broken_collection_refute_the_claim() -> None:
    assert judged(gate_exit=2) == ("refuted", "the gate command fails (exit code 2)")
    assert judged(broken=("tests/test_q.py",)) == ("refuted", "`tests/test_q.py` can no longer be collected")


def test_no_change_is_fine_only_for_a_test_that_passes() -> None:
    claim = {**DONE, "changes": []}
    assert judged(before=PASSED, claim=claim, files=())[0] == "unchanged"
    assert judged(before=FAILED, claim=claim, files=())[0] == "refuted"
    assert judged(before=PASSED, claim=DONE, files=())[0] == "refuted"
    assert judged(before=BaselineTest("not measured"), claim=claim, files=())[0] == "failed"


def test_what_changes_how_all_tests_are_judged_is_held_for_a_person() -> None:
    flag = Flag("conftest", "tests/conftest.py", "`tests/conftest.py` is changed, which other tests use too")
    assert judged(flags=(flag,))[0] == "held"
    assert judged(flags=(flag,), marks=Marks(t1p1="failed"))[0] == "refuted"
    assert "passes only with its own `tests/conftest.py`" in judged(flags=(flag,), needed=("tests/conftest.py",))[1]


def test_blocked_says_why_and_what_it_needs() -> None:
    claim = {**DONE, "status": "blocked", "blocked_reason": "no network", "blocked_needs": "a proxy"}
    assert judged(claim=claim) == ("blocked", "no network; it needs: a proxy")


def test_work_without_an_outcome_is_unclaimed() -> None:
    assert judged(claim=None) == ("unclaimed", "no outcome file")


def test_what_must_not_be_checked_out_is_refused_whatever_its_tests_do() -> None:
    assert judged(refusals=("`x` is a link",)) == ("refused", "`x` is a link")


def test_a_verdict_goes_to_json_and_back_as_it_is() -> None:
    strength = Strength("stronger", (1, 9), (3, 9), ("a line dropped",), (), "output edits", 1.5)
    found = evidence(
        FAILED,
        GOOD,
        flags=(Flag("claim", "a.py", "text"),),
        product_changed=True,
        strength=strength,
        expectations=(ChangedExpectation("t.py", 3, "5", "7"),),
        effect=("t",),
        cases=("t[1]", "t[2]"),
        worse={"t": "skipped"},
    )
    whole = Verdict(Decision("fixed", ("why",), "fix", ("t",)), found, second_opinion="confirmed")
    assert verdict.from_json(json.loads(json.dumps(whole.as_json()))) == whole
    old = verdict.from_json({"verdict": "improved", "reasons": ["x"], "after": "passed"})
    assert (old.evidence.marks.t1p1, old.word, old.decision.place) == ("passed", "improved", "uncontroversial")
    fix = verdict.from_json({"verdict": "fixed", "effect": ["a"]})
    assert (fix.effect, fix.repaired, fix.decision.place) == (("a",), (), "fix")


def ran(*outcomes: str) -> list[RanTest]:
    return [RanTest(TASK, outcome, 0.1, "text", "signature") for outcome in outcomes]


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
    assert judged(marks=Marks(t1p1="xfailed")) == ("refuted", "its test is xfailed in a clean checkout")
    before = BaselineTest("pass", ("xfailed",))
    assert judged(before=before, marks=Marks(t1p1="xfailed"), product_changed=False)[0] == "improved"


def test_a_test_that_is_skipped_as_before_is_not_fixed() -> None:
    still = judged(SKIPPED, marks=Marks("skipped", "skipped", "skipped", "skipped"), product_changed=False)
    assert still == ("improved", "its test was skipped before and after; 1 file changed")
    assert judged(SKIPPED, marks=Marks("skipped", "passed", "failed", "passed"))[0] == "fixed"
