"""What a user is told of the other machines of a run."""

from typing import Any

from mngr.agent.record import timestamp
from mngr.cli.tmr import progress
from mngr.mapreduce.ledger_fold import fold
from mngr.report.tmr_rows import overview
from mngr.report.tmr_suite import ReportData
from mngr.tmr.run_view import view
from mngr.tmr.words import log_lines
from mngr.tmr.words.host_words import host_line, host_rows
from mngr.tmr.words.summary import rows, summary

AT = 1_700_000_000
FIRST, SECOND = {"task": "a", "number": 1}, {"task": "a", "number": 2}


def entry(type: str, **data: Any) -> dict[str, Any]:
    return {"at": timestamp(AT), "type": type, **data}


def host(name: str, state: str, **more: Any) -> dict[str, Any]:
    return entry("host", name=name, provider="farm", state=state, **more)


GONE = entry("ended", **FIRST, reason="host-lost", because="`box1` did not answer for 20 s", retry=True)
CUT = host("box1", "unreached", because="`box1` refuses connections")
ENTRIES = [
    *(entry("run", run="r"), host("box1", "ready"), host("box2", "ready")),
    *(entry("task", task="a", slug="slug-a", data={}), entry("attempt", **FIRST, agent="r-a-1", host="box1")),
    *(entry("started", **FIRST, agent_id="id1"), CUT, GONE),
    *(entry("attempt", **SECOND, agent="r-a-2", host="box2"), entry("started", **SECOND, agent_id="id2")),
    entry("state", **SECOND, state="RUNNING", reason=""),
]


def test_each_host_has_a_line_that_says_what_became_of_it() -> None:
    lines = {one["host"]: host_line(one) for one in host_rows(fold(ENTRIES))}
    assert lines == {
        "box1": "does not answer: `box1` refuses connections; 1 agent; 1 task moved to other hosts",
        "box2": "1 agent, 1 at work",
    }
    after = fold([*ENTRIES, host("box1", "lost", because="no such pod"), host("box2", "destroyed")])
    assert [host_line(one) for one in host_rows(after)] == [
        "is gone: no such pod; 1 agent; 1 task moved to other hosts",
        "destroyed after 1 agent",
    ]
    assert host_line(host_rows(fold([*ENTRIES, host("box1", "ready", back=True)]))[0]) == "1 agent"
    refused = host("box3", "destroyed", because="no room")
    assert host_line(host_rows(fold([*ENTRIES, refused]))[2]) == "could not be created: no room"
    assert log_lines.line(refused, fold(ENTRIES)) == "host `box3` could not be created: no room"


def test_the_row_of_a_task_names_its_host_and_those_that_were_lost_under_it() -> None:
    state = fold(ENTRIES)
    (found,) = rows(view(state))
    assert (found["host"], found["lost_hosts"]) == ("box2", ["box1"])
    assert [one["state"] for one in summary(state)["hosts"]] == ["unreached", "ready"]


def test_the_lines_of_a_run_name_hosts() -> None:
    state = fold(ENTRIES)
    assert log_lines.line(ENTRIES[-2], state) == "slug-a: started on `box2` (attempt 2)"
    assert log_lines.line(GONE, state) == (
        "slug-a: `box1` did not answer for 20 s; will be tried again on another host"
    )
    assert log_lines.line(CUT, state) == "host `box1` does not answer, no new agents there: `box1` refuses connections"
    assert log_lines.line(host("box1", "ready"), state) == ""
    assert log_lines.line(host("box1", "ready", back=True), state) == "host `box1` answers again"


def test_the_picture_and_the_first_page_show_hosts() -> None:
    state = fold(ENTRIES)
    lines = progress.picture(state, progress.LiveFacts(), now=AT + 1, width=200)
    assert any(line.startswith("  slug-a  box2  RUNNING") for line in lines)
    assert any(line.startswith("host box1 does not answer") for line in lines)
    found = overview(ReportData(view(state), told=({**CUT, "at": AT},)))
    assert found["hosts"][0]["name"] == "box1" and found["tasks"][0]["host"] == "box2"
    assert [one["text"] for one in found["log"]] == [log_lines.line(CUT, state)]
