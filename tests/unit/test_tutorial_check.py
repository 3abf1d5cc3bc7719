"""A script, the citations of it and what was run, held against each other."""

import time
from pathlib import Path

import pytest

from mngr.e2e.shell_blocks import blocks
from mngr.tutorial.check import NOT_RUN, UNCITED, UNFINISHED, UNKNOWN, UNREADABLE, Report, check
from mngr.tutorial.citations import Citation, Found, Unreadable, find
from mngr.tutorial.ran import RecordedRuns, RecordedTest
from tests.support.timing import best_of

SCRIPT = """#!/bin/sh
set -e

# Adding

# one
tool add \\
    --to x
tool list

# Words about it, and nothing to type.

# Removing

tool remove x && tool list
"""
ADD, REMOVE = "# one\ntool add \\\n    --to x\ntool list", "tool remove x && tool list"


def cited(*texts: str) -> Found:
    found = (Citation(text, "tests/test_it.py", 10 * number, f"test_{number}") for number, text in enumerate(texts, 1))
    return Found(tuple(found), ())


def ran(*tests: tuple[str, list[str]], file: str = "tests/test_it.py") -> RecordedRuns:
    found = (RecordedTest(file, name, frozenset(), frozenset(commands)) for name, commands in tests)
    return RecordedRuns(("night",), tuple(found))


def checked(found: Found, what: RecordedRuns | None = None, script: str = SCRIPT) -> Report:
    return check("tutorial.sh", blocks(script), found, what)


def test_all_is_well_when_every_example_is_cited() -> None:
    report = checked(cited(ADD, REMOVE, REMOVE))
    assert report.ok and report.ran is None
    assert [(s.section, s.blocks, s.cited, s.commands) for s in report.sections] == [
        ("Adding", 1, 1, 2),
        ("Removing", 1, 1, 1),
    ]


def test_an_example_without_a_test_is_named_with_its_lines() -> None:
    (problem,) = checked(cited(ADD)).problems
    assert problem.kind == UNCITED
    assert problem.line == 15 and problem.section == "Removing" and problem.text == REMOVE
    assert problem.message == f"tutorial.sh:15: block {problem.block} (one line, `Removing`) is cited by no test"


def test_comments_and_the_preamble_may_be_cited() -> None:
    assert checked(cited(ADD, REMOVE, "# Words about it, and nothing to type.", "#!/bin/sh\nset -e")).ok


def test_a_citation_of_no_block_shows_the_nearest_and_the_difference() -> None:
    (problem,) = checked(cited(ADD.replace("--to x", "--to y"), ADD, REMOVE)).problems
    assert problem.kind == UNKNOWN
    assert (problem.file, problem.line, problem.test) == ("tests/test_it.py", 10, "test_1")
    assert "the nearest is tutorial.sh:6" in problem.message
    assert problem.diff.split("\n")[:2] == ["--- tutorial.sh:6", "+++ tests/test_it.py:10"]
    assert "-    --to x\n+    --to y" in problem.diff


def test_a_citation_like_nothing_has_no_nearest() -> None:
    (problem,) = checked(cited("zzz", ADD, REMOVE)).problems
    assert problem.diff == "" and problem.block == ""


def test_a_citation_whose_backslash_python_took_has_a_hint() -> None:
    wrong = Citation("# one\ntool add     --to x\ntool list", "t.py", 3, "test_a", escaped=True)
    (problem,) = checked(Found((*cited(ADD, REMOVE).citations, wrong), ())).problems
    assert 'r"""' in problem.hint


def test_every_command_of_a_cited_block_has_to_be_run() -> None:
    all_of = ("test_1", ["tool add --to x", "tool list"]), ("test_2", ["tool remove x && tool list"])
    assert checked(cited(ADD, REMOVE), ran(*all_of)).ok
    report = checked(cited(ADD, REMOVE), ran(("test_1", ["tool add --to x"]), all_of[1]))
    (problem,) = report.problems
    assert problem.kind == NOT_RUN
    assert (problem.line, problem.text, problem.test) == (9, "tool list", "test_1")
    assert problem.message.endswith("`tool list` was never run by `test_1` (tests/test_it.py:10)")
    assert (report.total("commands"), report.total("run")) == (3, 2)


def test_a_test_that_is_not_in_the_run_is_said_to_be_missing_there() -> None:
    problems = checked(cited(ADD, ADD, REMOVE), ran(("test_3", [REMOVE]))).problems
    assert [problem.line for problem in problems] == [7, 9]
    where = "`test_1` (tests/test_it.py:10) and 1 more are not in the recorded run"
    assert problems[0].message.endswith(f"`tool add --to x` was not run: {where}")


