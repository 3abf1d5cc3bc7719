"""The pure parts of the driver of Claude Code: wording, states, transcript, usage, its input box."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.agent.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import MngrError
from mngr.programs import hooks
from mngr.programs.claude import driver as claude
from mngr.programs.claude import home as claude_home
from mngr.programs.claude import record as claude_record
from mngr.programs.claude.driver import DRIVER, composer, had_queue, reconcile
from mngr.programs.claude.text import PLAIN, wording
from mngr.programs.driver import AgentContext, ModelUsage, Wording
from mngr.system.state_dir import StateDir
from tests.support.records import make_record

NOW = 1_000_000.0
RULE = "\x1b[38;5;244m" + "─" * 40


@pytest.mark.parametrize(
    ("text", "recorded", "altered"),
    [
        ("plain", "plain", ""),
        ("a\tb", "a    b", ""),
        ("  lead and trail \n", "lead and trail", ""),
        ("a\u2028b\r\nc\u0085d", "a\nb\nc\nd", ""),
        ("e\u0301", "é", ""),
        ("👩\u200d🚀 ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d🚀 ❤\ufe0f 1\ufe0f\u20e3", ""),
        ("می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष", ""),
        ("/usr/lib is a path", "/usr/lib is a path", ""),
        ("# heading", "# heading", ""),
        ("exit now", "exit now", ""),
        ("!ls", f"{PLAIN}!ls", "shell"),
        (" /clear", f"{PLAIN}/clear", "command"),
        ("/", f"{PLAIN}/", "command"),
        ("exit", f"{PLAIN}exit", "end the program"),
        (":wq!", f"{PLAIN}:wq!", "end the program"),
        ("\u200b!ls", f"{PLAIN}\u200b!ls", "shell"),
        ("\u3164e\u200bxit\ufe0f", f"{PLAIN}\u3164e\u200bxit\ufe0f", "end the program"),
    ],
)
def test_wording(text: str, recorded: str, altered: str) -> None:
    found = wording(text)
    assert found.recorded == found.sent == recorded
    assert altered in found.altered and bool(found.altered) == bool(altered)
    assert wording(found.recorded) == found._replace(altered="")  # a normal form


@pytest.mark.parametrize(
    ("recorded", "received", "is_same"),
    [
        ("a\u200bb\ufeff c\u200dd x\ufe0f", "ab cd x", True),
        ("e\u200b\u0301", "é", True),
        ("👩\u200d🚀 hi", "👩🚀 hi", True),
        ("ab", "abc", False),
        ("1 2", "1 3", False),
        ("👍", "👍", True),
        ("👍", "👎", False),
        ("👍", "", False),
    ],
)
def test_a_recorded_prompt_is_known_by_its_letters_and_digits(recorded: str, received: str, is_same: bool) -> None:
    assert DRIVER.same(recorded, received) is is_same


def test_a_backslash_at_the_end_does_not_take_the_enter() -> None:
    assert wording("a\\") == Wording("a\\ ", "a\\")


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "odd \udce9 byte"])
def test_what_cannot_be_sent_is_refused(text: str) -> None:
    with pytest.raises(MngrError):
        wording(text)


def live(status: str, age: float) -> dict[str, Any]:
    return {"pid": 7, "status": status, "statusUpdatedAt": (NOW - age) * 1000}


def told(state: str, age: float, reason: str = "") -> Status:
    return Status(state, reason, NOW - age, "events")


@pytest.mark.parametrize(
    ("file", "events", "state"),
    [
        (None, told(STARTING, 9), STARTING),
        ({"pid": 7}, told(RUNNING, 9), RUNNING),
        (live("idle", 5), told(STARTING, 9), WAITING),
        (live("idle", 0.05), told(STARTING, 9), STARTING),
        (live("idle", 5), told(RUNNING, 9), WAITING),  # an interrupt
        (live("idle", 5), told(RUNNING, 0.1), RUNNING),  # a prompt just taken
        (live("idle", 60), told(RUNNING, 30), WAITING),  # a prompt that a hook of the user refused
        (live("busy", 5), told(WAITING, 0.1), RUNNING),  # a Stop with messages in the queue
        (live("idle", 0.05), told(WAITING, 0.1), RUNNING),  # perhaps between two turns
        (live("waiting", 5), told(BLOCKED, 5), BLOCKED),
        (live("busy", 1), told(BLOCKED, 5), RUNNING),  # allowed
        (live("busy", 3), told(BLOCKED, 0.1), BLOCKED),  # the file is late
        (live("shell", 5), told(WAITING, 5), WAITING),
        (live("something new", 5), told(RUNNING, 9), RUNNING),
    ],
)
def test_the_newer_of_file_and_events_tells_the_state(file: dict[str, Any] | None, events: Status, state: str) -> None:
    assert reconcile(file, events, NOW).state == state


def test_rest_keeps_the_reason_of_the_turn_that_ended() -> None:
    assert reconcile(live("idle", 5), told(WAITING, 5.1, claude_home.FAILED), NOW).reason == claude_home.FAILED
    assert reconcile(live("idle", 5), told(BLOCKED, 9, "permission: x"), NOW).reason == ""
    assert reconcile(live("shell", 5), told(WAITING, 5), NOW).reason == claude.BACKGROUND


def test_after_messages_in_mid_turn_rest_must_last_longer() -> None:
    def states(*names: str) -> list[dict[str, str]]:
        return [{"type": "state", "state": name} for name in names]

    assert had_queue(states(WAITING, RUNNING, RUNNING, WAITING))
    assert not had_queue(states(RUNNING, WAITING, RUNNING, WAITING))
    assert reconcile(live("idle", 0.5), told(WAITING, 0.6), NOW, queued=True).state == RUNNING
    assert reconcile(live("idle", 0.5), told(WAITING, 0.6), NOW).state == WAITING


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ("\x1b[39m❯\xa0\x1b[7m \x1b[0m\x1b[39m\x1b[49m     ", ""),
        ("\x1b[39m❯\xa0draft\x1b[7m \n\x1b[0m  more  ", "draft \n  more"),
        ("\x1b[38;5;246m❯\xa0\x1b[39msent a moment ago\x1b[7m ", ""),
        ("\x1b[39m❯\xa0\x1b[7mT\x1b[0;2m\x1b[39m\x1b[49mry something", ""),
    ],
)
def test_only_what_somebody_typed_is_in_the_input_box(box: str, text: str) -> None:
    screen = f"❯ earlier\n\n{RULE}\n{box}\n\x1b[0m{RULE}\n  bypass permissions on\n\n"
    assert composer(screen) == text
    assert composer(f"{RULE}\n Do you want to proceed?\n ❯ 1. Yes\n") == ""


ANSWER = {"role": "assistant", "model": "m", "id": "msg_1"}
LINES: list[dict[str, Any]] = [
    {"type": "mode"},
    {"type": "user", "uuid": "1", "timestamp": "t1", "origin": {"kind": "human"}, "message": {"content": "do it"}},
    {"type": "user", "uuid": "2", "timestamp": "t2", "isMeta": True, "message": {"content": "not said"}},
    {
        "type": "assistant",
        "uuid": "3",
        "timestamp": "t3",
        "message": {**ANSWER, "content": [{"type": "text", "text": "I run it"}], "usage": {"output_tokens": 1}},
    },
    {
        "type": "assistant",
        "uuid": "4",
        "timestamp": "t4",
        "message": {
            **ANSWER,
            "content": [{"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "false"}}],
            "usage": {
                "input_tokens": 5,
                "output_tokens": 7,
                "cache_read_input_tokens": 11,
                "cache_creation_input_tokens": 13,
            },
        },
    },
    {
        "type": "user",
        "uuid": "5",
        "timestamp": "t5",
        "message": {
            "content": [{"type": "tool_result", "tool_use_id": "u", "is_error": True, "content": [{"text": "no"}]}]
        },
    },
    {"type": "user", "uuid": "6", "timestamp": "t6", "origin": {"kind": "task"}, "message": {"content": "ended"}},
    {
        "type": "assistant",
        "uuid": "7",
        "timestamp": "t7",
        "message": {"model": "<synthetic>", "id": "x", "content": [{"type": "text", "text": "API Error"}], "usage": {}},
    },
]


def test_the_transcript_has_every_line_once_and_usage_every_answer() -> None:
    found = claude_record.transcript([*LINES, *LINES])
    assert [(entry["role"], entry["text"]) for entry in found] == [
        ("user", "do it"),
        ("assistant", "I run it"),
        ("tool_call", ""),
        ("tool_result", "no"),
        ("system", "ended"),
        ("assistant", "API Error"),
    ]
    assert (found[2]["tool"], found[2]["input"]) == ("Bash", "false")
    assert (found[3]["tool"], found[3]["exit_code"]) == ("Bash", 1)
    assert claude_record.usage(LINES) == {"msg_1": ModelUsage("t4", "m", 5, 7, 11, 13)}


def test_a_message_in_mid_turn_is_in_the_transcript_and_until_then_in_the_queue() -> None:
    def operation(name: str) -> dict[str, str]:
        return {"type": "queue-operation", "operation": name}

    queued = {"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "and this"}}
    found = claude_record.transcript([queued, {"type": "attachment", "attachment": {"type": "date"}}])
    assert [(entry["role"], entry["text"]) for entry in found] == [("user", "and this")]
    names = ["enqueue", "enqueue", "remove", "dequeue", "enqueue"]
    assert claude_record.waiting(map(operation, names)) == 1
    assert claude_record.waiting(map(operation, [*names, "enqueue", "popAll"])) == 0


@pytest.mark.parametrize("line", [{"type": "user"}, {"type": "assistant", "message": {"content": [1], "usage": 3}}])
def test_lines_of_another_form_say_nothing(line: dict[str, Any]) -> None:
    assert claude_record.transcript([line]) == [] and claude_record.usage([line]) == {}


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"tool_name": "Bash", "tool_input": {"command": "touch\n x"}}, "permission: Bash: touch x"),
        ({"tool_name": "Write", "tool_input": {"file_path": "/a", "content": "x"}}, "permission: Write: /a"),
        ({"tool_name": "mcp__x", "tool_input": {"n": 1}}, 'permission: mcp__x: {"n": 1}'),
        (None, "permission: it asks for something"),
    ],
)
def test_what_it_asks_for(payload: object, reason: str) -> None:
    assert hooks.permission(payload) == reason


def test_how_a_turn_failed_and_what_it_waits_for() -> None:
    assert claude_record.failure({"error": "rate_limit", "last_assistant_message": "429"}, 0) == (
        True,
        "rate limit: 429",
    )
    assert claude_record.failure({"error": "authentication_failed"}, 0) == (True, "login: authentication_failed")
    assert claude_record.failure({"error": "unknown", "last_assistant_message": "400 no"}, 0) == (False, "400 no")
    assert claude_record.failure(None, 0) == (False, "it failed")
    line = {"data": {"delay_ms": 3000, "response": {"status": 429}}}
    assert claude_record.retry(line) == (3.0, "rate limit")
    assert claude_record.retry({}) == (0.0, "no answer")


@pytest.fixture
def place(tmp_path: Path) -> AgentContext:
    """An agent's state directory, and a user's home beside it."""
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    (tmp_path / "state").mkdir()
    record = make_record(
        id="agent-" + "0123456789abcdef" * 2,
        name="a",
        kind="claude",
        command="claude",
        work_dir=str(tmp_path / "work"),
        transfer="none",
        session="a",
        created_at="2026-01-01T00:00:00.000000Z",
        source="/the/repo",
    )
    return AgentContext(StateDir(str(tmp_path)), record, str(tmp_path / "state"), {"HOME": str(tmp_path / "home")})


def test_every_question_of_the_start_is_answered_as_the_user_would(place: AgentContext) -> None:
    home = Path(place.environ["HOME"])
    users = {
        "oauthAccount": {"emailAddress": "me"},
        "numStartups": 9,
        "customApiKeyResponses": {"approved": ["x"], "rejected": []},
        "projects": {"/the/repo": {"allowedTools": ["Bash(ls)"], "lastCost": 3}},
    }
    (home / ".claude.json").write_text(json.dumps(users))
    (home / ".claude" / "skills").mkdir()
    Path(place.state_dir, "env").write_text("export ANTHROPIC_API_KEY='key-0123456789-0123456789'\n")
    launch = DRIVER.prepare(place._replace(record=place.record.changed(permissions="edits")), prompted=False)
    config = json.loads(Path(place.home, ".claude.json").read_text())
    assert config == {
        "oauthAccount": {"emailAddress": "me"},
        "customApiKeyResponses": {"approved": ["x", "-0123456789-0123456789"[-20:]], "rejected": []},
        "hasCompletedOnboarding": True,
        "projects": {place.record.workspace.work_dir: {"allowedTools": ["Bash(ls)"], "hasTrustDialogAccepted": True}},
    }
    assert Path(place.home, "skills").readlink() == home / ".claude" / "skills"
    assert launch.command.endswith("--session-id 01234567-89ab-4def-8123-456789abcdef --permission-mode acceptEdits")
    assert launch.env["CLAUDE_CONFIG_DIR"] == place.home
    assert launch.env[claude_home.LOGIN_VARIABLE] == ""
    assert "IS_SANDBOX" not in launch.env


def test_without_a_choice_the_programs_own_settings_decide(place: AgentContext) -> None:
    assert "permission" not in DRIVER.prepare(place, prompted=False).command
    assert "skipDangerousModePermissionPrompt" not in Path(place.home, "settings.json").read_text()
    bypass = place._replace(record=place.record.changed(permissions="bypass"))
    assert "--dangerously-skip-permissions" in DRIVER.prepare(bypass, prompted=False).command


def test_its_prompts_are_read_from_its_hooks(place: AgentContext) -> None:
    line = '{"timestamp": "2026-01-01T00:00:01Z", "hook": "UserPromptSubmit", "payload": {"prompt": "%s"}}\n'
    DRIVER.prepare(place, prompted=False)
    Path(place.home, "hooks.jsonl").write_text(line % "one")
    mark = DRIVER.mark(place)
    with Path(place.home, "hooks.jsonl").open("a") as file:
        file.write(line % "two\\\\ " + '{"timestamp": "half')
    assert DRIVER.received(place) == ["one", "two\\"]
    assert DRIVER.received(place, mark) == ["two\\"]


def test_whoever_sees_a_prompt_sees_the_state_that_follows_from_it(place: AgentContext) -> None:
    """The hook waits here until somebody reads the prompt: a sender must not see the state from before."""
    DRIVER.prepare(place, prompted=False)
    os.mkfifo(f"{place.home}/hooks.jsonl")
    words = ["sh", f"{place.home}/hook.sh", "UserPromptSubmit", "RUNNING"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as hook:
        assert hook.stdin is not None
        hook.stdin.write(b'{"prompt": "go"}')
        hook.stdin.close()
        with open(f"{place.home}/hooks.jsonl", "rb") as pipe:
            state = json.loads(Path(place.state_dir, "events.jsonl").read_bytes())
            assert json.loads(pipe.read())["payload"] == {"prompt": "go"}
    assert (state["type"], state["state"]) == ("state", "RUNNING")


def test_servers_that_the_user_chose_in_the_repository_are_chosen(place: AgentContext, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.local.json").write_text('{"enabledMcpjsonServers": ["x"], "model": "m"}')
    DRIVER.prepare(place._replace(record=place.record.changed(repo=str(tmp_path))), prompted=False)
    assert json.loads(Path(place.home, "settings.json").read_text()) == {"enabledMcpjsonServers": ["x"]}


def test_a_first_message_that_no_command_line_takes_is_refused(place: AgentContext) -> None:
    Path(place.prompt_file).write_text("x" * 140_000)
    with pytest.raises(MngrError, match="too long"):
        DRIVER.prepare(place, prompted=True)


@pytest.mark.parametrize(
    ("environ", "files", "words"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, {}, "API key"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "k"}, {}, "CLAUDE_CODE_OAUTH_TOKEN"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}, "Bedrock"),
        ({}, {".claude/.credentials.json": "{}"}, "account"),
        ({}, {".claude/settings.json": '{"apiKeyHelper": "x"}'}, "apiKeyHelper"),
        ({}, {".claude.json": '{"oauthAccount": {"a": 1}}'}, "account"),
        ({}, {".claude.json": "not JSON"}, ""),
    ],
)
def test_login(tmp_path: Path, environ: dict[str, str], files: dict[str, str], words: str) -> None:
    (tmp_path / ".claude").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = DRIVER.login({"HOME": str(tmp_path), **environ})
    assert words in found and bool(found) == bool(words)
