"""Commands that behave badly, run by a session as a test runs them."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.e2e.artifacts import TestInfo
from mngr.e2e.bounded_text import CUT
from mngr.e2e.command import CommandTimedOut, Running
from mngr.e2e.environment import Environment
from mngr.e2e.session import E2eSession
from mngr.errors import MngrError, UsageError
from tests.support.project import SEEN
from tests.support.user import wait_for


@pytest.fixture
def world() -> Iterator[Environment]:
    made = Environment(os.environ)
    try:
        yield made
    finally:
        made.clean()
        assert not made.root.exists()


@pytest.fixture
def session(world: Environment, tmp_path: Path) -> Iterator[E2eSession]:
    made = E2eSession(world, str(tmp_path))
    try:
        yield made
    finally:
        made.close()


def events(session: E2eSession, *types: str) -> list[dict]:
    info = TestInfo(path=str(session.artifacts), node_id="x")
    return [event for event in info.events() if event["type"] in types]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_result_has_both_streams_the_code_and_the_time(session: E2eSession) -> None:
    # What two streams have when somebody looks at both for the first time has no order: each waits for the other.
    (session.bin / "seen").write_text(SEEN)
    (session.bin / "seen").chmod(0o755)
    began = time.monotonic()
    ran = session.run("echo out; seen out; echo err >&2; seen '! err'; echo more; sleep 0.3; exit 3", comment="why")
    assert (ran.stdout, ran.stderr, ran.output) == ("out\nmore\n", "err\n", "out\nerr\nmore\n")
    assert (ran.exit_code, ran.timed_out, ran.number) == (3, False, 1)
    assert 0.3 <= ran.duration <= time.monotonic() - began


def test_input_variables_and_directory_are_the_commands_own(session: E2eSession) -> None:
    text = "line\n" * 100_000
    assert session.run("cat", input=text).stdout == text
    assert session.run("head -c 4", input=text).stdout == "line", "a command need not read it all"
    assert session.run("echo $NAME", env={"NAME": "a b"}).stdout == "a b\n"
    (session.cwd / "sub").mkdir()
    assert session.run("pwd", cwd="sub").stdout == f"{session.cwd}/sub\n"
    session.cwd = session.cwd / "sub"
    assert session.run("pwd; cat").stdout == f"{session.cwd}\n"
    with pytest.raises(MngrError, match="does not exist"):
        session.run("pwd", cwd="nowhere")
    assert session.run(["no-such-program"]).exit_code == 127
    with pytest.raises(UsageError):
        session.run([])


def test_a_recording_that_a_command_starts_names_the_command(session: E2eSession) -> None:
    session.run("true")
    session.run("mngr create talker --type scripted", timeout=100)
    recordings = TestInfo(path=str(session.artifacts), node_id="x").recordings()
    assert [(recording.kind, recording.number) for recording in recordings] == [("connect", 2)]


def test_a_command_that_hangs_is_ended_with_all_that_it_started(session: E2eSession) -> None:
    line = "trap '' TERM; printf prompt; sleep 999 & (sleep 999; true) & echo $! >pid; sleep 999; sleep 999"
    file = session.cwd / "pid"
    for seconds in (0.5, 5, 50):  # on a busy machine it is not even begun when a short time is over
        with pytest.raises(CommandTimedOut, match=rf"`trap .* did not end within {seconds} s") as caught:
            session.run(line, timeout=seconds)
        ran = caught.value.ran
        if file.exists() and file.read_text():
            break
    else:
        pytest.fail("it did not begin within 50 s")
    assert (ran.stdout, ran.exit_code, ran.timed_out) == ("prompt", 124, True)
    assert not is_running(int(file.read_text()))
    assert session.transcript().splitlines()[-2:] == ["prompt", "# did not end in time, and was ended"]
    assert {event["timed_out"] for event in events(session, "exit")} == {True}


def test_one_that_closes_its_output_or_stops_itself_is_ended_too(session: E2eSession) -> None:
    for line in ("exec >&- 2>&-; sleep 999", "kill -STOP $$"):
        with pytest.raises(CommandTimedOut):
            session.run(line, timeout=0.3)


def test_a_background_process_does_not_hold_up_the_test_and_goes_on(session: E2eSession) -> None:
    line = "(while sleep 0.1; do echo tick; echo tock >&2; done) & echo $! >pid; echo started"
    ran = session.run(line, timeout=60)  # one that held it up would do so until then
    pid = int((session.cwd / "pid").read_text())
    assert "started" in ran.stdout
    wait_for(lambda: session.transcript().count("tick") > 3, "what it prints later to be in the transcript")
    assert is_running(pid), "a closed pipe did not end it"
    session.close()
    assert not is_running(pid)


def test_a_daemon_that_leaves_session_and_parent_ends_with_the_test(session: E2eSession) -> None:
    session.run("setsid -f sh -c 'echo $$ >daemon; exec sleep 999' >/dev/null 2>&1 </dev/null; tmux new -d sleep 999")
    file = session.cwd / "daemon"
    daemon = wait_for(lambda: file.read_text() if file.exists() else "", "a daemon")
    server = int(session.run("tmux display -p '#{pid}'").stdout)
    assert is_running(int(daemon)) and is_running(server)
    session.close()
    assert not is_running(int(daemon)) and not is_running(server)


def test_a_flood_is_cut_and_says_so(session: E2eSession) -> None:
    ran = session.run("echo first; yes 0123456789 | head -c 55000000; echo last; echo warning >&2", timeout=100)
    assert ran.stdout.startswith("first\n0123") and ran.stdout.endswith("\nlast\n")
    assert CUT in ran.stdout and len(ran.stdout) < 9_000_000
    assert ran.stderr == "warning\n"
    text = session.transcript()
    assert len(text) < 400_000
    assert text.startswith("$ echo first") and text.rstrip().endswith(("last", "! warning"))
    assert "characters of stdout are left out here" in text
    assert sum(len(event["text"]) for event in events(session, "output")) < 400_000


def test_a_flood_without_end_is_ended_in_time(session: E2eSession) -> None:
    with pytest.raises(CommandTimedOut) as caught:
        session.run("yes; true", timeout=1)
    assert len(caught.value.ran.stdout) < 9_000_000
    assert session.run("yes & echo $!", timeout=60).exit_code == 0


def test_bytes_that_are_no_text_are_shown(session: E2eSession) -> None:
    line = r"printf 'a\377b\n\303'; sleep 0.2; printf '\251\n'; printf '\342\202' >&2; printf '\000\033[1m\r\n'"
    ran = session.run(line)
    assert ran.stdout == "a\\xffb\né\n\0\x1b[1m\r\n"
    assert ran.stderr == "\\xe2\\x82"
    assert session.transcript().splitlines()[1:3] == ["a\\xffb", "é"]
    assert "".join(event["text"] for event in events(session, "output") if event["stream"] == "stdout") == ran.stdout


def test_what_a_command_wrote_last_is_seen_however_late_somebody_looks(session: E2eSession) -> None:
    seen: list[str] = []

    def slowly(stream: str, text: str) -> None:
        seen.append(text)
        time.sleep(0.6)  # longer than what comes after a command's end is waited for

    line = r"printf first; sleep 0.2; printf 'last\342'"
    running = Running(["bash", "-c", line], cwd=str(session.cwd), env=session.env, input=None, on_output=slowly)
    try:
        assert running.finish(60)[0] == 0
        assert "".join(seen) == "firstlast\\xe2"
    finally:
        running.close()


def test_a_command_that_kills_its_shell_has_the_code_of_the_signal(session: E2eSession) -> None:
    assert session.run("echo before; kill -9 $$; echo after").exit_code == 137
    assert session.run("kill 0").exit_code == 143
    assert session.run("exit 200").exit_code == 200
    assert session.run("echo still here").stdout == "still here\n"


def test_an_interrupt_ends_the_command_and_keeps_what_it_printed(session: E2eSession) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_once_it_printed() -> None:
        wait_for(lambda: session.transcript().count("\n") > 1, "its process id")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    watching = threading.Thread(target=interrupt_once_it_printed)
    try:
        watching.start()
        with pytest.raises(KeyboardInterrupt):
            session.run("echo $$; exec sleep 999", timeout=100)
    finally:
        watching.join()
        signal.signal(signal.SIGALRM, before)
    assert not is_running(int(session.transcript().splitlines()[1]))


def test_settings_of_a_session_add_up(session: E2eSession) -> None:
    session.write_settings('[commands.create]\ntype = "scripted"\n')
    session.write_settings('[commands.create]\ntype = "command"\n[agent_types.mine]\ncommand = "true"\n')
    text = (session.home / ".mngr" / "settings.toml").read_text()
    assert 'connect_command = "mngr-e2e-connect"' in text
    assert 'type = "command"' in text and "[agent_types.mine]" in text
    with pytest.raises(UsageError, match="invalid TOML"):
        session.write_settings("= 3")
    assert session.run("git status --short").stdout == "", "settings are not in the repository"


def test_blocks_are_cited_one_after_the_other(session: E2eSession) -> None:
    first = session.write_tutorial_block("""
        # say it
        echo \\
          one
        echo two
    """)
    assert first.commands == ("echo one", "echo two") or len(first.commands) == 2
    session.write_tutorial_block("echo three")
    info = TestInfo(path=str(session.artifacts), node_id="x")
    assert [text.splitlines()[0] for text in info.blocks()] == ["# say it", "echo three"]
    assert [event["text"] for event in events(session, "block")] == [text.rstrip("\n") for text in info.blocks()]


def test_a_screen_is_recorded_under_its_name_and_ends_with_the_session(session: E2eSession) -> None:
    screen = session.spawn("cat", name="typing", comment="echoes")
    screen.type("hello")
    wait_for(lambda: "hello" in screen.text, "the screen to show it")
    other = session.spawn(["sh", "-c", "exit 7"], name="typing")
    assert other.wait_exit(60) == 7
    session.close()
    assert [event["recording"] for event in events(session, "spawn")] == ["typing.cast", "typing-2.cast"]
    assert (session.artifacts / "typing.cast").stat().st_size > 0
    assert [(event["number"], event["exit_code"]) for event in events(session, "exit")] == [(2, 7), (1, 129)]
    assert [event["number"] for event in events(session, "keys")] == [1]
    with pytest.raises(UsageError):
        session.spawn("cat", name="../x")


def test_the_end_of_a_screen_is_noted_when_it_comes(session: E2eSession) -> None:
    for _ in range(5):
        assert session.spawn(["sh", "-c", "exit 7"]).wait_exit(30) == 7
        session.run("true")
    found = events(session, "spawn", "command", "exit")
    assert [event["type"] for event in found] == ["spawn", "exit", "command", "exit"] * 5
    assert [event["exit_code"] for event in found if event["type"] == "exit"] == [7, 0] * 5


def test_a_screen_that_cannot_start_leaves_no_recording(session: E2eSession) -> None:
    with pytest.raises(MngrError, match="does not exist"):
        session.spawn("cat", cwd="nowhere")
    assert not [path.name for path in session.artifacts.iterdir() if ".cast" in path.name]


def test_all_is_ended_though_a_recording_could_not_be_written(session: E2eSession) -> None:
    screens = [session.spawn("cat"), session.spawn("cat")]
    pid = int(session.run("sleep 999 >/dev/null 2>&1 & echo $!").stdout)
    screens[0]._recording.failure = screens[1]._recording.failure = "the disk is full"
    with pytest.raises(MngrError, match="the disk is full"):
        session.close()
    assert not any(screen.alive for screen in screens) and not is_running(pid)
    assert len(events(session, "exit")) == 3
    session.note("after the end")
    assert not events(session, "note")


def test_a_command_takes_signals_that_pytest_was_told_to_ignore(session: E2eSession) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert session.run("sleep 20 & kill -INT $$; echo not reached").exit_code == 130
    finally:
        signal.signal(signal.SIGINT, before)
