"""What may be wrong with an agent of a real program, and what must not come of it. The programs are stand-ins."""

import json
import os
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet
from mngr.system.waiting import wait_until
from tests.real.test_kind_from_settings import SETTINGS
from tests.support.user import MNGR, User, wait_for

STAND_IN = """#!/bin/sh
[ "$1" != --version ] || { echo 2.1.325; exit; }
exec sleep 9999
"""


def write_event(user: User, name: str, **fields: str) -> None:
    state_dir = user.host_dir / "agents" / str(user.agent(name)["id"])
    with open(state_dir / "events.jsonl", "a") as file:
        file.write(json.dumps({"event_id": "evt-1", "source": "test", **fields}) + "\n")


def install(user: User, name: str, folder: str) -> Path:
    """A stand-in for a program, which is not on PATH."""
    place = user.root / folder
    place.mkdir()
    (place / name).write_text(STAND_IN)
    (place / name).chmod(0o755)
    return place


@pytest.fixture
def claude(user: User) -> Path:
    """The home of an agent `foo` that a stand-in for Claude Code runs."""
    user.env["PATH"] = f"{install(user, 'claude', 'bin')}:{user.env['PATH']}"
    user.mngr("create", "foo", "claude", "--no-connect").ok()
    return user.host_dir / "agents" / str(user.agent("foo")["id"]) / "home"


@pytest.fixture
def shop(user: User) -> User:
    user.host_dir.mkdir(mode=0o700)
    (user.host_dir / "settings.toml").write_text(SETTINGS)
    return user


def test_files_that_make_no_sense_do_not_keep_the_others_from_being_listed(user: User, claude: Path) -> None:
    user.create("other")
    write_event(user, "foo", type="state", state="RUNNING", timestamp="2026-01-01T00:00:00.000000Z")
    retry = {"timestamp": "soon", "event": "cli_api_retry", "data": {"delay_ms": 10**6}}
    (claude / "diagnostics.jsonl").write_text(json.dumps(retry, separators=(",", ":")) + "\n")
    assert {agent["name"]: agent["state"] for agent in user.agents()} == {"foo": "RUNNING", "other": "RUNNING"}
    (claude / "sessions").write_text("no directory")
    assert {agent["name"]: agent["state"] for agent in user.agents()} == {"foo": "RUNNING", "other": "RUNNING"}
    assert "cannot be read" in user.mngr("list", "--explain", "foo").ok().stdout


def test_one_that_does_one_task_takes_no_message(shop: User) -> None:
    words = ("--no-connect", "--one-shot", "--message", "%% run while [ ! -e go ]; do sleep 0.1; done")
    shop.mngr("create", "foo", "prompter", *words).ok()
    for more in ((), ("--start",)):
        done = shop.mngr("message", "foo", "-m", "and this", *more).failed()
        assert "does one task" in done.stderr
    assert [event["text"] for event in shop.events("foo") if event["type"] == "message_queued"] == [words[-1]]
    (shop.work_dir("foo") / "go").touch()
    shop.wait_for_state("foo", "DONE")


def test_a_clone_goes_on_with_the_conversation_that_it_took_along(shop: User) -> None:
    shop.mngr("create", "foo", "prompter", "--no-connect", "--message", "%% say one").ok()
    shop.wait_for_state("foo", "WAITING")
    shop.mngr("clone", "foo", "bar", "--no-connect").ok()
    shop.wait_for_state("bar", "WAITING")
    assert "resumed" in shop.mngr("capture", "bar").ok().stdout
    lines = shop.mngr("transcript", "bar", "--format", "jsonl").ok().stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["%% say one", "one"]


def test_a_clone_of_one_that_does_one_task_does_it_too(shop: User) -> None:
    shop.mngr("create", "foo", "prompter", "--no-connect", "--one-shot", "--message", "%% run echo x >> done").ok()
    shop.wait_for_state("foo", "DONE")
    shop.mngr("clone", "foo", "bar", "--no-connect").ok()
    shop.wait_for_state("bar", "DONE")
    assert (shop.work_dir("bar") / "done").read_text() == "x\nx\n"


