"""The one door to other processes: run a command with a deadline, get its result. Adds no shell by itself."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.errors import MngrError, TimedOut
from mngr.named_tuples import NamedTuple
from mngr.system.interrupts import check, held

TYPE_CHECKING = False
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
    "bwrap": "install bubblewrap: `apt-get install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap` (Fedora)",
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
    """A program exited with a non-zero code."""

    def __init__(self, result: Result, doing: str = "") -> None:
        what = doing or f"`{_shown(result.argv)}` failed"
        super().__init__(f"{what} (exit code {result.exit_code})", details=result.error_text or result.text)
        self.result = result


def _shown(argv: Sequence[str]) -> str:
    """The words that say what it was: the directories that git is sent to say nothing."""
    words = list(argv)
    while words[0] == "git" and words[1:2] in (["-C"], ["--git-dir"], ["--work-tree"]):
        del words[1:3]
    return " ".join(words[:3])


class ProgramMissing(MngrError):
    """A program that we need is not on this host."""

    def __init__(self, program: str) -> None:
        super().__init__(f"`{program}` is not installed or not on PATH", hint=INSTALL_HINTS.get(program, ""))
        self.program = program


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    input: bytes | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Result:
    """Run to the end and return the result, whatever its exit code. Past the deadline its whole process group is
    ended and `TimedOut` raised. `env` replaces the environment when given. A child left in the background that
    still holds the output is not waited for."""
    child: _Child | None = None
    try:
        with held():  # a signal between the start and our note of it would leave a process that nobody knows
            child = _Child(argv, input, cwd, env)
        return child.finish(timeout)
    except BaseException:
        if child is not None:
            with held():
                child.end()
        raise
    finally:
        if child is not None:
            child.close()


def start(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], descriptors: tuple[int, int, int]) -> int:
    """Start a program, found on the PATH of `env`, as the first process of a new session, with these descriptors as its
    input, output and errors; its id. The caller waits for it and ends it. One that is not there ends with code 127."""
    return _spawned(["/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *argv], env, descriptors, _OFTEN_IGNORED)


def checked(result: Result, doing: str = "") -> Result:
    """The result, or `CommandFailed` when the exit code is not 0."""
    if result.exit_code != 0:
        raise CommandFailed(result, doing)
    return result


def run_attached(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    end: Callable[[int], None] | None = None,
) -> int:
    """Run with this process's own terminal and wait for its end: for editors and connect commands however long. Past
    the deadline `end` is called with the id of the process, which it has to end, and TimedOut raised."""
    import subprocess

    child = None
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        with held():  # it may be running long before we get to know
            child = subprocess.Popen(list(argv), env=environment() if env is None else dict(env))
    except FileNotFoundError as error:
        raise ProgramMissing(argv[0]) from error
    except KeyboardInterrupt:
        if child is None:
            raise
    assert child is not None
    while True:
        try:
            return child.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt:
            continue  # the terminal sent it to the child too; the child decides
        except subprocess.TimeoutExpired:
            with held():
                (end or (lambda pid: os.kill(pid, _KILL)))(child.pid)
                child.wait()
            raise TimedOut(f"`{_shown(argv)}` did not end within {timeout:g} s") from None


def replace_self(argv: Sequence[str]) -> NoReturn:
    """Become another program. Does not return."""
    try:
        os.execvp(argv[0], list(argv))
    except FileNotFoundError as error:
        raise ProgramMissing(argv[0]) from error


def find_program(name: str, path: str | None = None) -> str | None:
    """Its path, as the shell would find it on PATH, or on the one that is given; None when it is not there."""
    for part in (os.environ.get("PATH", os.defpath) if path is None else path).split(":"):
        found = os.path.join(part or ".", name)
        if os.access(found, os.X_OK) and os.path.isfile(found):
            return found
    return None


def require_program(name: str) -> None:
    if find_program(name) is None:
        raise ProgramMissing(name)


def environment() -> dict[str, str]:
    """This process's environment for a child, without git's pointers to a repository."""
    return {name: value for name, value in os.environ.items() if name not in GIT_LOCATION}


def hide_arguments(values: Iterable[str]) -> None:
    """Blank out values in this process's own command line, which every user of the machine can read, where the system
    lets us (Linux). They were there until now, so it is still better not to type them."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            words = memory.read(end - start)
            for value in sorted(map(os.fsencode, values), key=len, reverse=True):
                words = words.replace(value, b"*" * len(value))
            memory.seek(start)
            memory.write(words)
    except (OSError, ValueError, IndexError):
        pass


