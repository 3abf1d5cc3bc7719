"""Section "Getting started" of the tutorial."""

import json
import re
from pathlib import Path

import pytest

from mngr.e2e import E2eSession, expect
from mngr.report.tmr import TmrRun
from tests.sessions.steps import agent, agents, create, follow, git, rest
from tests.support.demo import CHECKS, Demo


def test_a_repository_to_play_in(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # everything here happens inside a git repository; this makes a small one to play in
        git init --quiet --initial-branch main shop && cd shop
        echo 'print("welcome to the shop")' > shop.py
        git add shop.py && git commit --quiet --message 'Open the shop'
    """)
    expect(e2e.run("\n".join(block.commands), cwd=e2e.home)).to_succeed()
    log = e2e.run("git log --format='%s on %D'", cwd=e2e.home / "shop")
    expect(log.stdout).to_equal("Open the shop on HEAD -> main\n")
    welcome = e2e.run("python3 shop.py", cwd=e2e.home / "shop")
    expect(welcome.stdout).to_equal("welcome to the shop\n")


def test_doctor_says_that_this_machine_is_ready(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # is this machine ready?
        mngr doctor
    """)
    result = e2e.run("mngr doctor")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"ok +tmux +\d").to_match(r"ok +git +\d")
    expect(result.stdout).to_contain("This machine is ready")


def test_doctor_fails_where_a_program_is_missing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # is this machine ready?
        mngr doctor
    """)
    (e2e.bin / "tmux").write_text("#!/bin/sh\necho 'tmux 1.8'\n")
    (e2e.bin / "tmux").chmod(0o755)
    result = e2e.run("mngr doctor", comment="with a tmux that is too old")
    expect(result).to_have_exit_code(1)
    expect(result.stdout).to_match(r"fail +tmux .*1\.8")


def test_a_type_of_agent_for_create(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # what should an agent be? `scripted` comes with mngr, needs no model, and does what it is told;
        # if you have claude, codex or opencode, leave this out and talk to your agents in plain words
        mngr config set --scope user commands.create.type scripted
    """)
    expect(e2e.run("mngr config unset --scope user commands.create.type", comment="as on a new machine")).to_succeed()
    expect(e2e.run("mngr config set --scope user commands.create.type scripted")).to_succeed()
    expect(e2e.home / ".mngr" / "settings.toml").to_have_content(re.compile('type = "scripted"'))
    create(e2e, "hello")
    assert agent(e2e, "hello")["type"] == "scripted"


def test_create_starts_an_agent_and_connects(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # start an agent: it gets a branch and a copy of the code of its own, and you sit at its terminal; C-b d leaves
        mngr create hello
    """)
    result = e2e.run("mngr create hello")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("created hello on branch mngr/hello")
    made = agent(e2e, "hello")
    assert made["initial_branch"] == "mngr/hello"
    expect(e2e.run("git worktree list").stdout).to_contain(made["work_dir"])
    recordings = [json.loads(path.read_text()) for path in e2e.artifacts.glob("*.cast.json")]
    assert [recording["kind"] for recording in recordings] == ["connect"]


def test_create_refuses_a_name_that_is_taken(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # start an agent: it gets a branch and a copy of the code of its own, and you sit at its terminal; C-b d leaves
        mngr create hello
    """)
    create(e2e, "hello")
    before = agent(e2e, "hello")["id"]
    result = e2e.run("mngr create hello")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("`hello`").to_contain("hint:")
    assert [one["id"] for one in agents(e2e).values()] == [before]


