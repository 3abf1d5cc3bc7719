"""Section "Talking to them" of the tutorial."""

import json
import re

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, create, follow, rest, said


def test_a_message(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a message is delivered once and confirmed
        mngr message fix-login --message 'say I am on it.'
    """)
    create(e2e, "fix-login")
    result = e2e.run("mngr message fix-login --message 'say I am on it.'")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("fix-login: acknowledged\n")
    assert said(e2e, "fix-login") == ["I am on it."]


def test_a_message_to_a_stopped_agent_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a message is delivered once and confirmed
        mngr message fix-login --message 'say I am on it.'
    """)
    create(e2e, "fix-login")
    expect(e2e.run("mngr stop fix-login")).to_succeed()
    result = e2e.run("mngr message fix-login --message 'say I am on it.'")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("STOPPED").to_contain("hint:")


def test_a_message_to_nobody_names_the_nearest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a message is delivered once and confirmed
        mngr message fix-login --message 'say I am on it.'
    """)
    create(e2e, "fix-login")
    result = e2e.run("mngr message fix-logn --message 'say I am on it.'")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("no agent named `fix-logn`").to_contain("`fix-login`")
    assert said(e2e, "fix-login") == []


def test_a_message_to_several(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # the same to several; short names do too
        mngr msg red green blue -m 'say Good morning.'
    """)
    create(e2e, "red", "green", "blue")
    result = e2e.run("mngr msg red green blue -m 'say Good morning.'")
    expect(result).to_succeed()
    for name in ("red", "green", "blue"):
        expect(result.stdout).to_contain(f"{name}: acknowledged")
        assert said(e2e, name) == ["Good morning."]


def test_one_that_cannot_be_reached_does_not_keep_it_from_the_others(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # the same to several; short names do too
        mngr msg red green blue -m 'say Good morning.'
    """)
    create(e2e, "red", "green", "blue")
    expect(e2e.run("mngr stop green")).to_succeed()
    result = e2e.run("mngr msg red green blue -m 'say Good morning.'")
    expect(result).to_have_exit_code(3)
    expect(result.stderr).to_contain("`green`")
    assert said(e2e, "red") == said(e2e, "blue") == ["Good morning."]


def test_what_is_piped_in_is_the_message(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # what you pipe in is the message
        git log --max-count 1 --patch | mngr message fix-login
    """)
    create(e2e, "fix-login")
    expect(e2e.run("git log --max-count 1 --patch | mngr message fix-login")).to_succeed()
    expect(e2e.run("mngr wait fix-login", timeout=90)).to_succeed()
    sent = e2e.run("mngr transcript fix-login --role user --format jsonl")
    text = json.loads(sent.stdout)["text"]
    expect(text).to_contain("Open the shop").to_contain('+print("welcome to the shop")')


def test_a_question_is_answered(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # an agent that has a question is BLOCKED until somebody answers
        mngr message red -m 'ask Which colour shall it be?'
        mngr wait red BLOCKED --timeout 1m
        mngr message red -m 'a dark one'
    """)
    create(e2e, "red")
    ask, *rest = block.commands
    asked = e2e.run(ask)
    expect(asked.stdout).to_equal("red: acknowledged\n")
    assert asked.exit_code in (0, 7), "7 if it asked before the message was confirmed"
    waited, _ = follow(e2e, rest)
    expect(waited.stdout).to_equal("red is BLOCKED: question: Which colour shall it be?\n")
    expect(e2e.run("mngr wait red WAITING --timeout 60", timeout=90)).to_succeed()
    words = e2e.run("mngr transcript red --role user --format jsonl").stdout
    assert [json.loads(line)["text"] for line in words.splitlines()][-1] == "a dark one"


def test_a_message_by_filter(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # reach all that match a filter
        mngr message --include 'labels.team == "web"' -m 'say Lunch!'
    """)
    create(e2e, "cart", options="--label team=web")
    create(e2e, "other")
    follow(e2e, block.commands)
    assert said(e2e, "cart") == ["Lunch!"]
    assert said(e2e, "other") == []


