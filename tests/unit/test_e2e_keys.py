"""Keys by tmux's names, and the client that looks on for a recording."""

import pytest

from mngr.e2e.connect import looking_on
from mngr.e2e.screen import _KEY
from mngr.errors import MngrError


@pytest.mark.parametrize(
    "key",
    [
        *("Enter", "Up", "C-Left", "S-DC", "F5", "F12", "C-F2", "M-Enter", "NPage", "BTab", "Space", "C-Space", "M-x"),
        *("C-c", "C-C", "^d", "C-[", "M-C-x", "C-M-x", "C-/", "q", "-", ";", "^", "é", "1", "M-1"),
    ],
)
def test_a_key_has_a_name_of_tmux_or_is_a_character(key: str) -> None:
    assert _KEY.fullmatch(key)


@pytest.mark.parametrize("key", ["Entr", "up", "hello world", "", "C-Enter", "S-Escape", "S-Tab", "C-1", "C-é", "F13"])
def test_what_a_terminal_cannot_send_is_no_key(key: str) -> None:
    assert not _KEY.fullmatch(key)


def test_an_attach_command_becomes_one_that_looks_on() -> None:
    line = looking_on("env -u TMUX tmux -u -L mngr attach-session -t =mngr-a")
    assert line == "exec env -u TMUX tmux -u -L mngr attach-session -f read-only,ignore-size -t =mngr-a"
    with pytest.raises(MngrError, match="not an attach"):
        looking_on("true")
