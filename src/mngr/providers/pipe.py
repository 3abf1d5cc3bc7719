"""Talk to the helper of a provider: ask it something, or run a command line on a host with our own input and output.

`python -m mngr.providers.pipe MODULE SOCKET HOST COMMAND-LINE` is what git, rsync and channels start. The
helper, `python -m MODULE SOCKET`, is the one process that has the provider's package."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mngr.errors import UNREACHED, MngrError
from mngr.system.process import start
from mngr.system.waiting import wait_until

START_SECONDS = 30.0
# The exit code when a host cannot be reached; ssh uses the same.
NOT_REACHED = 255


def ask(module: str, path: str, env: Mapping[str, str], do: str, /, **details: object) -> Any:
    """What the helper answers. Raises its error."""
    with _connection(module, path, env) as connection:
        _send(connection, {"do": do, **details}, ())
        return _answer(connection)


def _answer(connection: socket.socket) -> Any:
    with connection.makefile("rb") as lines:
        line = lines.readline()
    if not line:
        raise _ended()
    answer = json.loads(line)
    if "error" in answer:
        raise MngrError(answer["error"], hint=answer["hint"], exit_code=answer["exit_code"])
    return answer["answer"]


def _send(connection: socket.socket, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
    data = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [data], list(descriptors)) if descriptors else 0
    if sent < len(data):
        connection.sendall(data[sent:])


@contextmanager
def _connection(module: str, path: str, env: Mapping[str, str]) -> Iterator[socket.socket]:
    """A connection to the helper, which is started if it does not run."""
    connection = _connected(path)
    if connection is None:
        with open(f"{path}.log", "ab") as errors, open(os.devnull, "r+b") as nothing:
            argv = [sys.executable, "-P", "-m", module, path]
            start(argv, cwd="/", env=env, descriptors=(nothing.fileno(), nothing.fileno(), errors.fileno()))
        connection = wait_until(lambda: _connected(path), timeout=START_SECONDS)
    if connection is None:
        raise MngrError(f"`{module}` did not start", hint=f"`cat {path}.log`", exit_code=UNREACHED)
    try:
        yield connection
    except ConnectionError:
        raise _ended() from None
    finally:
        connection.close()


def _ended() -> MngrError:
    return MngrError("the helper of the provider ended before it answered", exit_code=UNREACHED)


def _connected(path: str) -> socket.socket | None:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(path)
    except (FileNotFoundError, ConnectionError):
        made.close()
        return None
    return made


def run(module: str, path: str, host: str, line: str) -> int:
    """Run a shell command line there; the helper itself reads and writes our descriptors. Its exit code."""
    with _connection(module, path, os.environ) as connection:
        _send(connection, {"do": "run", "name": host, "line": line}, (0, 1, 2))
        return int(_answer(connection))


def main() -> int:
    try:
        return run(*sys.argv[1:])
    except MngrError as error:
        sys.stderr.write(f"{error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return NOT_REACHED


if __name__ == "__main__":
    sys.exit(main())
