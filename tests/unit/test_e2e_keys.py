"""Keys by tmux's names, and the terminal in memory that reads a program's output."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.e2e import keys
from mngr.e2e.connect import _UntilLeaving, looking_on
from mngr.e2e.emulator import Emulator
from mngr.errors import MngrError, UsageError


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("Enter", b"\r"),
        ("Escape", b"\x1b"),
        ("Tab", b"\t"),
        ("S-Tab", b"\x1b[Z"),
        ("BSpace", b"\x7f"),
        ("Space", b" "),
        ("C-Space", b"\0"),
        ("Up", b"\x1b[A"),
        ("C-Left", b"\x1b[1;5D"),
        ("Home", b"\x1b[H"),
        ("End", b"\x1b[F"),
        ("PageUp", b"\x1b[5~"),
        ("NPage", b"\x1b[6~"),
        ("S-DC", b"\x1b[3;2~"),
        ("F1", b"\x1bOP"),
        ("F5", b"\x1b[15~"),
        ("C-F2", b"\x1b[1;5Q"),
        ("F12", b"\x1b[24~"),
        ("C-c", b"\x03"),
        ("C-C", b"\x03"),
        ("^d", b"\x04"),
        ("C-[", b"\x1b"),
        ("M-x", b"\x1bx"),
        ("M-C-x", b"\x1b\x18"),
        ("C-M-x", b"\x1b\x18"),
        ("M-Enter", b"\x1b\r"),
        ("q", b"q"),
        ("-", b"-"),
        ("^", b"^"),
        ("é", "é".encode()),
        ("漢", "漢".encode()),
    ],
)
def test_a_key_has_the_bytes_that_a_terminal_sends(key, data):
    assert keys.encoded(key) == data


@pytest.mark.parametrize(("key", "data"), [("Up", b"\x1bOA"), ("Home", b"\x1bOH"), ("C-Up", b"\x1b[1;5A")])
def test_application_cursor_keys_are_other_bytes(key, data):
    assert keys.encoded(key, application_cursor=True) == data


@pytest.mark.parametrize(
    ("key", "hint"), [("Entr", "`Enter`"), ("up", "`Up`"), ("hello world", ".type("), ("", "`Space`")]
)
def test_a_key_that_does_not_exist_is_an_error_with_a_hint(key, hint):
    with pytest.raises(UsageError) as error:
        keys.encoded(key)
    assert hint in error.value.hint


@pytest.mark.parametrize("key", ["C-Enter", "S-Escape", "C-1", "C-é"])
def test_a_key_without_bytes_is_an_error(key):
    with pytest.raises(UsageError, match="cannot send"):
        keys.encoded(key)


def test_typed_lines_end_with_the_enter_key():
    assert keys.typed("a\nb\r\nc") == b"a\rb\rc"


class Fed:
    """A terminal of 20x5 that was fed in one piece and in single characters, which must come to the same."""

    def __init__(self, text: str, columns: int = 20, rows: int = 5) -> None:
        seen = []
        for pieces in ([text], list(text)):
            answers: list[str] = []
            emulator = Emulator(columns, rows, answers.append)
            for piece in pieces:
                emulator.feed(piece)
            display = emulator.display
            seen.append((display.rows(), (display.cursor.x, display.cursor.y), "".join(answers), display.title))
        assert seen[0] == seen[1]
        self.rows, self.cursor, self.answers, self.title = seen[0]
        self.text = "\n".join(self.rows).rstrip("\n")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("one\r\ntwo", "one\ntwo"),
        ("\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mtrue\x1b[38:5:9mparts\x1b[4:3mcurly", "red truepartscurly"),
        ("ab\x1b[3bcd", "abbbbcd"),
        ("a\tb\x1b[Zc", "a       c"),
        ("main\x1b[?1049h\x1b[Halternate\x1b[?1049lX", "mainX"),
        ("main\x1b[?1049h\x1b[Halternate", "alternate"),
        ("\x1b[?1049h\x1b[?1049h\x1b[?1049lx", "x"),
        ("1\r\n2\r\n3\r\n4\r\n5\x1b[2S", "3\n4\n5"),
        ("1\r\n2\x1b[T", "\n1\n2"),
        ("1\r\n2\r\n3\x1b[1;2r\x1b[2;1H\r\nX\x1b[r", "2\nX\n3"),
        ("\x1b(0lqk\x1b(B ok", "┌─┐ ok"),
        ("漢字ab", "漢字ab"),
        ("漢字\x1b[2Gx", " x字"),
        ("漢字\x1b[3Gx", "漢x"),
        ("e\u0301 " + "a" + "\u0301" * 3, "é á\u0301\u0301"),
        ("👨\u200d👩 family", "👨👩 family"),
        ("a" * 19 + "漢", "a" * 19 + "\n漢"),
        ("\x1bP1;2|junk\x1b\\after", "after"),
        ("\x1b_junk\x1b\\\x1b^junk\x1b\\\x1bXjunk\x1b\\after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b[>4;1mkeys\x1b[?1u\x1b[=1u\x1b[<u", "keys"),
        ("\x1b[!px", "x"),
        ("\x1b[2 qx", "x"),
        ("text\x1b[3Jkept", "textkept"),
        ("\x1b[?3hx\x1b[?3l", "x"),
        ("\x1b[1\x18x", "x"),
        ("\x1b[3\nCx", "\n   x"),
        ("\x1b7\x1b[3;3Ha\x1b8b\x1b8c", "c\n\n  a"),
        ("\x1b[999999999999999999999Ax", "x"),
        ("\x1b[;;;;Hx\x1b[1;2;3;4Ay", "xy"),
        ("\x9b31mred", "red"),
    ],
)
def test_the_screen_shows_what_a_terminal_shows(written, text):
    assert Fed(written).text == text


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>1;10;0c"),
        ("\x1b[5n", "\x1b[0n"),
        ("ab\r\nc\x1b[6n", "\x1b[2;2R"),
        ("\x1b[?6n", "\x1b[?1;1R"),
        ("x" * 20 + "\x1b[6n", "\x1b[1;20R"),
        ("\x1b[?25$p", "\x1b[?25;1$y"),
        ("\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"),
        ("\x1b[?2026$p", "\x1b[?2026;0$y"),
        ("\x1b[18t", "\x1b[8;5;20t"),
        ("\x1b[>q", "\x1bP>|mngr-e2e\x1b\\"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1b[?u", ""),
    ],
)
def test_the_terminal_answers_what_programs_ask(asked, answer):
    assert Fed(asked).answers == answer


def test_a_title_is_kept_and_not_shown():
    fed = Fed("\x1b]0;the title\x07shown")
    assert (fed.title, fed.text) == ("the title", "shown")


_PIECES = st.sampled_from(
    ["\x1b", "\x1b[", "\x1b]", "\x1bP", "\x9b", "\x9c", "\x07", "\x18", "\r\n", "\n", "\t", "\b", ";", "?", ":", "99"]
    + [f"\x1b[{n}{c}" for n in ("", "0", "3", "9999", "?47", "?1049", "2;4") for c in "ABCDGHJKLMPSTXZ@abdfghlmnrsu"]
    + ["漢", "e\u0301", "\u0301", "\u200d", "\x1b7", "\x1b8", "\x1bc", "\x1bM", "\x1bD", "\x1b#8", "\x1b(0", "text"]
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=60), st.integers(1, 12), st.integers(1, 6))
def test_nothing_that_is_written_breaks_the_terminal(pieces, columns, rows):
    emulator = Emulator(columns, rows, lambda answer: None)
    for piece in pieces:
        emulator.feed(piece)
        assert len(emulator.display.rows()) == rows
        assert 0 <= emulator.display.cursor.y < rows
    emulator.resize(7, 3)
    emulator.feed("\x18\x1b\\\x1bc" + "over")
    assert emulator.display.rows() == ["over", "", ""]


def test_a_flood_ends_with_the_same_screen_as_its_last_lines():
    flood = "".join(f"{number} {'x' * (number % 50)}\r\n" for number in range(3000)) + "end"
    assert Fed(flood).text == Fed(flood[-900:]).text


def test_memory_does_not_grow_with_what_is_written():
    emulator = Emulator(20, 5, lambda answer: None)
    for _ in range(50):
        emulator.feed("\x1b7a" + "\u0301" * 2000 + "\x1b]0;" + "t" * 10000)
        emulator.feed("\x07\x1b[" + "1;" * 5000 + "m")
    assert len(emulator.display.savepoints) <= 1
    assert max(map(len, emulator.display.rows())) < 300
    assert len(emulator.display.title) <= 4096


def test_a_smaller_screen_keeps_the_line_of_the_cursor():
    emulator = Emulator(20, 5, lambda answer: None)
    emulator.feed("one\r\ntwo")
    emulator.resize(10, 3)
    assert emulator.display.rows() == ["one", "two", ""]
    emulator.resize(2, 1)
    assert emulator.display.rows() == ["tw"] and emulator.display.cursor.y == 0


def test_an_attach_command_becomes_one_that_looks_on():
    line = looking_on("env -u TMUX tmux -u -L mngr attach-session -t =mngr-a")
    assert line == "exec env -u TMUX tmux -u -L mngr attach-session -f read-only,ignore-size -t =mngr-a"
    with pytest.raises(MngrError, match="not an attach"):
        looking_on("true")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_screen_that_tmux_clears_when_it_leaves_is_kept(size):
    whole = "last\x1b[?1hscreen\x1b[?1l\x1b>\x1b[H\x1b[2J\x1b[?1049l[exited]\r\n"
    until = _UntilLeaving()
    passed = [until.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
    assert "".join(passed) == "last\x1b[?1hscreen"
    assert _UntilLeaving().feed("x\x1b") + until.feed("") == "x"
