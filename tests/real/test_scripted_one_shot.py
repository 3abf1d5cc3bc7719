"""The scripted agent for one task: it follows one message and ends."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


class Once:
    def __init__(self, folder: Path, message: str) -> None:
        self.folder = folder
        (folder / "message").write_text(message)
        words = [sys.executable, "-m", "mngr.programs.scripted", "--one-shot", "message"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MNGR_", "TMUX"))}
        done = subprocess.run(
            words,
            cwd=folder,
            env={**env, "MNGR_AGENT_STATE_DIR": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        self.exit_code = done.returncode
        self.output = done.stdout.decode()

    def lines(self, name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


def test_it_follows_the_message_records_the_same_and_ends(tmp_path: Path) -> None:
    message = "say I begin.\nwrite made.txt <<END\nmade\nEND\nusage input=7 output=3"
    ran = Once(tmp_path, message)
    assert ran.exit_code == 0
    assert (tmp_path / "made.txt").read_text() == "made\n"
    events = ran.lines("events.jsonl")
    assert [event["type"] for event in events] == ["ready", "state", "prompt", "usage"]
    assert events[2]["text_sha256"] == hashlib.sha256(message.encode()).hexdigest()
    assert [line["role"] for line in ran.lines("transcript.jsonl")] == ["user", "assistant", "tool_call", "usage"]


def test_plain_words_are_answered(tmp_path: Path) -> None:
    ran = Once(tmp_path, "fix the login\nplease")
    assert ran.exit_code == 0
    assert "you said: fix the login" in ran.output


@pytest.mark.parametrize(
    ("message", "code"), [("exit 7", 7), ("run! false", 1), ("ask Which?", 1), ("permission dance", 1), ("wait", 1)]
)
def test_the_exit_code_says_how_it_ended(tmp_path: Path, message: str, code: int) -> None:
    ran = Once(tmp_path, message)
    assert ran.exit_code == code
    assert ("nobody is there to answer" in ran.output) == (code == 1 and "false" not in message)


def test_without_a_file_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mngr.programs.scripted", "--one-shot"], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert b"needs a file with the message" in done.stderr
