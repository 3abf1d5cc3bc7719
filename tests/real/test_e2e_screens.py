"""Screens of end-to-end tests: real full-screen programs on a real terminal, recorded for real players."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mngr.e2e import cast, expect
from mngr.e2e.environment import short_place
from mngr.e2e.screen import Screen
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.system.waiting import wait_until
from tests.support.browser import BROWSER, browser, play
from tests.support.user import MNGR, User, wait_for

pytestmark = pytest.mark.timeout(300)
CONNECT = str(Path(sys.executable).with_name("mngr-e2e-connect"))

# Shows its size and the last key on every change; `q` ends it with code 7.
CURSES = """
import curses, sys

def show(screen):
    curses.use_default_colors()
    for number in range(1, 8):
        curses.init_pair(number, number, -1)
    key = "none"
    while key != "q":
        curses.update_lines_cols()
        rows, columns = screen.getmaxyx()
        screen.erase()
        screen.box()
        screen.addstr(1, 2, f"{columns}x{rows}", curses.A_BOLD | curses.color_pair(1))
        screen.addstr(2, 2, "gr\\u00fcn \\u6f22\\u5b57 \\U0001f389 end", curses.color_pair(2))
        screen.addstr(3, 2, f"key: {key}", curses.A_REVERSE)
        for row in range(4, rows - 1):
            screen.addstr(row, 2, f"row {row}", curses.color_pair(row % 7 + 1))
        screen.move(3, 2)
        screen.refresh()
        pressed = screen.get_wch()
        key = curses.keyname(pressed).decode() if isinstance(pressed, int) else pressed
        key = key if key.isprintable() else repr(key)

curses.wrapper(show)
sys.exit(7)
"""


class Screens:
    """Starts screens in one user's world and closes all of them."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.directory = user.root / "artifacts"
        self.directory.mkdir()
        self.keys: list[str] = []
        self.opened: list[Screen] = []

    def __call__(self, command: str | list[str], columns: int = 60, rows: int = 12) -> Screen:
        name = f"s{len(self.opened)}"
        self.opened.append(
            Screen(
                ["bash", "-c", command] if isinstance(command, str) else command,
                env=self.user.env,
                cwd=str(self.user.repo),
                columns=columns,
                rows=rows,
                directory=str(self.user.tmux_dir),
                cast_path=str(self.directory / f"{name}.cast"),
                title=name,
                number=len(self.opened) + 1,
                on_keys=self.keys.append,
            )
        )
        return self.opened[-1]

    def curses(self, columns: int = 60, rows: int = 12) -> Screen:
        program = self.user.root / "full.py"
        program.write_text(CURSES)
        screen = self([sys.executable, str(program)], columns, rows)
        wait_for(lambda: drawn(screen, columns, rows), "the first screen, whole")
        return screen


@pytest.fixture
def spawn(user: User) -> Iterator[Screens]:
    screens = Screens(user)
    try:
        yield screens
    finally:
        for screen in screens.opened:
            screen.close()


