"""Section "Looking at them" of the tutorial."""

import json
import re
from typing import Any

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agents, create, follow

DONE = "--command 'echo building; echo built'"


def test_watch_shows_every_change(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # stay and watch every change; C-c leaves
        mngr list --watch
    """)
    create(e2e, "hello")
    screen = e2e.spawn("mngr list --watch", columns=100)
    expect(screen).to_show(re.compile(r"hello +WAITING"), timeout=60)
    assert e2e.run("mngr message hello -m 'ask Which way?'").exit_code in (0, 7)
    expect(screen).to_show(re.compile(r"hello +BLOCKED .*question: Which way\?"), timeout=60)
    create(e2e, "second")
    expect(screen).to_show("second", timeout=60)
    screen.press("C-c")
    assert screen.wait_exit(60) == 0

    e2e.write_tutorial_block("""
        # the same for a script: every change as a line of JSON; C-c leaves
        mngr observe
    """)
    screen = e2e.spawn("mngr observe", columns=300, rows=40)
    expect(screen).to_show('"type":"AGENT_DISCOVERED"', timeout=60)
    expect(e2e.run("mngr stop second")).to_succeed()
    expect(screen).to_show('"type":"AGENT_CHANGED"', timeout=60)
    screen.press("C-c")
    assert screen.wait_exit(60) == 0


def test_who_needs_me(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # who needs me?
        mngr list --blocked --waiting
    """)
    create(e2e, "red", "green")
    create(e2e, "build", options="--command 'sleep 600'")
    expect(
        e2e.run("mngr message red -m 'ask Which colour?'; mngr wait red BLOCKED --timeout 60", timeout=90)
    ).to_succeed()
    expect(e2e.run("mngr wait green WAITING --timeout 60", timeout=90)).to_succeed()
    result = e2e.run("mngr list --blocked --waiting")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^red +BLOCKED").to_match(r"^green +WAITING").not_to_contain("build")


def test_those_of_a_team_or_a_project(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # only those of one team, or of one project
        mngr list --label team=web
        mngr list --project checkout
    """)
    create(e2e, "cart", options="--label team=web --project checkout")
    create(e2e, "other", options="--label team=data")
    for result in follow(e2e, block.commands):
        expect(result.stdout).to_match(r"^cart ").not_to_contain("other")


def test_a_filter(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # any question about agents is a filter; `mngr help filters` names the fields
        mngr list --include 'name.startsWith("try-") && state == "WAITING"'
    """)
    create(e2e, "try-1", "other")
    create(e2e, "try-2", options="--command 'sleep 600'")
    expect(e2e.run("mngr wait try-1 other WAITING --timeout 60", timeout=90)).to_succeed()
    (result,) = follow(e2e, block.commands)
    expect(result.stdout).to_match(r"^try-1 ").not_to_contain("try-2").not_to_contain("other")


def test_a_filter_that_cannot_be_read_is_a_usage_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # any question about agents is a filter; `mngr help filters` names the fields
        mngr list --include 'name.startsWith("try-") && state == "WAITING"'
    """)
    create(e2e, "try-1")
    result = e2e.run("""mngr list --include 'name.startsWith("try-" &&'""")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("error:").not_to_contain("Traceback")
    expect(result.stdout).to_be_empty()


def test_explain_names_the_evidence(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # why does it say so? This names the evidence
        mngr list --explain build
    """)
    create(e2e, "build", options="--command 'exit 4'")
    expect(e2e.run("mngr wait build FAILED --timeout 60", timeout=90)).to_succeed()
    result = e2e.run("mngr list --explain build")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("build is FAILED").to_contain("evidence:").to_contain("4")


def test_wait_until_done(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # wait for a command to end well; when it fails instead, so does this
        mngr wait build DONE --timeout 1m
    """)
    create(e2e, "build", options=DONE)
    result = e2e.run("mngr wait build DONE --timeout 1m", timeout=90)
    expect(result).to_succeed()
    expect(result.stdout).to_equal("build is DONE\n")


def test_wait_ends_at_once_when_it_can_no_longer_be_done(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # wait for a command to end well; when it fails instead, so does this
        mngr wait build DONE --timeout 1m
    """)
    create(e2e, "build", options="--command 'exit 3'")
    result = e2e.run("mngr wait build DONE --timeout 1m", timeout=90)
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("FAILED").to_contain("will not become DONE")


def test_wait_for_the_first_of_several(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or continue as soon as the first of several is ready
        mngr wait try-1 try-2 try-3 --any --timeout 1m
    """)
    create(e2e, "try-1", "try-3", options="--command 'sleep 600'")
    create(e2e, "try-2", options=DONE)
    result = e2e.run("mngr wait try-1 try-2 try-3 --any --timeout 1m", timeout=90)
    expect(result).to_succeed()
    expect(result.stdout).to_contain("try-2 is DONE")
    assert agents(e2e)["try-1"]["state"] == "RUNNING"


def test_the_screen_as_text(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # what is on its screen?
        mngr capture build
    """)
    create(e2e, "build", options=DONE)
    expect(e2e.run("mngr wait build DONE --timeout 60", timeout=90)).to_succeed()
    expect(e2e.run("mngr capture build").stdout).to_match(r"\Abuilding\nbuilt\s*\Z")


