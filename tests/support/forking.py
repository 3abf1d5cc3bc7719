"""`mngr` as a process of its own, without Python's start and imports, which are most of what a quick verb costs.

A server that has imported the commands forks once for each call. Each command has its own process id, directory,
environment, pipes and signals, as if the console script were started. What only a real start can show (locale, options
of Python, which modules are loaded) is left to one: see `Forker.can_run`, `User.run`, `User.popen`, the session tests.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MNGR = str(Path(sys.executable).with_name("mngr"))
# Read by the interpreter or by the C library at their start.
_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "GLIBC_")
_LENGTH = 8


def _of_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START)}


class Forker:
    """One server for all tests of this process; it ends with it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._start = _of_start(env)
        theirs, self._requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with theirs:
            # Pipes, so that its streams are those of a command whose input and output are.
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env={"PATH": env["PATH"], **self._start},
                cwd="/",
            )

    def can_run(self, env: Mapping[str, str]) -> bool:
        return _of_start(env) == self._start

    def run(
        self, words: Sequence[str], data: bytes, cwd: str, env: Mapping[str, str], timeout: float
    ) -> "subprocess.CompletedProcess[bytes]":
        """As `subprocess.run` of the console script would."""
        theirs, ours = _pipes()
        connection, other = socket.socketpair()
        with connection:
            with other:
                socket.send_fds(self._requests, [b"+"], [other.fileno(), *theirs])
            for number in theirs:
                os.close(number)
            message = json.dumps([list(words), cwd, dict(env)]).encode()
            connection.sendall(b"%8d" % len(message) + message)
            pid = int(_exactly(connection, _LENGTH))
            try:
                stdout, stderr = _communicate(ours, data, timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired([MNGR, *words], timeout) from None
            status = int(_exactly(connection, _LENGTH))
        return subprocess.CompletedProcess([MNGR, *words], os.waitstatus_to_exitcode(status), stdout, stderr)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    (in_read, in_write), (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe(), os.pipe()
    return (in_read, out_write, err_write), (in_write, out_read, err_read)


def _communicate(pipes: tuple[int, int, int], data: bytes, timeout: float) -> tuple[bytes, bytes]:
    """Write all input and read all output, until the other sides are closed."""
    stdin, stdout, stderr = pipes
    found: dict[int, bytes] = {stdout: b"", stderr: b""}
    left = {stdout, stderr}
    deadline = time.monotonic() + timeout
    poll = select.poll()
    for number in left:
        poll.register(number, select.POLLIN)
    os.set_blocking(stdin, False)
    poll.register(stdin, select.POLLOUT)
    try:
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError
            for number, _ in poll.poll(max(0, deadline - time.monotonic()) * 1000):
                if number == stdin:
                    try:
                        data = data[os.write(stdin, data[:65536]) :] if data else b""
                    except BrokenPipeError:
                        data = b""
                    if not data:
                        poll.unregister(stdin)
                        os.close(stdin)
                        stdin = -1
                elif piece := os.read(number, 65536):
                    found[number] += piece
                else:
                    poll.unregister(number)
                    left.discard(number)
    finally:
        for number in (stdin, stdout, stderr):
            if number >= 0:
                os.close(number)
    return found[stdout], found[stderr]


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise ConnectionError("the server of forked commands is gone")
        found += piece
    return found


def serve(requests: socket.socket) -> None:
    """Fork for each request, tell the process id, and later the status it ended with. Ends with its parent."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    running: dict[int, socket.socket] = {}
    poll = select.poll()
    for number in (0, woken, requests.fileno()):
        poll.register(number, select.POLLIN)
    while True:
        ready = {number for number, _ in poll.poll()}
        if 0 in ready:
            return
        if woken in ready:
            os.read(woken, 4096)
            _reap(running)
        if requests.fileno() in ready:
            _, (number, *streams), *_ = socket.recv_fds(requests, 1, 4)
            connection = socket.socket(fileno=number)
            request = json.loads(_exactly(connection, int(_exactly(connection, _LENGTH))))
            pid = os.fork()
            if not pid:
                _become(request, streams)
            for number in streams:
                os.close(number)
            connection.sendall(b"%8d" % pid)
            running[pid] = connection


def _reap(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as connection:
            try:
                connection.sendall(b"%8d" % status)
            except OSError:
                continue  # nobody waits for it any more


def _become(request: Any, streams: Sequence[int]) -> None:
    """The forked process: as the console script finds itself after its start."""
    words, cwd, env = request
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, number in enumerate(streams):
        os.dup2(number, target)
    os.closerange(3, 256)
    code = 1
    try:
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.argv = [MNGR, *words]
        sys.path[0] = os.path.dirname(MNGR)
        from mngr.cli.main import start

        start()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(code)


def main() -> None:
    from mngr.cli import catalog
    from mngr.cli.dispatch import command_parser

    for entry in catalog.VERBS:
        command_parser(entry)
    import gc

    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
