"""`python -m mngr.providers.modal.helper SOCKET`: the one process that has Modal's package."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mngr.errors import MngrError
from mngr.process import quote
from mngr.providers.helper import CHUNK, Helper, Verb, main, write_all
from mngr.providers.modal.sandboxes import Sandboxes, explained

if TYPE_CHECKING:
    from modal.container_process import ContainerProcess

# The terminal tells its name to a file, for a later change of its size; Modal has no call for that.
_TERMINAL = (
    "f=/tmp/.mngr-terminal-{id}; tty > $f; stty rows {rows} cols {columns}; export TERM={term}; "
    "sh -c {line}; c=$?; rm -f $f; exit $c"
)
_RESIZE = "stty -F $(cat /tmp/.mngr-terminal-{id}) rows {rows} cols {columns}"


class ModalHelper(Helper):
    def verbs(self) -> Mapping[str, Verb]:
        self._sandboxes = Sandboxes()
        names = ("create", "drop_kept", "kept", "list", "snapshot", "terminate")
        return {name: getattr(self._sandboxes, name) for name in names}

    def explained(self, error: Exception) -> MngrError:
        return explained(error)

    def unheard(self, request: Mapping[str, Any]) -> None:
        """A sandbox that nobody waits for any more is not to be paid for."""
        if request["do"] == "create":
            self._sandboxes.terminate(request["name"])

    def run(self, connection: socket.socket, descriptors: list[int], request: dict[str, Any]) -> int:
        return self._run(connection, descriptors, **request)

    def _run(
        self,
        connection: socket.socket,
        descriptors: list[int],
        name: str,
        line: str,
        rows: int = 0,
        columns: int = 0,
        term: str = "",
    ) -> int:
        """The exit code of the command line. Its input ends when the program's input ends or the program is gone."""
        sandbox = self._sandboxes.find(name)
        id = os.urandom(8).hex()
        if rows:
            line = _TERMINAL.format(id=id, rows=rows, columns=columns, term=quote(term), line=quote(line))
        process = sandbox.exec("sh", "-c", line, text=False, pty=bool(rows))

        def resize(rows: int, columns: int) -> None:
            sandbox.exec("sh", "-c", _RESIZE.format(id=id, rows=rows, columns=columns))

        stdin, stdout, stderr = descriptors
        over = threading.Event()
        threads = [
            threading.Thread(target=_copy_output, args=(process.stdout, stdout), daemon=True),
            threading.Thread(target=_copy_output, args=(process.stderr, stderr), daemon=True),
        ]
        feeder = threading.Thread(target=_copy_input, args=(process, stdin, connection, resize, over), daemon=True)
        for thread in (*threads, feeder):
            thread.start()
        for thread in threads:
            thread.join()
        code = process.wait()
        over.set()
        feeder.join()
        return code


def _copy_output(source: Any, fd: int) -> None:
    try:
        for data in source:
            write_all(fd, data)
    except OSError:
        pass  # nobody reads it any more
    except Exception as error:  # noqa: BLE001 (the stream ended early; the exit code tells the rest)
        sys.stderr.write(f"output: {type(error).__name__}: {error}\n")


def _copy_input(
    process: ContainerProcess[bytes],
    stdin: int,
    connection: socket.socket,
    resize: Callable[[int, int], None],
    over: threading.Event,
) -> None:
    poll = select.poll()
    poll.register(stdin, select.POLLIN)
    poll.register(connection, select.POLLIN)
    try:
        while not over.is_set():
            for fd, _ in poll.poll(200):
                data = os.read(fd, CHUNK)
                if data and fd != stdin:
                    last = json.loads(data.splitlines()[-1])
                    resize(last["rows"], last["columns"])
                elif data:
                    process.stdin.write(data)
                    process.stdin.drain()
                else:
                    process.stdin.write_eof()
                    process.stdin.drain()
                    return
    except Exception as error:  # noqa: BLE001 (the command does not read any more; its exit code tells why)
        sys.stderr.write(f"input: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    sys.exit(main(ModalHelper))
