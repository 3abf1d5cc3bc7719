"""The driver of OpenCode without the program: what it prepares, and what it reads from the plugin's record."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.errors import MngrError
from mngr.programs.driver import AgentContext
from mngr.programs.kind import BYPASS, EDITS
from mngr.programs.opencode import record as opencode_record
from mngr.programs.opencode.driver import DRIVER, IMPORT, INBOX, RECORD
from mngr.system.state_dir import StateDir
from tests.support.records import make_record


def make_place(root: Path, environ: dict[str, str] | None = None, **fields: Any) -> AgentContext:
    (root / "state" / "home").mkdir(parents=True)
    (root / "user").mkdir()
    values: dict[str, Any] = {
        "id": "agent-" + "0" * 32,
        "name": "fix it",
        "kind": "opencode",
        "command": "opencode",
        "work_dir": "/work",
        "transfer": "none",
        "session": "mngr-fix",
        "created_at": "2026-01-01T00:00:00.000000Z",
        **fields,
    }
    given = {"HOME": str(root / "user"), **(environ or {})}
    return AgentContext(StateDir(str(root)), make_record(**values), str(root / "state"), given)


SESSION = {"id": "ses_1", "title": "fix it", "directory": "/work"}
CHILD = {"id": "ses_2", "title": "look around", "directory": "/work", "parentID": "ses_1"}


def line(kind: str, value: object, second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000000Z", kind: value}


def message(number: int, role: str, session: str = "ses_1", **more: Any) -> dict[str, Any]:
    return {"id": f"msg_{number}", "role": role, "sessionID": session, **more}


def part(number: int, of: int, type: str, **more: Any) -> dict[str, Any]:
    return {"id": f"prt_{number}", "messageID": f"msg_{of}", "type": type, **more}


def tool(number: int, of: int, **state: Any) -> dict[str, Any]:
    return part(number, of, "tool", tool="bash", state={"input": {"command": "make"}, **state})


CONVERSATION = [
    line("session", SESSION),
    line("message", message(1, "user"), 1),
    line("part", part(1, 1, "text", text="build it"), 1),
    line("part", part(2, 1, "text", text="a reminder", synthetic=True), 1),
    line("message", message(2, "assistant", modelID="big"), 2),
    line("part", tool(3, 2, status="running"), 2),
    line("part", tool(3, 2, status="completed", output="built", metadata={"exit": 2}), 4),
    line("message", message(3, "user"), 3),
    line("part", part(4, 3, "text", text="and test it"), 3),
    line(
        "part",
        part(5, 2, "step-finish", cost=0, tokens={"input": 7, "output": 3, "reasoning": 2, "cache": {"read": 5}}),
        5,
    ),
    line("message", message(2, "assistant", modelID="big"), 5),
    line("session", CHILD, 6),
    line("message", message(4, "assistant", "ses_2", modelID="small"), 6),
    line("part", part(6, 4, "text", text="looked"), 6),
    line("part", part(7, 4, "step-finish", cost=0.5, tokens={"input": 1, "output": 1, "cache": {"write": 9}}), 7),
    line("message", message(5, "assistant", error={"name": "APIError", "data": {"message": "no"}}), 8),
]


def test_the_transcript_has_what_was_said_and_done_in_order_of_time() -> None:
    found = opencode_record.transcript(CONVERSATION)
    assert [(entry["role"], entry["text"]) for entry in found] == [
        ("user", "build it"),
        ("user", "and test it"),
        ("tool_call", ""),
        ("tool_result", "built"),
        ("assistant", "[APIError: no]"),
    ]
    assert found[2]["input"] == "make" and found[3]["exit_code"] == 2


def test_usage_counts_every_answer_once_with_those_of_subagents() -> None:
    lines = [*CONVERSATION, CONVERSATION[9]]
    first, second = opencode_record.usage(lines)
    assert first[1:] == ("big", 7, 5, 5, 0, None)
    assert second[1:] == ("small", 1, 1, 0, 9, 0.5)


def test_what_was_taken_back_is_not_in_the_conversation() -> None:
    lines = [*CONVERSATION, line("removed", "msg_3")]
    assert "and test it" not in str(opencode_record.transcript(lines))


def test_what_was_taken_back_was_used_all_the_same() -> None:
    lines = [*CONVERSATION, line("removed", "prt_5"), line("removed", "msg_2"), line("removed", "prt_7")]
    assert opencode_record.usage(lines) == opencode_record.usage(CONVERSATION)


def test_lines_of_another_form_are_passed_over() -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"message": 7},
        {"part": {"id": 3}},
        {"part": {"id": "x", "type": "tool"}},
        {"removed": []},
    ]
    assert opencode_record.transcript(odd) == []
    assert opencode_record.usage([*odd, line("part", part(1, 1, "step-finish", tokens={"input": "many"}))])[0][2:4] == (
        0,
        0,
    )
    assert opencode_record.session(odd) is None


def test_the_session_is_the_one_that_was_talked_to_last() -> None:
    other = [line("session", {"id": "ses_9", "directory": "/work"}, 9)]
    found = opencode_record.session([*CONVERSATION, *other])
    assert found is not None and found["id"] == "ses_1"
    found = opencode_record.session([*CONVERSATION, *other, line("message", message(9, "user", "ses_9"))])
    assert found is not None and found["id"] == "ses_9"


def test_a_tool_that_was_at_work_is_exported_as_interrupted() -> None:
    lines = [*CONVERSATION[:5], line("part", tool(3, 2, status="running", time={"start": 5}))]
    found = opencode_record.exported(lines, SESSION)
    assert found["info"] == SESSION
    assert [one["info"]["id"] for one in found["messages"]] == ["msg_1", "msg_2"]
    state = found["messages"][1]["parts"][0]["state"]
    assert (state["status"], state["time"]) == ("error", {"start": 5, "end": 5})


def test_the_users_settings_are_copied_and_their_login_linked(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    config, data = (tmp_path / "user" / path / "opencode" for path in (".config", ".local/share"))
    for folder in (config / "agents", config / "plugins", config / "node_modules", data):
        folder.mkdir(parents=True)
    for path in (config / "opencode.json", config / "plugins" / "theirs.js", data / "auth.json"):
        path.write_text("{}")
    DRIVER.prepare(place, prompted=False)
    own = Path(place.home) / "config" / "opencode"
    assert (own / "opencode.json").read_text() == "{}" and not (own / "opencode.json").is_symlink()
    assert (own / "agents").resolve() == config / "agents"
    assert sorted(os.listdir(own / "plugins")) == ["mngr.js", "theirs.js"]
    assert not (own / "node_modules").is_symlink()
    assert (Path(place.home) / "data" / "opencode" / "auth.json").resolve() == data / "auth.json"
    (config / "opencode.json").unlink()
    DRIVER.prepare(place, prompted=False)
    assert not (own / "opencode.json").exists(), "what the user removed is gone at the next start"
    assert (config / "agents").is_dir() and (data / "auth.json").is_file(), "nothing of theirs was touched"


def run(place: AgentContext, command: str, program: str, **environ: str) -> str:
    """The launch line with another program in OpenCode's place."""
    folder = Path(place.state_dir).parent / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "opencode").write_text(f"#!/bin/sh\n{program}\n")
    (folder / "opencode").chmod(stat.S_IRWXU)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", **environ}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_the_first_prompt_waits_in_the_inbox(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    text = "it's\n$HOME `x` " * 20_000
    Path(place.prompt_file).write_text(text)
    launch = DRIVER.prepare(place, prompted=True)
    assert run(place, launch.command, 'echo "$#"') == "0\n"
    assert Path(place.home, INBOX, "0").read_text() == text
    DRIVER.prepare(place, prompted=False)
    assert os.listdir(f"{place.home}/{INBOX}") == [], "what a stopped agent did not take is not sent later"