def shows(screen: Screen, text: str, timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while text not in screen.text:
        assert time.monotonic() < deadline, f"waited for {text!r}; the screen is:\n{screen.text}"
        time.sleep(0.02)


def drawn(screen: Screen, columns: int, rows: int) -> bool:
    """Whether the full-screen program has written all of a screen of this size."""
    size, last = f"{columns}x{rows}" in screen.text, screen.lines[-1]
    return size and last == "└" + "─" * (columns - 2) + "┘" and f"row {rows - 2}" in screen.text


def resize(screen: Screen, columns: int, rows: int) -> None:
    """Until the program shows it. A signal that comes just before it waits for a key is seen only with the next one."""
    screen.resize(columns, rows)
    if not wait_until(lambda: drawn(screen, columns, rows), timeout=10):
        screen.press("x")
        wait_for(lambda: drawn(screen, columns, rows), f"a screen of {columns}x{rows}")


def story(path: Path) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    first, *lines = path.read_text().splitlines()
    events = [tuple(json.loads(line)) for line in lines]
    assert [at for at, _, _ in events] == sorted(at for at, _, _ in events)
    return json.loads(first), events


def output(path: Path) -> str:
    return "".join(data for _, code, data in story(path)[1] if code == "o")


def sidecar(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{path}.json").read_text())
    return found


def test_a_full_screen_program_is_drawn_driven_and_ended(spawn):
    screen = spawn.curses()
    assert screen.lines[0] == "┌" + "─" * 58 + "┐"
    assert screen.lines[2].startswith("│ grün 漢字 🎉 end ")
    assert (len(screen.lines), screen.alive, screen.exit_code) == (12, True, None)
    for key, seen in (
        *(("Up", "KEY_UP"), ("End", "KEY_END"), ("PageDown", "KEY_NPAGE"), ("F1", "KEY_F(1)"), ("F12", "KEY_F(12)")),
        *(("DC", "KEY_DC"), ("BTab", "KEY_BTAB"), ("C-a", "'\\x01'"), ("é", "key: é"), ("Space", "key:  ")),
    ):
        screen.press(key)
        shows(screen, seen)
    screen.type("xyz")
    shows(screen, "key: z")
    assert spawn.keys[:2] == ["Up", "End"] and spawn.keys[-1] == "xyz"
    screen.press("q")
    assert screen.wait_exit(60) == 7 == screen.exit_code
    assert not screen.alive and "row 5" not in screen.text, "the alternate screen is left"
    with pytest.raises(MngrError, match=r"has ended \(exit code 7\) and takes no keys"):
        screen.press("Enter")


def test_the_program_follows_a_new_size_and_so_does_the_recording(spawn):
    screen = spawn.curses()
    resize(screen, 40, 8)
    assert screen.lines[-1] == "└" + "─" * 38 + "┘" and len(screen.lines) == 8
    resize(screen, 90, 20)
    assert "row 18" in screen.text
    events = story(spawn.directory / "s0.cast")[1]
    assert [data for _, code, data in events if code == "r"] == ["40x8", "90x20"]
    with pytest.raises(MngrError, match="0x5"):
        screen.resize(0, 5)


def test_keys_are_checked_before_any_is_sent(spawn):
    screen = spawn("cat")
    with pytest.raises(UsageError, match="unknown key `Entr`"):
        screen.press("a", "Entr")
    screen.type("b\n")
    shows(screen, "b\nb")


READING = r"""
import os, tty
tty.setraw(0)
print("ready", end="\r\n", flush=True)
while (data := os.read(0, 4096)) != b"q":
    print(data.hex(), end="\r\n", flush=True)
"""


@pytest.mark.parametrize(
    ("key", "data"),
    [
        *(("Enter", "0d"), ("Escape", "1b"), ("Tab", "09"), ("BTab", "1b5b5a"), ("BSpace", "7f"), ("C-Space", "00")),
        *(("Up", "1b5b41"), ("C-Left", "1b5b313b3544"), ("PageUp", "1b5b357e"), ("S-DC", "1b5b333b327e")),
        *(("F1", "1b4f50"), ("F5", "1b5b31357e"), ("C-F2", "1b5b313b3551"), ("M-Enter", "1b0d"), ("M-x", "1b78")),
        *(("C-c", "03"), ("C-/", "1f"), (";", "3b"), ("漢", "e6bca2")),
    ],
)
def test_a_program_reads_what_a_terminal_sends_for_a_key(reading, key, data):
    before = len(reading.text.splitlines())
    reading.press(key)
    wait_for(lambda: len(reading.text.splitlines()) > before, f"the key {key}")
    assert reading.text.splitlines()[-1] == data


@pytest.fixture(scope="module")
def reading(tmp_path_factory) -> Iterator[Screen]:
    """One program for all keys, which shows the bytes of each."""
    directory = tempfile.mkdtemp(prefix="keys-", dir=short_place())
    screen = Screen(
        [sys.executable, "-c", READING],
        env=dict(os.environ),
        cwd="/",
        columns=40,
        rows=100,
        directory=directory,
        cast_path=str(tmp_path_factory.mktemp("keys") / "keys.cast"),
        title="keys",
        number=1,
        on_keys=lambda keys: None,
    )
    try:
        shows(screen, "ready")
        yield screen
    finally:
        screen.close()
        os.rmdir(directory)


def test_long_text_is_typed_whole(spawn):
    screen = spawn("stty raw -echo; echo ready; head -c 20000 | sha256sum; sleep 99", columns=100)
    shows(screen, "ready")
    text = "".join(f"{number} grün 漢\t" for number in range(2000)).encode()[:20000].decode(errors="ignore")
    text += "x" * (20000 - len(text.encode()))
    screen.type(text)
    shows(screen, hashlib.sha256(text.encode()).hexdigest())


def test_vim_edits_a_file_and_less_pages_through_it(spawn):
    if shutil.which("vim") is None or shutil.which("less") is None:
        pytest.skip("not run: vim and less are not both here")
    file = spawn.user.repo / "notes.txt"
    editor = spawn(["vim", "-u", "NONE", "-N", str(file)])
    shows(editor, "notes.txt")
    editor.type("ifirst line\nzwölf 漢字")
    editor.press("Escape")
    editor.type(":wq\n")
    assert editor.wait_exit(60) == 0
    assert file.read_text() == "first line\nzwölf 漢字\n"
    file.write_text("".join(f"line {number}\n" for number in range(1, 100)))
    pager = spawn(["less", str(file)])
    shows(pager, "line 11")
    pager.press("Down", "Down")
    shows(pager, "line 13")
    pager.press("G")
    shows(pager, "line 99")
    pager.press("q")
    assert pager.wait_exit(60) == 0


ASKING = r"""
import os, sys, termios, tty
tty.setcbreak(0)
for question in ("\x1b[6n", "\x1b[c", "\x1b[>c", "\x1b[5n"):
    sys.stdout.write("  " + question); sys.stdout.flush()
    answer = b""
    while not answer.endswith((b"R", b"c", b"n")):
        answer += os.read(0, 1)
    print(ascii(answer.decode()))
"""


def test_a_program_that_asks_the_terminal_gets_answers(spawn):
    screen = spawn([sys.executable, "-c", ASKING])
    assert screen.wait_exit(60) == 0
    assert "'\\x1b[1;3R'" in screen.text and "'\\x1b[0n'" in screen.text


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 3", 3), ("kill -TERM $$", 143), ("no-such-program-here", 127), (["no-such-program-here"], 127)],
)
def test_exit_codes_are_a_shells(spawn, command, code):
    screen = spawn(command)
    assert screen.wait_exit(60) == code
    assert (code == 127) == ("not found" in screen.text.replace("\n", ""))
    screen.close()
    found = sidecar(spawn.directory / "s0.cast")
    assert found["exit_code"] == code and found["ended_at"] >= found["started_at"]


def test_what_a_program_writes_last_is_on_the_screen_when_it_has_ended(spawn):
    for number in range(20):
        screen = spawn(f"printf 'last words {number}'")
        assert screen.wait_exit(60) == 0
        assert screen.text == f"last words {number}"


def test_nobody_waits_for_the_screen_of_a_program_that_has_ended(spawn):
    screen = spawn("echo early; exit 3")
    began = time.monotonic()
    with pytest.raises(AssertionError, match=r"(?s)its program has ended, and it is:.*early"):
        expect(screen).to_show("late", timeout=200)
    assert time.monotonic() - began < 100
    expect(screen).to_show("early", timeout=1)


def test_a_program_that_does_not_end_is_said_with_its_screen(spawn):
    screen = spawn("echo here I am; sleep 9999")
    shows(screen, "here I am")
    with pytest.raises(TimedOut) as error:
        screen.wait_exit(0.2)
    assert "here I am" in error.value.details and screen.alive


def test_closing_ends_all_of_a_session_that_ignores_the_hangup(spawn):
    ignore = "trap '' HUP TERM INT;"
    screen = spawn(f"{ignore} (set -m; {ignore} sleep 9999 & sleep 9998 &) ; echo started; while :; do sleep 1; done")
    shows(screen, "started")
    wait_for(lambda: len(spawn.user.processes()) >= 3, "all that it started")
    began = time.monotonic()
    screen.close()
    assert time.monotonic() - began < 100
    assert spawn.user.processes() == []
    assert screen.text.startswith("started") and screen.exit_code == 137 and not screen.alive
    with pytest.raises(MngrError, match="takes no keys"):
        screen.type("x")
    screen.close()


def test_a_program_has_a_moment_to_say_goodbye(spawn):
    """One second, which other programs may take away from it: one of five must be in time."""
    codes = []
    for number in range(5):
        screen = spawn(f"trap 'echo saved > bye{number}; exit 5' HUP; echo ready; while :; do sleep 0.05; done")
        shows(screen, "ready")
        screen.close()
        codes.append(screen.exit_code)
        if codes[-1] == 5:
            assert (spawn.user.repo / f"bye{number}").read_text() == "saved\n"
            return
    pytest.fail(f"it was killed each time: {codes}")


def test_what_was_left_in_the_background_ends_with_the_screen(spawn):
    screen = spawn("(trap '' HUP; touch up; exec sleep 9999) & until [ -e up ]; do sleep 0.02; done; echo over")
    assert screen.wait_exit(60) == 0 and screen.text == "over"
    wait_for(lambda: len(spawn.user.processes()) == 1, "what was left alone")
    screen.close()
    assert spawn.user.processes() == []


def test_garbage_is_harmless_and_recorded(spawn):
    screen = spawn("stty -echo; head -c 150000 /dev/urandom; printf '\\030\\033\\134\\033cOVER \\377\\303'")
    assert screen.wait_exit(60) == 0
    assert screen.text == "OVER"
    screen.close()
    played(spawn, spawn.directory / "s0.cast")


def test_a_flood_is_capped_with_a_note_and_keeps_its_last_screen(spawn):
    screen = spawn("yes 0123456789 | head -c 11000000; echo END")
    assert screen.wait_exit(250) == 0
    assert screen.lines[-2:] == ["END", ""]
    path = spawn.directory / "s0.cast"
    assert cast.MAX_BYTES * 0.9 < path.stat().st_size <= cast.MAX_BYTES + 200
    assert "[the recording ends here, at 8 MB; the program went on]" in story(path)[1][-1][2]


def test_a_program_that_asks_for_ever_and_never_reads_is_no_burden(spawn):
    asking = r"yes $(printf '\033[6n\033[c') | head -c 200000"
    screen = spawn(f"stty raw -echo; {asking}; printf '\\033[HASKED\\033[K'; sleep 9999")
    shows(screen, "ASKED", timeout=60)
    screen.type("still there\n")


def test_a_recording_is_readable_while_it_grows_and_has_a_sidecar(spawn):
    before = time.time()
    screen = spawn("printf 'FIRST \\033[32mgrün\\033[0m'; read line; printf LAST")
    shows(screen, "grün")
    path = spawn.directory / "s0.cast"
    wait_for(lambda: output(path) == "FIRST \x1b[32mgrün\x1b[0m", "all that was written so far")
    expected = {"schema": 1, "recording": "s0.cast", "kind": "spawn", "number": 1, "title": "s0"}
    found = sidecar(path)
    assert expected.items() <= found.items() and (found["columns"], found["rows"]) == (60, 12)
    assert found["ended_at"] is None and found["exit_code"] is None
    assert before - 0.01 <= found["started_at"] <= time.time()
    pressed_at = time.time()
    screen.press("Enter")
    screen.wait_exit(60)
    ended_at = time.time()
    at = next(at for at, _, data in story(path)[1] if "LAST" in data)
    moment = found["started_at"] + at
    assert pressed_at - 0.1 < moment < ended_at + 0.1, "a moment of the test is a second of the recording"
    assert sidecar(path)["ended_at"] is not None and path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_to_a_recording_that_is_closed(tmp_path):
    recording = cast.Recording(str(tmp_path / "a.cast"), kind="spawn", title="a", number=1, size=(80, 24))
    recording.output("before")
    recording.close(0)
    with (tmp_path / "other").open("w"):  # which may get the number of the closed descriptor
        recording.output("after")
        recording.resize(90, 30)
        recording.close(1)
    assert (tmp_path / "other").read_text() == "" and output(tmp_path / "a.cast") == "before"
    assert sidecar(tmp_path / "a.cast")["exit_code"] == 0 and recording.failure == ""


def test_a_recording_whose_directory_is_gone_ends_without_a_word_but_its_failure(tmp_path):
    (tmp_path / "gone").mkdir()
    recording = cast.Recording(str(tmp_path / "gone" / "a.cast"), kind="spawn", title="a", number=1, size=(80, 24))
    shutil.rmtree(tmp_path / "gone")
    recording.close(0)
    assert "No such file" in recording.failure


def test_a_recording_is_never_written_over(spawn):
    (spawn.directory / "s0.cast").write_text("mine")
    assert spawn("true").recording == "s0-2.cast"
    assert (spawn.directory / "s0.cast").read_text() == "mine"


def played(spawn: Screens, path: Path) -> str:
    """What asciinema's own program makes of it."""
    program = shutil.which("asciinema", path=spawn.user.env["PATH"]) or "asciinema"
    return spawn.user.run([program, "cat", str(path)]).ok().stdout


def test_asciinema_plays_a_recording(spawn):
    screen = spawn("printf 'one\\ntwo 漢\\n'")
    screen.wait_exit(60)
    assert played(spawn, spawn.directory / "s0.cast") == "one\r\ntwo 漢\r\n"


def test_the_player_shows_the_same_screen_as_the_test_saw(spawn):
    if BROWSER is None:
        pytest.skip("not run: no Chromium or Chrome here, and `make test` could not install one")
    screen = spawn.curses()
    screen.press("F2")
    shows(screen, "KEY_F(2)")
    resize(screen, 70, 15)
    assert "row 13" in screen.text
    recording = spawn.directory / "s0.cast"
    wait_for(lambda: "row 13" in recording.read_text(), "a recording of what the screen shows")
    wait_for(lambda: unchanged(recording), "the rest of that")
    seen = in_player(spawn.user, recording.read_text(), screen.lines)
    assert seen == screen.lines


def unchanged(path: Path) -> bool:
    before = path.stat().st_size
    time.sleep(0.5)
    return path.stat().st_size == before


def in_player(user: User, recording: str, expected: list[str]) -> list[str]:
    """What the player shows at the end."""
    with browser() as chromium:
        page = chromium.tab(viewport={"width": 1000, "height": 600})
        play(page, user.root, recording)
        wait_until(lambda: _shown(page) == expected, timeout=30)
        return _shown(page)


def _shown(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(".ap-line", "all => all.map(line => line.textContent)")
    return [line.rstrip() for line in found]


# The connect command.


@pytest.fixture
def tested(user: User) -> User:
    """A user whose agents are recorded, as in a test."""
    (user.root / "artifacts").mkdir()
    user.env["MNGR_E2E_ARTIFACTS"] = str(user.root / "artifacts")
    user.mngr("config", "set", "--scope", "user", "commands.create.connect_command", "mngr-e2e-connect").ok()
    return user


def recorders(user: User) -> list[int]:
    found = []
    for pid in user.processes():
        try:
            if b"record_here" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def the_recorder(user: User) -> int:
    """The only one. A program that it starts has its command line for a moment."""
    (pid,) = wait_for(lambda: found if len(found := recorders(user)) == 1 else None, "one recorder")
    return pid


def holds(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.exists() and text in output(path)


def test_an_agent_is_recorded_from_its_creation_to_its_end(tested):
    path = tested.root / "artifacts" / "a.cast"
    script = "echo HELLO; read line; echo got $line; sleep 9999"
    tested.mngr("create", "a", "--command", script, env={"MNGR_E2E_COMMAND": "3"}).ok()
    assert path.exists() and recorders(tested), "it records when the command is over"
    the_recorder(tested)
    wait_for(holds(path, "HELLO"), "the first screen")
    tested.tmux("send-keys", "-t", "=mngr-a:", "hey", "Enter").ok()
    wait_for(holds(path, "got hey"), "the answer")
    begun = sidecar(path)
    expected = {"kind": "connect", "number": 3, "title": "a", "columns": 200, "rows": 51, "ended_at": None}
    assert expected.items() <= begun.items()
    tested.mngr("destroy", "a", "--force").ok()
    wait_for(lambda: not recorders(tested), "the recorder to end with the session")
    assert sidecar(path)["ended_at"] is not None
    assert "[exited]" not in output(path)
    shown = tested.run(["asciinema", "cat", str(path)]).ok().stdout
    assert "got hey" in shown


def test_the_recorder_looks_on_and_follows_the_windows_size(tested):
    tested.mngr("create", "a", "--command", "cat").ok()
    path = tested.root / "artifacts" / "a.cast"
    assert tested.tmux("list-clients", "-F", "#{client_readonly} #{client_flags}").ok().stdout.startswith("1 ")
    tested.tmux("resize-window", "-t", "=mngr-a:", "-x", "70", "-y", "12").ok()
    wait_for(lambda: any(code == "r" for _, code, _ in story(path)[1]), "the new size")
    assert next(data for _, code, data in story(path)[1] if code == "r") == "70x13"
    size = tested.tmux("display-message", "-p", "-t", "=mngr-a:", "#{window_width}x#{window_height}").ok().stdout
    assert size == "70x12\n"


def test_many_agents_and_one_name_are_recorded_at_the_same_time(tested):
    names = [f"a{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: tested.mngr("create", name, "--command", f"echo I am {name}; cat").ok(), names))
        list(pool.map(lambda _: tested.mngr("connect", "a0").ok(), range(4)))
    directory = tested.root / "artifacts"
    for name in (*names, "a0-2", "a0-3", "a0-4", "a0-5"):
        wait_for(holds(directory / f"{name}.cast", f"I am {name[:2]}"), f"the recording {name}")
        assert sidecar(directory / f"{name}.cast")["recording"] == f"{name}.cast"
    wait_for(lambda: len(recorders(tested)) == 8, "eight recorders")
    tested.tmux("kill-server").ok()
    wait_for(lambda: not recorders(tested), "the recorders to end with the server")


def test_a_recorder_that_is_ended_closes_its_recording(tested):
    tested.mngr("create", "a", "--command", "echo HELLO; cat").ok()
    path = tested.root / "artifacts" / "a.cast"
    wait_for(holds(path, "HELLO"), "the first screen")
    os.kill(the_recorder(tested), 15)
    wait_for(lambda: not recorders(tested), "its end")
    assert sidecar(path)["ended_at"] is not None
    wait_for(lambda: tested.tmux("list-clients").ok().stdout == "", "tmux to take note of it")
    assert tested.state("a") == "RUNNING"


def test_given_secrets_are_not_in_the_recording(tested):
    tested.mngr("create", "a", "--env", "KEY=hunter2-hunter2", "--command", "echo [$KEY]; cat").ok()
    path = tested.root / "artifacts" / "a.cast"
    wait_for(holds(path, "[***]"), "the masked value")
    assert "hunter2" not in path.read_text()


def test_outside_a_test_the_connect_command_says_so(user):
    user.mngr("config", "set", "--scope", "user", "commands.create.connect_command", "mngr-e2e-connect").ok()
    failed = user.mngr("create", "a", "--command", "cat").failed()
    assert "error: mngr-e2e-connect records an agent for a test" in failed.stderr
    assert "`MNGR_E2E_ARTIFACTS` is not set" in failed.stderr and user.state("a") == "RUNNING"
    env = {"MNGR_E2E_ARTIFACTS": str(user.root)}
    assert "`MNGR_AGENT_NAME` is not set" in user.run([CONNECT], env=env).failed().stderr
    agent = {"MNGR_AGENT_NAME": "x", "MNGR_SESSION_NAME": "x", "MNGR_ATTACH_COMMAND": "tmux attach-session -t =x"}
    gone = user.run([CONNECT], env={**env, **agent}).failed()
    assert "the tmux session `x` does not exist" in gone.stderr
    assert "does not exist" in user.run([CONNECT], env={**agent, "MNGR_E2E_ARTIFACTS": "/nowhere"}).failed().stderr
    wait_for(lambda: not recorders(user), "those that had nothing to record to be gone")
    assert not list(user.root.glob("*.cast*"))


def test_nobody_who_waits_for_the_commands_output_waits_for_the_recorder(tested):
    done = subprocess.run(
        [MNGR, "create", "a", "--command", "cat"],
        env=tested.env, cwd=tested.repo, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert b"created a" in done.stdout and recorders(tested)
