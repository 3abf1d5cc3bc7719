"""The rows of the report of a `mngr tmr` run, from values alone; and files that are read only where they belong."""

import os
from pathlib import Path
from typing import Any

import pytest

from mngr.agent.record import timestamp
from mngr.mapreduce.ledger_fold import fold
from mngr.report import run_files
from mngr.report.tmr import TmrRun
from mngr.report.tmr_patches import Pair, Patches, _by_head
from mngr.report.tmr_rows import branch, chart, overview, report, task_row
from mngr.report.tmr_suite import ReportData, before_and_after, clusters, trends
from mngr.tmr.judge import verdict
from mngr.tmr.run_view import view

START = 1_790_000_000.0


def entries(*given: tuple[float, str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"at": timestamp(START + at), "type": type, **data} for at, type, data in given]


def attempt(test: str, at: float, end: float | None, word: str = "", number: int = 1, **found: Any) -> list[Any]:
    about = {"task": test, "number": number}
    made = [
        (at, "attempt", {**about, "agent": f"agent-{test}-{number}"}),
        (at + 1, "started", {**about, "agent_id": f"id-{test}"}),
    ]
    if end is not None:
        made.append((end, "ended", {**about, "reason": "outcome", "because": "it is done", "retry": not word}))
    if word:
        claim = {"status": "done", "escalations": found.pop("escalations", []), "changes": [], **found.pop("claim", {})}
        made.append((end or at, "collected", {**about, "data": {"tip": "c" * 40, "outcome": claim}}))
        made.append(
            (end or at, "verdict", {**about, "data": {"verdict": word, "reasons": ["so"], "flags": [], **found}})
        )
    return made


def known(*more: Any, **given: Any) -> ReportData:
    begin: list[Any] = [
        (0, "run", {"run": "r", "base": "b" * 40, "repo": "/repo"}),
        *[(0, "task", {"task": test, "slug": test, "data": {}}) for test in ("a", "b", "c")],
    ]
    return ReportData(view(fold(entries(*begin, *more))), **given)


def test_a_row_has_what_was_measured_before_and_after_and_what_to_look_at() -> None:
    flags = [{"kind": "skip", "path": "p", "text": "t"}, {"kind": "skip", "path": "q", "text": "u"}]
    found = known(*attempt("a", 0, 9, verdict.FIXED, flags=flags, after="passed"), measured={"a": {"verdict": "fail"}})
    row = task_row(found, found.run.tasks[0])
    assert (row["verdict"], row["before"], row["after"], row["flags"]) == ("fixed", "fail", "passed", ["skip"])
    assert (row["attempts"], row["seconds"], row["why"]) == (1, 9, "so")


def test_a_task_without_an_attempt_is_a_row_that_needs_nobody_yet() -> None:
    found = known()
    row = task_row(found, found.run.tasks[1])
    assert (row["verdict"], row["kind"], row["seconds"], row["agent"]) == ("not started", "not-started", None, "")


def test_failures_of_one_signature_are_one_cluster_the_biggest_first() -> None:
    measured = {
        "a": {"verdict": "fail", "signature": "boom", "text": "E boom"},
        "b": {"verdict": "pass", "signature": ""},
        "c": {"verdict": "flaky", "signature": "boom"},
        "elsewhere": {"verdict": "broken", "signature": "no module"},
    }
    found = clusters(known(*attempt("a", 0, 9, verdict.FIXED), measured=measured, at_tip={"a": "passed"}))
    assert [(one["signature"], one["count"], one["passing"]) for one in found] == [("boom", 2, 1), ("no module", 1, 0)]
    assert [test["key"] for test in found[0]["tests"]] == ["a", "c"] and found[1]["tests"][0]["key"] == ""
    assert found[0]["verdicts"] == {"fixed": 1, "not-started": 1}


def test_a_test_that_was_seen_to_fail_twice_at_the_tip_is_named_once() -> None:
    failures = [{"test": "a", "text": "first"}, {"test": "a", "text": "second"}]
    data = {"excused": ["a", "a"], "gate": {"failures": failures}}
    began, ended = {"name": "integrate", "status": "began"}, {"name": "integrate", "status": "ended", "data": data}
    found = known((1, "phase", began), (2, "phase", ended))
    assert [one["name"] for one in overview(found)["tests"]["failing"]] == ["a"]
    shown = branch(found)
    assert shown is not None and shown["failures"] == [{"test": "a", "text": "second"}]


def test_tests_are_counted_at_the_base_and_at_the_tip() -> None:
    found = before_and_after(
        known(
            measured={"a": {"verdict": "fail"}, "b": {"verdict": "pass"}},
            tests={"a": {}, "b": {}},
            at_tip={"a": "passed", "b": "skipped", "new": "failed"},
        )
    )
    assert found["before"] == {"fail": 1, "pass": 1}
    assert found["after"] == {"pass": 1, "skipped": 1, "fail": 1} and found["new"] == 1
    assert before_and_after(known())["after"] is None, "not measured is not zero"


