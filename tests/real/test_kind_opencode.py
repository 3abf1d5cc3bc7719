"""OpenCode itself, against the model server: what is its own. What it has in common with others is in
`test_kind_checks`. A start costs it many seconds of CPU, so one agent shows much."""

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_testing.model_server import ModelServer
from tests.support.programs import program, with_program
from tests.support.user import User, wait_for

OPENCODE = program("opencode")
SECONDS = 240.0  # for whatever may include a start, on a busy machine
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def server(user: User) -> Iterator[ModelServer]:
    with_program(OPENCODE, user.env, user.root / "bin")
    with ModelServer() as server:
        user.env.update(server.env("opencode"))
        yield server


def create(user: User, name: str, *words: str, message: str) -> None:
    user.mngr("create", name, "opencode", "--no-connect", *words, "--message", message, timeout=SECONDS + 30).ok()


def send(user: User, name: str, text: str) -> None:
    user.mngr("message", name, "--message", text).ok()


def until(user: User, name: str, state: str, reason: str = "") -> None:
    def seen() -> object:
        agent = user.agent(name)
        return agent["state"] == state and re.search(reason, agent["state_reason"])

    wait_for(seen, f"{name} to be {state} {reason}", SECONDS)


def answer(user: User, name: str, asks: str) -> None:
    """Take the first choice of a dialog, once it is drawn: before that, the key would be lost."""
    reason = user.agent(name)["state_reason"]

    def done() -> bool:
        if user.agent(name)["state_reason"] != reason:
            return True
        if asks in screen(user, name):
            press(user, name, "Enter")
        return False

    wait_for(done, f"{name} to take the answer to {asks!r}", SECONDS)


def press(user: User, name: str, *keys: str) -> None:
    user.tmux("send-keys", "-t", f"mngr-{name}:", *keys).ok()


def screen(user: User, name: str) -> str:
    return user.tmux("capture-pane", "-p", "-t", f"mngr-{name}:").ok().stdout


def interrupt(user: User, name: str) -> None:
    """Escape twice in five seconds, which a busy machine may not manage the first time."""

    def done() -> bool:
        press(user, name, "Escape")
        return user.state(name) == "WAITING"

    wait_for(done, f"{name} to stop its turn", SECONDS)


def home(user: User, name: str) -> Path:
    return user.host_dir / "agents" / user.agent(name)["id"] / "home"


def said(user: User, name: str) -> list[tuple[str, str]]:
    lines = user.mngr("transcript", name, "--format", "jsonl").ok().stdout.splitlines()
    return [(entry["role"], entry["text"]) for entry in map(json.loads, lines)]


def settings_of(user: User) -> dict[str, bytes]:
    """Everything of the user's own that an agent could spoil."""
    config = user.home / ".config" / "opencode"
    files = [path for path in config.rglob("*") if path.is_file()]
    files += [user.home / ".local" / "share" / "opencode" / "auth.json"]
    return {str(path): path.read_bytes() for path in files}


