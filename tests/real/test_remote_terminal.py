"""`mngr connect` on a host whose provider has no terminal of its own."""

from pathlib import Path

from tests.real.test_connect import Terminal
from tests.real.test_create import write_settings
from tests.support.user import User


def test_connect_makes_a_terminal_through_the_plain_stream_of_a_provider(user: User, tmp_path: Path) -> None:
    there = f"env HOME={tmp_path} TMUX_TMPDIR={user.tmux_dir} sh -c"
    write_settings(user, f'[providers.plain]\nopen = "{there}"\n')
    command = "while sleep 0.2; do stty size; done"
    user.mngr("create", "foo@box.plain", "--no-connect", "--command", command).ok()
    terminal = Terminal(user, "mngr connect foo; echo left with $?")
    terminal.shows("23 100")
    user.run(["tmux", "-L", "person", "resize-window", "-t", "person", "-x", "90", "-y", "30"]).ok()
    terminal.shows("29 90")
    terminal.press("C-b", "d")
    terminal.shows("left with 0")
    terminal.type("stty -a | grep -c ' echo '")
    terminal.shows("1")
    user.mngr("destroy", "foo", "--force").ok()


def test_connect_runs_nothing_of_the_current_directory(user: User, tmp_path: Path) -> None:
    """Python looks for modules where it is started: a clone may hold files called as those of the standard library."""
    there = f"env HOME={tmp_path} TMUX_TMPDIR={user.tmux_dir} sh -c"
    write_settings(user, f'[providers.plain]\nopen = "{there}"\n')
    for name in ("pty", "socket", "termios", "select", "signal", "mngr"):
        (user.repo / f"{name}.py").write_text(f"open({str(user.root / 'ran')!r}, 'a').write('{name}\\n')\n")
    user.mngr("create", "foo@box.plain", "--no-connect", "--exclude-unclean", "--command", "echo hello; cat").ok()
    terminal = Terminal(user, "mngr connect foo; echo left with $?")
    terminal.shows("hello")
    terminal.press("C-b", "d")
    terminal.shows("left with 0")
    assert not (user.root / "ran").exists()
    user.mngr("destroy", "foo", "--force").ok()
