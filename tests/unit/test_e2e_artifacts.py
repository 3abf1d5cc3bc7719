"""The artifacts of a run: what is written is read back, and what is torn, foreign or missing does no harm."""

import json
import os
from functools import partial

import pytest

from mngr.e2e import artifacts
from mngr.e2e.transcript import Transcript
from mngr.errors import MngrError, UsageError

DETAILS = {"started_at": 5.0, "ended_at": None, "root": "/r", "args": ["-q"], "python": "3", "exit_status": None}


def details(node_id: str, started_at: float = 10.0) -> dict:
    file, _, name = node_id.partition("::")
    return {"node_id": node_id, "file": file, "line": 3, "name": name, "doc": "", "started_at": started_at}


def open_run(directory, name="r", run_id="one") -> str:
    path, lock = artifacts.open_run(str(directory), name, run_id=run_id, details=lambda: DETAILS)
    os.close(lock)
    return path


def test_a_run_and_its_tests_are_read_back(tmp_path):
    path = open_run(tmp_path / "e2e")
    for node_id in ("b.py::test_x", "a.py::T::test_x[1]"):
        test = artifacts.start_test(path, details(node_id))
        result = {"outcome": "failed", "phases": {"call": 1.5}, "failure": {"phase": "call"}}
        artifacts.write_json(f"{test}/result.json", result)
    artifacts.end_run(path, run_id="one", ended_at=20.0, exit_status=1)
    [run] = artifacts.runs(tmp_path / "e2e")
    assert (run.name, run.args, run.ended_at, run.exit_status) == ("r", ("-q",), 20.0, 1)
    first, second = run.tests()
    assert (first.node_id, first.outcome, first.phases) == ("a.py::T::test_x[1]", "failed", {"call": 1.5})
    assert second.failure is not None and second.failure.phase == "call"
    assert (tmp_path / "e2e" / ".gitignore").read_text() == "*\n"


def test_the_newest_run_comes_first(tmp_path):
    for number, name in enumerate(["b", "a", "c"]):
        _, lock = artifacts.open_run(
            str(tmp_path), name, run_id=name, details=partial(dict, DETAILS, started_at=float(number))
        )
        os.close(lock)
    assert [run.name for run in artifacts.runs(tmp_path)] == ["c", "a", "b"]


def test_what_is_torn_missing_or_foreign_is_passed_over(tmp_path):
    path = open_run(tmp_path / "e2e")
    test = artifacts.start_test(path, details("a.py::test"))
    with open(f"{test}/transcript.jsonl", "w") as file:
        file.write('{"type": "note"}\n[1]\n{"type": "torn')
    open(f"{test}/x.cast", "w").close()
    with open(f"{test}/result.json", "w") as file:
        file.write('{"outcome": "pas')
    os.makedirs(f"{path}/tests/foreign")
    os.makedirs(tmp_path / "e2e" / "no-run")
    with open(f"{path}/tests/foreign/test.json", "w") as file:
        file.write('["node_id"]')
    with open(tmp_path / "e2e" / "no-run" / "run.json", "w") as file:
        file.write(f'{{"started_at": {10**400}}}')
    [run] = artifacts.runs(tmp_path / "e2e")
    [found] = run.tests()
    assert found.events() == [{"type": "note"}]
    assert (found.outcome, found.blocks(), found.transcript()) == (None, [], "")
    assert [recording.name for recording in found.recordings()] == ["x.cast"]
    assert artifacts.runs(tmp_path / "nowhere") == []
    assert artifacts.tests(tmp_path / "nowhere") == []


def test_recordings_come_in_the_order_of_their_start(tmp_path):
    test = artifacts.start_test(open_run(tmp_path / "e2e"), details("a.py::test"))
    for name, started_at in (("b", 1.5), ("a", 2.5)):
        open(f"{test}/{name}.cast", "w").close()
        artifacts.write_json(f"{test}/{name}.cast.json", {"started_at": started_at, "kind": "spawn", "number": 1})
    [found] = artifacts.runs(tmp_path / "e2e")[0].tests()
    assert [(r.name, r.kind, r.number, r.started_at) for r in found.recordings()] == [
        ("b.cast", "spawn", 1, 1.5),
        ("a.cast", "spawn", 1, 2.5),
    ]


def test_a_run_in_use_is_joined_and_a_finished_one_replaced(tmp_path):
    path, lock = artifacts.open_run(str(tmp_path / "e2e"), "r", run_id="one", details=lambda: DETAILS)
    artifacts.start_test(path, details("a.py::test"))
    _, other = artifacts.open_run(str(tmp_path / "e2e"), "r", run_id="two", details=lambda: DETAILS)
    assert len(artifacts.tests(path)) == 1
    os.close(lock)
    os.close(other)
    open_run(tmp_path / "e2e", run_id="three")
    assert artifacts.tests(path) == []
    open_run(tmp_path / "e2e", run_id="three")


def test_only_a_run_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(MngrError, match="is not a test run"):
        open_run(tmp_path, "mine")
    assert os.listdir(tmp_path / "mine") == ["file"]
    for name in ("", "..", "a/b", ".hidden", "x" * 101, "a\n"):
        with pytest.raises(UsageError):
            open_run(tmp_path, name)


def test_a_slug_can_be_read_and_belongs_to_one_test():
    ids = ["a/t.py::test_x", "b/t.py::test_x", "a/t.py::T::test_x", "t.py::test_x[a/b]", "t.py::test_x[a b]", "é.py::é"]
    slugs = [artifacts.slug_of(node_id) for node_id in ids]
    assert len(set(slugs)) == len(ids)
    assert slugs[0].startswith("t-test_x-") and slugs[2].startswith("t-T-test_x-")
    assert all(len(slug) < 100 and "/" not in slug for slug in [*slugs, artifacts.slug_of("t.py::" + "x" * 5000)])


def test_a_transcript_says_how_much_of_a_flood_is_left_out(tmp_path):
    transcript = Transcript(str(tmp_path))
    transcript.command(1, "flood", None, "/")
    for _ in range(1000):
        transcript.output(1, "stdout", "x" * 999 + "\n")
    transcript.exit(1, 0, 1.0, False)
    transcript.output(1, "stdout", "late\n")
    text = transcript.text()
    transcript.close()
    assert len(text) < 300_000
    assert text.endswith("# too much output: what this command still prints is left out\n")
    assert f"# {1_000_000 - 128 * 1024 - 32 * 1024:,} characters of stdout are left out here\n" in text
    transcript.note("after the end")
    assert "after" not in (tmp_path / "transcript.txt").read_text()


def test_an_event_line_holds_whatever_was_printed(tmp_path):
    transcript = Transcript(str(tmp_path))
    transcript.command(1, "x\ny", "one\ntwo", "/")
    transcript.output(1, "stderr", 'a\u2028"\\\x00\x1b\n\npart')
    transcript.close()
    lines = (tmp_path / "transcript.jsonl").read_text().split("\n")
    assert json.loads(lines[1])["text"] == 'a\u2028"\\\x00\x1b\n\npart'
    text = (tmp_path / "transcript.txt").read_text()
    assert text == '# one\n# two\n$ x\n> y\n! a\u2028"\\\x00\x1b\n! \n! part\n'