def test_agents_over_time_rise_and_fall_and_those_that_go_on_reach_the_end() -> None:
    found = known(*attempt("a", 0, 9, verdict.FIXED), *attempt("b", 3, 6, verdict.FIXED), *attempt("c", 4, None))
    drawn = chart(found, START + 20)
    assert drawn["agents"] == [(1, 1), (4, 2), (5, 3), (6, 2), (9, 1), (20, 0)]
    assert (drawn["most"], drawn["seconds"]) == (3, 20)
    assert drawn["phases"] == [{"name": "map", "from": 0, "to": 20, "over": False}]


def test_a_test_is_held_against_the_run_before() -> None:
    earlier = {name: {"verdict": word} for name, word in {"a": "pass", "b": "fail", "c": "flaky"}.items()}
    now = {name: {"verdict": word} for name, word in {"a": "fail", "b": "fail", "c": "pass", "d": "pass"}.items()}
    words = {"a": "newly failing", "b": "still failing", "c": "no longer failing", "d": "new test"}
    assert trends(now, earlier) == words and trends(now, {}) == {}


def test_the_document_for_programs_has_all_rows_and_the_reasons() -> None:
    decided = {"type": "decision", "at": START, "what": "refused", "because": "a link", "about": ["a"]}
    document = report(known(*attempt("a", 0, 9, verdict.REFUSED), told=(decided,)))
    assert [row["verdict"] for row in document["rows"]] == ["refused", "not started", "not started"]
    assert document["decisions"][0]["because"] == "a link" and document["state"] == "broken off"


def test_patches_of_many_are_told_apart_whatever_is_in_them() -> None:
    one, two, three = ("1" * 40, "2" * 40, "3" * 40)
    hostile = f"diff --git a/x b/x\n+{one} {two}\n-{two} {three}\n"
    data = f"{one} {two}\n{hostile}{one} {three}\ndiff --git a/y b/y\n".encode()
    assert _by_head(data) == {(one, two): hostile.encode(), (one, three): b"diff --git a/y b/y\n"}


def test_a_ledger_that_grows_is_read_again_and_a_torn_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(
        f'{{"at": "{timestamp(START)}", "type": "run", "run": "r"}}\n{{"at": "{timestamp(START)}", "type": '
    )
    source = TmrRun(str(tmp_path))
    assert source.known().state.facts["run"] == "r" and source.known().told == ()
    with path.open("a") as file:
        file.write('"decision", "what": "w", "about": []}\n')
    assert [entry["what"] for entry in source.known().told] == ["w"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    place = tmp_path / "run"
    (place / "inner").mkdir(parents=True)
    (place / "inner" / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret").write_text("s")
    (place / "link").symlink_to(tmp_path / "secret")
    (place / "inner" / "up").symlink_to(tmp_path)
    os.mkfifo(place / "inner" / "pipe")
    return place


@pytest.mark.parametrize(
    "parts",
    [
        ("link",),
        ("inner", "up", "secret"),
        ("..", "secret"),
        ("inner/../link",),
        ("inner", "pipe"),
        ("inner",),
        ("no",),
        (),
    ],
)
def test_only_plain_files_inside_the_run_are_read(run: Path, parts: tuple[str, ...]) -> None:
    assert run_files.read(str(run), *parts, most=100) is None


def test_a_long_file_is_cut_at_a_line_with_a_note(run: Path) -> None:
    assert run_files.text(str(run), "inner", "a.txt", most=100) == ("one\ntwo\nthree\n", "")
    first = run_files.text(str(run), "inner", "a.txt", most=9)
    last = run_files.text(str(run), "inner", "a.txt", most=9, end=True)
    assert first is not None and first.text == "one\ntwo\n" and "Only the first" in first.note
    assert last is not None and last.text == "three\n" and "Only the last" in last.note


def test_files_are_listed_without_links(run: Path) -> None:
    (run / "inner" / "deep").mkdir()
    (run / "inner" / "deep" / "b").touch()
    assert [one.parts for one in run_files.listed(str(run), "inner")] == [("a.txt",), ("deep", "b")]
    assert run_files.listed(str(run), "inner", "up") == [] and run_files.listed(str(run), "..") == []


def test_changes_that_git_cannot_show_are_not_said_to_be_gone(tmp_path):
    found = Patches(str(tmp_path), "a" * 40).patch(Pair("a" * 40, "b" * 40))
    assert found.text == "" and "cannot be shown" in found.note and "git" in found.note