def test_what_a_test_ran_that_did_not_pass_does_not_count() -> None:
    good, bad = ran(("test_1", ["tool add --to x", "tool list"])).tests[0], ran(("test_2", [REMOVE])).tests[0]
    failed = (bad._replace(outcome="skipped"), bad._replace(outcome="failed"), bad._replace(outcome=""))
    (problem,) = checked(cited(ADD, REMOVE), RecordedRuns(("r",), (good, *failed))).problems
    assert problem.text == REMOVE
    why = "was not run by a test that passed: `test_2` (tests/test_it.py:20) ended as failed and killed and skipped"
    assert problem.message.endswith(why)
    assert checked(cited(ADD, REMOVE), RecordedRuns(("r",), (good, *failed, bad))).ok


def test_a_command_that_another_test_ran_does_not_count() -> None:
    report = checked(
        cited(ADD, REMOVE),
        ran(("test_1", ["tool list"]), ("test_2", ["tool add --to x", "tool remove x && tool list"])),
    )
    assert [problem.text for problem in report.problems] == ["tool add --to x"]


def test_several_tests_of_a_block_run_it_together() -> None:
    assert checked(
        cited(ADD, ADD, REMOVE),
        ran(("test_1", ["tool list"]), ("test_2", ["tool add --to x"]), ("test_3", [REMOVE])),
    ).ok


@pytest.mark.parametrize(
    ("file", "ok"),
    [("tests/test_it.py", True), ("test_it.py", True), ("sub/tests/test_it.py", True), ("other/test_it.py", False)],
)
def test_a_recorded_test_is_found_by_its_file_and_name(file: str, ok: bool) -> None:
    found = ran(("test_1", ["tool add --to x", "tool list"]), ("test_2", [REMOVE]), file=file)
    assert checked(cited(ADD, REMOVE), found).ok is ok


def test_a_block_that_the_test_itself_named_counts() -> None:
    steps = RecordedTest("tests/other.py", "test_x", frozenset({ADD}), frozenset({"tool add --to x", "tool list"}))
    assert checked(cited(ADD, REMOVE), RecordedRuns(("r",), (steps, *ran(("test_2", [REMOVE])).tests))).ok


@pytest.mark.parametrize("file", ["test_it.py", "../test_it.py", "../../tests/test_it.py", "project/tests/test_it.py"])
def test_a_citation_is_found_from_wherever_the_check_is_run(file: str) -> None:
    citations = [one._replace(file=file) for one in cited(ADD, REMOVE).citations]
    recorded = ran(("test_1", ["tool add --to x", "tool list"]), ("test_2", [REMOVE]))
    assert checked(Found(tuple(citations), ()), recorded).ok


def test_a_block_torn_by_an_empty_line_is_named() -> None:
    script = "cat <<EOF\na\n\nb\nEOF\n"
    report = checked(cited("cat <<EOF\na", "b\nEOF"), script=script)
    (problem,) = report.problems
    assert problem.kind == UNFINISHED
    assert "ends inside the here-document `EOF`, at the empty line 3" in problem.message


def test_what_cannot_be_read_is_a_problem() -> None:
    found = cited(ADD, REMOVE)._replace(unreadable=(Unreadable("tests/test_b.py", 4, "not valid Python: bad"),))
    (problem,) = checked(found).problems
    assert (problem.kind, problem.message) == (UNREADABLE, "tests/test_b.py:4: not valid Python: bad")


def test_ten_thousand_blocks_and_tests(tmp_path: Path) -> None:
    script = "\n\n".join(f"# number {n}\ntool create a-{n} --label a=b\ntool list a-{n}" for n in range(10_000))
    tests = [
        f'def test_{n}(e2e):\n    e2e.write_tutorial_block("""\n    # number {n}\n'
        f"    tool create a-{n} --label a=b\n    tool list a-{n}\n"
        f'    """)\n    expect(e2e.run("tool create a-{n}")).to_succeed()\n'
        for n in range(10_000)
    ]
    (tmp_path / "test_all.py").write_text("\n".join(tests))

    def measure(_: int) -> float:
        started = time.process_time()
        assert checked(find(["test_all.py"], str(tmp_path)), script=script).ok
        return time.process_time() - started

    best_of(3, 6, measure)  # 1.2 on an idle machine


def test_ten_thousand_citations_of_nothing() -> None:
    script = "\n\n".join(f"tool create a-{n} --label a=b" for n in range(2_000))
    found = cited(*(f"tool create a-{n} --label a=c" for n in range(2_000)))

    def measure(_: int) -> float:
        started = time.process_time()
        report = checked(found, script=script)
        assert len(report.problems) == 4_000
        assert all(f"a-{n} " in report.problems[2_000 + n].diff.split("\n")[3] for n in range(2_000))
        return time.process_time() - started

    best_of(3, 10, measure)
