"""Ctrl-C while mngr waits for a change."""

import signal
from pathlib import Path

import pytest

from tests.support.user import User, wait_for


@pytest.mark.parametrize("words", [("wait", "foo", "DONE"), ("list", "--watch")])
def test_an_interrupt_ends_a_command_that_waits_for_changes(user: User, words: tuple[str, ...]) -> None:
    user.create("foo")
    child = user.popen(*words)
    try:
        wait_for(lambda: watches_files(child.pid), "the command to wait for changes")
        child.send_signal(signal.SIGINT)
        assert child.wait(60) in (0, 130)
    finally:
        child.kill()
        child.communicate()


def watches_files(pid: int) -> bool:
    """Whether the process has an inotify descriptor. One that has ended has none."""
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for link in links:
        try:
            if "inotify" in str(link.readlink()):
                return True
        except OSError:
            continue
    return False
