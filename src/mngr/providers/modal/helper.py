"""`python -m mngr.providers.modal.helper SOCKET`: the one process that has Modal's package."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

from mngr.errors import MngrError
from mngr.providers.helper import Helper, Verb, fed, main, write_all
from mngr.providers.modal.sandboxes import Sandboxes, explained


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

    def run(self, connection: socket.socket, descriptors: list[int], name: str, line: str) -> int:
        process = self._sandboxes.find(name).exec("sh", "-c", line, text=False)

        def write(data: bytes) -> bool:
            if data:
                process.stdin.write(data)
            else:
                process.stdin.write_eof()
            process.stdin.drain()
            return True

        stdin, stdout, stderr = descriptors
        outputs = ((process.stdout, stdout), (process.stderr, stderr))
        threads = [threading.Thread(target=_copy_output, args=both, daemon=True) for both in outputs]
        with fed(write, stdin, connection):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return process.wait()


def _copy_output(source: Any, fd: int) -> None:
    try:
        for data in source:
            write_all(fd, data)
    except OSError:
        pass  # nobody reads it any more
    except Exception as error:  # noqa: BLE001 (the stream ended early; the exit code tells the rest)
        sys.stderr.write(f"output: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    sys.exit(main(ModalHelper))