def test_the_program_gets_its_own_directories_and_passes_the_users_along(tmp_path: Path) -> None:
    place = make_place(tmp_path, permissions=BYPASS, command="X=1 opencode --agent plan -m a/b/c")
    shown = run(place, DRIVER.prepare(place, prompted=False).command, "env", XDG_CONFIG_HOME="/theirs")
    found = dict(line.split("=", 1) for line in shown.splitlines())
    assert found["XDG_CONFIG_HOME"] == f"{place.home}/config" and found["MNGR_OWN_XDG_CONFIG_HOME"] == "/theirs"
    assert found["XDG_DATA_HOME"] == f"{place.home}/data" and found["MNGR_OWN_XDG_DATA_HOME"] == ""
    assert json.loads(found["OPENCODE_PERMISSION"])["*"] == "allow" and found["X"] == "1"
    assert json.loads(found["MNGR_OPENCODE"]) == {
        "title": "fix it",
        "interactive": True,
        "session": "",
        "agent": "plan",
        "model": {"providerID": "a", "modelID": "b/c"},
    }


def test_without_permissions_chosen_the_users_settings_decide(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    assert "OPENCODE_PERMISSION" not in DRIVER.prepare(place, prompted=False).command
    editing = place._replace(record=place.record.changed(permissions=EDITS))
    assert '"edit": "allow"' in DRIVER.prepare(editing, prompted=False).command
    assert '"*"' not in DRIVER.prepare(editing, prompted=False).command


@pytest.mark.parametrize(
    ("directory", "database", "imports"), [("/work", True, 0), ("/work", False, 1), ("/", True, 1)]
)
def test_a_conversation_goes_on_from_the_database_or_from_the_record(
    tmp_path: Path, directory: str, database: bool, imports: int
) -> None:
    place = make_place(tmp_path)
    lines = [line("session", {**SESSION, "directory": directory}), *CONVERSATION[1:3]]
    Path(place.home, RECORD).write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"half')
    if database:
        Path(place.home, "data", "opencode").mkdir(parents=True)
        Path(place.home, "data", "opencode", "opencode.db").touch()
    command = DRIVER.prepare(place, prompted=False).command
    said = run(place, command, f'echo "$@ $MNGR_OPENCODE" >> {tmp_path}/calls; echo noise')
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1].startswith("--session ses_1 {") and said == "noise\n"
    assert calls[:-1] == [f"import {place.home}/{IMPORT} "] * imports
    if imports:
        assert json.loads(Path(place.home, IMPORT).read_text())["messages"][0]["parts"][0]["text"] == "build it"