def quote(text: str) -> str:
    """One word of a POSIX shell command line: the only way our values reach a shell."""
    if text and all(c in _SAFE for c in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def join(argv: Sequence[str]) -> str:
    return " ".join(quote(word) for word in argv)


_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


class _Child:
    """One running process with its pipes. Spawned without the `subprocess` module, whose import alone would take a
    tenth of the time of a short command."""

    def __init__(
        self, argv: Sequence[str], input: bytes | None, cwd: str | None, env: Mapping[str, str] | None
    ) -> None:
        self.argv = tuple(argv)
        self.input = memoryview(input or b"")
        self.output: dict[int, bytearray] = {}
        self.status: int | None = None
        self.fds: set[int] = set()
        words = self._words(cwd)
        stdin = self._pipe() if input else (os.open(os.devnull, os.O_RDONLY), -1)
        stdout, stderr = self._pipe(), self._pipe()
        self.stdin, self.stdout, self.stderr = stdin[1], stdout[0], stderr[0]
        theirs = (stdin[0], stdout[1], stderr[1])
        self.fds |= {stdin[0]}
        try:
            self.pid = _spawned(words, env, theirs)
        except BaseException:
            self.close()
            raise
        for fd in theirs:
            self._close(fd)
        self.output = {self.stdout: bytearray(), self.stderr: bytearray()}

    def finish(self, timeout: float) -> Result:
        """Feed and read the pipes until the process has ended, or raise TimedOut."""
        end = time.monotonic() + timeout
        poll = select.poll()
        for fd in self.output:
            poll.register(fd, select.POLLIN)
        if self.stdin >= 0:
            os.set_blocking(self.stdin, False)
            poll.register(self.stdin, select.POLLOUT)
        open_fds = {*self.output, *([self.stdin] if self.stdin >= 0 else [])}
        end_fd = self._end_fd()
        if end_fd >= 0:
            poll.register(end_fd, select.POLLIN)
        while self.status is None or open_fds:
            left = end - time.monotonic()
            check()
            if left <= 0:
                raise TimedOut(f"`{_shown(self.argv)}` did not end within {timeout:g} s")
            # With its pipes closed the end is a moment away; with them open a look now and then sees an early one.
            ready = poll.poll(min(left * 1000, 50 if open_fds or end_fd >= 0 else 1))
            for fd, _ in ready:
                if fd == end_fd or not self._move(fd):
                    poll.unregister(fd)
                    open_fds.discard(fd)
                    self._close(fd)
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.status = os.waitstatus_to_exitcode(status) if pid else None
            elif not ready:
                break
        assert self.status is not None
        return Result(self.argv, self.status, bytes(self.output[self.stdout]), bytes(self.output[self.stderr]))

    def end(self) -> None:
        """Ask the whole group to end, since git then removes its locks; kill what is left of it."""
        if self.status is not None:
            return
        deadline = time.monotonic() + _SECONDS_TO_END
        number, ended = _TERMINATE, False
        while self._group_takes(number):
            if not ended and (ended := self._reap(os.WNOHANG)):
                deadline = min(deadline, time.monotonic() + _SECONDS_TO_END / 4)
            if number == _KILL:
                break
            number = 0 if time.monotonic() < deadline else _KILL
            time.sleep(0.002)
        if not ended:
            self._reap(0)

    def _reap(self, flags: int) -> bool:
        """Note how it ended, if it has. A signal before the note loses the code, and nobody asks for it then."""
        try:
            pid, status = os.waitpid(self.pid, flags)
        except ChildProcessError:
            self.status = -_TERMINATE
        else:
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def _group_takes(self, number: int) -> bool:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
            return False
        return True

    def close(self) -> None:
        for fd in tuple(self.fds):
            self._close(fd)

    def _words(self, cwd: str | None) -> list[str]:
        """The argument list; spawning knows no directory, so a shell changes to it."""
        if cwd is None:
            return list(self.argv)
        if not os.path.isdir(cwd):
            raise MngrError(f"the directory `{cwd}` does not exist")
        if "/" not in self.argv[0]:
            require_program(self.argv[0])
        return ["/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *self.argv]

    def _move(self, fd: int) -> bool:
        """Pass on what a pipe has or takes; False when it is through."""
        if fd != self.stdin:
            data = os.read(fd, 65536)
            self.output[fd] += data
            return bool(data)
        try:
            self.input = self.input[os.write(fd, self.input[:65536]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self.input)

    def _end_fd(self) -> int:
        """A descriptor that is readable once the process has ended; -1 where the system has none (before Linux 5.3, or
        not Linux)."""
        try:
            fd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return -1
        self.fds.add(fd)
        return fd

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self.fds |= set(ends)
        return ends

    def _close(self, fd: int) -> None:
        if fd in self.fds:
            self.fds.discard(fd)
            os.close(fd)


def _spawned(
    words: list[str],
    env: Mapping[str, str] | None,
    descriptors: tuple[int, int, int],
    default_signals: Sequence[int] = (),
) -> int:
    try:
        return os.posix_spawnp(
            words[0],
            words,
            environment() if env is None else dict(env),
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(descriptors)],
            setsid=True,
            setsigdef=[*_PYTHON_IGNORES, *default_signals],
        )
    except FileNotFoundError as error:
        raise ProgramMissing(words[0]) from error
    except OSError as error:
        raise MngrError(f"`{words[0]}` cannot be run: {error.strerror}") from error


_TERMINATE, _KILL = 15, 9
_SECONDS_TO_END = 2.0
# Python ignores these (SIGPIPE, SIGXFSZ) for itself; a child must not inherit that.
_PYTHON_IGNORES = (13, 25)
# A shell ignores these (SIGHUP, SIGINT, SIGQUIT, SIGTERM) in its background jobs, or for `nohup`.
_OFTEN_IGNORED = (1, 2, 3, 15)