def test_an_agent_asks_waits_fails_and_goes_on_and_says_so(user: User, server: ModelServer) -> None:
    own = {"$schema": "https://opencode.ai/config.json", "username": "somebody"}
    for path, value in ((".config/opencode/opencode.json", own), (".local/share/opencode/auth.json", {})):
        (user.home / path).parent.mkdir(parents=True)
        (user.home / path).write_text(json.dumps(value))
    user.env["XDG_STATE_HOME"] = str(user.home / "own-state")
    before = settings_of(user)

    create(
        user, "a", "--permissions", "ask", message="%% run env > env.txt\n%% write made.txt <<END\nx\nEND\n%% say ok"
    )
    until(user, "a", "BLOCKED", "^permission: bash: env")
    refused = user.mngr("message", "a", "--message", "too early").failed()
    assert "BLOCKED" in refused.stderr
    answer(user, "a", "Permission required")
    until(user, "a", "BLOCKED", "^permission: edit: made.txt")
    answer(user, "a", "Permission required")
    until(user, "a", "WAITING", "^$")
    assert (user.work_dir("a") / "made.txt").read_text() == "x\n"

    variables = dict(line.split("=", 1) for line in (user.work_dir("a") / "env.txt").read_text().splitlines())
    assert variables["XDG_STATE_HOME"] == user.env["XDG_STATE_HOME"], "tools have the user's own directories"
    assert not {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "MNGR_OPENCODE"} & set(variables)

    question = {"question": "Which one?", "header": "One", "options": [{"label": "this", "description": "d"}]}
    send(user, "a", f"%% tool question {json.dumps({'questions': [question]})}\n%% say chosen")
    until(user, "a", "BLOCKED", r"^question: Which one\?")
    answer(user, "a", "Type your own answer")
    until(user, "a", "WAITING")

    send(user, "a", "%% status 400 times=99")
    until(user, "a", "WAITING", "^the last turn failed: .*wrong")
    send(user, "a", "%% usage input=5000 output=20 cache_read=3000 cache_write=500\n%% say dear")
    until(user, "a", "WAITING", "^$")
    send(user, "a", "%% slow 300 never to the end")
    wait_for(lambda: "esc interrupt" in screen(user, "a"), "work on the screen", SECONDS)
    interrupt(user, "a")
    until(user, "a", "WAITING", "^$")

    send(user, "a", "%% status 429 times=1 retry-after=3600")
    until(user, "a", "BLOCKED", r"^rate limit: retry at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: ")
    interrupt(user, "a")
    until(user, "a", "WAITING", "^$")
    for status, reason in ((402, "credit"), (404, "model")):
        send(user, "a", f"%% status {status} times=99")
        until(user, "a", "BLOCKED", f"^{reason}: ")
    send(user, "a", "%% status 401 times=99")
    until(user, "a", "BLOCKED", "^login: .*key")
    press(user, "a", "typed by hand")
    wait_for(lambda: "typed by hand" in screen(user, "a"), "what was typed", SECONDS)
    press(user, "a", "Enter")
    until(user, "a", "WAITING", "^$")
    assert ("user", "typed by hand") in said(user, "a")

    reported = server.usage()
    assert reported.side.input == 0, "no request for a title, which its record would not show"
    used = user.mngr("usage", "a", "--format", "json").ok().json["total"]
    assert used["output_tokens"] == reported.turns.output
    assert used["cache_read_tokens"] == 3000 and used["cost_usd"] is None
    cached = used["cache_read_tokens"] + used["cache_write_tokens"]
    assert used["input_tokens"] + cached == reported.turns.input, "this API counts cached tokens as input"
    assert settings_of(user) == before


def test_a_clone_of_an_agent_that_was_killed_has_its_conversation(user: User, server: ModelServer) -> None:
    """The copy has no database, only the record: it is in another directory, and the original may be at work."""
    create(user, "a", "--permissions", "bypass", message="%% run echo $$ > began; sleep 300")
    began = user.work_dir("a") / "began"
    wait_for(lambda: began.exists() and began.read_text().strip(), "the tool to run", SECONDS)
    until(user, "a", "RUNNING")
    send(user, "a", "in the queue")
    called = [("user", "%% run echo $$ > began; sleep 300"), ("tool_call", "")]
    wait_for(lambda: said(user, "a")[:2] == called, "its record", SECONDS)
    for pid in user.processes():
        with contextlib.suppress(OSError):  # one that has just ended
            if Path(f"/proc/{pid}/comm").read_text().strip() == "opencode":
                os.kill(pid, signal.SIGKILL)
    until(user, "a", "FAILED", "SIGKILL")
    assert said(user, "a")[:2] == called

    user.mngr("clone", "a", "b", "--no-connect", "--message", "%% run pwd\n%% say %% go on", timeout=SECONDS + 30).ok()
    until(user, "b", "WAITING")
    roles = [role for role, _ in said(user, "b")]
    assert roles == ["user", "tool_call", "user", "user", "tool_call", "tool_result", "assistant"]
    assert said(user, "b")[-2][1].strip() == str(user.work_dir("b")), "its tools run in its own directory"
    first, last = (entry.usage.input for entry in (server.log[0], server.log[-1]))
    assert last > first, "the model was told what was said before"
    entry = (home(user, "b") / "record.jsonl").read_text().splitlines()
    sessions = [json.loads(line)["session"] for line in entry if '"session":{' in line]
    assert sessions[-1]["id"] == sessions[0]["id"] and sessions[-1]["directory"] == str(user.work_dir("b"))


def test_one_task_that_fails_ends_with_an_exit_code(user: User, server: ModelServer) -> None:
    create(user, "a", "--one-shot", message="%% status 400 times=99")
    until(user, "a", "FAILED", "exit code 1")
    assert "Error: " in user.mngr("capture", "a").ok().stdout
    assert said(user, "a")[-1][1].startswith("[APIError: ")
