"""The program that records one agent's terminal: raw bytes on standard input become asciicast v2 lines in a file.

Stands alone: tmux runs this file by its path, and it imports nothing of mngr, so that it starts in a few milliseconds.
Ends with its input, or soon after the terminal's first process; whatever happens to the recorder, the agent continues.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import re
import select
import struct
import sys
import termios
import time

SHORTEST_SECRET = 6
MASK = "***"
_TICK_SECONDS = 0.5
_QUIET_SECONDS = 2.0  # how long a terminal whose process has ended must be silent until it is all here
_PAUSE_SECONDS = 1.0  # between the last screen of one start and the empty one of the next
_TAIL = 1 << 20  # longer than any line of ours
_QUESTION = b"\x1b\\\x1b[5n"  # what the launch script writes when the program has ended, to wait for the answer


class QuestionFilter:
    """Output without the question of the launch script, which the terminal of a player would answer too. The end of
    what came so far, when it could be the beginning of the question, is kept back until the rest tells."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> bytes:
        *before, last = (self._kept + data).split(_QUESTION)
        keep = next(n for n in range(len(_QUESTION) - 1, -1, -1) if last.endswith(_QUESTION[:n]))
        last, self._kept = last[: len(last) - keep], last[len(last) - keep :]
        return b"".join([*before, last])

    def end(self) -> bytes:
        kept, self._kept = self._kept, b""
        return kept


class SecretFilter:
    """Text in which some values are replaced. The end of what came so far, when it could be the beginning of such a
    value, is kept back until the rest tells."""

    def __init__(self, secrets: list[str]) -> None:
        lines = {line for secret in secrets for line in re.split(r"[\r\n]+", secret)}
        self._secrets = sorted((line for line in lines if len(line) >= SHORTEST_SECRET), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._secrets))) if self._secrets else None
        self._kept = ""
        self._kept_at = 0.0

    def feed(self, text: str, at: float) -> list[tuple[float, str]]:
        """What can be written now: pieces, each with its time."""
        if self._pattern is None:
            return [(at, text)]
        kept = self._kept
        whole = kept + text
        known = max((found.end() for found in self._pattern.finditer(whole)), default=0)
        first = max(known, len(whole) - len(self._secrets[0]) + 1)
        start = next((at for at in range(first, len(whole)) if self._may_begin(whole[at:])), len(whole))
        keep = len(whole) - start
        whole, self._kept = whole[:start], whole[start:]
        masked = self._pattern.sub(MASK, whole)
        # Text that was kept for nothing is written with the time at which it came.
        early = len(kept) if masked.startswith(kept) else 0
        pieces = [(self._kept_at, masked[:early]), (at, masked[early:])]
        if keep <= len(text):
            self._kept_at = at
        return [piece for piece in pieces if piece[1]]

    def end(self) -> list[tuple[float, str]]:
        kept, self._kept = self._kept, ""
        return [(self._kept_at, kept)] if kept else []

    def _may_begin(self, text: str) -> bool:
        """Whether the text could begin a secret that it does not end."""
        return any(secret.startswith(text) for secret in self._secrets)


