"""The script of the model server: what directives and rules mean, which text is the user's, which tool does it."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import MngrError
from mngr_testing.model_server.request import Tool, real_text, working_directory
from mngr_testing.model_server.script import (
    BadDirective,
    Call,
    Response,
    Rule,
    ScriptedFailure,
    TextPart,
    check_rules,
    failure,
    load_rules,
    response,
    turn,
)
from mngr_testing.model_server.tools import ToolCall, plainest, tool_call
from tests.support.timing import best_of


def shell(name: str, argument: str, **schema: object) -> Tool:
    return Tool(
        name, {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument], **schema}
    )


def test_each_tool_ends_a_response_and_the_turn_ends_with_a_text():
    found = turn('please\n%% say one\n%% say two\n%% run ls -l\n%% tool Read {"a": 1}\n%% say three')
    assert found == [
        Response((TextPart("one"), TextPart("two")), Call("run", "ls -l")),
        Response((), Call("tool", "Read", arguments={"a": 1})),
        Response((TextPart("three"),)),
    ]
    assert found[0].text == "one\ntwo"


def test_a_turn_without_a_last_text_says_done_and_so_does_a_step_beyond_the_end():
    assert turn("%% run ls")[-1] == Response((TextPart("done"),))
    assert response("%% say a", 7) == Response((TextPart("done"),))


def test_without_directives_the_text_is_repeated_up_to_200_characters():
    assert turn("hello\nthere") == [Response((TextPart("you said: hello there"),))]
    assert turn("x" * 300)[0].text == "you said: " + "x" * 200
    assert turn("50%% off\n %% say indented")[0].text.startswith("you said: 50%%")


def test_modifiers_belong_to_the_response_that_follows():
    first, last = turn(
        "%% think 1.5\n%% status 429 times=2 retry-after=3\n%% drop\n%% run a\n"
        "%% usage input=1 output=2 cache_read=3 cache_write=4\n%% garbage times=2\n%% slow 2 text of it"
    )
    assert first.think_seconds == 1.5
    assert first.failures == (ScriptedFailure("status", 429, 2, (("retry-after", "3"),)), ScriptedFailure("drop"))
    assert (first.usage, first.call) == (None, Call("run", "a"))
    assert last.usage == {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4}
    assert (last.failures, last.parts) == ((ScriptedFailure("garbage", times=2),), (TextPart("text of it", 2.0),))


def test_a_status_may_come_with_headers_and_a_message():
    later = ("retry-after", "3")
    for words, times, headers in (
        ("", 1, ()),
        (" times=2", 2, ()),
        (" retry-after=3 times=2 x-a=b", 2, (later, ("x-a", "b"))),
    ):
        (only,) = turn(f"%% status 429{words} Hit your limit · resets  1:22am a=b")
        assert only.failures == (ScriptedFailure("status", 429, times, headers, "Hit your limit · resets  1:22am a=b"),)


def test_failures_happen_in_order_and_then_no_more():
    failures = (ScriptedFailure("status", 500, 2), ScriptedFailure("drop"))
    found = [failure(failures, attempt) for attempt in range(5)]
    assert found == [failures[0], failures[0], failures[1], None, None]


def test_a_here_document_keeps_its_lines_and_is_no_place_for_directives():
    first, second, last = turn(
        "%% write dir/a b.txt <<END\n  one\n%% say not a directive\n\nEND \n%% run <<X\na\nb\nX\n%% say <<Y\nc\nd\nY"
    )
    assert first.call == Call("write", "dir/a b.txt", "  one\n%% say not a directive\n\n")
    assert second.call == Call("run", "a\nb")
    assert last.text == "c\nd"


def test_the_quotes_of_opencode_are_taken_off_only_around_directives():
    assert turn('"%% say \\"a\\" b"')[0].text == '"a" b'
    assert turn('"hello there"')[0].text == 'you said: "hello there"'


@pytest.mark.parametrize(
    "text",
    [
        "%% sya x",
        "%% run",
        "%% think soon",
        "%% think -1",
        "%% slow fast text",
        "%% status",
        "%% status 200",
        "%% status 429 time=2",
        "%% status 429 times=x",
        '%% status 429 {"error"',
        "%% drop times=" + "9" * 5000,
        "%% drop retry-after=1",
        "%% usage tokens=3",
        "%% usage input=-3",
        "%% tool",
        "%% tool X [1]",
        "%% tool X {",
        "%% tool X " + '{"a":' * 100_000,
        "%% write a.txt",
        "%% write <<END\nx\nEND",
        "%% write a.txt <<END\nx",
    ],
)
def test_what_cannot_be_read_is_refused(text: str):
    with pytest.raises(BadDirective):
        turn(text)


@given(st.text(alphabet="% \nsayrunwitedol<>E{}0=\"'\\\ud800"))
def test_any_text_is_a_turn_or_refused(text: str):
    try:
        found = turn(text)
    except BadDirective:
        return
    assert found[-1].call is None and found[-1].parts
    assert all(one.call for one in found[:-1])


def test_the_first_rule_that_is_found_gives_the_directives():
    rules = check_rules(
        [
            (r"^Test: (\S+)::(\w+)", "%% run pytest \\1 -k \\2\n%% say ran \\2 \\9"),
            Rule("Test", "%% say later rule"),
        ]
    )
    text = "You work alone.\n\nTest: tests/a.py::test_x (line 3)"
    assert turn(text, rules) == [
        Response((), Call("run", "pytest tests/a.py -k test_x")),
        Response((TextPart("ran test_x \\9"),)),
    ]
    assert turn("Test it", rules)[0].text == "later rule"
    assert turn("else", rules)[0].text == "you said: else"
    assert turn("Test: a::b\n%% say own", rules)[0].text == "own"


def test_rules_are_read_from_toml(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nwhen = "a (b)"\ndo = """\n%% say \\\\1\n"""\n[[rule]]\nwhen = "c"\ndo = "%% drop"\n')
    assert load_rules(str(path)) == (Rule("a (b)", "%% say \\1\n"), Rule("c", "%% drop"))


@pytest.mark.parametrize(
    "text", ["", "rule = 3", "[[rule]]\nwhen = 'a'", "[[rule]]\nwhen = '('\ndo = ''", "[[rule", "rule = [1]", "\xff"]
)
def test_rules_that_are_wrong_are_refused_before_any_agent_starts(tmp_path, text: str):
    path = tmp_path / "rules.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(MngrError) as caught:
        load_rules(str(path))
    assert "[[rule]]" in caught.value.hint


def test_a_file_of_rules_that_is_missing_is_named(tmp_path):
    with pytest.raises(MngrError, match=r"none\.toml"):
        load_rules(str(tmp_path / "none.toml"))


def test_what_programs_insert_is_not_the_users_text():
    assert real_text(["<system-reminder>\nx\n</system-reminder>", "hello"]) == "hello"
    assert (
        real_text(["<system-reminder>a</system-reminder>\nhello <b>\n<system-reminder>c</system-reminder>"])
        == "hello <b>"
    )
    assert real_text(["<environment_context>\n <cwd>/x</cwd>\n</environment_context>"]) == ""
    assert real_text(["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\na\n</INSTRUCTIONS>"]) == ""
    assert real_text(["%% think 9", "[Request interrupted by user]", "%% say b"]) == "%% say b"
    assert real_text(["[Request interrupted by user for tool use]"]) == ""
    assert real_text(["<system-reminder> without an end"]) == "<system-reminder> without an end"
    assert real_text(["one", "\n\n", "two\n"]) == "one\ntwo"


def test_a_message_in_mid_turn_is_taken_out_of_its_frame():
    frame = (
        "The user sent a new message while you were working:\n%% say a\n\n%% say b\n\nThis is how Claude Code shows it."
    )
    assert real_text([frame]) == "%% say a\n\n%% say b"


def test_reading_a_hostile_text_takes_no_longer_than_reading_it():
    hostile = "<system-reminder><environment_context>" * 50_000

    def measure(_: int) -> float:
        began = time.process_time()
        assert real_text([hostile]) == hostile
        return time.process_time() - began

    best_of(3, 5, measure)


@pytest.mark.parametrize(
    ("tools", "name", "arguments"),
    [
        ([shell("Bash", "command")], "Bash", {"command": "ls"}),
        (
            [shell("bash", "command", required=["command", "description"])],
            "bash",
            {"command": "ls", "description": "scripted"},
        ),
        ([shell("exec_command", "cmd")], "exec_command", {"cmd": "ls"}),
        ([shell("run_shell_command", "command")], "run_shell_command", {"command": "ls"}),
        (
            [Tool("shell", {"properties": {"command": {"type": "array"}}})],
            "shell",
            {"command": ["bash", "-lc", "ls"]},
        ),
        ([shell("Read", "file_path"), shell("Bash", "command")], "Bash", {"command": "ls"}),
    ],
)
def test_a_command_takes_the_shape_of_the_shell_tool_on_offer(tools: list[Tool], name: str, arguments: dict):
    call = tool_call(Call("run", "ls"), tools, "/w")
    assert (call.name, json.loads(call.input), call.custom) == (name, arguments, False)


def test_codex_is_given_time_for_its_commands():
    tool = Tool("exec_command", {"properties": {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}})
    assert tool_call(Call("run", "ls"), [tool], "").arguments == {"cmd": "ls", "yield_time_ms": 30000}


def test_a_tool_that_runs_javascript_calls_the_shell_from_there():
    tools = [Tool("exec", {}, custom=True)]
    assert tool_call(Call("run", 'echo "a"'), tools, "") == ToolCall(
        "exec", 'text(await tools.exec_command({"cmd": "echo \\"a\\"", "yield_time_ms": 30000}));', True
    )
    patch = Call("tool", "apply_patch", arguments={"input": "*** Begin"})
    assert tool_call(patch, tools, "").input == 'text(await tools.apply_patch("*** Begin"));'


def test_without_a_shell_tool_the_offer_is_named():
    with pytest.raises(BadDirective, match="only: Read"):
        tool_call(Call("run", "ls"), [shell("Read", "file_path")], "")


def test_a_file_is_written_by_the_write_tool_with_a_whole_path():
    for name, field in (("Write", "file_path"), ("write", "filePath"), ("write_file", "path")):
        tool = Tool(name, {"properties": {field: {}, "content": {}}, "required": [field, "content"]})
        call = tool_call(Call("write", "d/a.txt", "x\n"), [shell("Bash", "command"), tool], "/w")
        assert (call.name, call.arguments) == (name, {field: "/w/d/a.txt", "content": "x\n"})
        assert tool_call(Call("write", "/a", ""), [tool], "/w").arguments[field] == "/a"


def test_without_a_write_tool_a_file_is_written_by_the_shell(tmp_path):
    import subprocess

    content = 'it\'s `x` $HOME \\n "q"\nEND\n  EOF\n'
    call = tool_call(Call("write", "a b/c'd.txt", content), [shell("bash", "command")], str(tmp_path))
    subprocess.run(["bash", "-c", call.arguments["command"]], cwd=tmp_path, check=True)
    assert (tmp_path / "a b" / "c'd.txt").read_text() == content


def test_a_custom_tool_gets_free_text():
    tools = [Tool("apply_patch", {}, custom=True)]
    call = tool_call(Call("tool", "apply_patch", arguments={"input": "*** Begin"}), tools, "")
    assert call == ToolCall("apply_patch", "*** Begin", True)


def test_a_tool_that_is_not_on_offer_is_called_all_the_same():
    assert tool_call(Call("tool", "Nope", arguments={"a": 1}), [], "") == ToolCall("Nope", '{"a": 1}')


def test_the_working_directory_is_read_from_what_the_program_says():
    assert working_directory("x\n - Primary working directory: /a b\n") == "/a b"
    assert working_directory("<env>\n  Working directory: /w\n</env>") == "/w"
    assert working_directory("<cwd>/w</cwd>") == "/w"
    assert working_directory("nothing") == ""


def test_the_plainest_value_fits_a_schema():
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "n": {"type": "integer"},
            "e": {"enum": ["x", "y"]},
            "l": {"type": "array"},
        },
    }
    assert plainest(schema) == {"title": "scripted", "n": 0, "e": "x", "l": []}