def test_list_shows_who_is_there(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # who is there, and what is each one doing?
        mngr list
    """)
    expect(e2e.run("mngr list").stdout).to_equal("No agents found\n")
    create(e2e, "hello")
    expect(e2e.run("mngr wait hello", timeout=90)).to_succeed()
    result = e2e.run("mngr list")
    expect(result.stdout).to_match(r"^NAME +STATE +FOR +TYPE").to_match(r"^hello +WAITING +.*scripted")


def test_from_a_message_to_merged_work(e2e: E2eSession) -> None:
    told = e2e.write_tutorial_block("""
        # tell it what to do; the lines of one message arrive together
        mngr message hello --message 'run echo "hello, you" > hello.txt
        commit Say hello'
    """)
    looked = e2e.write_tutorial_block("""
        # wait until its turn is over, then look at what it changed
        mngr wait hello
        mngr diff hello
    """)
    taken = e2e.write_tutorial_block("""
        # take its work into your branch; when nothing of it is left to lose, the agent may go
        mngr merge hello
        mngr destroy hello
    """)
    create(e2e, "hello")
    follow(e2e, told.commands)
    waited, diff = follow(e2e, looked.commands)
    expect(waited.stdout).to_equal("hello is WAITING: turn ended\n")
    expect(diff.stdout).to_contain("+++ b/hello.txt").to_contain("+hello, you")
    assert not (e2e.repo / "hello.txt").exists()

    follow(e2e, taken.commands)
    expect(e2e.repo / "hello.txt").to_have_content("hello, you\n")
    assert git(e2e, "log -1 --format=%s main") == "Say hello"
    assert agents(e2e) == {}
    assert git(e2e, "branch --list mngr/hello") == ""


def test_destroy_before_the_merge_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # take its work into your branch; when nothing of it is left to lose, the agent may go
        mngr merge hello
        mngr destroy hello
    """)
    create(e2e, "hello")
    expect(e2e.run("mngr exec hello 'git commit --quiet --allow-empty -m Work'")).to_succeed()
    refused = e2e.run("mngr destroy hello", comment="in the wrong order")
    expect(refused).to_have_exit_code(1)
    expect(refused.stderr).to_contain("1 commit that no other branch has").to_contain("mngr merge hello")
    rest(e2e, "hello")


def test_every_verb_explains_itself(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # that was all there is to it. Every verb explains itself, with examples
        mngr help create
    """)
    result = e2e.run("mngr help create")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Usage: mngr create").to_contain("Examples:").to_contain("--no-connect")


def test_help_of_a_verb_that_does_not_exist_names_the_nearest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # that was all there is to it. Every verb explains itself, with examples
        mngr help create
    """)
    result = e2e.run("mngr help creat")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("`create`")


def test_topics_are_explained(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # and so do the ideas behind them
        mngr help --topics
        mngr help states
    """)
    topics, states = follow(e2e, block.commands)
    expect(topics.stdout).to_match(r"^states$").to_match(r"^filters$")
    for state in ("STARTING", "RUNNING", "WAITING", "BLOCKED", "DONE", "FAILED", "STOPPED", "UNKNOWN"):
        expect(states.stdout).to_contain(state)


def test_help_succeeds(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or see the other commands--list, destroy, message, connect, push, pull, clone, and more! These other commands are covered in their own sections below.
        mngr --help
    """)  # noqa: E501
    result = e2e.run(
        "mngr --help",
        comment="or see the other commands--list, destroy, message, connect, push, pull, clone, and more!",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Usage")
    for verb in ("create", "list", "destroy", "message", "connect", "push", "pull", "clone"):
        expect(result.stdout).to_match(rf"^  {verb}\b")


@pytest.mark.timeout(1500)  # about 60 runs of pytest in one
def test_the_demo_ends_with_a_branch_and_a_report_and_nothing_runs_on(
    e2e: E2eSession, subtests: pytest.Subtests
) -> None:
    e2e.write_tutorial_block("""
        # to see it all at once, let an agent work on each test of a sample project (some lie); it takes a minute
        mngr demo --dir ~/mngr-demo
    """)
    result = e2e.run("mngr demo --dir ~/mngr-demo", timeout=1200)
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^Branch `tmr/demo` is ready: \d+ commits")
    expect(result.stdout).to_match(r"^  due-as-json-\w+ +refuted ")
    expect(result.stdout).to_contain("destroyed 22 agents")
    expect(Path(result.stdout.splitlines()[-1])).to_have_content(re.compile("<html"))
    place = e2e.home / "mngr-demo"
    log = e2e.run("git log --oneline main..tmr/demo", cwd=place / "sprout")
    expect(log.stdout).to_match("Thirsty from the day on that it wants water$")
    assert agents(e2e) == {}, "the agents of the reader are not touched"
    there = {"MNGR_HOST_DIR": str(place / "host")}
    expect(e2e.run("mngr list", env=there).stdout).to_contain("No agents found")
    expect(e2e.run("tmux -L mngr list-sessions")).to_fail()

    status = e2e.run("mngr tmr status demo --format json", cwd=place / "sprout", env=there, timeout=60)
    demo = Demo(place, json.loads(status.stdout), e2e.env)
    queue = TmrRun(str(demo.run_dir)).load("run")["queue"]
    expect(result.stdout).to_contain(f"NEEDS YOU ({len(queue)})")  # the terminal and the report count the same
    for check in CHECKS:
        with subtests.test(check.__name__.replace("_", " ")):
            check(demo)
