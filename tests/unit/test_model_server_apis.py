"""The three APIs of the model server, field by field: what is read from a request, what an answer looks like."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_testing.model_server import anthropic, openai_chat, openai_responses
from mngr_testing.model_server.answer import ModelAnswer, StreamPiece, TokenCounts, answer, deltas, side_answer
from mngr_testing.model_server.request import ModelRequest, Tool
from mngr_testing.model_server.script import Call, Response, TextPart
from mngr_testing.model_server.tools import ToolCall

USAGE = TokenCounts(11, 22, 33, 44)
TEXT = ModelAnswer("7", "m-1", (TextPart("one"), TextPart("two")), None, USAGE)
TOOL = ModelAnswer("7", "m-1", (TextPart("hi"),), ToolCall("Bash", '{"command": "ls"}'), USAGE)
BARE_TOOL = TOOL._replace(parts=())
CUSTOM = BARE_TOOL._replace(call=ToolCall("apply_patch", "*** Begin", True))


def named_events(pieces: list[StreamPiece]) -> list[dict[str, Any]]:
    """Events of a stream; each names its type in both places."""
    found = []
    for block in b"".join(piece.data for piece in pieces).decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        found.append(value)
    return found


def test_a_stream_of_messages_with_a_tool_call():
    usage = {
        "input_tokens": 11,
        "cache_creation_input_tokens": 44,
        "cache_read_input_tokens": 33,
        "output_tokens": 22,
    }
    start, *middle, ended, stop = named_events(anthropic.stream(TOOL))
    assert start == {
        "type": "message_start",
        "message": {
            "id": "msg_7",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        },
    }
    assert middle == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "h"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "i"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_7", "name": "Bash", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"comman'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'd": "ls"}'}},
        {"type": "content_block_stop", "index": 1},
    ]
    assert ended == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": usage,
    }
    assert stop == {"type": "message_stop"}


def test_a_stream_of_messages_that_ends_the_turn():
    events = named_events(anthropic.stream(TEXT))
    text = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
    assert text == "one\ntwo"
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    assert [event["index"] for event in named_events(anthropic.stream(BARE_TOOL)) if "index" in event] == [0] * 5


def test_a_whole_message():
    assert anthropic.whole(TOOL) == {
        "id": "msg_7",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "toolu_7", "name": "Bash", "input": {"command": "ls"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 11,
            "cache_creation_input_tokens": 44,
            "cache_read_input_tokens": 33,
            "output_tokens": 22,
        },
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (418, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_of_anthropic(status: int, kind: str):
    error = {"type": "error", "error": {"type": kind, "message": "why"}, "request_id": "req_7"}
    assert anthropic.error(status, "why", "7") == error


PART = {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}
MESSAGE_ITEM = {
    "id": "msg_7",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [PART],
}
CALL_ITEM = {
    "id": "fc_7",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_7",
    "name": "Bash",
    "arguments": '{"command": "ls"}',
}


def test_a_stream_of_responses_with_a_function_call():
    events = named_events(openai_responses.stream(TOOL))
    assert [event.pop("sequence_number") for event in events] == list(range(len(events)))
    created, in_progress, *middle, completed = events
    assert (created["type"], in_progress["type"]) == ("response.created", "response.in_progress")
    assert created["response"]["status"] == "in_progress"
    assert created["response"]["output"] == [] and created["response"]["usage"] is None
    text_at = {"item_id": "msg_7", "output_index": 0, "content_index": 0}
    call_at = {"item_id": "fc_7", "output_index": 1}
    assert middle == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**MESSAGE_ITEM, "content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **text_at, "part": {**PART, "text": ""}},
        {"type": "response.output_text.delta", **text_at, "delta": "h", "logprobs": []},
        {"type": "response.output_text.delta", **text_at, "delta": "i", "logprobs": []},
        {"type": "response.output_text.done", **text_at, "text": "hi", "logprobs": []},
        {"type": "response.content_part.done", **text_at, "part": PART},
        {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE_ITEM},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**CALL_ITEM, "arguments": "", "status": "in_progress"},
        },
        {"type": "response.function_call_arguments.delta", **call_at, "delta": '{"comman'},
        {"type": "response.function_call_arguments.delta", **call_at, "delta": 'd": "ls"}'},
        {"type": "response.function_call_arguments.done", **call_at, "arguments": '{"command": "ls"}'},
        {"type": "response.output_item.done", "output_index": 1, "item": CALL_ITEM},
    ]
    assert completed == {"type": "response.completed", "response": openai_responses.whole(TOOL)}


def test_a_whole_response():
    found = openai_responses.whole(TOOL)
    assert found["output"] == [MESSAGE_ITEM, CALL_ITEM]
    assert (found["id"], found["object"], found["status"], found["model"]) == ("resp_7", "response", "completed", "m-1")
    assert found["usage"] == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 33, "cache_write_tokens": 44},
        "output_tokens": 22,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 33,
    }


def test_a_custom_tool_call_is_streamed_as_free_text():
    item = {
        "id": "ctc_7",
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": "call_7",
        "name": "apply_patch",
        "input": "*** Begin",
    }
    events = named_events(openai_responses.stream(CUSTOM))[2:-1]
    at = {"item_id": "ctc_7", "output_index": 0}
    for event in events:
        del event["sequence_number"]
    assert events == [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "input": "", "status": "in_progress"},
        },
        {"type": "response.custom_tool_call_input.delta", **at, "delta": "*** "},
        {"type": "response.custom_tool_call_input.delta", **at, "delta": "Begin"},
        {"type": "response.custom_tool_call_input.done", **at, "input": "*** Begin"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    ]


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (429, "rate_limit_error", "rate_limit_exceeded"),
        (500, "server_error", "server_error"),
    ],
)
def test_errors_of_openai(status: int, kind: str, code: str | None):
    error = {"error": {"message": "why", "type": kind, "param": None, "code": code}}
    assert openai_responses.error(status, "why", "7") == openai_chat.error(status, "why", "7") == error


def chunks(pieces: list[StreamPiece]) -> list[dict[str, Any]]:
    *found, end, rest = b"".join(piece.data for piece in pieces).decode().split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in found]


CHAT_USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 22,
    "total_tokens": 33,
    "prompt_tokens_details": {"cached_tokens": 33, "cache_write_tokens": 44},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def test_a_stream_of_chat_completions_with_a_tool_call():
    found = chunks(openai_chat.stream(TOOL))
    top = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 0, "model": "m-1"}
    assert all({name: chunk[name] for name in top} == top for chunk in found)
    *most, last = found
    assert (last["choices"], last["usage"]) == ([], CHAT_USAGE)
    assert all(chunk["usage"] is None for chunk in most)
    call = {"index": 0, "id": "call_7", "type": "function", "function": {"name": "Bash", "arguments": ""}}
    choices = [choice for chunk in most for choice in chunk["choices"]]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"content": "h"},
        {"content": "i"},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"comman'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'd": "ls"}'}}]},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None] * 6 + ["tool_calls"]


def test_a_stream_of_chat_completions_reports_usage_only_if_asked():
    found = chunks(openai_chat.stream(TEXT, False))
    assert all("usage" not in chunk and chunk["choices"] for chunk in found)
    assert found[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_whole_chat_completion():
    function = {"name": "Bash", "arguments": '{"command": "ls"}'}
    assert openai_chat.whole(BARE_TOOL) == {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 0,
        "model": "m-1",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "tool_calls": [{"id": "call_7", "type": "function", "function": function}],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": CHAT_USAGE,
    }
    assert openai_chat.whole(TEXT)["choices"][0]["message"]["content"] == "one\ntwo"


def test_slow_text_is_streamed_over_its_time():
    found = deltas((TextPart("now"), TextPart("x" * 100, 2.0)))
    assert "".join(text for text, _ in found) == "now\n" + "x" * 100
    assert sum(pause for _, pause in found) == pytest.approx(2.0)
    assert len(found) > 15
    assert deltas((TextPart("", 1.0),)) == [("", 1.0)]


def test_messages_are_read():
    reminder = {"type": "text", "text": "<system-reminder>Primary working directory: /w\n</system-reminder>"}
    body = {
        "model": "claude-x",
        "stream": True,
        "system": [{"type": "text", "text": "sys"}],
        "metadata": {"user_id": "u-1"},
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "before"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": [reminder, {"type": "text", "text": "%% run a\n%% run b"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "t"}, {"type": "tool_use", "id": "1"}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": "%% say no"}, reminder],
            },
        ],
    }
    asked = anthropic.parse(body)
    assert asked.texts == ("before", "%% run a\n%% run b")
    assert (asked.step, asked.session, asked.model, asked.stream) == (1, "u-1", "claude-x", True)
    assert asked.tools == (Tool("Bash", {"type": "object"}),)


def test_responses_are_read():
    def user(text: str) -> dict[str, Any]:
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    body = {
        "model": "gpt-x",
        "stream": True,
        "prompt_cache_key": "s-1",
        "tools": [
            {"type": "function", "name": "exec_command", "parameters": {"type": "object"}},
            {"type": "custom", "name": "apply_patch"},
            {"type": "web_search"},
        ],
        "input": [
            {
                "type": "additional_tools",
                "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}],
            },
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "dev"}]},
            user("<environment_context><cwd>/w</cwd></environment_context>"),
            user("go"),
            {"type": "reasoning"},
            {"type": "function_call", "name": "exec_command", "arguments": "{}"},
            {"type": "function_call_output", "output": "x"},
            {"type": "custom_tool_call", "name": "apply_patch", "input": ""},
            {"type": "custom_tool_call_output", "output": "x"},
        ],
    }
    asked = openai_responses.parse(body)
    assert (asked.texts, asked.step, asked.session) == (("go",), 2, "s-1")
    assert asked.tools == (
        Tool("exec_command", {"type": "object"}),
        Tool("apply_patch", {}, custom=True),
        Tool("f", {}, namespace="n"),
    )
    assert "<cwd>/w</cwd>" in asked.system
    assert openai_responses.parse({"input": "hello"}).text == "hello"


def test_a_command_that_codex_leaves_running_is_waited_for_and_counts_once():
    still = "Chunk ID: 1\nWall time: 30.0010 seconds\nProcess running with session ID 35795\nOutput:\n"
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "%% run make"},
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "make"}'},
        {"type": "function_call_output", "output": still},
    ]
    asked = openai_responses.parse({"input": items})
    assert (asked.step, asked.running) == (1, "35795")
    items += [
        {"type": "function_call", "name": "write_stdin", "arguments": '{"session_id": 35795, "chars": ""}'},
        {"type": "function_call_output", "output": "Wall time: 3 seconds\nProcess exited with code 0\n"},
    ]
    asked = openai_responses.parse({"input": items})
    assert (asked.step, asked.running) == (1, "")


def test_a_script_of_codex_tells_that_its_command_still_runs():
    result = '{"chunk_id":"15c876","wall_time_seconds":30.0008,"session_id":44326,"output":""}'
    output = [{"type": "input_text", "text": "Script completed\n"}, {"type": "input_text", "text": result}]
    items = [{"type": "custom_tool_call_output", "output": output}]
    assert openai_responses.parse({"input": items}).running == "44326"
    waits = {
        "type": "custom_tool_call",
        "name": "exec",
        "input": 'text(await tools.write_stdin({"session_id": 44326}));',
    }
    assert openai_responses.parse({"input": [waits]}).step == 0


def test_chats_are_read():
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Working directory: /w"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "tool_call_id": "1", "content": "%% say no"},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "stream_options": {"include_usage": True},
    }
    asked = openai_chat.parse(body)
    assert (asked.texts, asked.step, asked.include_usage) == (("go",), 1, True)
    assert asked.tools == (Tool("bash", {"type": "object"}),)
    assert openai_chat.parse({"messages": []}).include_usage is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "model",
                    "messages",
                    "input",
                    "role",
                    "content",
                    "type",
                    "text",
                    "tools",
                    "name",
                    "parameters",
                    "function",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("parse", [anthropic.parse, openai_responses.parse, openai_chat.parse])
@given(st.dictionaries(st.sampled_from(["model", "messages", "input", "tools", "system", "text", "metadata"]), JSON))
def test_any_json_is_read(parse: Callable[[dict], ModelRequest], body: dict):
    assert isinstance(parse(body), ModelRequest)


def test_usage_is_counted_from_the_sizes_unless_it_is_given():
    asked = anthropic.parse({"tools": [{"name": "Bash"}], "messages": []})
    step = Response((TextPart("x" * 40),), Call("run", "ls"))
    assert answer("1", asked, step, 4000).usage == TokenCounts(1000, (40 + len('{"command": "ls"}')) // 4, 0, 0)
    assert answer("1", asked, step._replace(usage={"cache_read": 5}), 4000).usage == TokenCounts(1000, 14, 5, 0)
    assert answer("1", asked, Response((TextPart("x"),)), 0).usage == TokenCounts(1, 1)


def test_a_side_request_gets_what_its_schema_wants():
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    asked = openai_responses.parse({"text": {"format": {"type": "json_schema", "schema": schema}}})
    assert side_answer("1", asked, 40).text == '{"title": "scripted"}'
    assert side_answer("1", openai_responses.parse({}), 40).text == "scripted"
