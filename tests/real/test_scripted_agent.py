"""The scripted agent in a real terminal: what it shows, what it records, how it ends."""

import fcntl
import hashlib
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "scripted-agent.md"
PROGRAM = [sys.executable, "-m", "mngr.programs.scripted"]
ENTER, CTRL_C, CTRL_D = b"\r", b"\x03", b"\x04"
END_MARK = b"<no more output>"


class Session:
    """One agent in a pseudo-terminal, in a directory of its own."""

    def __init__(self, home: Path, *, records: bool = True) -> None:
        self.work = home / "work"
        self.state = home / "state"
        self.outcome = home / "out" / "outcome.json"
        self.artifacts = home / "artifacts"
        for folder in (self.work, self.state):
            folder.mkdir(exist_ok=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MNGR_", "GIT_", "TMUX"))}
        self.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.env["PATH"] = f"{os.path.dirname(sys.executable)}:{self.env['PATH']}"
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        if records:
            self.env |= {
                "MNGR_AGENT_STATE_DIR": str(self.state),
                "MNGR_AGENT_NAME": "robot",
                "MNGR_OUTCOME_FILE": str(self.outcome),
                "MNGR_ARTIFACTS_DIR": str(self.artifacts),
                "MNGR_TASK": "tests/test_a.py::test_b",
            }
        self.screen = b""
        self._master = -1
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, script: str | None = None, argv: list[str] | None = None) -> "Session":
        if script is not None:
            (self.work.parent / "script").write_bytes(script.encode(errors="surrogateescape"))
        words = [] if script is None else [str(self.work.parent / "script")]
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.mode_before = termios.tcgetattr(slave)
        self._process = subprocess.Popen(
            argv or [*PROGRAM, *words],
            cwd=self.work,
            env=self.env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self.slave = slave
        os.set_blocking(self._master, False)
        return self

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            os.close(self._master)
            os.close(self.slave)

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def until(self, check: Callable[[], Any], seconds: float = 60) -> Any:
        end = time.monotonic() + seconds
        while True:
            self._pump()
            value = check()
            if value:
                return value
            if time.monotonic() > end:
                pytest.fail(f"waited {seconds} s in vain\nscreen: {self.text[-2000:]!r}\nevents: {self.events()[-8:]}")

    def send(self, data: bytes) -> None:
        while data:
            _, writable, _ = select.select([], [self._master], [], 0.05)
            if writable:
                data = data[os.write(self._master, data[:2048]) :]
            self._pump(0)

    def paste(self, text: str) -> None:
        self.send(b"\x1b[200~" + text.encode() + b"\x1b[201~")
        self.send(ENTER)

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.text)

    def is_in(self, state: str, reason: str | None = None) -> None:
        self.until(lambda: any(seen == state and reason in (None, why) for seen, why in self.states()[-1:]))

    def exit_code(self) -> int:
        self.until(lambda: self.process.poll() is not None)
        assert self.process.returncode is not None
        # The kernel hands over the last output a while after the end, but what we write ourselves comes behind it.
        os.set_blocking(self.slave, False)
        self.until(self._has_marked_the_end)
        self.until(lambda: self.screen.endswith(END_MARK))
        self.screen = self.screen.removesuffix(END_MARK)
        return self.process.returncode

    @property
    def text(self) -> str:
        return self.screen.decode(errors="replace").replace("\r\n", "\n")

    def events(self) -> list[dict[str, Any]]:
        return self._lines("events.jsonl")

    def transcript(self) -> list[dict[str, Any]]:
        return self._lines("transcript.jsonl")

    def states(self) -> list[tuple[str, str]]:
        return [(event["state"], event["reason"]) for event in self.events() if event["type"] == "state"]

    def prompts(self) -> list[tuple[str, int]]:
        return [(event["text_sha256"], event["bytes"]) for event in self.events() if event["type"] == "prompt"]

    def said(self) -> list[str]:
        return [line["text"] for line in self.transcript() if line["role"] == "assistant"]

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.work, env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.rstrip("\n")

    def _has_marked_the_end(self) -> bool:
        try:
            return os.write(self.slave, END_MARK) == len(END_MARK)
        except BlockingIOError:
            return False

    def _lines(self, name: str) -> list[dict[str, Any]]:
        """Those that are whole: a long one may be seen while it is written."""
        path = self.state / name
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def _pump(self, seconds: float = 0.02) -> None:
        while select.select([self._master], [], [], seconds)[0]:
            seconds = 0
            try:
                self.screen += os.read(self._master, 65536)
            except OSError:
                return


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.close()


