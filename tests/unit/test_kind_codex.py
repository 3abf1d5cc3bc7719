"""What the driver of Codex reads and writes without running it: rollouts, screens, wordings, logins."""

import json
from pathlib import Path
from typing import Any

import pytest

from mngr.agent.record import seconds_of
from mngr.agent.state import BLOCKED, RUNNING, WAITING
from mngr.errors import MngrError
from mngr.programs import hooks
from mngr.programs.codex import record as codex_record
from mngr.programs.codex.driver import DRIVER
from mngr.programs.codex.record import TurnFact
from mngr.programs.driver import AgentContext, ModelUsage
from mngr.system.state_dir import StateDir
from tests.support.records import make_record

AT = "2026-11-16T13:53:43.273Z"
LATER = "2026-11-16T13:53:44.687Z"


def line(kind: str, payload: dict[str, Any], at: str = AT) -> bytes:
    """As the program writes it: without blanks, the type of the payload first."""
    value = {"timestamp": at, "ordinal": 1, "type": kind, "payload": payload}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def event(name: str, at: str = AT, **more: Any) -> bytes:
    return line("event_msg", {"type": name, **more}, at)


def item(kind: str, **more: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "event_msg", "payload": {"type": "item_completed", "item": {"type": kind, **more}}}


STARTED = event("task_started")


def failed(about: object, message: str = "it says why") -> bytes:
    return STARTED + event("task_complete", LATER, error={"message": message, "codex_error_info": about})


@pytest.mark.parametrize(
    ("tail", "fact"),
    [
        (b"", None),
        (STARTED, TurnFact(RUNNING, "", AT)),
        (STARTED + event("task_complete", LATER, last_agent_message="done"), TurnFact(WAITING, "", LATER)),
        (STARTED + event("task_complete") + event("task_started", LATER), TurnFact(RUNNING, "", LATER)),
        (STARTED + event("turn_aborted", LATER, reason="interrupted"), TurnFact(WAITING, "interrupted", LATER)),
        # A turn of which the beginning is out of sight goes on.
        (event("token_count", LATER), TurnFact(RUNNING, "", LATER)),
        # A half-written line is not there yet.
        (
            STARTED + b'{"timestamp":"2026","type":"event_msg","payload":{"type":"task_complete"',
            TurnFact(RUNNING, "", AT),
        ),
        (failed("internal_server_error"), TurnFact(WAITING, "it says why", LATER)),
        (failed("usage_limit_exceeded"), TurnFact(BLOCKED, "rate limit: it says why", LATER)),
        (
            failed({"response_too_many_failed_attempts": {"http_status_code": 429}}),
            TurnFact(BLOCKED, "rate limit: it says why", LATER),
        ),
        (failed({"http_connection_failed": {"http_status_code": 401}}), TurnFact(BLOCKED, "login: it says why", LATER)),
        (failed("unauthorized"), TurnFact(BLOCKED, "login: it says why", LATER)),
    ],
)
def test_the_end_of_a_rollout_tells_the_state(tail: bytes, fact: TurnFact | None) -> None:
    assert codex_record.last_fact(tail) == fact


def test_what_somebody_wrote_is_not_taken_for_an_end() -> None:
    said = '"payload":{"type":"task_complete"}'
    assert codex_record.last_fact(STARTED + event("agent_message", LATER, message=said)) == TurnFact(RUNNING, "", AT)


def test_a_question_of_the_model_blocks_until_it_is_answered() -> None:
    asked = {"questions": [{"id": "a", "question": "which one?"}, {"id": "b", "question": "and when?"}]}
    call = {"type": "function_call", "name": "request_user_input", "arguments": json.dumps(asked), "call_id": "1"}
    open_call = STARTED + line("response_item", call, LATER)
    assert codex_record.last_fact(open_call) == TurnFact(BLOCKED, "question: which one? / and when?", AT)
    answered = open_call + line("response_item", {"type": "function_call_output", "call_id": "1", "output": "a"}, LATER)
    assert codex_record.last_fact(answered) == TurnFact(RUNNING, "", AT)


