"""Outcome files, version 1: strict, and never a crash."""

import contextlib
import json
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


def wrong(**changed: Any) -> str:
    with pytest.raises(outcome.Wrong) as caught:
        outcome.parse(json.dumps({**GOOD, **changed}).encode(), TASK)
    return str(caught.value)


def test_a_good_file_is_read_whole() -> None:
    found = outcome.parse(json.dumps(GOOD).encode(), TASK)
    assert (found.status, found.before, found.after, found.summary) == ("done", "failed", "passed", "did it")
    assert found.changes == (outcome.Change("test", "a" * 40, "more", 2),)
    assert found.escalations[0].locations == (("src/a.py", 3),)


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
    ],
)
def test_a_file_that_is_no_outcome_is_said_to_be_so(data: bytes | None, words: str) -> None:
    with pytest.raises(outcome.Wrong, match=words):
        outcome.parse(data, TASK)


def test_every_wrong_value_is_named() -> None:
    assert "`schema` is `2`" in wrong(schema=2)
    assert "`schema` is `true`" in wrong(schema=True)
    assert "this task is `tests/test_a.py::test_b`" in wrong(task="tests/test_a.py::test_c")
    assert '`status` is `"fine"`, not one of `done`, `blocked`' in wrong(status="fine")
    assert "does not say why" in wrong(status="blocked")
    assert "`changes` is `{}`, not a list" in wrong(changes={})
    assert "`changes[0].commit` is" in wrong(changes=[{"kind": "test", "commit": "HEAD; rm -rf /"}])
    assert "`changes[0].kind` is" in wrong(changes=[{"kind": "magic", "commit": "a" * 40}])
    assert "importance" in wrong(changes=[{"kind": "test", "commit": "a" * 40, "importance": 99}])
    assert "`changes` has 500 entries" in wrong(changes=[{}] * 500)
    assert "`summary` has 30,000 characters" in wrong(summary="x" * 30_000)


@pytest.mark.parametrize("path", ["/etc/passwd", "../../secret", "a/../../b", "~/x"])
def test_a_place_outside_the_repository_is_refused(path: str) -> None:
    said = wrong(escalations=[{"kind": "bug", "summary": "x", "locations": [{"path": path}]}])
    assert "not inside the repository" in said


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner),
    )
)
def test_any_json_is_an_outcome_or_wrong(value: Any) -> None:
    for candidate in (value, {**GOOD, "changes": value}, {**GOOD, "escalations": value}, {**GOOD, "test": value}):
        with contextlib.suppress(outcome.Wrong):  # and nothing else
            assert outcome.parse(json.dumps(candidate).encode(), TASK).status in outcome.STATUSES


@given(st.binary(max_size=200))
def test_any_bytes_are_an_outcome_or_wrong(data: bytes) -> None:
    with pytest.raises(outcome.Wrong):
        outcome.parse(data, TASK)
