"""One user for one test: own HOME, state directory, tmux server and repository, all gone afterwards."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
MNGR = str(Path(sys.executable).with_name("mngr"))


class Ran(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def ok(self) -> "Ran":
        assert self.exit_code == 0, f"exit code {self.exit_code}\nstdout: {self.stdout}\nstderr: {self.stderr}"
        return self

    def failed(self, exit_code: int = 1) -> "Ran":
        assert self.exit_code == exit_code, f"exit code {self.exit_code}\nstdout: {self.stdout}\nstderr: {self.stderr}"
        return self


class User:
    """Runs `mngr` and other commands in a world of its own. Paths are short: tmux sockets must be."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mngr-t-", dir="/tmp"))
        self.home = self.root / "h"
        self.host_dir = self.home / ".mngr"
        self.tmux_dir = self.root / "t"
        self.repo = self.root / "repo"
        for path in (self.home, self.tmux_dir, self.repo):
            path.mkdir()
        keep = {name: value for name, value in os.environ.items() if not name.startswith(("MNGR", "GIT_", "TMUX"))}
        self.env = {
            **keep,
            "HOME": str(self.home),
            "TMUX_TMPDIR": str(self.tmux_dir),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "PYTHONDONTWRITEBYTECODE"):
            self.env.pop(name, None)
        # A git that tidies up in the background, as newer ones do after a commit, holds a lock that no test expects.
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Test User\n\temail = test@example.com\n[init]\n\tdefaultBranch = main\n"
            "[gc]\n\tautoDetach = false\n[maintenance]\n\tautoDetach = false\n"
        )
        self.git("init", "-q")
        (self.repo / "README.md").write_text("hello\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "init")

    def mngr(
        self,
        *words: str,
        input: str | bytes | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Ran:
        return self.run([MNGR, *words], input=input, cwd=cwd, env=env, timeout=timeout)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: str | bytes | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Ran:
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            list(argv),
            input=data if data is not None else b"",
            capture_output=True,
            cwd=cwd or self.repo,
            env={**self.env, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def popen(
        self, *words: str, cwd: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """`mngr` in the background; the test waits for it or ends it."""
        return subprocess.Popen(
            [MNGR, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.repo,
            env={**self.env, **(env or {})},
        )

    def git(self, *words: str, cwd: str | Path | None = None) -> str:
        done = self.run(["git", *words], cwd=cwd)
        assert done.exit_code == 0, f"git {words}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def tmux(self, *words: str) -> Ran:
        return self.run(["tmux", "-L", "mngr", *words], cwd=self.root)

    def create(self, name: str, *words: str, command: str = "sleep 9999") -> dict[str, Any]:
        """An agent that runs a command, not connected. Returns it as `list` shows it."""
        self.mngr("create", name, "--no-connect", "--command", command, *words).ok()
        return self.agent(name)

    def agents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.mngr("list", "--format", "json").ok().json["agents"]
        return found

    def agent(self, name: str) -> dict[str, Any]:
        found = {agent["name"]: agent for agent in self.agents()}
        assert name in found, f"no agent {name!r} among {sorted(found)}"
        return found[name]

    def state(self, name: str) -> str:
        return str(self.agent(name)["state"])

    def wait_for_state(self, name: str, *states: str, timeout: float = 60) -> dict[str, Any]:
        return wait_for(
            lambda: a if (a := self.agent(name))["state"] in states else None, f"{name} to be {states}", timeout
        )

    def work_dir(self, name: str) -> Path:
        return Path(self.agent(name)["work_dir"])

    def events(self, name: str) -> list[dict[str, Any]]:
        text = self.mngr("event", name, "--format", "jsonl").ok().stdout
        return [json.loads(line) for line in text.splitlines()]

    def processes(self) -> list[int]:
        """Processes that carry this user's HOME in their environment: what the test left running."""
        mark = os.fsencode(f"HOME={self.home}\0")
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def close(self) -> None:
        """End everything this user started, by its own tmux server and by process id."""
        self.tmux("kill-server")
        for pid in self.processes():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        shutil.rmtree(self.root, ignore_errors=True)


def wait_for(check: Callable[[], T | None], what: str, timeout: float = 60) -> T:
    """Poll until the check gives something; fail with what was waited for and what was seen last. Less often what takes
    longer, which is work for the machine: `mngr list` without a pause would slow down what is waited for."""
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}; last seen: {value!r}"
        time.sleep(min(max(0.02, 1.5 * (time.monotonic() - began)), 0.5))