def test_transcript_has_what_was_said_and_which_tools_ran() -> None:
    command = {"command": ["/bin/bash", "-lc", "make 'it'"], "aggregated_output": "made\n", "exit_code": 2}
    change = {"changes": {"/a": {"type": "add", "content": "x"}}, "status": "completed", "stdout": "A a\n"}
    lines = [
        {"timestamp": AT, "type": "session_meta", "payload": {"id": "t", "session_id": "t"}},
        item("UserMessage", content=[{"type": "text", "text": "do"}, {"type": "text", "text": " it"}]),
        item("Reasoning", summary_text=["hm"]),
        item("CommandExecution", **command),
        item("FileChange", **change),
        item("McpToolCall", id="9", tool="search", arguments={"q": "x"}),
        item("AgentMessage", content=[{"type": "Text", "text": "done"}]),
        {"timestamp": AT, "payload": {"type": "task_complete", "error": {"message": "no more"}}},
    ]
    found = [{**entry, "timestamp": ""} for entry in codex_record.transcript(lines)]
    assert [(entry["role"], entry.get("tool"), entry.get("input"), entry.get("exit_code")) for entry in found] == [
        ("user", None, None, None),
        ("tool_call", "exec_command", "make 'it'", None),
        ("tool_result", "exec_command", None, 2),
        ("tool_call", "apply_patch", '{"/a": {"type": "add", "content": "x"}}', None),
        ("tool_result", "apply_patch", None, 0),
        ("tool_call", "search", '{"arguments": {"q": "x"}}', None),
        ("assistant", None, None, None),
        ("assistant", None, None, None),
    ]
    texts = [entry["text"] for entry in found if "text" in entry]
    assert texts == ["do it", "made\n", "A a\n", "done", "no more"]


def test_the_transcript_has_commands_that_its_rules_refused_once() -> None:
    refused = 'exec_command failed: CreateProcess { message: "rejected: policy forbids it" }'
    lines = [
        json.loads(text)
        for id, output in (("a", "Process exited with code 0"), ("b", refused))
        for text in (
            line(
                "response_item",
                {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "git push"}', "call_id": id},
            ),
            line("response_item", {"type": "function_call_output", "call_id": id, "output": output}),
        )
    ]
    call, result = codex_record.transcript(lines)
    assert (call["role"], call["input"]) == ("tool_call", "git push")
    assert (result["role"], result["text"], result["exit_code"]) == ("tool_result", refused, 1)


def test_usage_tells_cached_input_apart() -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 10, "output_tokens": 7}
    lines = [
        {"timestamp": AT, "type": "turn_context", "payload": {"model": "m-1"}},
        {"timestamp": AT, "type": "token_usage_record", "payload": {"response_id": "r1", "usage": used}},
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": used}}},
    ]
    assert list(codex_record.usage(lines)) == [("r1", ModelUsage(AT, "m-1", 30, 7, 60, 10))]


@pytest.mark.parametrize("text", ["plain", "/status", "two\nlines", "tab\there", "$x", "exit", "-x", "ünï 日本 😀"])
def test_a_message_is_kept_from_being_taken_for_a_command(text: str) -> None:
    wording = DRIVER.wording(text)
    assert (wording.sent, wording.recorded, wording.altered) == (f" {text} ", text, "")


def test_what_is_altered_in_a_message_is_said() -> None:
    assert DRIVER.wording("  a\n").recorded == "a"
    assert DRIVER.wording("a\x85b").recorded == "ab"
    assert DRIVER.wording("a\x85b").altered == "control characters dropped"


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("!ls", "a shell command"),
        ("/review " + "x" * 1000, "a command"),
        ("/tmp/a.png", "an image"),
        ("'/tmp/a b.JPG'", "an image"),
        ("see file:///a.webp", "an image"),
    ],
)
def test_what_blanks_do_not_keep_plain_gets_an_invisible_sign(text: str, taken: str) -> None:
    wording = DRIVER.wording(text)
    assert wording.recorded == f"\u200b{text}"
    assert wording.altered == f"a zero-width space put before it, since Codex would take it for {taken}"


@pytest.mark.parametrize("text", ["", " \n", "odd \udc80 byte"])
def test_a_message_that_cannot_be_sent_is_refused(text: str) -> None:
    with pytest.raises(MngrError):
        DRIVER.wording(text)


SIGN = "\x1b[1m›\x1b[0m\x1b[39m\x1b[49m "
BELOW = "\n\n  \x1b[38;5;223mmodel default\x1b[39m · \x1b[38;5;151m~/w\n\x1b[39m"


@pytest.mark.parametrize(
    ("screen", "text"),
    [
        (f"{SIGN}\x1b[2mAsk Codex to do anything\n\x1b[0m{BELOW}  \x1b[1m?\x1b[0m for shortcuts", ""),
        (f"› said before\n\n{SIGN}hello text{BELOW}", "hello text"),
        (f"{SIGN}first\n  second{BELOW}", "first"),
        (f"{SIGN}\x1b[38;5;6m[Pasted Content 3000 chars]\n\x1b[39m{BELOW}", "[Pasted Content 3000 chars]"),
        (f"\x1b[1m\x1b[38;5;9m!\x1b[0m\x1b[39m\x1b[49m  ls{BELOW}", "ls"),
        (f"\x1b[1m\x1b[38;5;9m!\x1b[0m\x1b[39m\x1b[49m {BELOW}", "!"),
        # One Ctrl-C too many ends the program: in doubt the box is empty.
        (f"{SIGN}another placeholder{BELOW}  \x1b[1m?\x1b[0m for shortcuts", ""),
        (f"{SIGN}1. Yes, proceed (y)\n\n  Press \x1b[1menter\x1b[0m to confirm or esc to cancel", ""),
        ("", ""),
    ],
)
def test_occupied_finds_what_stands_in_the_input_box(screen: str, text: str) -> None:
    assert DRIVER.occupied(screen) == text


