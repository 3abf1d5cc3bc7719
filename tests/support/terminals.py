"""A command on a terminal of its own."""

import os
import subprocess
from pathlib import Path

from tests.support.user import MNGR, Ran, User


def on_a_terminal(user: User, *words: str, typed: str = "", **env: str) -> Ran:
    """`mngr` with a terminal for input, output and errors, where somebody has typed ahead; all that it showed is in
    `stdout`."""
    ours, theirs = os.openpty()
    os.write(ours, typed.encode())
    child = subprocess.Popen(
        [MNGR, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=user.repo,
        env={**user.env, "NO_COLOR": "1", **env},
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 65536):
            shown += data
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    return Ran(child.wait(timeout=200), shown.decode().replace("\r\n", "\n"), "")


def editor(user: User, script: str) -> str:
    """An editor that runs a shell script on the file `$1`."""
    path = Path(user.root) / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)
