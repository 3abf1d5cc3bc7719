"""What a test has in its hands: run commands and full-screen programs in a world of its own, and leave a trace."""

from __future__ import annotations

import os
import shlex
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mngr.e2e import artifacts, replay
from mngr.e2e.bounded_text import Kept
from mngr.e2e.command import CommandTimedOut, Ran, Running
from mngr.e2e.environment import Environment
from mngr.e2e.transcript import Transcript
from mngr.errors import UsageError
from mngr.secrets import named_values
from mngr.system import files

if TYPE_CHECKING:
    from mngr.e2e.screen import Screen
    from mngr.e2e.shell_blocks import Block

# How much of each stream a result holds, at its beginning and at its end.
_KEPT = 4 * 1024 * 1024

Command = str | Sequence[str]
Words = Mapping[str, str]


class E2eSession:
    """One test's session. `env` and `cwd` may be changed by the test; they hold for what is run after that."""

    def __init__(self, environment: Environment, artifacts_dir: str) -> None:
        self.artifacts = Path(artifacts_dir)
        self.home = environment.home
        self.repo = environment.repo
        self.bin = environment.bin
        self.cwd = environment.repo
        self.env: dict[str, str] = {**environment.env, "MNGR_E2E_ARTIFACTS": artifacts_dir}
        self._environment = environment
        self._transcript = Transcript(artifacts_dir)
        self._origins: dict[int, tuple[str, str, int]] = {}  # of texts of results, by identity
        self._running: list[Running] = []
        self._screens: list[Screen] = []
        self._spawning = threading.Lock()  # the end of a screen is noted after its beginning
        self._count = 0
        self._blocks = 0
        self.write_settings('[commands.create]\nconnect_command = "mngr-e2e-connect"\n')

    def run(
        self,
        command: Command,
        *,
        comment: str | None = None,
        timeout: float = 30,
        input: str | bytes | None = None,
        env: Words | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Ran:
        """Run a shell line, or a list of words without a shell, and return what it did, whatever its exit code. At the
        deadline it is ended, with all that it started in its session, and `CommandTimedOut` fails the test."""
        __tracebackhide__ = True
        shown = _shown(command)
        number, directory = self._next(), self._directory(cwd)
        words = self._env(number, env)
        kept = {name: Kept(_KEPT, _KEPT) for name in ("stdout", "stderr", "output")}
        tape = replay.tape

        def on_output(stream: str, text: str) -> None:
            kept[stream].add(text)
            kept["output"].add(text)
            self._transcript.output(number, stream, text)
            if isinstance(tape, replay.Recorder):
                tape.heard(stream, text)

        self._transcript.command(number, shown, comment, directory)
        if isinstance(tape, replay.Player):
            ended = tape.answer(shown, on_output)
        else:
            if tape is not None:
                tape.begin()
            running = Running(
                self._argv(command),
                cwd=directory,
                env=words,
                input=input.encode() if isinstance(input, str) else input,
                on_output=on_output,
            )
            self._running.append(running)
            ended = running.finish(timeout)
            if tape is not None:
                tape.ended(shown, ended)
        stdout, stderr, output = (one.text() for one in kept.values())
        ran = Ran(shown, stdout, stderr, output, *ended, number)
        self._transcript.exit(number, *ended)
        for stream, text in (("output", output), ("stderr", stderr), ("stdout", stdout)):
            if text:  # an empty text is the same one everywhere
                self._origins[id(text)] = (text, f"{stream} of `{shown}`", number)
        if ran.timed_out:
            raise CommandTimedOut(ran, timeout)
        return ran

    def spawn(
        self,
        command: Command,
        *,
        columns: int = 80,
        rows: int = 24,
        comment: str | None = None,
        env: Words | None = None,
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Screen:
        """Run a full-screen program in a terminal of its own, recorded as `<name>.cast`. It runs until it ends, is
        closed, or the test is over."""
        from mngr.e2e.screen import Screen

        if replay.tape is not None:
            replay.tape.spawn()
        shown = _shown(command)
        number, directory = self._next(), self._directory(cwd)
        name = name or f"screen-{number}"
        if not name.strip(".") or "/" in name or "\0" in name:
            raise UsageError(f"invalid recording name `{name}`")
        started = time.monotonic()

        def on_end(exit_code: int) -> None:
            duration = time.monotonic() - started
            with self._spawning:
                self._transcript.exit(number, exit_code, duration, False)

        with self._spawning:
            screen = Screen(
                self._argv(command),
                env=self._env(number, env),
                cwd=directory,
                columns=columns,
                rows=rows,
                directory=str(self._environment.tmux),
                cast_path=os.path.join(self.artifacts, f"{name}.cast"),
                title=shown,
                number=number,
                on_keys=lambda keys: self._transcript.keys(number, keys),
                on_end=on_end,
            )
            self._screens.append(screen)
            self._transcript.spawn(number, shown, comment, screen.recording)
        return screen

    def write_tutorial_block(self, text: str) -> Block:
        """Declare which block of the tutorial this test is about. A test may be about several."""
        from mngr.e2e.shell_blocks import block

        found = block(text)
        self._blocks += 1
        path = self.artifacts / artifacts.block_name(self._blocks)
        files.write_atomic(str(path), f"{found.text}\n".encode(errors="backslashreplace"), mode=0o644)
        self._transcript.block(found.text)
        return found

    def note(self, text: str) -> None:
        """A comment in the transcript."""
        self._transcript.note(text)

    def write_settings(self, text: str) -> None:
        """Add settings of mngr, as TOML, to those of this session's user; a key that is there gets the new value."""
        import tomllib

        import tomlkit

        path = self._environment.settings
        try:
            added = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"invalid TOML in these settings: {error}") from error
        known = tomllib.loads(path.read_text()) if path.exists() else {}
        path.parent.mkdir(mode=0o700, exist_ok=True)
        files.write_atomic(str(path), tomlkit.dumps(_merged(known, added)).encode())

    def note_expectation(self, value: object, text: str, passed: bool) -> None:
        """Called by `expect`: the transcript says what was looked at, and which command it came from."""
        self._transcript.expect(self.origin(value)[1], text, passed)

    def origin(self, value: object) -> tuple[str, int | None]:
        """Called by `expect`: where a value comes from, in words, and the number of the command: a result, a screen, or
        the very text of a result."""
        _, name, number = self._origins.get(id(value), ("", "", getattr(value, "number", None)))
        return name, number if isinstance(number, int) else None

    def __repr__(self) -> str:
        return f"<E2eSession, artifacts in {self.artifacts}>"

    def transcript(self) -> str:
        """The text so far."""
        return self._transcript.text()

    def masked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Called at the end of the test: what is written about it, without secrets of its environment."""
        return self._transcript.masked(fields)

    def close(self, *, keep_running: bool = False) -> None:
        """End all that was started here, unless it shall be kept, and the transcript. Twice is safe. What fails keeps
        nothing else from being ended."""
        screens, self._screens = self._screens, []
        running, self._running = self._running, []
        with ExitStack() as left:  # from the last to the first
            left.callback(self._transcript.close)
            for command in running:
                left.callback(command.close)
            if not keep_running:
                left.callback(self._environment.end)
            for screen in reversed(screens):
                left.callback(screen.close)

    def _env(self, number: int, more: Words | None) -> dict[str, str]:
        """Of one command. Its number lets a recording that it starts name it. Secrets in it are hidden from now on."""
        env = {**self.env, "MNGR_E2E_COMMAND": str(number), **(more or {})}
        self._transcript.hide(named_values(env))
        return env

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _directory(self, cwd: str | os.PathLike[str] | None) -> str:
        return os.path.join(self.cwd, os.fspath(cwd)) if cwd is not None else os.fspath(self.cwd)

    def _argv(self, command: Command) -> list[str]:
        if not isinstance(command, str):
            return [os.fspath(word) for word in command]
        return [shutil.which("bash") or "/bin/sh", "-c", command]


def _shown(command: Command) -> str:
    if isinstance(command, str):
        return command.strip("\n")
    words = [os.fspath(word) for word in command]
    if not words:
        raise UsageError("a command needs at least one word")
    return shlex.join(words)


def _merged(known: dict[str, object], added: Mapping[str, object]) -> dict[str, object]:
    merged = dict(known)
    for key, value in added.items():
        before = merged.get(key)
        merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged
