"""Recordings: `create --record`, `capture --cast`, played by asciinema's own programs."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mngr import secrets
from mngr.agent import recorder
from tests.support.browser import BROWSER, browser, play
from tests.support.timing import best_of
from tests.support.user import User, wait_for

CORNER = "┘"
FULL_SCREEN = """
import curses, sys

def show(screen):
    curses.use_default_colors()
    for number in range(1, 8):
        curses.init_pair(number, number, -1)
    curses.init_pair(8, 0, 3)
    screen.timeout(100)
    key = curses.KEY_RESIZE
    while key != ord("q"):
        if key == curses.KEY_RESIZE:
            curses.update_lines_cols()
            rows, columns = screen.getmaxyx()
            screen.erase()
            screen.box()
            screen.addstr(1, 2, f"{columns}x{rows}", curses.A_BOLD | curses.color_pair(1))
            screen.addstr(2, 2, "gr\\u00fcn \\u6f22\\u5b57 \\u00e9 <b>&amp;</b> \\U0001f389", curses.color_pair(2))
            screen.addstr(3, 2, "reverse", curses.A_REVERSE)
            screen.addstr(4, 2, " bar ".ljust(columns - 4), curses.color_pair(8))
            for row in range(5, rows - 1):
                screen.addstr(row, 2, f"row {row}", curses.color_pair(row % 7 + 1))
            screen.refresh()
        key = screen.getch()

curses.wrapper(show)
"""


def recording(user: User, name: str) -> Path:
    return user.host_dir / "agents" / user.agent(name)["id"] / "recording.cast"


def parsed(text: str) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    """Header and events, held against the asciicast v2 format."""
    first, *lines = text.splitlines()
    header = json.loads(first)
    assert header["version"] == 2 and header["width"] > 0 and header["height"] > 0 and header["timestamp"] > 1e9
    events = [json.loads(line) for line in lines]
    last = 0.0
    for event in events:
        at, code, data = event
        assert at >= last and isinstance(data, str) and code in ("o", "r", "m"), event
        assert code != "r" or re.fullmatch(r"[1-9]\d*x[1-9]\d*", data), event
        last = at
    return header, [tuple(event) for event in events]


def output(text: str) -> str:
    return "".join(data for _, code, data in parsed(text)[1] if code == "o")


def so_far(path: Path) -> str:
    """The whole lines of a recording that goes on; the last one may be half written."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].decode()


def recorded(user: User, name: str, end: str) -> str:
    """The recording, when it has come to this text."""
    path = recording(user, name)
    return wait_for(
        lambda: text if (text := so_far(path)) and end in output(text) else None,
        f"{end!r} at the end of the recording",
    )


def recorders(user: User) -> list[int]:
    found = []
    for pid in user.processes():
        try:
            if b"recorder.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def resize(user: User, name: str, columns: int, rows: int) -> None:
    assert user.tmux("resize-window", "-t", f"=mngr-{name}:", "-x", str(columns), "-y", str(rows)).exit_code == 0


def full_screen(user: User, name: str) -> None:
    program = user.root / "full.py"
    program.write_text(FULL_SCREEN)
    user.create(name, "--record", command=f"{sys.executable} {program}")
    drawn(user, name, "100x30")
    recorded(user, name, "100x30")  # the recorder takes the size of its moment for the first


def drawn(user: User, name: str, size: str) -> None:
    """Wait for the program's screen in this size: to its last corner, which is the last thing that it draws."""
    wait_for(lambda: size in (shown := user.mngr("capture", name).stdout) and CORNER in shown, f"a screen of {size}")


def test_a_recording_has_the_first_byte_and_the_last(user):
    for number in range(8):
        name = f"a{number}"
        user.create(name, "--record", command="printf 'FIRST \\033[1;32mgr\\303\\274n \\346\\274\\242\\033[0m LAST'")
        text = recorded(user, name, "LAST")
        assert output(text) == "FIRST \x1b[1;32mgrün 漢\x1b[0m LAST"
        assert parsed(text)[0] | {"timestamp": 0} == {
            "version": 2,
            "width": 100,
            "height": 30,
            "timestamp": 0,
            "title": name,
        }
    wait_for(lambda: not recorders(user), "the recorders to end with their agents")


def test_what_an_agent_writes_last_is_on_its_screen_and_in_its_recording(user):
    flood = "yes 0123456789 | head -c 1100000; printf 'LAST WORDS \\033]0;no end'"
    for number in range(3):
        for name, *more in ((f"a{number}",), (f"r{number}", "--record")):
            user.create(name, *more, command=flood)
            user.mngr("wait", name).ok()
            shown = user.mngr("capture", name).ok().stdout
            assert shown.rstrip().endswith("\nLAST WORDS")
            assert "LAST WORDS" in user.mngr("capture", name, "--colors").ok().stdout
            assert "Pane is dead" not in shown
        assert output(recorded(user, name, "LAST")).endswith("LAST WORDS \x1b]0;no end")