@pytest.fixture
def repository(session: Session) -> Session:
    session.git("init", "--quiet", "--initial-branch=main")
    return session


def fingerprint(text: str) -> tuple[str, int]:
    return hashlib.sha256(text.encode()).hexdigest(), len(text.encode())


def big_text(size: int) -> str:
    line = "0123456789 äöü 漢字 $(rm -rf) `x` \t end\n"
    return (line * (size // len(line.encode()) + 1)).rstrip()


def test_it_waits_ready_with_a_prompt_and_says_what_it_hears(session: Session):
    session.start().shows("> ")
    assert b"\x1b[?2004h" in session.screen
    session.send(b"hello there" + ENTER)
    session.shows("you said: hello there")
    session.is_in("WAITING", "turn ended")
    assert [(e["type"], e.get("state")) for e in session.events()] == [
        ("ready", None),
        ("state", "WAITING"),
        ("state", "RUNNING"),
        ("prompt", None),
        ("state", "WAITING"),
    ]
    for event in session.events():
        assert re.fullmatch(r"evt-[0-9a-f]{32}", event["event_id"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["timestamp"])
        assert event["source"] == "agent"
    assert [(line["role"], line["text"]) for line in session.transcript()] == [
        ("user", "hello there"),
        ("assistant", "you said: hello there"),
    ]


def test_a_paste_of_100_kb_with_many_lines_arrives_whole(session: Session):
    text = big_text(100_000)
    session.start().is_in("WAITING")
    session.paste(text + "\n")
    session.until(session.prompts)
    assert session.prompts() == [fingerprint(text)]
    session.until(lambda: session.transcript() and session.transcript()[0]["text"] == text)
    session.shows(f"(+{text.count(chr(10))} lines)")
    assert f"(+{text.count(chr(10)) + 1} lines)" not in session.text


def test_a_typed_line_of_100_kb_arrives_whole(session: Session):
    text = big_text(100_000).replace("\n", " ")
    session.start().is_in("WAITING")
    session.send(text.encode() + ENTER)
    session.until(session.prompts)
    assert session.prompts() == [fingerprint(text)]


def test_messages_sent_while_it_is_busy_are_acknowledged_at_once_and_handled_in_order(session: Session):
    first, second = big_text(100_000) + " one", "say second"
    work = "run until [ -e go ]; do sleep 0.05; done"
    session.start(f"{work}\nsay worked\nwait\nsay got {{message}}\n").is_in("RUNNING")
    session.paste(first)
    session.paste(second)
    session.until(lambda: len(session.prompts()) == 2)
    assert session.prompts() == [fingerprint(first), fingerprint(second)]
    assert session.said() == []
    (session.work / "go").touch()
    session.is_in("WAITING", "turn ended")
    assert session.said() == ["worked", f"got {first}", "second"]
    assert [state for state, _ in session.states()] == ["RUNNING", "WAITING"]


def test_a_message_of_directives_is_followed_and_any_other_is_not(session: Session):
    session.start().is_in("WAITING")
    session.paste("write a.txt <<END\nsay hello\nEND\nsay wrote it\n")
    session.shows("wrote it")
    session.is_in("WAITING", "turn ended")
    assert (session.work / "a.txt").read_text() == "say hello\n"
    session.paste("say no\nplease write b.txt")
    session.shows("you said: say no (+1 line)")


def test_a_paste_by_a_person_has_carriage_returns_and_is_followed_too(session: Session):
    session.start().is_in("WAITING")
    session.paste("say one\rsay two")
    session.until(lambda: session.said() == ["one", "two"])


def test_bytes_that_are_not_text_are_recorded_as_readable_text(session: Session):
    session.start().is_in("WAITING")
    session.send(b"\x1b[200~a\xffb\x00c\x1b[201~" + ENTER)
    session.is_in("WAITING", "turn ended")
    assert session.prompts() == [(hashlib.sha256(b"a\xffb\x00c").hexdigest(), 5)]
    assert session.transcript()[0]["text"] == "a\ufffdb\0c"


def test_waiting_stores_the_message_for_later_steps(session: Session):
    session.start(
        "wait What next?\nif-message (?i)TESTS <<END\nsay will test\nEND\nif-message docs <<END\nsay no\nEND\n"
    )
    session.is_in("WAITING", "What next?")
    session.paste("write more tests")
    session.is_in("WAITING", "turn ended")
    assert session.said() == ["What next?", "will test"]


def test_a_message_reaches_the_shell_as_one_quoted_word(session: Session):
    message = 'it\'s $HOME `id` "x"; rm *\nsecond line'
    session.start("wait\nrun! printf %s {message} > out.txt\n").is_in("WAITING")
    session.paste(message)
    session.is_in("WAITING", "turn ended")
    assert (session.work / "out.txt").read_text() == message


def test_a_question_blocks_until_it_is_answered(session: Session):
    session.start("ask Red or blue?\nsay {message} it is\n").is_in("BLOCKED", "question: Red or blue?")
    session.paste("blue")
    session.is_in("WAITING", "turn ended")
    assert session.said()[-1] == "blue it is"
    assert [state for state, _ in session.states()] == ["RUNNING", "BLOCKED", "RUNNING", "WAITING"]


@pytest.mark.parametrize(("answer", "last", "reason"), [("Yes", "went on", "turn ended"), ("why?", "denied", "denied")])
def test_a_permission_goes_on_only_with_a_yes(session: Session, answer: str, last: str, reason: str):
    session.start("permission run `make`\nsay went on\n").is_in("BLOCKED", "permission: run `make`")
    session.paste(answer)
    session.is_in("WAITING", reason)
    assert session.said()[-1] == last


def test_ctrl_c_at_a_question_gives_it_up_and_keeps_the_agent(session: Session):
    session.start("ask Really?\nsay no\n").is_in("BLOCKED")
    session.shows("> ")
    session.send(CTRL_C)
    session.is_in("WAITING", "interrupted")
    assert session.process.poll() is None


def test_a_rate_limit_blocks_for_its_time_and_then_goes_on(session: Session):
    session.start("rate-limit 0.5\nsay on\n").is_in("WAITING")
    assert session.states() == [
        ("RUNNING", ""),
        ("BLOCKED", "rate limit: retry in 0.5 s"),
        ("RUNNING", ""),
        ("WAITING", "turn ended"),
    ]


@pytest.mark.parametrize(
    "work", ["think 60", "run sleep 60; echo never", "rate-limit 60", "repeat 999999999 <<END\nEND"]
)
def test_ctrl_c_ends_the_work_and_the_agent_waits(session: Session, work: str):
    session.start(f"say begun\n{work}\nsay went on\n").shows("begun")
    session.send(CTRL_C)
    session.is_in("WAITING", "interrupted")
    session.paste("still there?")
    session.shows("you said: still there?")
    assert session.said() == ["begun", "you said: still there?"]


def test_ctrl_c_in_a_run_ends_its_whole_process_group(session: Session):
    session.start("run sleep 1000 & echo $! > pid; wait\n")
    pid = int(session.until(lambda: (session.work / "pid").exists() and (session.work / "pid").read_text()))
    session.send(CTRL_C)
    session.is_in("WAITING", "interrupted")
    session.until(lambda: not alive(pid))


def test_a_term_signal_in_a_run_ends_its_whole_process_group(session: Session):
    session.start("run sleep 1000 & echo $! > pid; wait\n")
    pid = int(session.until(lambda: (session.work / "pid").exists() and (session.work / "pid").read_text()))
    session.process.terminate()
    assert session.exit_code() == -signal.SIGTERM
    session.until(lambda: not alive(pid))


def test_a_message_after_ctrl_c_is_not_interrupted(session: Session):
    session.start("think 60\n").is_in("RUNNING")
    session.shows("thinking")
    session.send(CTRL_C)
    session.paste("repeat 5 <<END\nthink 0.02\nEND\nsay whole")
    session.until(lambda: session.said() == ["whole"])


def test_ctrl_c_clears_a_draft_and_then_exits(session: Session):
    session.start().is_in("WAITING")
    session.send(b"half a thou")
    session.shows("half a thou")
    session.send(CTRL_C)
    session.send(b"hi" + ENTER)
    session.shows("you said: hi")
    session.is_in("WAITING", "turn ended")
    session.until(lambda: session.text.endswith("> "))
    session.send(CTRL_C)
    assert session.exit_code() == 0


def test_ctrl_d_at_an_empty_prompt_exits_and_restores_the_terminal(session: Session):
    session.start().shows("> ")
    assert termios.tcgetattr(session.slave)[3] & (termios.ICANON | termios.ECHO) == 0
    session.send(CTRL_D)
    assert session.exit_code() == 0
    assert session.screen.endswith(b"\x1b[?2004l")
    assert termios.tcgetattr(session.slave) == session.mode_before


def test_a_term_signal_ends_it_with_the_terminal_restored(session: Session):
    session.start().shows("> ")
    session.process.send_signal(signal.SIGTERM)
    assert session.exit_code() == -signal.SIGTERM
    assert termios.tcgetattr(session.slave) == session.mode_before


@pytest.mark.parametrize(
    ("directive", "code"),
    [("exit", 0), ("exit 7", 7), ("crash", 1), ("crash 139", 139), ("crash KILL", -9), ("crash SIGSEGV", -11)],
)
def test_it_ends_as_the_script_says(session: Session, directive: str, code: int):
    session.start(f"say last words\n{directive}\nsay no\n")
    assert session.exit_code() == code
    assert session.said() == ["last words"]
    assert termios.tcgetattr(session.slave) == session.mode_before


def test_a_script_with_a_mistake_does_nothing_and_exits_2(session: Session):
    session.start("run touch made\nwrit x <<END\nEND\n")
    assert session.exit_code() == 2
    assert "error: line 2: no directive is called `writ`\nhint: the nearest is `write PATH <<END`" in session.text
    assert list(session.work.iterdir()) == []
    assert session.events() == []


def test_a_script_that_is_not_there_is_a_clear_error(session: Session):
    session.start(argv=[*PROGRAM, "missing.script"])
    assert session.exit_code() == 2
    assert "error: cannot read the script `missing.script`: No such file or directory" in session.text


def test_run_shows_output_notes_the_code_and_goes_on(session: Session):
    session.start("run echo out; echo err >&2; exit 3\nsay on\n").is_in("WAITING", "turn ended")
    session.shows("out\nerr\nexit code 3\n")
    assert [{k: v for k, v in line.items() if k != "timestamp"} for line in session.transcript()] == [
        {"role": "tool_call", "tool": "run", "input": "echo out; echo err >&2; exit 3"},
        {"role": "tool_result", "tool": "run", "text": "out\nerr\n", "exit_code": 3},
        {"role": "assistant", "text": "on"},
    ]


def test_run_shows_output_while_the_command_runs(session: Session):
    session.start("run echo early; while ! test -e go; do sleep 0.05; done; echo late\n").shows("\nearly\n")
    assert "\nlate\n" not in session.text
    (session.work / "go").touch()
    session.shows("\nlate\n")


def test_a_child_that_run_leaves_behind_does_not_hold_it(session: Session):
    session.start("run sleep 1000 & echo $!\nsay on\n").is_in("WAITING", "turn ended")
    (result,) = [line for line in session.transcript() if line["role"] == "tool_result"]
    os.kill(int(result["text"]), signal.SIGKILL)


@pytest.mark.parametrize(
    "step",
    [
        "run! false",
        "replace a.txt <<END\nmissing\n====\nnew\nEND",
        "replace a.txt <<END\nx\n====\nnew\nEND",
        "delete missing.txt",
        "commit outside a repository",
        "write a.txt/b <<END\nEND",
    ],
)
def test_a_step_that_fails_ends_the_script_and_the_agent(session: Session, step: str):
    (session.work / "a.txt").write_text("x x\n")
    session.start(f"say one\n{step}\nsay two\n")
    assert session.exit_code() == 1
    assert session.said()[0] == "one"
    assert session.said()[1].startswith("script failed: line 2: ")
    assert len(session.said()) == 2
    assert (session.work / "a.txt").read_text() == "x x\n"


def test_a_message_that_fails_leaves_the_agent_waiting(session: Session):
    session.start().is_in("WAITING")
    session.paste("run! exit 4\nsay no")
    session.is_in("WAITING", "script failed: line 1: `exit 4` ended with exit code 4")


def test_edits_are_made_and_recorded(session: Session):
    session.start(
        "write d/a.txt <<END\none\ntwo\nEND\nappend d/a.txt <<END\nthree\nEND\n"
        "replace d/a.txt <<END\ntwo\n====\n2\nEND\n"
        "write gone.txt <<END\nEND\ndelete gone.txt\n"
    ).is_in("WAITING", "turn ended")
    assert (session.work / "d" / "a.txt").read_text() == "one\n2\nthree\n"
    assert not (session.work / "gone.txt").exists()
    calls = [(line["tool"], line["input"]) for line in session.transcript() if line["role"] == "tool_call"]
    edits = [("write", "d/a.txt"), ("append", "d/a.txt"), ("replace", "d/a.txt")]
    assert calls == [*edits, ("write", "gone.txt"), ("delete", "gone.txt")]


def test_it_commits_under_its_own_name_when_git_knows_nobody(repository: Session):
    repository.git("config", "user.useConfigOnly", "true")
    repository.start("write a <<END\nEND\ncommit Add\tä `a`\ncommit again\n").is_in("WAITING", "turn ended")
    assert repository.git("log", "--format=%an %s") == "robot Add\tä `a`"
    repository.shows("* commit: nothing to commit\n")


def test_it_commits_as_the_user_that_git_knows(repository: Session):
    repository.git("config", "user.name", "Ada")
    repository.git("config", "user.email", "ada@example.com")
    repository.start("write a <<END\nEND\ncommit Add\n").is_in("WAITING", "turn ended")
    assert repository.git("log", "--format=%an <%ae>") == "Ada <ada@example.com>"


def test_a_commit_that_a_hook_refuses_fails_with_its_words(repository: Session):
    hook = repository.work / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    repository.start("write a <<END\nEND\ncommit Add\n")
    assert repository.exit_code() == 1
    assert "script failed: line 3: `commit`: git refused to commit (exit code 1)\nnot today\n" in repository.text


def test_an_outcome_can_name_earlier_commits(repository: Session):
    repository.start(
        "write a <<END\nEND\ncommit First\nwrite b <<END\nEND\ncommit Second\n"
        'outcome <<END\n["{head~1}", "{head}", "{head~9}", "{head~10}"]\nEND\n'
    ).is_in("WAITING", "turn ended")
    first, second = repository.git("rev-parse", "HEAD~1"), repository.git("rev-parse", "HEAD")
    assert json.loads(repository.outcome.read_text()) == [first, second, "", "{head~10}"]


def test_an_outcome_has_its_placeholders_filled_in(repository: Session):
    repository.start(
        "wait\nwrite a <<END\nEND\ncommit Add\n"
        'outcome <<END\n{"task": "{task}", "commit": "{head}", "summary": "{message}", "more": {}}\nEND\n'
    ).is_in("WAITING")
    repository.paste('say "hi"\nand \\ more')
    repository.is_in("WAITING", "turn ended")
    assert json.loads(repository.outcome.read_text()) == {
        "task": "tests/test_a.py::test_b",
        "commit": repository.git("rev-parse", "HEAD"),
        "summary": 'say "hi"\nand \\ more',
        "more": {},
    }
    assert [path.name for path in repository.outcome.parent.iterdir()] == ["outcome.json"]


def test_a_raw_outcome_is_written_byte_for_byte(session: Session):
    lie = b'{"status": "done", \xff\x00 {head}\r\n'
    session.start(f"outcome-raw <<END\n{lie.decode(errors='surrogateescape')}END\nexit\n")
    assert session.exit_code() == 0
    assert session.outcome.read_bytes() == lie


def test_usage_is_an_event(session: Session):
    session.start("usage input=1000 output=200 cache_read=5 cost=0.01\nexit\n")
    assert session.exit_code() == 0
    (event,) = [event for event in session.events() if event["type"] == "usage"]
    assert (event["input_tokens"], event["output_tokens"], event["cache_read_tokens"]) == (1000, 200, 5)
    assert event["cost_usd"] == 0.01
    assert session.transcript()[-1]["role"] == "usage"


def test_hang_reads_nothing_and_ends_by_term(session: Session):
    session.start("say bye\nhang\n").shows("bye")
    session.until(lambda: len(os.listdir(f"/proc/{session.process.pid}/task")) == 1)
    session.send(CTRL_C + b"hello" + ENTER)
    session.until(lambda: unread(session.slave) == 7)
    assert session.prompts() == []
    assert session.states() == [("RUNNING", "")]
    session.process.terminate()
    assert session.exit_code() == -signal.SIGTERM


def test_hang_ignoring_signals_must_be_killed(session: Session):
    session.start("say bye\nhang-ignoring-signals\n").shows("bye")
    session.until(lambda: signals_ignored(session.process.pid) >= {signal.SIGTERM, signal.SIGHUP})
    session.process.terminate()
    session.process.send_signal(signal.SIGHUP)
    assert session.process.poll() is None
    session.process.kill()
    assert session.exit_code() == -signal.SIGKILL


def test_a_spawned_process_outlives_the_agent_in_its_own_session(session: Session):
    session.start("spawn echo $$ > pid; exec sleep 1000\nexit\n")
    assert session.exit_code() == 0
    pid = int(session.until(lambda: (session.work / "pid").exists() and (session.work / "pid").read_text()))
    assert alive(pid)
    assert os.getsid(pid) != session.process.pid
    os.kill(pid, signal.SIGKILL)


def test_text_that_it_shows_cannot_command_the_terminal(session: Session):
    session.start().is_in("WAITING")
    session.paste("red \x1b[31m \x07 text \x1b]0;title\x07")
    session.shows("you said: red ?[31m ? text")
    assert b"\x1b[31m" not in session.screen


def test_without_a_state_directory_it_works_and_records_nothing(tmp_path: Path):
    session = Session(tmp_path, records=False)
    try:
        script = "usage input=1\noutcome <<END\n{}\nEND\nartifact a <<END\nEND\nwait\nsay got {message}\nexit 5\n"
        session.start(script).shows("> ")
        session.paste("it")
        assert session.exit_code() == 5
    finally:
        session.close()
    assert "got it" in session.text
    assert "* outcome: not written, `MNGR_OUTCOME_FILE` is not set" in session.text
    assert list(session.state.iterdir()) == []
    assert not session.outcome.exists()


def test_a_state_directory_that_is_gone_is_said_once_and_ends_nothing(session: Session):
    session.state.rmdir()
    session.start("say on\nexit 3\n")
    assert session.exit_code() == 3
    assert session.text.count("cannot record in") == 1


def test_it_starts_without_heavy_modules():
    program = f"import sys, {PROGRAM[2]}.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = ["dataclasses", "pathlib", "datetime", "inspect", "tempfile", "shutil", "difflib", "logging", "hashlib"]
    assert [module for module in heavy if module in loaded] == []


def test_in_tmux_a_paste_of_100_kb_right_after_ready_arrives_whole(session: Session):
    text = big_text(100_000)
    sockets = tempfile.mkdtemp(prefix="mngr-")
    env = {**session.env, "TMUX_TMPDIR": sockets}

    def tmux(*words: str, input: str | None = None) -> None:
        subprocess.run(["tmux", "-L", "t", "-f", "/dev/null", *words], env=env, input=input, text=True, check=True)

    try:
        tmux("new-session", "-d", "-s", "a", "-c", str(session.work), shlex.join(PROGRAM))
        wait_for(lambda: any(event["type"] == "ready" for event in session.events()))
        tmux("load-buffer", "-", input=text)
        tmux("paste-buffer", "-p", "-r", "-d", "-t", "=a:")
        tmux("send-keys", "-t", "=a:", "Enter")
        wait_for(session.prompts)
        assert session.prompts() == [fingerprint(text)]
    finally:
        subprocess.run(["tmux", "-L", "t", "kill-server"], env=env, check=False, capture_output=True)
        shutil.rmtree(sockets, ignore_errors=True)


def guide_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


ENDINGS = [("WAITING", "turn ended")] * 3 + [0, -signal.SIGSEGV, "hangs"]


@pytest.mark.parametrize(("number", "ending"), list(enumerate(ENDINGS)))
def test_every_example_of_the_guide_does_what_it_says(repository: Session, number: int, ending: Any):
    scripts = guide_blocks("script")
    assert len(scripts) == len(ENDINGS)
    if number == 0:
        (command,) = guide_blocks("sh")
        (repository.work / "hello.script").write_text(scripts[0])
        repository.start(argv=shlex.split(command))
    else:
        repository.start(scripts[number])
    if ending == "hangs":
        repository.shows("I am busy.")
        repository.until(lambda: signal.SIGTERM in signals_ignored(repository.process.pid))
        return
    answered = 0

    def over() -> bool:
        nonlocal answered
        states = repository.states()
        if len(states) > answered and states[-1][1].startswith(("What", "question", "permission")):
            answered = len(states)
            repository.paste("yes")
        return repository.process.poll() is not None or states[-1:] == [("WAITING", "turn ended")]

    repository.until(over)
    if isinstance(ending, int):
        assert repository.exit_code() == ending
    else:
        assert repository.states()[-1:] == [ending], repository.text
    assert "script failed" not in repository.text
    if number == 0:
        repository.shows("\nhello you\n")
        repository.shows(f"\nDone in {repository.git('rev-parse', 'HEAD')}.\n")
    if number == 1:
        assert repository.git("log", "--format=%s", "--reverse").splitlines() == [
            "Begin",
            "Double the number, not more",
            "Remove the test",
        ]
    if number == 2:
        assert repository.said()[-5:] == ["question: Which colour?", "A good choice.", *repository.said()[-3:]]
        repository.shows("cleaned for yes")
        assert (repository.work / "notes.txt").read_text() == "another line\n" * 2
    if number == 3:
        assert json.loads(repository.outcome.read_text())["changes"][0]["commit"] == repository.git("rev-parse", "HEAD")
        assert (repository.artifacts / "logs" / "test.log").read_text() == "1 passed\n"


def unread(terminal: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0\0\0\0"))[0])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def signals_ignored(pid: int) -> set[signal.Signals]:
    mask = int(re.findall(r"^SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[0], 16)
    return {number for number in signal.Signals if mask >> (number - 1) & 1}


def wait_for(check: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