def test_a_request_for_permission_is_told_in_one_line() -> None:
    payload = {"tool_name": "Bash", "tool_input": {"command": "touch a\n&& ls", "description": "why"}}
    assert hooks.permission(payload) == "permission: Bash: touch a && ls"
    payload = {"tool_name": "apply_patch", "tool_input": {"description": "why"}}
    assert hooks.permission(payload) == "permission: apply_patch: why"


def test_login_is_found_where_codex_keeps_it(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    own = tmp_path / ".codex"
    own.mkdir()
    assert DRIVER.login(environ) == ""
    assert DRIVER.login({**environ, "OPENAI_API_KEY": "x"}) == ""
    assert "CODEX_API_KEY" in DRIVER.login({**environ, "CODEX_API_KEY": "x"})
    (own / "config.toml").write_text('model_provider = "mine"\n[model_providers.mine]\nbase_url = "x"\n')
    assert DRIVER.login(environ) == f"with the provider `mine` of {own}/config.toml"
    (own / "auth.json").write_text('{"OPENAI_API_KEY": "x"}')
    assert DRIVER.login(environ) == f"with an API key, in {own}/auth.json"
    (own / "auth.json").write_text('{"tokens": {"id_token": "x"}}')
    assert DRIVER.login(environ) == f"with a ChatGPT account, in {own}/auth.json"
    assert DRIVER.login({"HOME": "/nowhere", "CODEX_HOME": str(own)}).startswith("with a ChatGPT account")


def test_conversations_that_it_went_back_to_are_told_in_order_of_time(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sessions").mkdir(parents=True)
    threads = [{"session_id": name, "transcript_path": f"/x/sessions/{name}.jsonl"} for name in ("a", "b", "a")]
    (home / "threads.jsonl").write_text("".join(json.dumps(thread) + "\n" for thread in threads))
    for name, second in (("a", 1), ("b", 2)):
        said = {**item("AgentMessage", content=[{"text": name}]), "timestamp": f"2026-11-16T13:53:0{second}.000Z"}
        (home / "sessions" / f"{name}.jsonl").write_text(json.dumps(said) + "\n")
    record = make_record(name="foo", kind="codex", command="codex", work_dir="/work", session="mngr-foo", created_at=AT)
    place = AgentContext(StateDir(str(tmp_path)), record, str(tmp_path), {})
    assert [entry["text"] for entry in DRIVER.transcript(place)] == ["a", "b"]


RETRYING = (
    "2026-11-16T13:53:43.500000Z  WARN session_loop{thread_id=t}:turn{model=m (1/2 in 3s)}: "
    "codex_core::responses_retry: stream disconnected - retrying sampling request (%s/5 in %s)... "
    "turn_id=x retries=1 sampling_error=%s\n"
)


@pytest.mark.parametrize(
    ("number", "delay", "text", "state", "reason"),
    [
        (
            1,
            "5.9s",
            "last status: 429 Too Many",
            BLOCKED,
            "rate limit: retry at 2026-11-16T13:53:50Z: last status: 429",
        ),
        (2, "250.5ms", "unexpected status 529: Busy", BLOCKED, "rate limit: retry at 2026-11-16T13:53:44Z: unexpected"),
        (1, "200ms", "unexpected status 401: no", RUNNING, "no answer: retry at 2026-11-16T13:53:44Z: unexpected"),
        (2, "400ms", "unexpected status 401: no", BLOCKED, "login: unexpected status 401: no"),
        (1, "1.5s", "error sending request", RUNNING, "no answer: retry at 2026-11-16T13:53:45Z: error sending"),
    ],
)
def test_what_it_waits_for_before_it_asks_its_model_again(
    number: int, delay: str, text: str, state: str, reason: str
) -> None:
    began = seconds_of(AT)
    tail = b"half a line\n" + (RETRYING % (number, delay, text)).encode() + b"2026 INFO of something else\n"
    found = codex_record.waiting(tail, "t", began, began + 0.3)
    assert found is not None and found.state == state and found.since == pytest.approx(began + 0.227)
    assert found.reason.startswith(reason)
    assert codex_record.waiting(tail, "t", began, began + 20) is None, "it asked again"
    assert codex_record.waiting(tail, "t", began + 1, began + 1.1) is None, "that was the turn before"
    assert codex_record.waiting(tail, "another", began, began + 0.3) is None
    assert codex_record.waiting(b"", "t", began, began + 0.3) is None
