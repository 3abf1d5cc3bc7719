"""Ledger and fold: what a run's entries say, whatever is torn, unknown or out of place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import MngrError
from mngr.mapreduce import folding, naming
from mngr.mapreduce import run as runs
from mngr.mapreduce.folding import fold
from mngr.mapreduce.ledger import Ledger, fact
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import TaskState, Usage


def entry(type: str, at: int = 0, **data: Any) -> dict[str, Any]:
    return {"at": f"2026-01-01T00:00:{at:02d}.000000Z", "type": type, **data}


def of_one(*entries: dict[str, Any]) -> TaskState:
    begun = entry("task", task="a", slug="a", data={"k": 1})
    return fold([begun, *entries]).tasks["a"]


def attempt(type: str, number: int = 1, **data: Any) -> dict[str, Any]:
    return entry(type, task="a", number=number, **data)


INTENT = attempt("attempt", agent="r-a-1")
STARTED = attempt("started", agent_id="agent-1")
ENDED = attempt("ended", reason="outcome")
FAILED = attempt("ended", reason="crash", retry=True, retry_at=9.0)
COLLECTED = attempt("collected", data={"x": 1})
VERDICT = attempt("verdict", data={"ok": True})


@pytest.mark.parametrize(
    ("entries", "status"),
    [
        ([], "waiting"),
        ([INTENT], "launching"),
        ([INTENT, STARTED], "running"),
        ([INTENT, STARTED, ENDED], "collecting"),
        ([INTENT, STARTED, ENDED, COLLECTED], "checking"),
        ([INTENT, STARTED, ENDED, COLLECTED, VERDICT], "settled"),
        ([INTENT, STARTED, FAILED], "collecting"),
        ([INTENT, STARTED, FAILED, COLLECTED], "waiting"),
        ([INTENT, attempt("ended", reason="launch", retry=False)], "settled"),
        ([INTENT, attempt("ended", reason="launch", retry=True)], "waiting"),
        ([INTENT, STARTED, ENDED, COLLECTED, VERDICT, entry("retry", task="a")], "waiting"),
        ([INTENT, STARTED, entry("retry", task="a")], "running"),
        ([INTENT, STARTED, ENDED, COLLECTED, VERDICT, COLLECTED], "checking"),
        ([INTENT, STARTED, attempt("ended", reason="crash"), ENDED], "collecting"),
    ],
)
def test_a_task_is_where_its_last_attempt_is(entries: list[dict[str, Any]], status: str) -> None:
    assert of_one(*entries).status == status


def test_an_attempt_knows_everything_that_happened_to_it() -> None:
    task = of_one(
        INTENT,
        STARTED,
        attempt("state", state="RUNNING", reason=""),
        attempt("usage", input_tokens=1, output_tokens=2, cost_usd=0.5),
        attempt("usage", input_tokens=10, output_tokens=20, cost_usd=1.5),
        attempt("warned"),
        FAILED,
        COLLECTED,
        attempt("released"),
        attempt("attempt", number=2, agent="r-a-2"),
    )
    first, second = task.attempts
    assert (first.agent_id, first.state, first.ended, first.retry_at, first.released) == (
        "agent-1",
        "RUNNING",
        "crash",
        9.0,
        True,
    )
    assert first.warned_at is not None and first.nudged_at is None
    assert task.usage == Usage(10, 20, 0, 1.5)
    assert (second.number, second.goes_on, task.tries) == (2, True, 2)


@pytest.mark.parametrize(
    "odd",
    [
        attempt("attempt", number=3, agent="x"),
        attempt("ended", number=7, reason="crash"),
        entry("attempt", task="nobody", number=1, agent="x"),
        entry("started", task="a", number="1", agent_id="x"),
        entry("of-the-future", task="a"),
        {"type": "ended"},
        {"at": "yesterday", "type": "task", "task": "a", "slug": "other"},
    ],
)
def test_an_entry_that_fits_nothing_changes_nothing(odd: dict[str, Any]) -> None:
    before = fold([entry("task", task="a", slug="a"), INTENT])
    assert folding.apply(before, odd).tasks == before.tasks


def test_going_on_forgets_the_breaker_the_stop_and_the_end() -> None:
    ended = fold(
        [
            entry("run", 1, run="r", base="abc"),
            entry("phase", 2, name="map", status="began"),
            entry("phase", 3, name="map", status="ended", data={"n": 2}),
            entry("breaker", 4, stage="work", signature="s", example="e", tasks=["a"]),
            entry("stop", 5),
            entry("finished", 6, exit_code=5),
        ]
    )
    assert ended.facts == {"run": "r", "base": "abc"}
    assert ended.phases["map"].data == {"n": 2}
    assert ended.trip is not None and ended.trip.tasks == ("a",)
    assert ended.stopped_at is not None and ended.finished is not None
    again = folding.apply(ended, entry("resumed", 7))
    assert (again.trip, again.stopped_at, again.finished, again.phases) == (None, None, None, ended.phases)


def test_a_ledger_is_read_over_a_torn_line_and_written_after_it(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger.jsonl"))
    ledger.append(fact("run", run="r"), fact("task", task="a", slug="a"))
    with open(ledger.path, "ab") as file:
        file.write(b'{"at": "2026-01-01T00:00:00Z", "type": "attem')
    ledger.append(fact("stop"))
    assert [one["type"] for one in ledger.entries()] == ["run", "task", "stop"]


def test_what_is_noted_is_in_the_state_on_disk_and_heard(tmp_path: Path) -> None:
    run = runs.new(str(tmp_path), id="r", base="abc")
    heard: list[dict[str, Any]] = []
    with run.heard_by(heard.append):
        run.note_all([fact("task", task="a", slug="a"), fact("attempt", task="a", number=1, agent="r-a-1")])
    run.note("phase", name="map", status="began")
    assert [one["type"] for one in heard] == ["task", "attempt"]
    assert Run(run.directory).state == run.state
    assert run.state.tasks["a"].status == "launching"
    assert (tmp_path / ".mngr" / "runs" / ".gitignore").read_text() == "*\n"
    assert json.loads(Path(run.ledger.path).read_text().partition("\n")[0])["type"] == "run"


def test_runs_are_found_by_id_prefix_directory_and_age(tmp_path: Path) -> None:
    root = str(tmp_path)
    with pytest.raises(MngrError, match="has no runs"):
        runs.find(root)
    first = runs.new(root, id="b-first")
    second = runs.new(root, id="a-second")
    elsewhere = runs.new(root, directory=str(tmp_path / "out"))
    assert [runs.find(root).id, runs.find(root, "b-f").id, runs.find(root, "a-second").id] == [
        "a-second",
        "b-first",
        "a-second",
    ]
    assert runs.find(root, elsewhere.directory).id == elsewhere.id
    assert [first.directory, second.directory] == runs.all_of(root)
    for name, said in (("", "could be any"), ("c", "no run is called")):
        with pytest.raises(MngrError, match=said):
            runs.find(root, name)
    with pytest.raises(MngrError, match="not empty"):
        runs.new(root, id="a-second")


@given(st.lists(st.text(max_size=80), unique=True, max_size=30))
def test_slugs_are_unique_short_and_good_names(tasks: list[str]) -> None:
    taken: list[str] = []
    for task in tasks:
        taken.append(naming.slug_of(task, taken))
    assert len(set(taken)) == len(tasks)
    for slug in taken:
        name = naming.agent_name("261231-235959-ffff", slug, 999)
        assert name.endswith("-999") and slug in name


def test_a_slug_reads_like_its_task_and_stays_the_same() -> None:
    assert naming.slug_of("tests/test_a.py::test_b[x-1]") == "tests-test-a-py-test-b-x-1"
    long = "tests/deep/er/test_something.py::test_that_has_a_very_long_name_indeed"
    assert naming.slug_of(long) == naming.slug_of(long)
    assert naming.slug_of(long).startswith("that-has-a-very-long-name-indeed")