def test_a_recording_is_private_and_asciinema_plays_it(user):
    user.create("a", "--record", command="printf 'one\\ntwo\\n'; sleep 9999")
    recorded(user, "a", "two\r\n")
    assert recording(user, "a").stat().st_mode & 0o777 == 0o600
    file = user.root / "a.cast"
    assert user.mngr("capture", "a", "--cast", str(file)).ok().stdout == f"wrote {file}\n"
    played = user.run([shutil.which("asciinema", path=user.env["PATH"]) or "asciinema", "cat", str(file)]).ok()
    assert played.stdout == "one\r\ntwo\r\n"
    assert user.mngr("capture", "a", "--cast", "-").ok().stdout == file.read_text()
    assert "already exists" in user.mngr("capture", "a", "--cast", str(file)).failed().stderr


def test_an_agent_that_was_not_recorded_has_no_cast(user):
    user.create("a")
    failed = user.mngr("capture", "a", "--cast", "-").failed()
    assert "was not recorded" in failed.stderr and "--record" in failed.stderr
    user.mngr("capture", "a", "--cast", "x", "--history", "3").failed(2)
    assert not (user.repo / "x").exists()


def test_settings_turn_recording_on_and_an_option_turns_it_off(user):
    user.mngr("config", "set", "commands.create.record", "true").ok()
    user.create("a", command="printf HERE; sleep 9999")
    recorded(user, "a", "HERE")
    user.create("b", "--no-record")
    assert not recording(user, "b").exists() and len(recorders(user)) == 1


def test_resizes_are_recorded_before_what_is_drawn_for_them(user):
    full_screen(user, "a")
    for columns, rows in ((90, 20), (120, 40)):
        resize(user, "a", columns, rows)
        recorded(user, "a", f"{columns}x{rows}")
    _, events = parsed(so_far(recording(user, "a")))
    story = [(code, data) for _, code, data in events]
    assert [data for code, data in story if code == "r"] == ["90x20", "120x40"]
    for size in ("90x20", "120x40"):
        before = "".join(data for code, data in story[: story.index(("r", size))] if code == "o")
        assert size not in before
    user.create("quiet", "--record", command="printf READY; sleep 9999")
    recorded(user, "quiet", "READY")
    resize(user, "quiet", 70, 10)
    wait_for(lambda: '"r", "70x10"' in so_far(recording(user, "quiet")), "the resize of a silent terminal")


def test_bytes_that_are_no_text_do_not_harm_a_recording(user):
    user.create(
        "a", "--record", command="head -c 300000 /dev/urandom | tr -d '\\0'; printf '\\377\\303'; echo; echo OVER"
    )
    text = recorded(user, "a", "OVER")
    assert "\ufffd" in output(text)


@pytest.mark.timeout(600)
def test_ten_megabytes_are_recorded_whole_and_hardly_slower(user):
    line = "0123456789" * 10
    work = f"i=0; yes {line} | head -c 10000000; printf 'END\\n'"

    def slower(number: int) -> float:
        took = {}
        for kind, option in (("plain", "--no-record"), ("taped", "--record")):
            timed = f"begun=$(date +%s%N); {work}; echo $(( $(date +%s%N) - begun )) > nanoseconds"
            user.create(f"{kind}-{number}", option, command=timed)
            user.wait_for_state(f"{kind}-{number}", "DONE", timeout=200)
            took[kind] = int((user.work_dir(f"{kind}-{number}") / "nanoseconds").read_text()) / 1e9
        text = recorded(user, f"taped-{number}", "END\r\n")
        assert output(text).replace("\r\n", "\n").removesuffix("END\n") == (f"{line}\n" * 100000)[:10000000]
        return took["taped"] - took["plain"] * 3

    best_of(4, 2, slower)


def test_a_recording_goes_on_in_the_same_file_after_a_new_start(user):
    user.create("a", "--record", command="printf 'SHOWN\\n'; sleep 9999")
    before = recorded(user, "a", "SHOWN")
    user.mngr("stop", "a").ok()
    assert not recorders(user), "a recorder outlived `mngr stop`"
    with recording(user, "a").open("a") as file:
        file.write('[1.5, "o", "tor')  # as a full disk leaves it
    user.mngr("start", "a").ok()
    text = wait_for(
        lambda: t if output(t := so_far(recording(user, "a"))).count("SHOWN") == 2 else None, "the second start"
    )
    assert text.startswith(before)
    _, events = parsed(text)
    story = [(code, data) for _, code, data in events]
    marker = next(at for at, (code, data) in enumerate(story) if code == "m" and data.startswith("started again"))
    assert story[marker + 1 : marker + 3] == [("r", "100x30"), ("o", "\x1bc")]
    assert 0.5 < events[marker][0] - events[marker - 1][0] < 2, "time in which it did not run is left out"
    user.mngr("destroy", "a", "--force").ok()
    assert not recorders(user)
    assert not list(user.host_dir.glob("locks/agent-*"))


