"""A user to measure with: own HOME, repository and tmux servers on a short path, all of it gone afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

OURS = str(Path(sys.executable).with_name("mngr"))
# What changes how Python, git or tmux work for this shell alone would reach the figures.
_NOT_INHERITED = ("MNGR", "PYTHON", "GIT_", "TMUX", "VIRTUAL_ENV", "COLUMNS", "LINES")


class CommandFailed(Exception):
    """A measured or preparing command said no; the figures would mean nothing."""


class World:
    """One user of one `mngr` executable. The commands of the floor run beside it, on a tmux server of their own."""

    def __init__(self, mngr: str = OURS) -> None:
        self.mngr = mngr
        self.root = Path(tempfile.mkdtemp(prefix="mngr-b-", dir="/tmp"))
        self.home, self.repo, self.trees, self._tmux_dir = (self.root / name for name in ("h", "repo", "w", "t"))
        for path in (self.home, self.repo, self.trees, self._tmux_dir):
            path.mkdir()
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        self.env |= {
            "HOME": str(self.home),
            "TMUX_TMPDIR": str(self._tmux_dir),
            "PATH": f"{Path(mngr).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        try:
            self._make_repository()
        except BaseException:
            self.close()
            raise

    def _make_repository(self) -> None:
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Bench\n\temail = bench@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        for number in range(20):
            (self.repo / f"file{number}.txt").write_text(f"{number}\n" * 50)
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "start"]):
            self.run("git", *words)

    def run(self, *argv: str) -> float:
        """Run a command that must succeed and return how many seconds it took."""
        return self.timed([argv])

    def run_again(self, *argv: str) -> None:
        """Run a command until it succeeds, a few times at most."""
        for _ in range(20):
            try:
                self.run(*argv)
                return
            except CommandFailed:
                continue
        self.run(*argv)

    def timed(self, commands: Sequence[Sequence[str]], may_fail: bool = False) -> float:
        """Seconds for the commands one after the other. `may_fail` is for one whose answer is `no` by design."""
        with tempfile.TemporaryFile() as errors:
            began = time.perf_counter()
            codes = [self._exit_code(argv, errors) for argv in commands]
            seconds = time.perf_counter() - began
            for argv, code in zip(commands, codes, strict=True):
                if code and not may_fail:
                    errors.seek(0)
                    said = errors.read().decode(errors="replace").strip()[-600:]
                    raise CommandFailed(f"`{' '.join(argv)}` ended with exit code {code}\n{said}")
        return seconds

    def _exit_code(self, argv: Sequence[str], errors: IO[bytes]) -> int:
        # Without a timeout on purpose: with one, Python asks again and again in growing steps instead of waiting.
        return subprocess.call(
            argv, cwd=self.repo, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )

    def create(self, name: str, command: str) -> list[str]:
        """The command line that makes an agent, not connected."""
        return [self.mngr, "create", name, "--no-connect", "--command", command]

    def create_many(self, count: int) -> None:
        """Agents `agent-0` to `agent-N`, several at a time once the first has made the state directory."""
        lines = [self.create(f"agent-{number}", "sleep 9999") for number in range(count)]
        for line in lines[:1]:
            self.run(*line)
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
            list(pool.map(lambda line: self.run(*line), lines[1:]))

    def tmux(self, *words: str) -> list[str]:
        """A command line for the floor's own tmux server."""
        return ["tmux", "-L", "floor", "-f", os.devnull, *words]

    def forget_agents(self) -> None:
        """End and remove all agents and worktrees, the quick way."""
        self._end_tmux_servers()
        for path in (self.home / ".mngr", self.trees, self.repo / ".git" / "worktrees"):
            shutil.rmtree(path, ignore_errors=True)
        self.trees.mkdir()
        for folder in ("mngr", "floor"):
            for kept in ("refs/heads", "logs/refs/heads"):
                shutil.rmtree(self.repo / ".git" / kept / folder, ignore_errors=True)

    def close(self) -> None:
        """End all that this user started: its tmux servers, then what is left by process id. Twice is safe."""
        with _uninterrupted():
            self._end_tmux_servers()
            for pid in self._processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            shutil.rmtree(self.root, ignore_errors=True)

    def _end_tmux_servers(self) -> None:
        """Asked until none answers: a server that is on its way out takes one more client and then drops it."""
        for socket in self._tmux_dir.glob("tmux-*/*"):
            argv = ["tmux", "-S", str(socket), "kill-server"]
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                ended = subprocess.run(argv, capture_output=True, check=False, timeout=20)
                if b"no server running" in ended.stderr or b"error connecting" in ended.stderr:
                    break

    def _processes(self) -> Iterator[int]:
        """Processes with this HOME in their environment, where the system shows it."""
        mark = f"HOME={self.home}\0".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                continue


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave half of it running."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
