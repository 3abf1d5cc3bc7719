"""A full-screen program in a tmux server of its own: a test reads its screen and presses keys, and all is recorded."""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from mngr import secrets
from mngr.agent.launch import WAIT_UNTIL_DRAWN
from mngr.agent.recorder import QuestionFilter
from mngr.e2e import cleanup
from mngr.e2e.cast import Recording
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.system import files, process, tree_removal
from mngr.system import process_table as processes
from mngr.system.interrupts import held
from mngr.system.waiting import wait_until

_TICK_MILLISECONDS = 30
_TMUX_SECONDS = 20
_HANG_UP_SECONDS = 1.0
_END_SECONDS = 5.0
_LARGEST = 1000
# With an empty format tmux leaves the last screen as it is. A style with colours makes tmux answer programs that ask
# for the colours of the terminal.
_CONFIG = """\
set -g remain-on-exit on
set -gq remain-on-exit-format ""
set -g window-style "fg=#cccccc,bg=#000000"
"""
_OBITUARY = "Pane is dead"  # which tmux before 3.3 writes below the last screen, moved up by a line
_ENDED = "#{pane_dead} #{pane_dead_status} #{pane_dead_signal}"


# Keys by tmux's names, with the combinations for which terminals have a code: tmux types a name that it does not know.
_KEY = re.compile(
    r"(?:M-)?(?:Enter|Escape|Tab|BTab|BSpace|.)|\^[A-Za-z@\[\\\]^_]|(?:[CM]-)*(?:Space|[A-Za-z@\[\\\]^_/?])|(?:[CMS]-)*"
    r"(?:Up|Down|Left|Right|Home|End|IC|Insert|DC|Delete|PageUp|PgUp|PPage|PageDown|PgDn|NPage|F[1-9]|F1[0-2])",
    re.DOTALL,
)
_BYTES_AT_ONCE = 4000  # tmux takes commands of up to 16 kB


