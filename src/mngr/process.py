"""The one door to other processes: run a command with a deadline, get its result. Adds no shell by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from mngr.errors import MngrError, TimedOut
from mngr.records import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing import NoReturn


# Git's own pointers to a repository, set inside hooks: they would send our git calls to the wrong place.
GIT_LOCATION = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
)

INSTALL_HINTS = {
    "tmux": "install it: `apt-get install tmux` (Debian, Ubuntu) or `brew install tmux` (macOS)",
    "git": "install it: `apt-get install git` (Debian, Ubuntu) or `brew install git` (macOS)",
    "rsync": "install it: `apt-get install rsync` (Debian, Ubuntu) or `brew install rsync` (macOS)",
}


class Result(NamedTuple):
    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def text(self) -> str:
        """Standard output without the last newline; bytes that are not UTF-8 (file names) survive a round trip."""
        return self.stdout.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def error_text(self) -> str:
        return self.stderr.decode(errors="replace").strip("\n")


class CommandFailed(MngrError):
    """A program ran and said no."""

    def __init__(self, result: Result, doing: str = "") -> None:
        what = doing or f"`{' '.join(result.argv[:3])}` failed"
        super().__init__(f"{what} (exit code {result.exit_code})", details=result.error_text or result.text)
        self.result = result


class ProgramMissing(MngrError):
    """A program that we need is not on this host."""

    def __init__(self, program: str) -> None:
        super().__init__(f"`{program}` is not installed or not on PATH", hint=INSTALL_HINTS.get(program, ""))
        self.program = program


class Runner(Protocol):
    """Something that runs commands: this machine, or any host."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        input: bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Result: ...


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    input: bytes | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Result:
    """Run to the end and return the result, whatever its exit code. Past the deadline the whole process group is
    killed and `TimedOut` raised. `env` replaces the environment when given."""
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment() if env is None else dict(env),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise MngrError(f"the directory `{cwd}` does not exist") from error
        raise ProgramMissing(argv[0]) from error
    except PermissionError as error:
        raise MngrError(f"`{argv[0]}` cannot be run: {error.strerror}") from error
    try:
        stdout, stderr = child.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(child)
        raise TimedOut(f"`{' '.join(argv[:3])}` did not end within {timeout:g} s") from None
    except BaseException:
        _kill_group(child)
        raise
    return Result(tuple(argv), child.returncode, stdout, stderr)


def checked(result: Result, doing: str = "") -> Result:
    """The result, or `CommandFailed` when the exit code is not 0."""
    if result.exit_code != 0:
        raise CommandFailed(result, doing)
    return result


def run_attached(argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> int:
    """Run with this process's own terminal and wait for its end, however long: for editors and connect commands."""
    try:
        child = subprocess.Popen(list(argv), env=environment() if env is None else dict(env), cwd=cwd)
    except FileNotFoundError as error:
        raise ProgramMissing(argv[0]) from error
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue  # the terminal sent it to the child too; the child decides


def replace_self(argv: Sequence[str], env: Mapping[str, str] | None = None) -> NoReturn:
    """Become another program. Does not return."""
    try:
        os.execvpe(argv[0], list(argv), dict(os.environ if env is None else env))
    except FileNotFoundError as error:
        raise ProgramMissing(argv[0]) from error


def find_program(name: str) -> str | None:
    """Its path, as the shell would find it on PATH; None when it is not there."""
    for part in os.environ.get("PATH", os.defpath).split(":"):
        path = os.path.join(part or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def require_program(name: str) -> None:
    if find_program(name) is None:
        raise ProgramMissing(name)


def environment() -> dict[str, str]:
    """This process's environment for a child, without git's pointers to a repository."""
    return {name: value for name, value in os.environ.items() if name not in GIT_LOCATION}


def quote(text: str) -> str:
    """One word of a POSIX shell command line: the only way our values reach a shell."""
    if text and all(c in _SAFE for c in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def join(argv: Sequence[str]) -> str:
    return " ".join(quote(word) for word in argv)


_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
