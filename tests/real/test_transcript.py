"""`mngr transcript`: the conversation of an agent in one form."""

import json
import subprocess
from typing import Any

import pytest

from tests.support.user import User, wait_for

SCRIPT = """\
say I will add a greeting.
run seq 1 60
run false
say Done, said the \\x1b[31magent.
"""


@pytest.fixture
def talked(user: User) -> User:
    """A user whose agent `foo` worked and was told something."""
    script = user.root / "a.script"
    script.write_text(SCRIPT)
    user.mngr("create", "foo", "scripted", "--no-connect", "--", str(script)).ok()
    user.wait_for_state("foo", "WAITING")
    user.mngr("message", "foo", "-m", "thank you\nvery much").ok()
    wait_for(lambda: "you said" in user.mngr("transcript", "foo").ok().stdout, "the answer")
    return user


def lines(user: User, *words: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in user.mngr("transcript", "foo", "--format", "jsonl", *words).ok().stdout.splitlines()
    ]


def test_a_transcript_is_readable(talked: User) -> None:
    said = talked.mngr("transcript", "foo").ok().stdout
    assert "assistant\n  I will add a greeting.\n" in said
    assert "tool_call run\n  seq 1 60\n" in said
    assert "tool_result run (exit code 0)\n  (40 lines left out; `--format jsonl` prints all)\n  41\n" in said
    assert "tool_result run (exit code 1)\n" in said
    assert "user\n  thank you\n  very much\n" in said
    assert "\x1b" not in said


def test_roles_head_and_tail_choose_entries(talked: User) -> None:
    assert [entry["role"] for entry in lines(talked)] == [
        *("assistant", "tool_call", "tool_result", "tool_call", "tool_result", "assistant", "user", "assistant")
    ]
    assert [entry["text"] for entry in lines(talked, "--role", "user")] == ["thank you\nvery much"]
    assert [
        entry["role"] for entry in lines(talked, "--role", "tool_call", "--role", "tool_result", "--head", "3")
    ] == [*("tool_call", "tool_result", "tool_call")]
    (last,) = lines(talked, "--role", "assistant", "--tail", "1")
    assert last["text"].startswith("you said:")
    assert len(lines(talked, "--tail", "99")) == 8
    assert lines(talked, "--tail", "0") == []
    assert len(lines(talked, "--head", "0")) == 0
    assert lines(talked, "--role", "system") == []
    result = lines(talked, "--role", "tool_result")[0]
    assert (result["tool"], result["exit_code"], result["text"].count("\n")) == ("run", 0, 60)
    assert list(result)[:3] == ["timestamp", "role", "text"]
    assert talked.mngr("transcript", "foo", "--format", "{role}", "--head", "1").ok().stdout == "assistant\n"


def test_control_characters_are_shown_and_not_obeyed(user: User) -> None:
    agent = user.create("foo")
    entry = {"timestamp": "2026-01-02T03:04:05.000000Z", "role": "assistant", "text": "red \x1b[31m\rbell\x07 \u202e"}
    path = user.host_dir / "agents" / agent["id"] / "transcript.jsonl"
    path.write_text(json.dumps(entry) + "\ntorn {\n[1]\n" + json.dumps({"role": "usage"}) + "\n")
    said = user.mngr("transcript", "foo").ok().stdout
    assert "red \\x1b[31m\\rbell\\x07 \\u202e\n" in said
    assert "\x1b" not in said and "usage" in said
    assert len(user.mngr("transcript", "foo", "--format", "json").ok().json) == 2


def test_colours_come_on_a_terminal_only(talked: User) -> None:
    words = "exec 2>/dev/null; mngr transcript foo --tail 1"
    shown = talked.run(["script", "-qec", words, "/dev/null"]).stdout
    assert "\x1b[32m" in shown
    assert "\x1b[32m" not in talked.mngr("transcript", "foo", "--tail", "1").ok().stdout


def test_a_plain_command_has_the_messages_it_was_sent(user: User) -> None:
    user.create("foo", command="cat")
    ran = user.mngr("transcript", "foo").ok()
    assert ran.stdout == "" and "`command` keep no transcript; no message was sent" in ran.stderr
    assert user.mngr("transcript", "foo", "--format", "json").ok().json == []
    user.mngr("message", "foo", "-m", "one").ok()
    user.mngr("message", "foo", "-m", "two").ok()
    ran = user.mngr("transcript", "foo").ok()
    assert "user\n  one\n" in ran.stdout and "user\n  two\n" in ran.stdout
    assert "only the messages sent to foo are shown" in ran.stderr
    assert [entry["text"] for entry in lines(user, "--role", "user", "--tail", "1")] == ["two"]
    assert lines(user, "--role", "assistant") == []


def test_follow_prints_what_comes_and_ends_with_the_agent(talked: User) -> None:
    following = talked.popen("transcript", "foo", "--follow", "--role", "user", "--format", "jsonl")
    assert following.stdout is not None
    lines = following.stdout
    try:
        talked.mngr("message", "foo", "-m", "still there?").ok()
        told = iter(lambda: json.loads(lines.readline())["text"], "still there?")
        assert "and now?" not in list(told)
        talked.mngr("message", "foo", "-m", "and now?").ok()
        assert json.loads(following.stdout.readline())["text"] == "and now?"
        talked.mngr("destroy", "foo", "--force").ok()
        following.wait(timeout=60)
    except subprocess.TimeoutExpired:
        following.kill()
        raise
    finally:
        following.stdout.close()
        if following.stderr is not None:
            following.stderr.close()
        following.kill()
        following.wait()
    assert following.returncode == 0


def test_follow_prints_each_entry_once_also_one_that_is_written_late(user: User) -> None:
    """A program may write down what it said before a message after that message."""
    path = user.host_dir / "agents" / user.create("foo")["id"] / "transcript.jsonl"
    said = [
        {"timestamp": f"2026-01-02T03:04:0{number}.000000Z", "role": "assistant", "text": text}
        for number, text in enumerate(("one", "two", "three", "two"))
    ]

    def write(*numbers: int) -> None:
        draft = path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(said[number]) + "\n" for number in numbers))
        draft.replace(path)

    write(0, 2)
    following = user.popen("transcript", "foo", "--follow", "--format", "{text}")
    assert following.stdout is not None and following.stderr is not None
    try:
        assert [following.stdout.readline() for _ in range(2)] == [b"one\n", b"three\n"]
        write(0, 1, 2)
        assert following.stdout.readline() == b"two\n"
        write(0, 1, 2, 3)
        assert following.stdout.readline() == b"two\n"
    finally:
        following.kill()
        following.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--head", "2", "--tail", "2"), "`--head` and `--tail` cannot be used together"),
        (("--head", "2", "--follow"), "`--head` and `--follow` cannot be used together"),
        (("--tail", "-1"), "invalid number"),
        (("--role", "boss"), "cannot be `boss`"),
    ],
)
def test_what_makes_no_sense_is_refused(user: User, words: tuple[str, ...], said: str) -> None:
    user.create("foo")
    assert said in user.mngr("transcript", "foo", *words).failed(2).stderr


def test_an_unknown_agent_is_an_error(user: User) -> None:
    assert "no agent named `nobody`" in user.mngr("transcript", "nobody").failed().stderr
