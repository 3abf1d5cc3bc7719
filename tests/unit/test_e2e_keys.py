"""Keys by tmux's names, and the client that looks on for a recording."""

import pytest

from mngr.e2e import keys
from mngr.e2e.connect import _UntilLeaving, looking_on
from mngr.errors import MngrError, UsageError


@pytest.mark.parametrize(
    ("key", "words"),
    [
        *((name, [name]) for name in ("Enter", "Up", "C-Left", "S-DC", "F5", "C-F2", "M-Enter", "NPage")),
        *(("S-Tab", ["BTab"]), ("Space", ["-H", "20"]), ("C-Space", ["-H", "00"])),
        *(("C-c", ["-H", "03"]), ("C-C", ["-H", "03"]), ("^d", ["-H", "04"]), ("C-[", ["-H", "1b"])),
        *(("M-x", ["-H", "1b", "78"]), ("M-C-x", ["-H", "1b", "18"]), ("C-M-x", ["-H", "1b", "18"])),
        *(
            ("q", ["-H", "71"]),
            ("-", ["-H", "2d"]),
            (";", ["-H", "3b"]),
            ("^", ["-H", "5e"]),
            ("é", ["-H", "c3", "a9"]),
        ),
    ],
)
def test_a_key_is_a_name_of_tmux_or_bytes(key, words):
    assert keys.pressed(key) == words


@pytest.mark.parametrize(
    ("key", "hint"), [("Entr", "`Enter`"), ("up", "`Up`"), ("hello world", ".type("), ("", "`Space`")]
)
def test_a_key_that_does_not_exist_is_an_error_with_a_hint(key, hint):
    with pytest.raises(UsageError) as error:
        keys.pressed(key)
    assert hint in error.value.hint


@pytest.mark.parametrize("key", ["C-Enter", "S-Escape", "C-1", "C-é"])
def test_a_key_without_bytes_is_an_error(key):
    with pytest.raises(UsageError, match="cannot send"):
        keys.pressed(key)


def test_typed_lines_end_with_the_enter_key_and_long_texts_are_parts():
    assert list(keys.typed("a\nb\r\nc")) == [["-H", "61", "0d", "62", "0d", "63"]]
    assert [len(words) for words in keys.typed("x" * 4001)] == [4001, 2]


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