class Cast:
    """An asciicast v2 file that is added to line by line. One that exists goes on where it ended: the time in which
    nothing was recorded is left out, since a player would sit through it."""

    def __init__(self, fd: int, title: str, size: tuple[int, int], max_bytes: int, note: str = "") -> None:
        self._fd = fd
        self._max_bytes = max_bytes
        self._note = note or f"[the recording ends here: it reached record.max_mb = {max_bytes / 1e6:g}]"
        self._size = size
        self.full = False
        self._last = 0.0
        self._began = time.monotonic()
        self._bytes = os.fstat(self._fd).st_size
        now = time.time()
        if self._bytes and self._repair():
            self._began -= self._last + _PAUSE_SECONDS
            moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
            self.event("m", f"started again {moment}")
            self.event("r", "{}x{}".format(*size))
            self.event("o", "\x1bc")  # a new terminal is empty
        else:
            header = {"version": 2, "width": size[0], "height": size[1], "timestamp": int(now), "title": title}
            self._write(_line(header))

    def now(self) -> float:
        return time.monotonic() - self._began

    def event(self, code: str, data: str, at: float | None = None) -> None:
        """Past the largest size allowed, a last event says so, and nothing more is written."""
        if self.full:
            return
        self._last = max(self._last, self.now() if at is None else at)
        line = _line([round(self._last, 6), code, data])
        self.full = 0 < self._max_bytes <= self._bytes + len(line)
        if self.full:
            line = _line([round(self._last, 6), "o", f"\x1b[0m\r\n{self._note}\r\n"])
        self._write(line)

    def resize(self, size: tuple[int, int]) -> None:
        if size != self._size:
            self._size = size
            self.event("r", "{}x{}".format(*size))

    def _write(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        self._bytes += written
        if written != len(line):
            raise OSError("the disk is full")

    def _repair(self) -> bool:
        """Cut off a line that was torn by a crash or a full disk, and find the time of the last one. False when there
        is nothing left to go on from."""
        start = max(0, self._bytes - _TAIL)
        lines = os.pread(self._fd, _TAIL, start).split(b"\n")
        torn = lines.pop()
        self._bytes -= len(torn)
        os.ftruncate(self._fd, self._bytes)
        try:
            value = json.loads(lines[-1])
            self._last = float(value[0]) if isinstance(value, list) else 0.0
        except (IndexError, ValueError):
            os.ftruncate(self._fd, 0)
            self._bytes = 0
        return self._bytes > 0


def _line(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False)
    for end in "\x85\u2028\u2029":  # which some readers take for the end of a line
        text = text.replace(end, f"\\u{ord(end):04x}")
    return text.encode() + b"\n"


class Terminal:
    """The recorded one, looked at from outside. Never held open, since that would keep it from ending."""

    def __init__(self, pid: int, tty: str, size: tuple[int, int]) -> None:
        self.pid, self.tty, self.size = pid, tty, size

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def look(self) -> tuple[int, int]:
        """Its size; the last known one when it is gone, since another terminal may have its name by then."""
        if self.alive():
            try:
                fd = os.open(self.tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
                try:
                    answer = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
                finally:
                    os.close(fd)
                rows, columns, _, _ = struct.unpack("HHHH", answer)
                if rows and columns:
                    self.size = (columns, rows)
            except OSError:
                pass
        return self.size


def record(stdin: int, cast: Cast, terminal: Terminal, masked: SecretFilter) -> None:
    """Until the input ends, or the terminal's process has and nothing more came for a moment."""
    decoder, answered = codecs.getincrementaldecoder("utf-8")("replace"), QuestionFilter()
    poll = select.poll()
    poll.register(stdin, select.POLLIN)
    alive = True
    while not cast.full:
        if not poll.poll(1000 * (_TICK_SECONDS if alive else _QUIET_SECONDS)):
            if not alive:
                break
            alive = terminal.alive()
            cast.resize(terminal.look())
            continue
        data = os.read(stdin, 65536)
        if not data:
            break
        cast.resize(terminal.look())
        text = decoder.decode(answered.feed(data))
        for at, piece in masked.feed(text, cast.now()) if text else ():
            cast.event("o", piece, at)
    text = decoder.decode(answered.end(), final=True)
    for at, piece in [*(masked.feed(text, cast.now()) if text else ()), *masked.end()]:
        cast.event("o", piece, at)


def read_secrets(path: str) -> list[str]:
    """Values of an environment file as mngr writes them: `export NAME='value'` lines."""
    import shlex

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            words = shlex.split(file.read())
    except FileNotFoundError:
        return []
    return [word.partition("=")[2] for word in words if "=" in word]


def main(argv: list[str]) -> None:
    path, title, max_bytes, env, lock, pid, tty, columns, rows = argv
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    # Held until the end, so that others can wait for it. One that still records the terminal before is about to end.
    fcntl.flock(os.open(lock, os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
    terminal = Terminal(int(pid), tty, (int(columns), int(rows)))
    cast = Cast(fd, title, terminal.look(), int(max_bytes))
    record(sys.stdin.fileno(), cast, terminal, SecretFilter(read_secrets(env)))


if __name__ == "__main__":
    main(sys.argv[1:])
