"""Hints from what ssh printed."""

import pytest

from mngr.remote.troubles import hint


@pytest.mark.parametrize(
    ("printed", "advice"),
    [
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "`ssh-keygen -R box`"),
        ("No ED25519 host key is known for box\nHost key verification failed.", "by hand: `ssh box`"),
        ("root@box: Permission denied (publickey).", "which keys were offered"),
        ("mngr cannot be unpacked to /x: Permission denied", "another `host_dir`"),
        ("ssh: Could not resolve hostname box: Name or service not known", "`ssh -G box`"),
        ("ssh: connect to host box port 22: No route to host", "can be reached"),
        ("Welcome!", "see what the login does: `ssh box 'echo ok'`"),
    ],
)
def test_a_hint_follows_from_what_was_printed(printed, advice):
    assert advice in hint(printed, "box", "ssh")


def test_another_program_than_ssh_has_no_hint():
    assert hint("Connection refused", "box", "podman") == ""
