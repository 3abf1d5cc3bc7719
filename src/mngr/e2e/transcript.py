"""The transcript of one test, as text to read and as events with times. Written as it goes: a killed test leaves it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from mngr import secrets
from mngr.agent.recorder import SecretFilter
from mngr.e2e import artifacts
from mngr.e2e.bounded_text import Kept
from mngr.system import files

# What one command may write into a transcript: this many characters from its beginning, and from its end.
HEAD = 128 * 1024
TAIL = 32 * 1024


class _Command:
    """What is known of a command that printed something: half lines, half secrets, and what is left out."""

    def __init__(self, hidden: Iterable[str]) -> None:
        self.room = HEAD
        self.ended = False
        self.partial = {"stdout": "", "stderr": ""}
        self.masked = {stream: SecretFilter(list(hidden)) for stream in self.partial}
        self.rest = {stream: Kept(0, TAIL) for stream in self.partial}


class Transcript:
    """Text lines: `# comment`, `$ command`, output as it is, `! ` before lines of standard error. Its methods may be
    called from several threads. After `close` they do nothing. What is hidden is `***` in it."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, artifacts.TRANSCRIPT_TEXT)
        self._events = os.path.join(directory, artifacts.TRANSCRIPT_EVENTS)
        self._lock = threading.RLock()
        self._commands: dict[int, _Command] = {}
        self._fd: int | None = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._empty = True
        self._hidden: frozenset[str] = frozenset()

    def hide(self, values: Iterable[str]) -> None:
        """Hide these values too, from now on."""
        with self._lock:
            self._hidden = self._hidden.union(values)

    def masked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a JSON object without what is hidden."""
        return secrets.mask_fields(fields, self._hidden)

    def close(self) -> None:
        with self._lock:
            for number, command in self._commands.items():
                self._end(number, command)
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)

    def block(self, text: str) -> None:
        self._event("block", text=text)

    def note(self, text: str) -> None:
        with self._lock:
            self._event("note", text=text)
            self._write(("" if self._empty else "\n") + _comment(text))

    def command(self, number: int, command: str, comment: str | None, cwd: str) -> None:
        with self._lock:
            self._commands[number] = _Command(self._hidden)
            self._begin("command", command, comment, number=number, cwd=cwd)

    def spawn(self, number: int, command: str, comment: str | None, recording: str) -> None:
        self._begin("spawn", command, comment, number=number, recording=recording)

    def keys(self, number: int, keys: str) -> None:
        self._event("keys", number=number, keys=keys)

    def expect(self, number: int | None, text: str, passed: bool) -> None:
        self._event("expect", number=number, text=text, passed=passed)

    def output(self, number: int, stream: str, text: str) -> None:
        """Of a flood only the first part is written as it comes; its end follows when the command has ended."""
        with self._lock:
            command = self._commands[number]
            self._add(number, command, stream, command.masked[stream].feed(text, 0.0))

    def exit(self, number: int, exit_code: int | None, duration: float, timed_out: bool) -> None:
        with self._lock:
            if command := self._commands.get(number):
                self._end(number, command)
            self._event("exit", number=number, exit_code=exit_code, duration=round(duration, 3), timed_out=timed_out)
            if timed_out:
                self._write("# did not end in time, and was ended\n")

    def text(self) -> str:
        with open(self.path, encoding="utf-8", errors="backslashreplace", newline="") as file:
            return file.read()

    def _begin(self, kind: str, command: str, comment: str | None, **values: Any) -> None:
        with self._lock:
            self._event(kind, command=command, comment=comment, **values)
            above = ("" if self._empty else "\n") + (_comment(comment) if comment else "")
            text = command.strip("\n").replace("\n", "\n> ")
            self._write(f"{above}$ {text}\n")

    def _add(self, number: int, command: _Command, stream: str, pieces: list[tuple[float, str]]) -> None:
        text = "".join(piece for _, piece in pieces)
        now, later = text[: command.room], text[command.room :]
        command.room -= len(now)
        self._output(number, command, stream, now)
        if later and command.ended and not any(kept.size for kept in command.rest.values()):
            self._say("too much output: what this command still prints is left out")
        command.rest[stream].add(later)

    def _end(self, number: int, command: _Command) -> None:
        """Write what was held back because it could have been the beginning of a secret, and the ends of floods."""
        for stream, masked in command.masked.items():
            self._add(number, command, stream, masked.end())
        if command.ended:
            self._flush(command)
            return
        command.ended = True
        for stream, kept in command.rest.items():
            if kept.size:
                self._flush(command)
                if kept.left_out:
                    self._say(f"{kept.left_out:,} characters of {stream} are left out here")
                self._output(number, command, stream, kept.tail())
        command.rest = {stream: Kept(0, TAIL) for stream in command.partial}
        self._flush(command)

    def _say(self, text: str) -> None:
        self._event("note", text=text)
        self._write(f"# {text}\n")

    def _output(self, number: int, command: _Command, stream: str, text: str) -> None:
        if not text:
            return
        self._event("output", number=number, stream=stream, text=text)
        lines, newline, partial = (command.partial[stream] + text).rpartition("\n")
        command.partial[stream] = partial
        if newline:
            self._write(("! " + lines.replace("\n", "\n! ") if stream == "stderr" else lines) + "\n")

    def _flush(self, command: _Command) -> None:
        for stream, partial in command.partial.items():
            command.partial[stream] = ""
            if partial:
                self._write(("! " if stream == "stderr" else "") + partial + "\n")

    def _write(self, text: str) -> None:
        with self._lock:
            if self._fd is None:
                return
            self._empty = False
            data = secrets.mask(text, self._hidden).encode(errors="backslashreplace")
            while data:
                data = data[os.write(self._fd, data) :]

    def _event(self, type: str, **values: Any) -> None:
        with self._lock:
            if self._fd is not None:
                fields = self.masked(values)
                files.append_line(self._events, {"time": round(time.time(), 3), "type": type, **fields})


def _comment(text: str) -> str:
    return "".join(f"# {line}".rstrip(" ") + "\n" for line in text.strip("\n").split("\n"))
