"""What is said of tasks whose work could not be had or measured: a row like any other."""

import time
from typing import Any

from mngr.agent.record import timestamp
from mngr.cli.tmr import progress
from mngr.mapreduce.ledger_fold import fold
from mngr.mapreduce.state import RunState
from mngr.tmr.branch.delivery import verified
from mngr.tmr.run_view import TaskView, view
from mngr.tmr.words import log_lines
from mngr.tmr.words.summary import doing, remedy, row, summary

ABOUT = {"task": "a", "number": 1}


def entry(type: str, **data: Any) -> dict[str, Any]:
    return {"at": timestamp(1_700_000_000), "type": type, **data}


def ended(*more: dict[str, Any]) -> RunState:
    begun = [
        entry("run", run="r"),
        entry("task", task="a", slug="slug-a", data={}),
        entry("attempt", **ABOUT, agent="r-a-1"),
        entry("started", **ABOUT, agent_id="id"),
        entry("ended", **ABOUT, reason="outcome", because="done"),
    ]
    return fold([*begun, *more])


def task_of(state: RunState) -> TaskView:
    (task,) = view(state).tasks
    return task


def test_work_that_could_not_be_measured_is_a_failed_row_and_is_not_integrated() -> None:
    tip = {"tip": "c" * 40, "outcome": None}
    for collected, error in ((tip, "no space left"), ({}, "")):
        got = entry("collected", **ABOUT, data=collected, error="" if collected else "its agent is gone")
        state = ended(got, entry("verdict", **ABOUT, data={}, error=error))
        found = row(task_of(state))
        assert (found["status"], found["verdict"]) == ("settled", "failed")
        assert found["why"] == (error or "its agent is gone")
        assert verified(task_of(state)) is None


def test_every_entry_about_such_a_task_has_words() -> None:
    state = ended()
    lost = entry("verdict", **ABOUT, data={}, error="no space left")
    assert log_lines.line(lost, state) == "slug-a: failed, no space left"
    deaf = entry("decision", **ABOUT, what="`r-a-1` could not be told: it is blocked", because="warning")
    assert log_lines.line(deaf, state) == "slug-a: `r-a-1` could not be told: it is blocked (warning)"


def test_the_picture_shows_what_agents_say_without_obeying_it() -> None:
    state = fold(
        [
            *(entry("run", run="r"), entry("task", task="a", slug="slug-a", data={})),
            *(entry("attempt", **ABOUT, agent="r-a-1"), entry("started", **ABOUT, agent_id="id")),
            entry("state", **ABOUT, state="BLOCKED", reason="allow \x1b[2J this?"),
        ]
    )
    lines = progress.picture(state, progress.LiveFacts(decision="\x1b]0;owned\x07"), now=1_700_000_001, width=100)
    assert any("allow" in line for line in lines) and "\x1b" not in "".join(lines)


def begun(task: str) -> list[dict[str, Any]]:
    about = {"task": task, "number": 1}
    made = entry("task", task=task, slug=f"slug-{task}", data={})
    return [made, entry("attempt", **about, agent=f"r-{task}-1"), entry("started", **about, agent_id=f"id-{task}")]


def test_what_concerns_all_agents_is_said_with_what_to_do() -> None:
    until = 1_700_010_000.0
    reason = "rate limit: retry at 2023-11-15T01:00:00Z: it resets later"
    waits = fold([entry("run", run="r"), entry("waits", until=until, because=reason)])
    clock = time.strftime("%H:%M", time.localtime(until))
    (said,) = log_lines.standing(waits, until - 5)
    assert said == f"all agents wait until {clock}: rate limit: it resets later"
    two = fold([fact for task in "ab" for fact in begun(task)], waits)
    limited = entry("state", task="a", number=1, state="BLOCKED", reason=reason, until=until)
    one = fold([limited], two)
    (said,) = log_lines.standing(one, until - 5)
    assert said == f"1 of 2 agents wait until {clock}, and no other one is started: rate limit: it resets later"
    assert [task.why for task in view(one).tasks] == [reason, ""]
    (said,) = log_lines.standing(fold([{**limited, "task": "b"}], one), until - 5)
    assert said.startswith("all agents wait until")
    assert list(log_lines.standing(waits, until + 1)) == [] and summary(waits)["waits_until"] == until
    out = fold([entry("run", run="r"), entry("paused", because="login: expired")])
    assert list(log_lines.standing(out, until)) == ["paused: login: expired"]
    assert (doing(out, False), summary(out)["paused"], remedy(out)) == (
        "paused",
        "login: expired",
        "`mngr tmr resume r`",
    )
    assert doing(fold([entry("paused", because="")], out), False) == "broken off"
    trip = entry("breaker", stage="work", signature="x", example="blocked: permission: Bash: pytest", tasks=["a", "b"])
    blocked = fold([entry("run", run="r", workers={"permissions": "edits"}), trip])
    assert "`mngr tmr resume r --permissions " in remedy(blocked)


def test_a_task_whose_agent_waits_says_why() -> None:
    reason = "rate limit: retry at 2026-11-18T04:25:00Z: resets 4:25am"
    begun = [
        entry("run", run="r"),
        entry("task", task="a", slug="slug-a", data={}),
        entry("attempt", **ABOUT, agent="x"),
    ]
    started = entry("started", **ABOUT, agent_id="id")
    seen = entry("state", **ABOUT, state="BLOCKED", reason=reason, until=2e9)
    found = row(task_of(fold([*begun, started, seen])))
    assert (found["verdict"], found["why"]) == ("running", reason)
    assert task_of(ended(seen)).why == "done"


def test_an_agent_that_could_not_be_stopped_or_collected_is_named() -> None:
    stuck = entry("uncollected", **ABOUT, error="disk is full", again_at=None)
    state = ended(stuck)
    found = row(task_of(state))
    assert (found["status"], found["verdict"], found["why"]) == ("collecting", "failed", "disk is full")
    assert log_lines.line(stuck, state) == "slug-a: could not be collected, will be tried again: disk is full"
    runs_on = ended(entry("collected", **ABOUT, data={"x": 1}), entry("unreleased", **ABOUT, error="x", again_at=None))
    assert summary(runs_on)["not_stopped"] == ["r-a-1"]


def test_time_in_which_nobody_worked_on_a_run_is_not_counted() -> None:
    at = [{"at": timestamp(1_700_000_000 + seconds)} for seconds in (0, 90, 7200, 7230, 9000)]
    kinds = ("run", "finished", "resumed", "finished", "phase")
    more: list[dict[str, Any]] = [
        {"run": "r"},
        {"exit_code": 0},
        {},
        {"exit_code": 0},
        {"name": "x", "status": "ended"},
    ]
    state = fold([{**when, "type": kind, **data} for when, kind, data in zip(at, kinds, more, strict=True)])
    assert summary(state)["seconds"] == 120