def test_a_stopped_one_is_started_for_a_message(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a stopped one can be started for it
        mngr stop green
        mngr message green --start -m 'say I am back.'
    """)
    create(e2e, "green")
    follow(e2e, block.commands)
    assert said(e2e, "green") == ["I am back."]


def test_a_command_where_it_works(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # run something beside an agent, where it works
        mngr exec fix-login 'git status --short --branch'
    """)
    create(e2e, "fix-login")
    expect(e2e.run("mngr exec fix-login 'echo x > new.txt'")).to_succeed()
    result = e2e.run("mngr exec fix-login 'git status --short --branch'")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("## mngr/fix-login\n?? new.txt\n")


def test_a_command_that_fails_there_fails_here(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # run something beside an agent, where it works
        mngr exec fix-login 'git status --short --branch'
    """)
    create(e2e, "fix-login")
    result = e2e.run("mngr exec fix-login 'echo broken >&2; exit 9' --format json")
    expect(result).to_have_exit_code(1)
    expect(result.stdout + result.stderr).to_contain("broken").to_match(r'"exit_code": ?9')


def test_a_command_in_several(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in all of them at once; after -- every word is passed on as it is
        mngr exec red green blue -- git log --oneline --max-count 1
    """)
    create(e2e, "red", "green", "blue")
    result = e2e.run("mngr exec red green blue -- git log --oneline --max-count 1")
    expect(result).to_succeed()
    for name in ("red", "green", "blue"):
        expect(result.stdout).to_match(rf"== {name}\n[0-9a-f]+ Open the shop\n")


def test_a_command_in_a_directory_below(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in a directory below, and not for longer than a minute
        mngr exec ready --cwd build --timeout 1m 'pwd'
    """)
    create(e2e, "ready", options="--extra-provision-command 'mkdir build'")
    result = e2e.run("mngr exec ready --cwd build --timeout 1m 'pwd'")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(agent(e2e, "ready")["work_dir"] + "/build\n")


def test_a_command_that_takes_too_long_is_ended(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in a directory below, and not for longer than a minute
        mngr exec ready --cwd build --timeout 1m 'pwd'
    """)
    create(e2e, "ready")
    result = e2e.run("mngr exec ready --timeout 0.2 'sleep 600'")
    expect(result).to_have_exit_code(4)
    expect(result.stderr).to_contain("0.2 s")


def test_connect_sits_down_at_its_terminal(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # sit down at its terminal; C-b d leaves, and it works on
        mngr connect fix-login
    """)
    create(e2e, "fix-login")
    e2e.env["MNGR__COMMANDS__CREATE__CONNECT_COMMAND"] = ""
    screen = e2e.spawn("mngr connect fix-login")
    expect(screen).to_show("scripted agent fix-login", timeout=60)
    screen.type("say I hear you.")
    screen.press("Enter")
    expect(screen).to_show(re.compile(r"^I hear you\.", re.MULTILINE), timeout=60)
    screen.press("C-b", "d")
    assert screen.wait_exit(60) == 0
    rest(e2e, "fix-login")


def test_a_connection_is_recorded_by_the_command_that_is_set(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # sit down at its terminal; C-b d leaves, and it works on
        mngr connect fix-login
    """)
    create(e2e, "fix-login")
    expect(e2e.run("mngr connect fix-login")).to_succeed()
    expect(e2e.run("mngr message fix-login -m 'say Seen by the recorder.'")).to_succeed()
    (recording,) = e2e.artifacts.glob("*.cast")
    expect(recording).to_have_content(re.compile("Seen by the recorder"), timeout=60)


def test_another_command_opens_the_terminal(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # or let something else open the terminal: a new window, a recorder, a browser
        mngr connect fix-login --connect-command 'echo "the tmux session is $MNGR_SESSION_NAME"'
    """)
    create(e2e, "fix-login")
    (result,) = follow(e2e, block.commands)
    expect(result.stdout).to_contain("the tmux session is mngr-fix-login\n")


def test_a_connect_command_that_fails_is_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or let something else open the terminal: a new window, a recorder, a browser
        mngr connect fix-login --connect-command 'echo "the tmux session is $MNGR_SESSION_NAME"'
    """)
    create(e2e, "fix-login")
    result = e2e.run("mngr connect fix-login --connect-command 'exit 5'")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("exit code 5").to_contain("`fix-login` keeps running")