def test_one_task_is_read_from_a_file_and_has_a_title(tmp_path: Path) -> None:
    place = make_place(tmp_path, one_shot=True, command="opencode --model 'a/b c'")
    Path(place.prompt_file).write_text("do it")
    shown = run(place, DRIVER.prepare(place, prompted=True).command, 'for word; do echo "<$word>"; done; cat')
    assert shown == "<run>\n<--model>\n<a/b c>\n<--title>\n<fix it>\ndo it"


def test_a_program_in_the_users_home_is_found_for_one_task_too(tmp_path: Path) -> None:
    place = make_place(tmp_path, one_shot=True, command="~/my\\ bin/opencode --agent plan")
    (tmp_path / "state" / "prompt").write_text("do it")
    command = DRIVER.prepare(place, prompted=True).command
    assert "; ~/my\\ bin/opencode run --agent plan --title 'fix it' < " in command


def test_messages_are_files_and_prompts_are_read_from_a_mark_on(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    DRIVER.prepare(place, prompted=False)
    for text in ("/exit\n!ls\t", "ünï"):
        assert DRIVER.wording(text) == (text, text, "")
        assert DRIVER.deliver(place, text)
    inbox = Path(place.home, INBOX)
    assert [(inbox / name).read_text() for name in sorted(os.listdir(inbox))] == ["/exit\n!ls\t", "ünï"]
    assert DRIVER.received(place, DRIVER.mark(place)) == []
    log = Path(place.home, "hooks.jsonl")
    log.write_text(json.dumps({"hook": "UserPromptSubmit", "payload": {"prompt": "old"}}) + "\n")
    mark = DRIVER.mark(place)
    with log.open("a") as file:
        file.write(json.dumps({"hook": "UserPromptSubmit", "payload": {"prompt": "new"}}) + '\n{"hook"')
    assert DRIVER.received(place, mark) == ["new"]
    assert DRIVER.received(place) == ["old", "new"]


def test_bytes_that_are_no_text_are_replaced_and_that_is_said() -> None:
    assert DRIVER.wording("a\udcffb") == ("a\ufffdb", "a\ufffdb", "bytes that are not UTF-8 became U+FFFD")


def test_a_command_line_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MngrError, match="not a command line"):
        DRIVER.prepare(make_place(tmp_path, command="opencode 'x"), prompted=False)


def test_the_login_is_found_in_files_and_variables(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert DRIVER.login(environ) == ""
    assert DRIVER.login({**environ, "GROQ_API_KEY": "x"}) == "`GROQ_API_KEY` is set"
    config = tmp_path / ".config" / "opencode" / "opencode.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"provider": {"x": {"options": {"apiKey": "secret"}}}} // mine')
    assert DRIVER.login(environ) == f"a key in `{config}`"
    auth = tmp_path / ".local" / "share" / "opencode" / "auth.json"
    auth.parent.mkdir(parents=True)
    auth.write_text('{"anthropic": {"type": "oauth", "access": "secret"}}')
    assert DRIVER.login(environ) == f"anthropic (`{auth}`)"