class Screen:
    """The program runs from here until `close`, which ends its whole session. A thread records it; what it shows stays
    readable afterwards."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        columns: int,
        rows: int,
        directory: str,
        cast_path: str,
        title: str,
        number: int,
        on_keys: Callable[[str], None],
        on_end: Callable[[int], None] = lambda code: None,
    ) -> None:
        """`env` is the whole environment, but for what describes the terminal. `directory` is for tmux's socket, so its
        path must be short. `on_end` gets the exit code, from the thread that reads, before anybody else can see it."""
        _check_size(columns, rows)
        if not os.path.isdir(cwd):
            raise MngrError(f"the directory `{cwd}` does not exist")
        self.title = title
        self.columns, self.rows = columns, rows
        self._on_keys, self._on_end = on_keys, on_end
        self._changes = 0
        self._lines, self._lines_of = [""] * rows, -1  # the last look at the screen, and of which change
        self._looking = threading.Lock()
        self._recorded = threading.Lock()
        self._tmux_ended = self._over = self._closed = False
        self._exit_code: int | None = None  # once all that the program wrote is on the screen
        self._code: int | None = None  # what tmux says
        hidden = list(secrets.named_values(env))
        shown = secrets.mask(title, hidden)
        self._recording = Recording(
            cast_path, kind="spawn", title=shown, number=number, size=(columns, rows), secrets=hidden
        )
        self.recording = os.path.basename(self._recording.path)
        self._directory = tempfile.mkdtemp(prefix="screen-", dir=directory)
        self._env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "TERMCAP")}
        try:
            with held():
                self._pid, self._server = self._start(command, cwd)
        except BaseException:
            self._recording.remove()
            tree_removal.remove_tree(self._directory)
            raise
        self._leader = processes.identify(self._pid)
        self._reader = threading.Thread(target=self._read, name=f"screen {number}", daemon=True)
        self._reader.start()

    def _start(self, command: Sequence[str], cwd: str) -> tuple[int, int]:
        """The process ids of the program and of tmux's server. tmux reads nothing from the terminal before all these
        commands are done, so the first byte is recorded too."""
        launch, config, pipe = (os.path.join(self._directory, name) for name in ("launch", "config", "output"))
        files.write_atomic(launch, _launch_script(command, cwd).encode("utf-8", "surrogateescape"))
        files.write_atomic(config, _CONFIG.encode())
        os.mkfifo(pipe)
        copy = f"exec cat >{process.quote(pipe)}".replace("#", "##").replace("%", "%%")
        size = ["-x", str(self.columns), "-y", str(self.rows)]
        result = self._tmux(
            *("-f", config, "new-session", "-d", "-s", "screen", *size, "/bin/sh", launch, ";"),
            *("pipe-pane", "-t", "screen:", copy, ";", "display-message", "-p", "-t", "screen:", "#{pane_pid} #{pid}"),
            env={**self._env, "COLORTERM": "truecolor"},
        )
        pid, server = process.checked(result, "tmux could not start").text.split()
        return int(pid), int(server)

    @property
    def lines(self) -> list[str]:
        """As many as the screen has, each without the blanks at its end. tmux is asked only if the program has written
        since the last look."""
        with self._looking:
            changes = self._changes  # read first: what comes meanwhile is looked at next time
            if not self._tmux_ended and changes != self._lines_of:
                self._lines, self._lines_of = self._capture(), changes
            return list(self._lines)

    @property
    def text(self) -> str:
        """The lines, without empty ones at the end."""
        return "\n".join(self.lines).rstrip("\n")

    @property
    def exit_code(self) -> int | None:
        """None while it runs; of a process that a signal ended, 128 and its number. All it wrote is on the screen."""
        return self._exit_code

    @property
    def alive(self) -> bool:
        return self._exit_code is None and not self._closed and not self._over

    @property
    def over(self) -> bool:
        """Whether nothing more can come."""
        return self._over

    def type(self, text: str) -> None:
        """Type text; the end of a line is the Enter key."""
        data = text.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "surrogateescape")
        for start in range(0, len(data), _BYTES_AT_ONCE):
            self._send(_typed(data[start : start + _BYTES_AT_ONCE]))
        self._on_keys(text)

    def press(self, *names: str) -> None:
        """Press keys by tmux's names: `Enter`, `Escape`, `Up`, `C-c`, `M-x`, `F1`, or a character."""
        for name in names:
            if not _KEY.fullmatch(name):
                hint = "keys are `Enter`, `Space`, `Up`, `C-c`, `M-x`, `F5`, as in tmux; text is for `.type(...)`"
                raise UsageError(f"unknown key `{name}`", hint=hint)
        self._send(*(_typed(name.encode()) if len(name) == 1 else [name] for name in names))
        self._on_keys(" ".join(names))

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the program is told by a signal."""
        _check_size(columns, rows)
        self._check_alive("has no terminal to resize")
        self.columns, self.rows = columns, rows
        with self._recorded:
            self._recording.resize(columns, rows)
        self._command("resize", "resize-window", "-t", "screen:", "-x", str(columns), "-y", str(rows))
        self._changes += 1

    def wait_exit(self, timeout: float = 60) -> int:
        """The exit code, once the program has ended. It goes on running when the time is over."""
        wait_until(lambda: not self.alive or None, timeout=timeout)
        if self.alive:
            raise TimedOut(f"`{self.title}` did not end within {timeout:g} s", details=self.text)
        if self._exit_code is None:
            raise MngrError(f"`{self.title}` was closed, or lost its terminal: no exit code", details=self.text)
        return self._exit_code

    def close(self) -> None:
        """End the program and all it started on this terminal, and finish the recording. Twice is safe."""
        if self._closed:
            return
        self._closed = True
        if processes.identify(self._pid) in (None, self._leader):  # its id was not given to another process
            # The reader goes on meanwhile: a program that ends in order may have much to write first.
            cleanup.end(
                lambda: cleanup.of_session(self._pid), ask=(signal.SIGHUP, signal.SIGCONT), seconds=_HANG_UP_SECONDS
            )
        wait_until(lambda: self._exit_code is not None, timeout=_END_SECONDS)
        self._end_tmux()
        pipe = os.path.join(self._directory, "output")
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # the reader may still wait for tmux to open it
        self._reader.join()
        self._recording.close(self._exit_code)
        tree_removal.remove_tree(self._directory)
        if self._recording.failure:
            raise MngrError(f"could not write all of `{self._recording.path}`: {self._recording.failure}")

    def _send(self, *keys: Sequence[str]) -> None:
        self._check_alive("takes no keys")
        words = [word for key in keys for word in (";", "send-keys", "-t", "screen:", *key)]
        self._command("press", *words[1:])

    def _command(self, doing: str, *words: str) -> None:
        result = self._tmux(*words)
        if not result.ok:
            self._check_alive("takes no keys")
            process.checked(result, f"tmux could not {doing}")

    def _check_alive(self, what: str) -> None:
        if not self.alive:
            end = "was closed" if self._exit_code is None else f"has ended (exit code {self._exit_code})"
            raise MngrError(f"`{self.title}` {end} and {what}", details=self.text)

    def _capture(self) -> list[str]:
        lines = self._shown()
        if any(_OBITUARY in line for line in lines[self.rows - 1 : self.rows]):
            lines = self._shown("-S", "-1")[1:]
        return [*(line.rstrip() for line in lines), *[""] * self.rows][: self.rows]

    def _shown(self, *more: str) -> list[str]:
        done = process.checked(
            self._tmux("capture-pane", "-p", "-t", "screen:", *more), "tmux could not read the screen"
        )
        return done.stdout.decode(errors="replace").split("\n")

    def _read(self) -> None:
        """Record what comes through the pipe, until it ends with tmux."""
        decoder, answered = codecs.getincrementaldecoder("utf-8")("replace"), QuestionFilter()
        with open(os.path.join(self._directory, "output"), "rb", buffering=0) as pipe:
            poll = select.poll()
            poll.register(pipe.fileno(), select.POLLIN)
            while True:
                if poll.poll(_TICK_MILLISECONDS):
                    data = pipe.read(65536)
                    if not data:
                        break
                    with self._recorded:
                        self._recording.output(decoder.decode(answered.feed(data)))
                    self._changes += 1
                    continue
                # tmux 3.3 sometimes misses that a process has ended; this makes it look, and does nothing else.
                _signal(self._server, signal.SIGCHLD)
                if not _signal(self._pid, 0):
                    self._note_end()
        with self._recorded:
            self._recording.output(decoder.decode(answered.end(), final=True))
            self._recording.close(self._code)
        if self._code is not None:
            self._on_end(self._code)
            self._exit_code = self._code
        self._over = True

    def _note_end(self) -> None:
        """Ends tmux when the pane is dead: all that the program wrote is on the screen and in the pipe, which ends
        after its last byte."""
        words = f"{self._tmux('display-message', '-p', '-t', 'screen:', _ENDED).text}  ".split(" ")
        dead, status, by_signal = words[:3]
        if dead == "1" and (status or by_signal):
            self._code = int(status) if status else 128 + int(by_signal)
            self._end_tmux()

    def _end_tmux(self) -> None:
        """Keep the last screen first. Twice is safe."""
        with self._looking:
            if self._tmux_ended:
                return
            with suppress(MngrError):  # somebody killed it: what was seen last stays
                self._lines = self._capture()
            self._tmux_ended = True
        self._tmux("kill-server")

    def _tmux(self, *words: str, env: Mapping[str, str] | None = None) -> process.Result:
        argv = [process.find_program("tmux") or "tmux", "-u", "-S", os.path.join(self._directory, "tmux"), *words]
        return process.run(argv, timeout=_TMUX_SECONDS, env=self._env if env is None else env)


def _typed(data: bytes) -> list[str]:
    return ["-H", *(f"{byte:02x}" for byte in data)]


def _signal(pid: int, number: int) -> bool:
    """Whether there is a process to send it to."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _launch_script(command: Sequence[str], cwd: str) -> str:
    """The program must not take this terminal for the user's own tmux. A shell finds it on the PATH of its environment,
    and says on the terminal when there is none. The shell outlives what ends the program, says nothing about that, and
    ends when all is drawn. A trap, unlike ignoring, is not inherited."""
    return f"""\
unset TMUX TMUX_PANE TERM_PROGRAM TERM_PROGRAM_VERSION
trap : HUP INT QUIT TERM
exec 3>&2 2>/dev/null
(exec 2>&3 3>&-; cd {process.quote(cwd)} && exec {process.join(command)})
code=$?
{WAIT_UNTIL_DRAWN}exit "$code"
"""


def _check_size(columns: int, rows: int) -> None:
    if not (1 <= columns <= _LARGEST and 1 <= rows <= _LARGEST):
        raise MngrError(f"invalid size of a terminal: {columns}x{rows}", hint=f"both are from 1 to {_LARGEST}")
