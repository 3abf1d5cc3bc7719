"""Outcome files, version 1: every sensible spelling is accepted, and nothing is a crash."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.tmr import outcome

TASK = "tests/test_a.py::test_b"
GOOD: dict[str, Any] = {
    "schema": 1,
    "task": TASK,
    "status": "done",
    "changes": [{"kind": "test", "commit": "a" * 40, "summary": "more", "importance": 2}],
    "test": {"before": "failed", "after": "passed"},
    "escalations": [{"kind": "bug", "summary": "odd", "locations": [{"path": "src/a.py", "line": 3}], "evidence": "x"}],
    "summary": "did it",
}


def read(**changed: Any) -> outcome.Outcome:
    return outcome.parse(json.dumps({**GOOD, **changed}).encode(), TASK, "/home/me/dir")


def change(**values: Any) -> outcome.ClaimedChange:
    return read(changes=[{"kind": "test", "commit": "a" * 40, **values}]).changes[0]


def test_a_good_file_is_read_whole() -> None:
    found = outcome.parse(json.dumps(GOOD).encode(), TASK)
    assert (found.status, found.before, found.after, found.summary) == ("done", "failed", "passed", "did it")
    assert found.changes == (outcome.ClaimedChange("test", "a" * 40, "more", 2),)
    assert found.escalations[0].locations == (("src/a.py", 3),)
    assert found.notes == ()


def test_unknown_keys_are_ignored() -> None:
    assert outcome.parse(json.dumps({**GOOD, "mood": "fine"}).encode(), TASK).status == "done"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "no outcome file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b"x" * (outcome.MAX_BYTES + 1), "bytes, more than"),
        (b"[]", "not an object"),
        (b'{"schema": 9}', "neither `status` nor `summary`"),
    ],
)
def test_a_file_that_says_nothing_is_unreadable(data: bytes | None, words: str) -> None:
    with pytest.raises(outcome.UnreadableOutcome, match=words):
        outcome.parse(data, TASK)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("done", "done"),
        ("Done ", "done"),
        ("completed", "done"),
        ("fixed", "done"),
        ("BLOCKED", "blocked"),
        ("failed", "blocked"),
        (None, "done"),
        (7, "done"),
        ("fine", "done"),
    ],
)
def test_a_status_in_other_words_is_understood(given: Any, taken: str) -> None:
    found = read(status=given)
    assert found.status == taken
    assert any("`status`" in note for note in found.notes) is (given not in ("done", "Done ", "BLOCKED"))


def test_a_blocked_agent_without_a_reason_keeps_its_summary_as_one() -> None:
    assert read(status="blocked").blocked_reason == "did it"
    assert read(status=None, blocked={"reason": "no network", "needs": None}).status == "blocked"
    assert read(blocked="no network").blocked_reason == "no network"
    assert read(blocked=False).blocked_reason == ""


@pytest.mark.parametrize(
    ("given", "taken"),
    [(3, 3), ("4", 4), (3.5, 4), ("high", 4), ("5/5", 5), (99, 5), (-1, 0), (None, 0), (True, 0), ({}, 0)],
)
def test_an_importance_in_any_form_is_a_number(given: Any, taken: int) -> None:
    assert change(importance=given).importance == taken


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("a" * 7, "a" * 7),
        ("AB" * 20, "ab" * 20),
        ("commit " + "b" * 40, "b" * 40),
        ("HEAD", ""),
        (None, ""),
        (7, ""),
        ("HEAD; rm -rf /", ""),
    ],
)
def test_a_commit_is_an_id_or_nothing(given: Any, taken: str) -> None:
    assert change(commit=given).commit == taken


def test_odd_values_are_noted_and_the_rest_is_kept() -> None:
    assert change(kind="tests").kind == "test"
    assert change(kind="chore").kind == change(kind=None).kind == "other"
    assert read(changes=None).changes == read(changes=7).changes == ()
    assert [one.summary for one in read(changes=["fixed a", {"summary": "b"}]).changes] == ["fixed a", "b"]
    assert (read(test=None).before, read(test={"before": False, "after": True}).after) == ("", "passed")
    assert read(summary=None).summary == "" and len(read(summary="x" * 30_000).summary) == 20_000
    assert len(read(changes=[{}] * 500).changes) == 200
    notes = read(schema="1", task="other", changes=[{"kind": "magic", "commit": "HEAD", "importance": "4"}]).notes
    assert notes == (
        '`schema` is `"1"`: not `1`',
        f'`task` is `"other"`: not `"{TASK}"`',
        '`changes[0].kind` is `"magic"`: taken as `other`',
        '`changes[0].commit` is `"HEAD"`: not the id of a commit',
        '`changes[0].importance` is `"4"`: taken as 4',
    )


def test_a_fence_and_a_byte_order_mark_are_passed_over() -> None:
    data = json.dumps(GOOD).encode()
    assert outcome.parse(b"```json\n" + data + b"\n```\n", TASK).summary == "did it"
    assert outcome.parse(b"\xef\xbb\xbf" + data, TASK).summary == "did it"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"path": "a.py", "line": "3"}, ("a.py", 3)),
        ("a.py:3", ("a.py", 3)),
        ("a.py", ("a.py", 0)),
        ({"path": "/home/me/dir/src/a.py", "line": None}, ("src/a.py", 0)),
        ({"path": "a.py", "line": "x"}, ("a.py", 0)),
    ],
)
def test_a_place_is_a_file_of_the_repository(given: Any, taken: tuple[str, int]) -> None:
    assert read(escalations=[{"summary": "x", "locations": [given]}]).escalations[0].locations == (taken,)


@pytest.mark.parametrize("path", ["/etc/passwd", "../../secret", "a/../../b", "~/x", "/home/me/dir/../x", ""])
def test_a_place_outside_the_repository_is_left_out(path: str) -> None:
    found = read(escalations=[{"kind": "bug", "summary": "x", "locations": [{"path": path}]}])
    assert found.escalations[0].locations == () and "not inside the repository" in found.notes[-1]


def test_the_file_of_this_module_checks_an_outcome_where_mngr_is_not_installed(tmp_path: Path) -> None:
    file = tmp_path / "outcome.json"

    def check() -> tuple[int, str]:
        env = {"MNGR_OUTCOME_FILE": str(file), "MNGR_TASK": TASK}
        done = subprocess.run(
            [sys.executable, "-IS", outcome.__file__], env=env, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert check()[0] == 1
    file.write_text('{"status": "done" or "blocked"}')
    assert check()[0] == 1 and "not JSON" in check()[1]
    file.write_text(json.dumps({**GOOD, "status": "fine"}))
    assert check() == (0, 'note: `status` is `"fine"`: taken as `done`\nok: status done, 1 changes\n')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner),
    )
)
def test_any_json_is_an_outcome_or_unreadable(value: Any) -> None:
    for candidate in (value, {**GOOD, "changes": value}, {**GOOD, "escalations": value}, {**GOOD, "test": value}):
        with contextlib.suppress(outcome.UnreadableOutcome):  # and nothing else
            assert outcome.parse(json.dumps(candidate).encode(), TASK).status in outcome.STATUSES


@given(st.binary(max_size=200))
def test_any_bytes_are_an_outcome_or_unreadable(data: bytes) -> None:
    with pytest.raises(outcome.UnreadableOutcome):
        outcome.parse(data, TASK)
