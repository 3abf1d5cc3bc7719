"""Removes a directory, and what runs or is mounted in it, at the end of a test or when the tests were killed."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.sshd import SYSTEM_PATH


class Guard:
    """A shell script that `close` runs, and that a process beside us runs when this process is gone. Its last line
    removes the directory, `$PLACE`. No command line of the script names the directory, so that `pgrep -f` can."""

    def __init__(self, place: Path, script: str = "", env: Mapping[str, str] | None = None) -> None:
        self._env = {"PATH": SYSTEM_PATH, **(env or {}), "PLACE": str(place)}
        self._script = f'{script}rm -rf "$PLACE"\n'
        self._process = subprocess.Popen(
            ["sh", "-c", f"tail --pid={os.getpid()} --sleep-interval=0.5 --follow /dev/null\n{self._script}"],
            env=self._env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """Twice is safe."""
        if self._process.poll() is None:
            subprocess.run(["sh", "-c", self._script], env=self._env, cwd="/", capture_output=True, check=False)
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
