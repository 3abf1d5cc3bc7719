"""The server of a provider's helper: the one process that has the provider's package, for all programs of a user.

It ends by itself when nobody was connected for a while or when its socket was removed."""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mngr.errors import MngrError

LINGER_SECONDS = 30.0
CHUNK = 1 << 16
Verb = Callable[..., object]


class Helper:
    """Serves each connection with a thread of its own. A provider says what it can be asked, how it runs a command line
    with the descriptors of the program that asks, and what its package's errors mean."""

    def __init__(self, listener: socket.socket, path: str) -> None:
        self._listener = listener
        self._path = path
        self._verbs = self.verbs()
        self._connected = 0
        self._used_at = time.monotonic()
        self._lock = threading.Lock()

    def verbs(self) -> Mapping[str, Verb]:
        raise NotImplementedError

    def run(self, connection: socket.socket, descriptors: list[int], name: str, line: str) -> int:
        """The exit code of the command line on the host `name`. Its input ends when the program's input ends or the
        program is gone."""
        raise NotImplementedError

    def explained(self, error: Exception) -> MngrError:
        raise NotImplementedError

    def unheard(self, request: Mapping[str, Any]) -> None:
        """The request was carried out, and the program that asked is gone."""

    def serve(self) -> None:
        while self._is_needed():
            self._accept(1.0)
        self._listener.close()

    def _is_needed(self) -> bool:
        """Whether to go on. A program that connects while the socket is removed is still served."""
        with self._lock:
            idle = not self._connected and time.monotonic() - self._used_at > LINGER_SECONDS
        if os.path.exists(self._path) and not idle:
            return True
        if idle and os.path.exists(self._path):
            os.unlink(self._path)
        self._accept(0.0)
        return self._connected > 0

    def _accept(self, seconds: float) -> None:
        if not select.select([self._listener], [], [], seconds)[0]:
            return
        connection, _ = self._listener.accept()
        with self._lock:
            self._connected += 1
        threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, CHUNK, 3)
            while data and b"\n" not in data:
                data += connection.recv(CHUNK)
            if data:
                request = json.loads(data)
                answer = self._answer(connection, dict(request), descriptors)
                try:
                    connection.sendall(json.dumps(answer).encode() + b"\n")
                except OSError:
                    self.unheard(request)
        except OSError:
            pass  # the program is gone
        finally:
            for fd in descriptors:
                os.close(fd)
            connection.close()
            with self._lock:
                self._connected -= 1
                self._used_at = time.monotonic()

    def _answer(
        self, connection: socket.socket, request: dict[str, Any], descriptors: list[int]
    ) -> Mapping[str, object]:
        do = request.pop("do")
        try:
            if do == "run":
                return {"answer": self.run(connection, descriptors, **request)}
            return {"answer": self._verbs[do](**request)}
        except (BrokenPipeError, ConnectionResetError):
            raise  # the program is gone; the package's own errors are plain ones, also of connections and time
        except Exception as error:  # noqa: BLE001 (whatever the package raises is the caller's to know)
            known = self.explained(error)
            return {"error": known.message, "hint": known.hint, "exit_code": known.exit_code}


@contextmanager
def fed(write: Callable[[bytes], bool], stdin: int, connection: socket.socket) -> Iterator[None]:
    """Meanwhile, `write` gets what comes from the input of a program, and nothing once at its end or when the program
    is gone. It says whether it takes more."""
    over = threading.Event()

    def feed() -> None:
        poll = select.poll()
        poll.register(stdin, select.POLLIN)
        poll.register(connection, select.POLLIN)
        try:
            while not over.is_set():
                for fd, _ in poll.poll(200):
                    data = os.read(fd, CHUNK)
                    if not write(data) or not data:
                        return
        except Exception as error:  # noqa: BLE001 (the command does not read any more; its exit code tells why)
            sys.stderr.write(f"input: {type(error).__name__}: {error}\n")

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def main(helper: type[Helper]) -> int:
    path = sys.argv[1]
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # another one serves
    os.umask(0o077)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        if os.path.exists(path):
            os.unlink(path)
        listener.bind(path)
        listener.listen(128)
        helper(listener, path).serve()
    return 0