def test_a_recording(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # record a terminal from its first byte to its last, for `asciinema play` and web pages
        mngr create movie --no-connect --record --command 'echo action; sleep 1; echo cut'
        mngr wait movie DONE --timeout 1m
        mngr capture movie --cast ~/movie.cast
    """)
    follow(e2e, block.commands)
    header, moments = cast((e2e.home / "movie.cast").read_text())
    assert header["version"] == 2
    shown = "".join(data for _, kind, data in moments if kind == "o")
    assert shown.index("action") < shown.index("cut")


def test_a_recording_has_the_time_between_two_moments(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # record a terminal from its first byte to its last, for `asciinema play` and web pages
        mngr create movie --no-connect --record --command 'echo action; sleep 1; echo cut'
        mngr wait movie DONE --timeout 1m
        mngr capture movie --cast ~/movie.cast
    """)
    create(e2e, "movie", options="--record --command 'echo action; until [ -e go ]; do sleep 0.1; done; echo cut'")
    taped = "mngr capture movie --cast -"
    expect(lambda: e2e.run(taped, comment="until the first is on tape").stdout).to_contain("action", timeout=60)
    expect(e2e.run("mngr exec movie 'sleep 1; touch go' && mngr wait movie DONE --timeout 60", timeout=90)).to_succeed()
    _, moments = cast(e2e.run(taped).stdout)
    action, cut = (next(at for at, _, data in moments if word in data) for word in ("action", "cut"))
    assert cut - action >= 1


def cast(text: str) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    """The header and the moments of a recording."""
    header, *lines = text.splitlines()
    return json.loads(header), [json.loads(line) for line in lines]


def test_what_was_not_recorded_is_said(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # record a terminal from its first byte to its last, for `asciinema play` and web pages
        mngr create movie --no-connect --record --command 'echo action; sleep 1; echo cut'
        mngr wait movie DONE --timeout 1m
        mngr capture movie --cast ~/movie.cast
    """)
    create(e2e, "movie", options=DONE)
    result = e2e.run("mngr capture movie --cast ~/movie.cast", comment="made without --record")
    expect(result).to_fail()
    expect(result.stderr).to_contain("--record")
    expect(e2e.home / "movie.cast").not_to_exist()


def test_events_and_those_to_come(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # what happened to it, in order
        mngr event add-tests --tail 5
    """)
    e2e.write_tutorial_block("""
        # and what happens from now on, one line of JSON each; C-c leaves
        mngr event add-tests --follow --format jsonl
    """)
    create(e2e, "add-tests")
    expect(e2e.run("mngr message add-tests -m 'say Looking.'; mngr wait add-tests", timeout=90)).to_succeed()
    result = e2e.run("mngr event add-tests --tail 5")
    assert len(result.stdout.splitlines()) == 5
    expect(result.stdout).to_contain("message_delivered").to_contain("message_acknowledged")

    screen = e2e.spawn("mngr event add-tests --follow --format jsonl", columns=300, rows=40)
    expect(screen).to_show('"type":"message_acknowledged"', timeout=60)
    expect(e2e.run("mngr message add-tests -m 'say And now this.'")).to_succeed()
    expect(screen).to_show('"text":"say And now this."', timeout=60)
    assert screen.exit_code is None
    screen.press("C-c")
    assert screen.wait_exit(60) == 0


def test_the_conversation(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # the conversation, or only the last thing it said
        mngr transcript add-tests
        mngr transcript add-tests --role assistant --tail 1
    """)
    create(e2e, "add-tests", options="--message 'say First.'")
    expect(e2e.run("mngr message add-tests -m 'say Second.'; mngr wait add-tests", timeout=90)).to_succeed()
    whole, last = follow(e2e, block.commands)
    expect(whole.stdout).to_match(r"(?s)user\s+say First\..*assistant\s+First\..*assistant\s+Second\.")
    expect(last.stdout).to_contain("Second.").not_to_contain("First.")


def test_what_it_cost(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # what did it cost? Programs say what they use, and models have prices; this one is told what to say
        mngr message add-tests -m 'usage input=52000 output=1800 cache_read=120000 model=claude-sonnet-4-5'
        mngr wait add-tests
        mngr usage
    """)
    create(e2e, "add-tests", "idle")
    *_, table = follow(e2e, block.commands)
    # 52,000 at 3, 120,000 at 0.30 and 1,800 at 15 dollars per million
    expect(table.stdout).to_match(r"^add-tests +1 +52,000 +120,000 +0 +1,800 +\$0\.22$")
    expect(table.stdout).to_match(r"^total .* \$0\.22$").not_to_contain("idle")


def test_what_it_cost_by_model_with_those_that_are_gone(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # the same by model, project, type or day; agents that were destroyed meanwhile are counted too
        mngr usage --by model --since 7d
    """)
    create(e2e, "one", options="--message 'usage input=10 output=5 cost=1.50 model=big'")
    create(e2e, "two", options="--message 'usage input=20 output=5 cost=0.25 model=big'")
    create(e2e, "three", options="--message 'usage input=30 model=house-model'")
    expect(e2e.run("mngr wait one two three --timeout 60", timeout=90)).to_succeed()
    expect(e2e.run("mngr destroy one", comment="what it used stays in the books")).to_succeed()
    (table,) = follow(e2e, block.commands)
    expect(table.stdout).to_match(r"^MODEL .* COST +UNPRICED$").to_match(r"^big +2 +30 .* \$1\.75 +0$")
    expect(table.stdout).to_match(r"^house-model +1 +30 .* unknown +1$").to_match(r"^total +3 .* \$1\.75 +1$")
    expect(table.stderr).to_contain("1 answer by models without a known price")
