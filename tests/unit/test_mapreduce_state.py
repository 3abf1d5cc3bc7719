"""Ledger and fold: what a run's entries say, whatever is torn, unknown or out of place."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agent.record import seconds_of
from mngr.errors import MngrError
from mngr.mapreduce import ledger_fold, task_names
from mngr.mapreduce import run as runs
from mngr.mapreduce.ledger import Ledger, fact
from mngr.mapreduce.ledger_fold import fold
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import AttemptUsage, TaskState
from mngr.tmr import plan


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
    assert task.usage == AttemptUsage(10, 20, 0, 1.5)
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
    assert ledger_fold.fold([odd], before).tasks == before.tasks


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
    again = ledger_fold.fold([entry("resumed", 7)], ended)
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
def test_slugs_of_tasks_are_unique_short_and_good_names(tasks: list[str]) -> None:
    slugs = plan.slugs(tasks)
    assert len(set(slugs.values())) == len(tasks)
    for slug in slugs.values():
        name = task_names.agent_name("261231-235959-ffff", slug, 999)
        assert name.endswith("-999") and slug in name


def test_an_attempt_that_is_started_again_is_the_same_one_and_its_pause_does_not_count() -> None:
    begun = [INTENT, STARTED, {**FAILED, "at": entry("", 10)["at"]}, COLLECTED, attempt("released")]
    again = {**attempt("restarted", counts=True), "at": entry("", 30)["at"]}
    task = of_one(*begun, again)
    (only,) = task.attempts
    assert (task.status, task.tries, only.restarts, only.goes_on, only.released) == ("launching", 2, 1, True, False)
    assert (only.collected, only.earlier) == (None, {"x": 1})
    assert [end - start for start, end in only.paused] == [20]
    assert of_one(*begun, again, STARTED).status == "running"
    gone = of_one(
        *begun, again, attempt("ended", reason="launch", restartable=False), attempt("collected", error="gone")
    )
    assert gone.last is not None and gone.last.collected == {"x": 1}, "what was collected before is not lost"
    assert not gone.last.restartable
    halted = of_one(*begun, attempt("restarted", counts=False))
    assert halted.tries == 1
    asked = of_one(*begun, entry("retry", task="a", message="so"), again)
    assert (asked.tries, asked.status, asked.last and asked.last.message) == (1, "launching", "so")
    new = of_one(*begun, entry("retry", task="a", message="so"), attempt("attempt", number=2, agent="r-a-2"))
    assert (new.last and new.last.message, new.message) == ("so", "")


def test_what_failed_is_not_final_and_a_resume_tries_it_again() -> None:
    failing = [INTENT, STARTED, ENDED, attempt("uncollected", error="disk", again_at=99.0)]
    task = of_one(*failing)
    assert task.last is not None
    assert (task.status, task.last.collect_at, task.last.given_up) == ("collecting", 99.0, False)
    given_up = of_one(*failing, attempt("uncollected", error="disk", again_at=None))
    assert given_up.last is not None and given_up.last.given_up and given_up.last.collect_tries == 2
    again = of_one(*failing, attempt("uncollected", error="disk", again_at=None), entry("resumed"))
    assert again.last is not None and (again.last.given_up, again.last.collect_tries) == (False, 0)
    unchecked = [INTENT, STARTED, ENDED, COLLECTED, attempt("verdict", data={"failure": "x"}, again_at=None)]
    assert of_one(*unchecked).status == "checking"
    assert of_one(*unchecked, VERDICT).status == "settled"
    unreleased = of_one(INTENT, STARTED, ENDED, COLLECTED, VERDICT, attempt("unreleased", error="x", again_at=9.0))
    assert (unreleased.status, unreleased.over) == ("settled", False)
    old = of_one(INTENT, STARTED, ENDED, attempt("collected", data={}, error="disk"))
    assert old.status == "checking", "an older ledger says that this is final"
    gone = of_one(INTENT, STARTED, attempt("ended", reason="outcome"), attempt("lost", because="x", retry=True))
    assert (gone.status, gone.attempts[0].ended) == ("waiting", "host-lost")
    lost = of_one(INTENT, STARTED, attempt("ended", reason="host-lost", retry=True))
    assert lost.status == "waiting"
    assert (
        of_one(INTENT, STARTED, attempt("ended", reason="host-lost", retry=True), attempt("back")).status == "running"
    )


def test_time_without_an_orchestrator_is_a_gap_and_a_limit_is_a_pause() -> None:
    entries = [
        entry("run", 1, run="r"),
        entry("task", 5, task="a"),
        entry("resumed", 40),
        entry("gap", 50, since=seconds_of(entry("", 44)["at"])),
    ]
    found = fold(entries)
    assert [round(end - start) for start, end in found.gaps] == [35, 6]
    assert fold([entry("run", 1, run="r")]).gaps == ()
    limited = [
        {**attempt("state", state="BLOCKED", reason="rate limit: retry in 9 s", until=19.0), "at": entry("", 10)["at"]},
        {**attempt("state", state="RUNNING", reason=""), "at": entry("", 25)["at"]},
    ]
    last = of_one(INTENT, STARTED, *limited).last
    assert last is not None and [end - start for start, end in last.paused] == [15]


def test_an_override_takes_the_place_of_what_the_run_was_begun_with() -> None:
    begun = entry("run", run="r", limits={"budget_usd": 1, "max_agents": 3}, workers={"type": "x"})
    found = fold([begun, entry("override", limits={"budget_usd": 5})])
    assert found.facts["limits"] == {"budget_usd": 5, "max_agents": 3} and found.facts["workers"] == {"type": "x"}
    task = of_one(INTENT, STARTED, FAILED, entry("override", workers={"type": "y"}))
    assert task.last is not None and not task.last.restartable, "the next agent is of the new type"
