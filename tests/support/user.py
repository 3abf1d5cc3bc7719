"""One user for one test: own HOME, state directory, tmux server and repository, all gone afterwards."""

import atexit
import functools
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mngr.cli.app import safe_option
from mngr.e2e.cleanup import Reaper
from mngr.e2e.environment import short_place
from mngr.programs import repository_trust
from mngr.settings import layers as config
from mngr.settings import trust
from tests.support import forking

T = TypeVar("T")
MNGR = forking.MNGR


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

    def __init__(self, place: str | None = None, *, home: str = "h") -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mngr-t-", dir=place or short_place()))
        _reaper().watch(str(self.root))
        self.home = self.root / home
        self.host_dir = self.home / ".mngr"
        self.tmux_dir = self.root / "t"
        self.repo = self.root / "repo"
        for path in (self.home, self.tmux_dir):
            path.mkdir()
        self.env = {**_environment(), "HOME": str(self.home), "TMUX_TMPDIR": str(self.tmux_dir)}
        (self.home / ".gitconfig").write_text(_GIT_CONFIG)
        _copy_repository(self.repo)

    def mngr(
        self,
        *words: str,
        input: str | bytes | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Ran:
        """In a process of its own. It is forked, not started, where that makes no difference: see `forking`."""
        full = {**self.env, **(env or {})}
        forker = _forker()
        if not forker.can_run(full):
            return self.run([MNGR, *words], input=input, cwd=cwd, env=env, timeout=timeout)
        data = input.encode() if isinstance(input, str) else input
        return ran(forker.run(words, data or b"", str(cwd or self.repo), full, timeout))

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
        return ran(done)

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

    def trust(self, project: str | Path | None = None, *, host_dir: str | Path | None = None) -> None:
        """What `mngr config trust --yes` does in that project, without a process."""
        place = str(host_dir or self.host_dir)
        found = config.load(host_dir=place, cwd=str(project or self.repo), environ=self.env, safe_option=safe_option)
        trust.remember(place, [*found.claims(), *repository_trust.claims(str(project or self.repo))])

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
        return _carrying(f"HOME={self.home}\0")

    def close(self) -> None:
        """End everything this user started, by its own tmux server and by process id."""
        if any(self.tmux_dir.glob("*/mngr")):
            self.tmux("kill-server")
        for pid in _carrying(f"HOME={self.root}/"):  # of hosts below our directory, too
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        shutil.rmtree(self.root, ignore_errors=True)
        _reaper().forget(str(self.root))


def _carrying(text: str) -> list[int]:
    mark = os.fsencode(text)
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and mark in _environ_of(name)]


def _environ_of(pid: str) -> bytes:
    """With few calls: each test looks at all processes of the machine. Not of ourselves."""
    if pid == str(os.getpid()):
        return b""
    try:
        file = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, 1 << 18)
    except OSError:
        return b""
    finally:
        os.close(file)


def ran(done: "subprocess.CompletedProcess[bytes]") -> Ran:
    return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


# A git that tidies up, as newer ones ask themselves after each commit, holds a lock that no test expects.
_GIT_CONFIG = """\
[user]
\tname = Test User
\temail = test@example.com
[init]
\tdefaultBranch = main
[maintenance]
\tauto = false
"""


def _environment() -> dict[str, str]:
    """Of every user, without what is its own."""
    foreign = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "PYTHONDONTWRITEBYTECODE")
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if name not in foreign and not name.startswith(("MNGR", "GIT_", "TMUX", "MAKE", "MFLAGS"))
        },
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
    }


@functools.cache
def _reaper() -> Reaper:
    """Ends what users of this process started when it is interrupted or killed, and cannot do so itself."""
    made = Reaper()
    atexit.register(made.close)
    return made


@functools.cache
def _forker() -> forking.Forker:
    return forking.Forker(_environment())


@functools.cache
def _template() -> Path:
    """A repository with one commit, made by git once for all users of this process."""
    root = Path(tempfile.mkdtemp(prefix="mngr-r-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    (root / ".gitconfig").write_text(_GIT_CONFIG)
    repo = root / "repo"
    repo.mkdir()
    (repo / "README.md").write_text("hello\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "init"]):
        subprocess.run(["git", *words], cwd=repo, env={**_environment(), "HOME": str(root)}, check=True)
    for sample in (repo / ".git" / "hooks").iterdir():
        sample.unlink()
    return repo


def _copy_repository(target: Path) -> None:
    """The index of git knows a file by its times and numbers as well: those are the copy's own."""
    shutil.copytree(_template(), target)
    index = bytearray((target / ".git" / "index").read_bytes())
    info = os.stat(target / "README.md")
    times = (part for time in (info.st_ctime_ns, info.st_mtime_ns) for part in divmod(time, 10**9))
    index[12:36] = struct.pack(">6I", *times, info.st_dev & 0xFFFFFFFF, info.st_ino & 0xFFFFFFFF)
    index[-20:] = hashlib.sha1(index[:-20]).digest()
    (target / ".git" / "index").write_bytes(index)


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
