"""Types from settings: what is accepted, what a screen means, what a record of chat messages says."""

from typing import Any

import pytest

from mngr.agent.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import UsageError
from mngr.programs import conversation_lines, kind, screen

OWN = {"ready": r"^>( type|$)", "busy": r"^\* working", "blocked": r"^allow (.*)\?|^limit reached"}


def status(state: str, reason: str = "", since: float = 100.0) -> Status:
    return Status(state, reason, since, "")


def judged(text: str, before: Status, *, given_at: float = 0.0, now: float = 200.0) -> tuple[str, str]:
    return screen.judged(OWN, screen.plain(text), before, given_at=given_at, now=now)


def test_rules_come_from_the_parent_and_an_empty_one_takes_it_away() -> None:
    parent = {"ready": "a", "resume": "x"}
    found = kind._read_rules("t", {"ready": "b", "resume": "", "home_env": ["A", "B C"]}, parent)
    assert found == {"ready": "b", "home_env": "A 'B C'"}


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"ready": "("}, "invalid regular expression in `agent_types.t.ready`"),
        ({"ready": "x", "blocked": "[z-a]"}, "invalid regular expression in `agent_types.t.blocked`"),
        ({"refused": "*"}, "invalid regular expression in `agent_types.t.refused`"),
        ({"busy": "x"}, "has `busy` but no `ready`"),
        ({"blocked": "x"}, "has `blocked` but no `ready`"),
        ({"one_shot": "tool --print"}, "`agent_types.t.one_shot` does not say where the prompt goes"),
        ({"first_prompt": "tool"}, "`agent_types.t.first_prompt` does not say where the prompt goes"),
    ],
)
def test_a_bad_rule_is_an_error_that_names_its_key(values: dict[str, object], wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind._read_rules("t", values, {})
    assert wrong in caught.value.message
    assert caught.value.hint


def test_a_screen_is_blocked_before_it_is_busy_and_busy_before_it_is_ready() -> None:
    before = status(WAITING)
    assert judged("hello\n> \n", before) == (WAITING, "")
    assert judged("* working\n> \n", before) == (RUNNING, "")
    assert judged("* working\nallow rm -r x?\n> \n", before) == (BLOCKED, "rm -r x")
    assert judged("hello\n  \nlimit reached, try at 5\n> ", before) == (BLOCKED, "limit reached, try at 5")


def test_escape_sequences_are_no_part_of_a_screen() -> None:
    text = "\x1b[1m\x1b[38;5;12m> \x1b[0m\x1b]8;;https://example.com\x1b\\type\x1b]8;;\x1b\\ here\x0f\x1b(B   "
    assert screen.plain(text) == "> type here"


@pytest.mark.parametrize("state", [STARTING, RUNNING])
def test_a_screen_that_no_rule_fits_changes_nothing_at_a_start_or_in_a_turn(state: str) -> None:
    assert judged("loading", status(state, "as before")) == (state, "as before")


@pytest.mark.parametrize("state", [WAITING, BLOCKED])
def test_a_screen_that_no_rule_fits_ends_a_wait(state: str) -> None:
    assert judged("something else", status(state)) == (RUNNING, screen.UNCLEAR)


def test_after_a_message_a_ready_screen_is_believed_a_second_later() -> None:
    assert judged("> ", status(WAITING), given_at=150.0) == (RUNNING, screen.GIVEN)
    assert judged("> ", status(STARTING), given_at=150.0) == (RUNNING, screen.GIVEN)
    begun = status(RUNNING, screen.GIVEN, since=200.0)
    assert judged("> ", begun, now=200.9) == (RUNNING, screen.GIVEN)
    assert judged("> ", begun, now=201.1) == (WAITING, "")
    assert judged("* working\n> ", begun, now=200.1) == (RUNNING, "")


def test_a_second_message_before_the_first_is_settled_only_takes_its_own_second() -> None:
    begun = status(RUNNING, screen.GIVEN, since=200.0)
    assert judged("> ", begun, given_at=200.8, now=201.5) == (RUNNING, screen.GIVEN)
    assert judged("> ", begun, given_at=200.8, now=201.9) == (WAITING, "")


ANSWER = {
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "text", "text": "I will."},
        {"type": "toolCall", "name": "bash", "arguments": {"command": "ls"}},
    ],
    "responseId": "r1",
    "usage": {"input": 10, "output": 2, "cacheRead": 5, "cacheWrite": 1, "cost": {"total": 0.5}},
}
FAILED = {
    "role": "toolResult",
    "toolName": "bash",
    "isError": True,
    "content": [{"type": "text", "text": "no such file"}],
}
USED = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 6}
GIVEN = {"type": "tool_result", "name": "x", "content": "given"}
LINES: list[dict[str, Any]] = [
    {"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00Z"},
    {"timestamp": "2026-01-01T00:00:01Z", "message": {"role": "user", "content": [{"type": "text", "text": "do it"}]}},
    {"timestamp": "2026-01-01T00:00:02Z", "message": ANSWER},
    {"timestamp": "2026-01-01T00:00:03Z", "message": FAILED},
    {"role": "assistant", "timestamp": 1767225604000, "content": "Done.", "id": "r2", "usage": USED},
    {"role": "assistant", "timestamp": 1767225605000, "content": "Done.", "id": "r2", "usage": USED},
    {"role": "system", "content": "not said by anybody"},
    {"role": "user", "content": [{"type": "image"}, 7, GIVEN, None]},
    {"message": ["odd"], "usage": 3},
]


def test_the_transcript_of_chat_messages_in_their_common_spellings() -> None:
    found = conversation_lines.transcript(LINES)
    assert [(entry["role"], entry["text"], entry.get("input", ""), entry.get("exit_code")) for entry in found] == [
        ("user", "do it", "", None),
        ("assistant", "I will.", "", None),
        ("tool_call", "", "ls", None),
        ("tool_result", "no such file", "", 1),
        ("assistant", "Done.", "", None),
        ("assistant", "Done.", "", None),
        ("tool_result", "given", "", 0),
    ]
    assert found[4]["timestamp"] == "2026-01-01T00:00:04.000000Z"


def test_every_answer_is_counted_once() -> None:
    first, second = conversation_lines.usage(LINES)
    assert first == ("2026-01-01T00:00:02Z", "m", 10, 2, 5, 1, 0.5)
    assert second[2:] == (3, 4, 6, 0, None)
