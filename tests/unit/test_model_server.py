"""The model server over real sockets: turns, failures, the log, hostile clients, and its command."""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from mngr.errors import MngrError, TimedOut
from mngr.prompts import render
from mngr.system.waiting import wait_until
from mngr_testing.model_server import ModelServer, load_rules
from mngr_testing.model_server.answer import TokenCounts
from mngr_testing.model_server.model import program_of
from mngr_testing.model_server.script import BadDirective, Call, turn

BASH = {"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}, "required": ["command"]}}


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
        got = connection.getresponse()
        return Reply(got.status, got.headers, got.read())
    finally:
        connection.close()


def messages(*texts: str, calls: int = 0, **more: Any) -> dict[str, Any]:
    """A request of the Messages API: user texts, and then so many tool calls with their results."""
    found: list[dict[str, Any]] = []
    for text in texts:
        found += [{"role": "assistant", "content": "ok"}] if found else []
        found.append({"role": "user", "content": text})
    for number in range(calls):
        found.append({"role": "assistant", "content": [{"type": "tool_use", "id": str(number)}]})
        found.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": str(number), "content": ""}]})
    return {"model": "m", "messages": found, "tools": [BASH], **more}


def text_of(reply: Reply) -> str:
    assert reply.status == 200, reply.data
    return "".join(block.get("text", "") for block in reply.json["content"])


def quiet_port() -> int:
    """A free one below those that are given to whoever asks for any: nobody takes it as soon as it is free again."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


def test_a_turn_goes_from_step_to_step_by_the_request_alone(server: ModelServer):
    text = "%% say first\n%% run echo 1\n%% run echo 2\n%% say last"
    found = [ask(server.url, "POST", "/v1/messages", messages(text, calls=calls)).json for calls in (2, 0, 1, 0)]
    assert [block["content"][-1].get("input") for block in found] == [
        None,
        {"command": "echo 1"},
        {"command": "echo 2"},
        {"command": "echo 1"},
    ]
    assert found[0]["content"] == [{"type": "text", "text": "last"}]
    assert [entry.step for entry in server.log] == [2, 0, 1, 0]
    assert len({block["id"] for block in found}) == 4


def test_the_log_has_exactly_what_was_asked_and_reported(server: ModelServer):
    body = messages("%% usage input=1 output=2 cache_read=3 cache_write=4\n%% run ls", stream=True)
    before_wall = time.time()
    got = ask(
        server.url,
        "POST",
        "/v1/messages?beta=true",
        body,
        User_Agent="claude-cli/2.1 (external)",
        Authorization="Bearer secret",
    )
    (entry,) = server.log
    assert b"message_stop" in got.data
    assert (entry.method, entry.path, entry.api, entry.model) == ("POST", "/v1/messages?beta=true", "messages", "m")
    assert (entry.program, entry.auth, entry.side, entry.stream) == ("claude", "bearer", False, True)
    assert (entry.answer, entry.status, entry.tool, entry.tool_input) == ("tool", 200, "Bash", '{"command": "ls"}')
    assert entry.user_text == body["messages"][0]["content"]
    assert entry.usage == TokenCounts(1, 2, 3, 4) == server.usage().turns
    assert entry.first_byte_at is not None and entry.ended_at is not None
    assert before_wall <= entry.arrived_at <= entry.first_byte_at <= entry.ended_at
    assert "secret" not in repr(entry)


def test_all_apis_give_the_same_answer(server: ModelServer):
    user = [{"role": "user", "content": "%% say hello"}]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/v1/messages", {"messages": user}),
        ("/v1/responses", {"input": user}),
        ("/v1/chat/completions", {"messages": user}),
    ]
    for path, body in asked:
        assert b"hello" in ask(server.url, "POST", path, body).data
        streamed = ask(server.url, "POST", path, {**body, "stream": True})
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert b"hel" in streamed.data and b"lo" in streamed.data
    assert [entry.api for entry in server.log] == ["messages"] * 2 + ["responses"] * 2 + ["chat"] * 2
    assert {entry.text for entry in server.log} == {"hello"}
    last = server.log[-1]
    assert last.usage == TokenCounts(), "a stream of a chat reports usage only if asked"


def test_a_status_is_given_so_many_times_and_with_its_retry_time(server: ModelServer):
    body = messages("%% status 429 times=2 retry-after=7 Resets 3am\n%% status 529\n%% say ok")
    found = [ask(server.url, "POST", "/v1/messages", body) for _ in range(5)]
    assert [reply.status for reply in found] == [429, 429, 529, 200, 200]
    assert found[0].headers["retry-after"] == "7"
    assert found[0].json["error"] == {"type": "rate_limit_error", "message": "Resets 3am"}
    assert found[2].json["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert "retry-after" not in found[2].headers
    assert [entry.attempt for entry in server.log] == [0, 1, 2, 3, 4]
    assert [entry.answer for entry in server.log] == ["status"] * 3 + ["text"] * 2
    assert server.log[0].usage == TokenCounts()


def test_a_status_has_the_message_or_the_body_that_it_was_given(server: ModelServer):
    text = '%% status 429 Resets 1:22am\n%% status 429 retry-after=7 {"error": {"type": "usage_limit_reached"}}'
    first, second = (ask(server.url, "POST", "/v1/responses", {"input": text}) for _ in range(2))
    assert first.json["error"]["message"] == "Resets 1:22am"
    assert second.json == {"error": {"type": "usage_limit_reached"}} and second.headers["retry-after"] == "7"


def test_failures_are_counted_for_each_conversation_turn_and_step(server: ModelServer):
    text = "%% status 500\n%% run a\n%% status 500\n%% say end"

    def statuses(**more: Any) -> list[int]:
        return [ask(server.url, "POST", "/v1/messages", messages(*[text], **more)).status for _ in range(2)]

    assert statuses() == [500, 200]
    assert statuses(calls=1) == [500, 200]
    assert statuses(metadata={"user_id": "another"}) == [500, 200]
    again = [ask(server.url, "POST", "/v1/messages", messages(text, text)).status for _ in range(2)]
    assert again == [500, 200]


@pytest.mark.parametrize("stream", [True, False])
def test_a_drop_cuts_the_answer_in_the_middle(server: ModelServer, stream: bool):
    body = messages("%% drop\n%% say hello", stream=stream)
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(server.url, "POST", "/v1/messages", body)
    assert caught.value.partial
    assert b"message_stop" not in caught.value.partial
    assert b"hel" in ask(server.url, "POST", "/v1/messages", body).data
    assert [entry.answer for entry in server.log] == ["drop", "text"]


@pytest.mark.parametrize("stream", [True, False])
def test_garbage_is_neither_events_nor_json(server: ModelServer, stream: bool):
    body = messages("%% garbage times=2\n%% say hello", stream=stream)
    for _ in range(2):
        got = ask(server.url, "POST", "/v1/messages", body)
        assert got.status == 200 and b"data:" not in got.data
        with pytest.raises(ValueError, match="decode"):
            json.loads(got.data)
    assert b"hel" in ask(server.url, "POST", "/v1/messages", body).data


def test_thinking_comes_before_the_first_byte_and_slow_text_after_it(server: ModelServer):
    body = messages("%% think 0.2\n%% slow 0.3 some words", stream=True)
    ask(server.url, "POST", "/v1/messages", body)
    (entry,) = server.log
    assert entry.first_byte_at is not None and entry.ended_at is not None
    assert entry.first_byte_at - entry.arrived_at >= 0.2
    assert entry.ended_at - entry.first_byte_at >= 0.29


def test_a_request_is_in_the_log_while_it_is_thought_about(server: ModelServer):
    body = json.dumps(messages("%% think 9999\n%% say hello")).encode()
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=60) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        thinking = server.wait_for(lambda entry: entry.user_text, timeout=60)
    assert (thinking.ended_at, thinking.answer) == (None, "")
    server.wait_for(lambda entry: entry.ended_at, timeout=60)
    assert [entry.id for entry in server.log] == [thinking.id], "its end is noted in the same entry"


def test_waiting_in_vain_says_what_came_instead(server: ModelServer):
    ask(server.url, "POST", "/v1/messages", messages("hello"))
    with pytest.raises(TimedOut) as caught:
        server.wait_for(lambda entry: entry.user_text == "other", timeout=0.05)
    assert "'hello' -> text 200" in caught.value.details


@pytest.mark.parametrize("agent", ["claude-cli/2", "codex_exec/0.1", "opencode/1.2", "codex-tui/0.1"])
def test_what_programs_ask_for_themselves_is_no_turn(server: ModelServer, agent: str):
    body = {**messages("%% run rm x"), "tools": []}
    assert text_of(ask(server.url, "POST", "/v1/messages", body, User_Agent=agent)) == "scripted"
    (entry,) = server.log
    assert entry.side
    assert server.usage().turns == TokenCounts()
    assert server.usage().side == entry.usage != server.usage().turns == TokenCounts()


def test_a_title_is_no_turn_although_tools_are_on_offer(server: ModelServer):
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    form = {"format": {"type": "json_schema", "schema": schema}}
    body = {"input": "Make a title\n%% say x", "text": form, "tools": [{"type": "function", "name": "shell"}]}
    got = ask(server.url, "POST", "/v1/responses", body, User_Agent="codex-tui/0.1")
    assert got.json["output"][0]["content"][0]["text"] == '{"title": "scripted"}'
    assert server.log[0].side


def test_who_is_not_known_may_talk_without_tools(server: ModelServer):
    assert text_of(ask(server.url, "POST", "/v1/messages", {**messages("%% say hi"), "tools": []})) == "hi"


def test_programs_are_known_by_their_user_agent():
    for agent, program in (
        ("claude-cli/2.1.325 (external, cli)", "claude"),
        ("codex_cli_rs/0.166.0 (Debian)", "codex"),
        ("Codex Desktop/1", "codex"),
        ("opencode/1.18.33 ai-sdk/provider", "opencode"),
        ("GeminiCLI/0.61.0/x", "gemini"),
        ("python-requests/2", "python-requests"),
        ("pineapple/1", "pineapple"),
        ("", ""),
    ):
        assert program_of(agent) == program, agent


def test_a_directive_that_cannot_be_read_is_an_error_the_agent_shows(server: ModelServer):
    got = ask(server.url, "POST", "/v1/messages", messages("%% sing a song"))
    assert got.status == 400
    assert "`%% sing`" in got.json["error"]["message"]
    assert (server.log[0].user_text, server.log[0].status) == ("%% sing a song", 400)


def test_rules_answer_prompts_that_were_written_for_real_models():
    rules = [(r"(?s)^Test: (\S+).*\nRun it with:\n\n    ([^\n]+)", "%% run \\2\n%% say ran \\1")]
    task = "tests/test_a.py::test_b"
    nothing = dict.fromkeys(
        ("failure", "gate_command", "implementation", "read_only", "more", "blocks", "minutes", "check_command"), ""
    )
    prompt = render("mapper.md.j2", task=task, file="x", line=3, verdict="pass", command=f"pytest {task}", **nothing)
    with ModelServer(rules) as server:
        got = ask(server.url, "POST", "/v1/messages", messages(prompt))
        assert got.json["content"][0]["input"] == {"command": "pytest tests/test_a.py::test_b"}
        assert text_of(ask(server.url, "POST", "/v1/messages", messages(prompt, calls=1))).startswith("ran tests/")


def test_a_fault_of_the_server_is_said_and_not_passed_over(capfd: pytest.CaptureFixture[str]):
    with ModelServer([("hello", None)]) as server:  # type: ignore[list-item]
        for _ in range(2):
            got = ask(server.url, "POST", "/v1/messages", messages("hello"))
            assert (got.status, got.json["error"]["type"]) == (500, "api_error")
        assert "TypeError" in server.log[0].text
    assert capfd.readouterr() == ("", "")


def test_small_requests(server: ModelServer):
    for path in ("/", "/api/hello", "/v1/messages"):
        assert ask(server.url, "HEAD", path)[::2] == (200, b"")
    models = ask(server.url, "GET", "/v1/models").json
    assert (models["object"], models["data"][0]["id"], models["has_more"]) == ("list", "scripted", False)
    body = messages("hello")
    counted = ask(server.url, "POST", "/v1/messages/count_tokens", body)
    assert counted.json == {"input_tokens": len(json.dumps(body)) // 4}
    assert server.log[-1].side


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("POST", "/v1/nothing"), ("PUT", "/v1/messages"), ("DELETE", "/x")]
)
def test_what_is_not_there_is_a_json_404(server: ModelServer, method: str, path: str):
    got = ask(server.url, method, path, {"a": 1} if method in ("POST", "PUT") else None)
    assert got.status == 404
    assert got.headers["content-type"] == "application/json"
    assert path in got.json["error"]["message"]


DEEP = 100_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b"[" * DEEP,
        b'{"messages":' * DEEP,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
    ids=range(8),
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1/messages/count_tokens"])
def test_a_body_that_is_no_json_object_is_refused(server: ModelServer, path: str, body: bytes):
    got = ask(server.url, "POST", path, body)
    assert got.status == 400
    assert "JSON" in got.json["error"]["message"]


def test_odd_json_is_answered(server: ModelServer):
    for body in (
        {"messages": "x"},
        {"messages": [None, 3, {"role": ["user"], "content": {"a": 1}}], "tools": {"a": 1}, "stream": "yes"},
        {"messages": [{"role": "user", "content": "\ud800 lone"}], "model": 7},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}], "tools": [{"name": None}]},
    ):
        assert ask(server.url, "POST", "/v1/messages", body).status == 200


def test_a_huge_body_is_answered(server: ModelServer):
    padding = {"role": "assistant", "content": "x" * 5_000_000}
    body = {
        **messages(),
        "messages": [{"role": "user", "content": "a"}, padding, {"role": "user", "content": "%% say b"}],
    }
    assert text_of(ask(server.url, "POST", "/v1/messages", body)) == "b"
    assert server.log[0].usage.input > 1_250_000


def test_a_compressed_body_is_refused(server: ModelServer):
    data = json.dumps(messages("hello")).encode()
    assert ask(server.url, "POST", "/v1/messages", data, Content_Encoding="gzip").status == 415


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: many\r\n\r\n",
        "Content-Length: 99999999999\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_wrong_length_is_refused_and_ends_the_connection(server: ModelServer, head: str):
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=60) as client:
        client.sendall(f"POST /v1/messages HTTP/1.1\r\nHost: x\r\n{head}".encode())
        got = b"".join(iter(lambda: client.recv(65536), b""))
    assert got.startswith((b"HTTP/1.1 411", b"HTTP/1.1 413"))
    assert b"Connection: close" in got


def test_a_connection_is_used_again(server: ModelServer):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    for number in range(3):
        body = json.dumps(messages(f"%% say number {number}", stream=number == 1))
        connection.request("POST", "/v1/messages", body)
        got = connection.getresponse()
        assert b"numb" in got.read()
    connection.close()


@pytest.mark.parametrize("script", ["%% think 9999", "%% slow 9999 many words that nobody waits for"])
def test_a_client_that_hangs_up_is_noticed_at_once(server: ModelServer, script: str):
    body = json.dumps(messages(script, stream=True)).encode()
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=60) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        server.wait_for(lambda entry: entry.user_text, timeout=60)
    entry = server.wait_for(lambda entry: entry.ended_at, timeout=60)
    assert (entry.answer, entry.usage) == ("gone", TokenCounts())


def test_a_body_that_never_comes_whole_is_no_request(server: ModelServer):
    with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=60) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
    assert server.wait_for(lambda entry: entry.ended_at, timeout=60).answer == "gone"


def test_a_hundred_at_once_are_all_answered_right(server: ModelServer):
    together = threading.Barrier(100, timeout=60)

    def one(number: int) -> str:
        together.wait()
        return text_of(ask(server.url, "POST", "/v1/messages", messages(f"%% think 0.2\n%% say {number}")))

    with ThreadPoolExecutor(100) as pool:
        assert list(pool.map(one, range(100))) == [str(number) for number in range(100)]
    assert sorted(int(entry.text) for entry in server.log) == list(range(100))


def test_stopping_ends_what_is_under_way_and_frees_the_port(capfd: pytest.CaptureFixture[str]):
    before = set(threading.enumerate())
    with contextlib.ExitStack() as sockets:
        with ModelServer(port=quiet_port()) as server:
            url = server.url
            place = ("127.0.0.1", urlsplit(url).port or 0)
            clients = [sockets.enter_context(socket.create_connection(place, timeout=60)) for _ in range(3)]
            body = json.dumps(messages("%% think 9999")).encode()
            clients[0].sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            clients[1].sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
            server.wait_for(lambda entry: entry.user_text, timeout=60)
        wait_until(lambda: not set(threading.enumerate()) - before, timeout=60)
        assert set(threading.enumerate()) - before == set()
        for client in clients:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ConnectionRefusedError):
        ask(url, "HEAD", "/")
    with ModelServer(port=urlsplit(url).port or 0) as server:
        assert server.url == url
    with pytest.raises(MngrError, match="not running"):
        _ = server.url


def test_ids_differ_between_servers_because_conversations_outlive_them():
    ids = []
    for _ in range(2):
        with ModelServer() as server:
            ids.append(ask(server.url, "POST", "/v1/messages", messages("%% run a")).json["content"][0]["id"])
    assert ids[0] != ids[1]


def test_the_log_is_a_file_of_json_lines_too(tmp_path: Path):
    path = tmp_path / "log.jsonl"
    with ModelServer(log_path=str(path)) as server:
        ask(server.url, "POST", "/v1/messages", messages("%% run ls\n%% say \ud800"))
        ask(server.url, "HEAD", "/")
        entries = server.log
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{**entry._asdict(), "usage": entry.usage._asdict()} for entry in entries]
    assert [line["tool"] for line in lines] == ["Bash", ""]


def test_mistakes_of_the_caller_are_said_before_anything_runs(tmp_path: Path):
    with pytest.raises(MngrError, match="regular expression"):
        ModelServer([("(", "%% say x")])
    with pytest.raises(MngrError, match=r"nowhere/log"):
        ModelServer(log_path=str(tmp_path / "nowhere" / "log"))
    with ModelServer() as server:
        port = urlsplit(server.url).port or 0
        with pytest.raises(MngrError, match=f"port {port}"), ModelServer(port=port):
            pass
        with pytest.raises(MngrError, match="`emacs`"):
            server.env("emacs")
        with pytest.raises(MngrError, match="`emacs`"):
            server.args("emacs")


def test_programs_are_pointed_at_the_server(server: ModelServer):
    assert server.env("claude") == {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_AUTH_TOKEN": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    assert server.env("codex")["OPENAI_BASE_URL"] == f"{server.url}/v1"
    assert f'model_providers.scripted.base_url="{server.url}/v1"' in server.args("codex")
    config = json.loads(server.env("opencode")["OPENCODE_CONFIG_CONTENT"])
    assert config["provider"]["scripted"]["options"]["baseURL"] == f"{server.url}/v1"
    assert server.args("claude") == server.args("opencode") == []


COMMAND = [sys.executable, "-m", "mngr_testing.model_server"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_its_url_and_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals):
    (tmp_path / "rules.toml").write_text("[[rule]]\nwhen = 'hello (.*)'\ndo = '%% say bye \\1'\n")
    log = tmp_path / "log.jsonl"
    argv = [*COMMAND, "--script", str(tmp_path / "rules.toml"), "--log", str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert text_of(ask(url, "POST", "/v1/messages", messages("hello you"))) == "bye you"
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            connection.request("POST", "/v1/messages", json.dumps(messages("%% slow 9999 text", stream=True)))
            answer = connection.getresponse()
            process.send_signal(number)
            with pytest.raises(http.client.IncompleteRead):
                answer.read()
            connection.close()
            assert process.wait(60) == 0
        finally:
            process.kill()
        assert process.communicate() == ("", "")
    assert [json.loads(line)["answer"] for line in log.read_text().splitlines()] == ["text", "gone"]


def test_the_command_says_what_is_wrong(tmp_path: Path):
    done = subprocess.run([*COMMAND, "--script", os.devnull], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: `/dev/null` has no `[[rule]]`\nhint: a rule is")


GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "model-server.md").read_text()


def test_the_example_of_the_guide_runs(tmp_path: Path):
    example, *_ = re.findall(r"^```sh\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-ec", f"{example}\nwait $server"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "It works.\n", "")
    assert json.loads((tmp_path / "log.jsonl").read_text())["text"] == "It works."


def test_the_guide_names_every_directive_and_its_rules_are_rules(tmp_path: Path):
    found = re.findall(r"^\| `%% (\w+) ?([^`]*)` \|", GUIDE, flags=re.MULTILINE)
    sample = {"SECONDS": "1", "CODE": "429", "N": "2", "S": "3"}
    for word, rest in found:
        line = f"%% {word} " + re.sub(r"\b[A-Z]+\b", lambda name: sample.get(name[0], name[0]), rest)
        assert turn(f"{line}\nEND" if "<<END" in line else line), line
    with pytest.raises(BadDirective) as caught:
        turn("%% nothing")
    assert sorted(re.findall(r"\w+", caught.value.hint)) == sorted(
        [word for word, _ in found] + ["known", "are", "and"]
    )
    (rules,) = re.findall(r"^```text\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "rules.toml").write_text(rules)
    assert turn("Test: a.py", load_rules(str(tmp_path / "rules.toml")))[0].call == Call("run", "pytest a.py")
