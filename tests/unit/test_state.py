"""The one true state, decided from facts."""

import pytest

from mngr.agent.record import Record, timestamp
from mngr.agent.state import Facts, awaits_first_message, decide
from mngr.system.tmux import Pane
from tests.support.records import make_record

STARTED = 1_800_000_000.0
RECORD = make_record(
    id="agent-" + "0" * 32, name="a", kind="command", command="x", work_dir="/w", transfer="none", session="mngr-a",
    created_at=timestamp(STARTED - 1), started_at=timestamp(STARTED), boot_id="one",
)  # fmt: skip
PANE = Pane(RECORD.id, "mngr-a", "%1", 42, "/dev/pts/1", False, None, None, None, STARTED, False)
DEAD = PANE._replace(dead=True, died_at=STARTED + 5)
NOTHING = Facts(pane=None, panes_known=True, events=(), boot_id="one", creator_alive=False)


def event(type: str, **fields: object) -> dict[str, object]:
    return {"type": type, "timestamp": timestamp(STARTED + 3), "event_id": "evt-1", **fields}


def state(facts: Facts, record: Record = RECORD, *, from_events: bool = False) -> tuple[str, str]:
    status = decide(record, facts, from_events=from_events)
    return status.state, status.reason


@pytest.mark.parametrize(
    ("pane", "expected"),
    [
        (PANE, ("RUNNING", "")),
        (DEAD._replace(exit_code=0), ("DONE", "")),
        (DEAD._replace(exit_code=3), ("FAILED", "exit code 3")),
        (DEAD._replace(signal=9), ("FAILED", "killed by SIGKILL")),
        (DEAD._replace(exit_code=143), ("FAILED", "killed by SIGTERM")),
        (DEAD._replace(exit_code=255), ("FAILED", "exit code 255")),
        (DEAD, ("FAILED", "ended, exit code not known")),
    ],
)
def test_a_pane_tells_life_and_death(pane, expected):
    assert state(NOTHING._replace(pane=pane)) == expected


def test_the_noted_exit_code_counts_when_tmux_has_none_or_is_late():
    exited = [event("started"), event("exited", exit_code=3)]
    for pane in (None, PANE, DEAD):
        status = decide(RECORD, NOTHING._replace(pane=pane, events=exited), from_events=False)
        assert (status.state, status.exit_code, status.since) == ("FAILED", 3, STARTED + 3)


def test_a_stop_on_purpose_is_not_a_failure():
    stopped = RECORD.changed(stopped_at=timestamp(STARTED + 9), stop_reason="because")
    assert state(NOTHING._replace(events=[event("exited", exit_code=1)]), stopped) == ("STOPPED", "because")


def test_an_unanswered_question_is_not_an_answer():
    assert state(NOTHING._replace(panes_known=False)) == ("UNKNOWN", "tmux did not answer")


def test_a_session_that_vanished_is_told_from_a_restart():
    gone = decide(RECORD, NOTHING, from_events=False)
    assert (gone.state, gone.reason, gone.since) == ("FAILED", "its tmux session is gone", 0.0)
    assert state(NOTHING._replace(boot_id="two")) == ("STOPPED", "the machine restarted")


def test_a_creation_is_starting_while_its_creator_lives():
    unborn = RECORD.changed(started_at=None)
    assert state(NOTHING._replace(creator_alive=True), unborn) == ("STARTING", "being created")
    assert state(NOTHING, unborn) == ("FAILED", "its creation was interrupted")


def test_a_kind_that_reports_is_believed_while_its_process_lives():
    alive = NOTHING._replace(pane=PANE)
    assert state(alive, from_events=True) == ("STARTING", "not ready yet")
    told = [event("state", state="RUNNING", reason=""), event("state", state="BLOCKED", reason="question: why?")]
    assert state(alive._replace(events=told), from_events=True) == ("BLOCKED", "question: why?")
    dead = alive._replace(events=told, pane=DEAD._replace(exit_code=0))
    assert state(dead, from_events=True) == ("DONE", "")


def test_nonsense_in_events_is_passed_over():
    odd: list[dict[str, object]] = [event("state", state="DANCING"), {"type": "state"}, {"state": "WAITING"}, {}]
    assert state(NOTHING._replace(pane=PANE, events=odd), from_events=True) == ("STARTING", "not ready yet")


def test_the_first_message_is_awaited_until_it_is_acknowledged_or_for_two_minutes():
    events = [event("started", message_follows=True), event("message_delivered")]
    assert awaits_first_message(RECORD, events, STARTED + 9)
    assert not awaits_first_message(RECORD, [*events, event("message_acknowledged")], STARTED + 9)
    assert not awaits_first_message(RECORD.changed(driver="screen"), events, STARTED + 9)
    assert not awaits_first_message(RECORD, events, STARTED + 999)
    assert not awaits_first_message(RECORD, [event("started")], STARTED + 9)