def test_a_recording_stops_at_its_largest_size_and_says_so(user):
    user.mngr("config", "set", "record.max_mb", "0.2").ok()
    user.create("a", "--record", command="yes 0123456789 | head -c 1000000; echo DONE; sleep 9999")
    text = recorded(user, "a", "record.max_mb = 0.2")
    assert len(text) < 210000 and parsed(text)[1][-1][2].startswith("\x1b[0m\r\n[the recording ends here")
    wait_for(lambda: not recorders(user), "the recorder to end")
    wait_for(lambda: "DONE" in user.mngr("capture", "a").stdout, "the agent to go on")


def test_given_secrets_are_not_in_a_recording(user):
    lines = "line-one-of-it\nline-two-of-it"
    user.mngr(
        "create",
        *("a", "--no-connect", "--record", "--env", "KEY=hunter2-hunter2", "--env", "PORT=8000"),
        *("--env", f"MANY={lines}"),
        *("--command", 'printf "[$KEY] $PORT hunt $MANY hunter2-"; sleep 0.3; printf "hunter2 hunter"; sleep 9999'),
    ).ok()
    recorded(user, "a", "[***] 8000 hunt ***\r\n*** *** ")  # the rest of it may be the beginning of a secret
    wait_for(lambda: user.mngr("capture", "a").stdout.rstrip().endswith(" hunter"), "the rest on the screen")
    user.mngr("stop", "a").ok()
    shown = output(recording(user, "a").read_text())
    assert shown == "[***] 8000 hunt ***\r\n*** *** hunter"
    assert (recorder.MASK, recorder.SHORTEST_SECRET) == (secrets.MASK, secrets.SHORTEST)


def test_an_agent_starts_without_its_recorder(user):
    """The file of the recording cannot be written, so the recorder ends at once."""
    user.create("a", "--record", command="printf HERE; sleep 9999")
    user.mngr("stop", "a").ok()
    path = recording(user, "a")
    path.unlink(missing_ok=True)  # it may have been stopped before its recorder began
    path.mkdir()
    user.mngr("start", "a").ok()
    wait_for(lambda: "HERE" in user.mngr("capture", "a").stdout, "the agent's output")
    assert user.state("a") == "RUNNING"


@pytest.mark.parametrize("name", ["plain", "a b", "50%d #{pid} #(touch x)", "it's"])
def test_odd_paths_are_no_hindrance(user, name):
    user.host_dir = user.root / name
    user.env["MNGR_HOST_DIR"] = str(user.host_dir)
    user.create("a", "--record", command="printf HERE; sleep 9999")
    recorded(user, "a", "HERE")


def test_the_asciinema_player_shows_the_same_last_screen_as_capture(user):
    if BROWSER is None:
        pytest.skip("not run: no Chromium or Chrome here, and `make test` could not install one")
    full_screen(user, "a")
    resize(user, "a", 90, 20)
    path = recording(user, "a")

    def drawn_anew() -> bool:
        text = so_far(path)  # empty before its first line
        return bool(text) and CORNER in output(text).rpartition("90x20")[2]

    wait_for(drawn_anew, "the resized screen's end")
    drawn(user, "a", "90x20")  # tmux may have it drawn twice
    screen = user.mngr("capture", "a").ok().stdout
    cast = user.mngr("capture", "a", "--cast", "-").ok().stdout
    seen, colours = played(user, cast, lines=20)
    assert [line.rstrip() for line in seen] == [line.rstrip() for line in screen.splitlines()]
    assert "漢字" in seen[2] and "<b>&amp;</b>" in seen[2]
    assert colours["row 7"] != colours["row 8"], colours


def played(user: User, cast: str, *, lines: int) -> tuple[list[str], dict[str, str]]:
    """Play to the end in the real player: its lines, and the colour of each piece of text."""
    with browser() as chromium:
        page = chromium.tab(viewport={"width": 1000, "height": 600})
        play(page, user.root, cast)
        shown = "[...document.querySelectorAll('.ap-line')].map(line => line.textContent)"
        page.wait_for_function(f"{shown}.length == {lines} && {shown}.at(-1).includes('{CORNER}')")
        text = page.eval_on_selector_all(".ap-line", "found => found.map(line => line.textContent)")
        colours = page.eval_on_selector_all(
            ".ap-line span", "found => found.map(part => [part.textContent.trim(), getComputedStyle(part).color])"
        )
        return text, dict(colours)