def test_what_counts_is_the_state_at_the_moment_of_sending(shop: User) -> None:
    shop.mngr("create", "foo", "prompter", "--no-connect", "--message", "%% ask this").ok()
    fleet = Fleet(environ=shop.env, cwd=str(shop.repo))
    blocked = wait_for(lambda: seen if (seen := fleet.find("foo")).state == "BLOCKED" else None, "the question")
    shop.tmux("send-keys", "-t", "mngr-foo", "y")
    waiting = wait_for(lambda: seen if (seen := fleet.find("foo")).state == "WAITING" else None, "the answer")
    blocked.message("%% ask that")
    wait_for(lambda: fleet.find("foo").state == "BLOCKED", "the other question")
    with pytest.raises(MngrError, match="BLOCKED"):
        waiting.message("y")
    assert not wait_until(lambda: fleet.find("foo").state != "BLOCKED", timeout=1)
    assert os.path.exists(fleet.find("foo").record.workspace.work_dir)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("'{place}/claude'", ()),
        ('"$HERE"/claude', ("--env", "HERE={place}")),
        ("claude", ("--env", "PATH={place}:/usr/bin:/bin")),
    ],
)
def test_a_program_that_only_the_shell_finds_is_found(user: User, command: str, words: tuple[str, ...]) -> None:
    place = str(install(user, "claude", "a b"))
    own = f"agent_types.claude.command={command.format(place=place)}"
    more = [word.format(place=place) for word in words]
    user.mngr("-S", own, "create", "foo", "claude", "--no-connect", *more).ok()
    assert user.state("foo") == "STARTING"


def test_permissions_of_a_type_that_nobody_knows_how_to_set_make_no_agent(user: User) -> None:
    settings = ("-S", "agent_types.mine.command=sleep 9999", "-S", "agent_types.mine.permissions=ask")
    done = user.mngr(*settings, "create", "foo", "mine", "--no-connect").failed(2)
    assert "does not know how to set the permissions of `mine`" in done.stderr
    assert user.agents() == []


def test_a_type_that_settings_only_adjust_is_not_taken_for_installed(user: User) -> None:
    user.env["PATH"] = f"{install(user, 'codex', 'bin')}:{Path(MNGR).parent}:/usr/bin:/bin"
    done = user.mngr("-S", "agent_types.claude.permissions=ask", "create", "foo", "--no-connect", "--dry-run").ok()
    assert "running: codex" in done.stdout


def test_settings_of_the_user_that_cannot_be_read_are_told_and_not_left_out(user: User) -> None:
    user.env["PATH"] = f"{install(user, 'claude', 'bin')}:{user.env['PATH']}"
    own = user.home / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_text('{"permissions": {"deny": ["Bash"]},}')
    done = user.mngr("create", "foo", "claude", "--no-connect").failed()
    assert f"`{own}` is not JSON" in done.stderr
    assert user.agents() == []


def test_doctor_looks_where_settings_say_a_program_is(user: User) -> None:
    place = install(user, "claude", "elsewhere")
    user.host_dir.mkdir(mode=0o700)
    (user.host_dir / "settings.toml").write_text(f'[agent_types.claude]\ncommand = "{place}/claude --verbose"\n')
    user.env["PATH"] = f"{Path(MNGR).parent}:/usr/bin:/bin"
    checks = {check["name"]: check for check in user.mngr("doctor", "--format", "json").json["checks"]}
    assert checks["claude"]["found"].startswith("2.1.325")
    assert checks["coding agents"]["found"] == "claude"


def test_a_dialog_before_the_first_message_is_told_and_the_message_not_to_be_sent_again(user: User) -> None:
    place = install(user, "claude", "bin")
    (place / "claude").write_text(STAND_IN.replace("exec", "echo 'New MCP server found'; exec"))
    user.env["PATH"] = f"{place}:{user.env['PATH']}"
    done = user.mngr("create", "foo", "claude", "--no-connect", "--message", "hello").failed()
    assert "BLOCKED (trust: " in done.stderr and "its program has the message" in done.stderr
