"""A project of somebody else, with tests that use `e2e`, and its runs of pytest."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

from mngr.e2e import artifacts
from tests.support.user import Ran, User, wait_for

PYTEST = (sys.executable, "-m", "pytest")
# Of the plugins of our own environment, those that a test asks for: pytest then starts in half the time.
PLUGINS = {"-n": "xdist", "--timeout": "pytest_timeout"}
# A program for the commands of a test: ends once the test's transcript has this line.
SEEN = """#!/bin/sh
until grep -qxF -e "$1" "$MNGR_E2E_ARTIFACTS/transcript.txt"; do sleep 0.05; done
"""


class Project:
    def __init__(self, user: User) -> None:
        self.user = user
        self.root = user.root / "product"
        self.root.mkdir()
        self.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    def pytest(self, *words: str, timeout: float = 100) -> Ran:
        return self.user.run([*PYTEST, *words, *_plugins(words)], cwd=self.root, timeout=timeout)

    def popen(self, *words: str) -> "subprocess.Popen[bytes]":
        """In a group of its own, as on a terminal, so that a signal can be sent to all of it."""
        return subprocess.Popen(
            [*PYTEST, *words, *_plugins(words)],
            cwd=self.root,
            env=self.user.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def runs(self) -> list[artifacts.RunInfo]:
        return artifacts.runs(self.root / ".mngr" / "e2e")

    def tests(self) -> dict[str, artifacts.TestInfo]:
        """Those of the newest run, by name."""
        return {test.name: test for test in self.runs()[0].tests()}

    def environment_of(self, name: str) -> Path:
        """Where a test works: known once it has run a command."""

        def seen() -> Path | None:
            tests = self.tests() if self.runs() else {}
            events = tests[name].events() if name in tests else []
            return next((Path(event["cwd"]).parent for event in events if event["type"] == "command"), None)

        return wait_for(seen, f"{name} to run a command", 100)


def _plugins(words: Sequence[str]) -> list[str]:
    wanted = ["mngr.e2e.plugin", *(plugin for option, plugin in PLUGINS.items() if option in words)]
    return ["--disable-plugin-autoload", *(word for plugin in wanted for word in ("-p", plugin))]


def running_in(root: Path) -> list[str]:
    """The command lines of processes that have a directory in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"={root}/".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
            except OSError:
                continue
    return found
