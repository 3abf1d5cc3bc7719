"""A type that only settings describe: its states come from its screen, and all the rest from a few shell lines."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support import prompter
from tests.support.kinds import point_pi, settings_of_guide
from tests.support.programs import program, with_program
from tests.support.user import User, wait_for

SETTINGS = f"""
[agent_types.prompter]
command = "{sys.executable} {Path(prompter.__file__)}"
ready = '^> type'
busy = '^\\* working'
blocked = '^Allow (.*)\\?'
refused = '^/'
first_prompt = "{{command}} {{prompt}}"
resume = "{{command}} --resume"
one_shot = "{{command}} --print {{prompt}}"
home_env = ["PROMPTER_HOME"]
home_links = ["~/.prompter/login", "~/.prompter/none"]
record = "*.jsonl"

[agent_types.plain]
parent_type = "prompter"
first_prompt = ""
resume = ""
record = ""
"""


@pytest.fixture
def shop(user: User) -> User:
    user.host_dir.mkdir(mode=0o700)
    (user.host_dir / "settings.toml").write_text(SETTINGS)
    (user.home / ".prompter").mkdir()
    (user.home / ".prompter" / "login").write_text("secret")
    return user


def create(user: User, kind: str, *words: str) -> None:
    user.mngr("create", "foo", kind, "--no-connect", *words).ok()


def states(user: User) -> list[tuple[str, str]]:
    found = [(event["state"], event["reason"]) for event in user.events("foo") if event["type"] == "state"]
    return [one for number, one in enumerate(found) if number == 0 or one != found[number - 1]]


def shows(user: User, text: str) -> None:
    """What is on its screen for certain: who does not see it work within a second takes it for done."""
    wait_for(lambda: text in user.mngr("capture", "foo").ok().stdout, f"`{text}` on its screen")


def said(user: User) -> list[tuple[str, str]]:
    lines = user.mngr("transcript", "foo", "--format", "jsonl").ok().stdout.splitlines()
    return [(line["role"], line["text"]) for line in map(json.loads, lines)]


def test_it_begins_with_its_message_works_asks_and_waits(shop: User) -> None:
    work = "until [ -e go ]; do sleep 0.1; done; touch one"
    create(shop, "prompter", "--message", f"%% run {work}\n%% say first é")
    shop.wait_for_state("foo", "RUNNING")
    (shop.work_dir("foo") / "go").touch()
    shop.wait_for_state("foo", "WAITING")
    assert (shop.work_dir("foo") / "one").exists()
    assert shop.mngr("message", "foo", "-m", "%% ask rm -r x\n%% say second").ok().stdout == "foo: delivered\n"
    assert shop.wait_for_state("foo", "BLOCKED")["state_reason"] == "rm -r x"
    refused = shop.mngr("message", "foo", "-m", "no answer").failed()
    assert "BLOCKED (rm -r x)" in refused.stderr
    shop.tmux("send-keys", "-t", "mngr-foo", "y")
    shop.mngr("wait", "foo", "WAITING", "--timeout", "60", timeout=90).ok()
    assert said(shop)[1::2] == [("assistant", "first é"), ("assistant", "second")]
    seen = states(shop)
    assert seen[-1] == ("WAITING", "") and ("BLOCKED", "rm -r x") in seen
    assert "its screen, by the rules of `agent_types.prompter`" in shop.mngr("list", "--explain", "foo").ok().stdout


def test_it_goes_on_with_its_own_conversation_and_the_users_login(shop: User) -> None:
    create(shop, "prompter")
    shop.wait_for_state("foo", "WAITING")
    shop.mngr("message", "foo", "-m", "one").ok()
    shows(shop, "you said: one")
    shop.wait_for_state("foo", "WAITING")
    shop.mngr("stop", "foo").ok()
    shop.mngr("start", "foo").ok()
    shop.wait_for_state("foo", "WAITING")
    shows(shop, "resumed")
    shop.mngr("message", "foo", "-m", "two\nlines").ok()
    shows(shop, "you said: two")
    assert [text for role, text in said(shop) if role == "user"] == ["one", "two\nlines"]
    total = shop.mngr("usage", "foo", "--format", "json").ok().json["total"]
    assert (total["input_tokens"], total["output_tokens"]) == (14, 6)
    (home,) = shop.host_dir.glob("agents/*/home/sessions")
    assert sorted(os.listdir(home)) == ["chat.jsonl", "login"]
    assert (home / "login").readlink() == shop.home / ".prompter" / "login"


def test_one_task_and_it_ends(shop: User) -> None:
    create(shop, "prompter", "--one-shot", "--message", "%% run echo 'a \"b\"' > done\n%% say finished")
    assert shop.wait_for_state("foo", "DONE")["exit_code"] == 0
    assert (shop.work_dir("foo") / "done").exists()
    assert ("assistant", "finished") in said(shop)


def test_one_task_that_fails_tells_its_exit_code(shop: User) -> None:
    create(shop, "prompter", "--one-shot", "--message", "%% exit 3")
    assert shop.wait_for_state("foo", "FAILED")["exit_code"] == 3


def test_without_a_line_for_it_the_first_message_is_pasted_when_it_is_ready(shop: User) -> None:
    create(shop, "plain", "--message", "%% say pasted\nand whole")
    shows(shop, "pasted")
    assert said(shop) == [("user", "%% say pasted\nand whole")]


@pytest.mark.parametrize("kind", ["prompter", "plain"])
def test_what_it_would_take_for_a_command_is_refused_and_not_sent(shop: User, kind: str) -> None:
    create(shop, kind)
    shop.wait_for_state("foo", "WAITING")
    assert "would not take this as a message" in shop.mngr("message", "foo", "-m", "/quit now").failed().stderr
    shop.mngr("message", "foo", "-m", "after").ok()
    shows(shop, "you said: after")
    assert "quit" not in shop.mngr("capture", "foo").ok().stdout


def test_a_first_message_that_it_would_take_for_a_command_makes_no_agent(shop: User) -> None:
    done = shop.mngr("create", "foo", "prompter", "--no-connect", "--message", "/quit")
    assert "would not take this as a message" in done.failed().stderr
    assert shop.agents() == []


def test_permissions_that_nobody_knows_how_to_set_make_no_agent(shop: User) -> None:
    done = shop.mngr("create", "foo", "prompter", "--no-connect", "--permissions", "bypass")
    assert "does not know how to set the permissions of `prompter`" in done.failed().stderr
    assert shop.agents() == []


def test_a_bad_expression_is_told_with_its_key(shop: User) -> None:
    done = shop.mngr("-S", "agent_types.prompter.busy=(", "create", "foo", "prompter", "--no-connect").failed(2)
    assert "invalid regular expression in `agent_types.prompter.busy`" in done.stderr


def test_every_type_of_the_guide_can_be_used(user: User) -> None:
    """As far as a dry run goes, with programs that are there in name only."""
    user.host_dir.mkdir(mode=0o700)
    folder = user.root / "bin"
    folder.mkdir()
    for name in ("claude", "pi"):
        (folder / name).write_text("#!/bin/sh\necho 2.1.325\n")
        (folder / name).chmod(0o755)
    user.env["PATH"] = f"{folder}:{user.env['PATH']}"
    for name in ("careful", "pi"):
        (user.host_dir / "settings.toml").write_text(settings_of_guide(name))
        assert "would create" in user.mngr("create", "foo", name, "--no-connect", "--dry-run").ok().stdout


@pytest.mark.timeout(300)
def test_the_settings_of_the_guide_run_pi(user: User) -> None:
    """Through the command line; `test_kind_checks` has the rest."""
    from mngr_testing.model_server import ModelServer

    with_program(program("pi"), user.env, user.root / "bin")
    user.host_dir.mkdir(mode=0o700)
    (user.host_dir / "settings.toml").write_text(settings_of_guide("pi"))
    with ModelServer() as server:
        point_pi(user, server)
        user.mngr("create", "foo", "pi", "--no-connect", "--message", "%% run echo made > it\n%% say did it").ok()
        wait_for(lambda: said(user)[-1:] == [("assistant", "did it")], "its answer", 120)
        user.mngr("wait", "foo", "WAITING", "--timeout", "60", timeout=90).ok()
        assert (user.work_dir("foo") / "it").read_text() == "made\n"
