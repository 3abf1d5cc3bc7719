"""`python -m mngr.providers.ray.helper SOCKET`: the one process that has Ray's package.

`SOCKET.address` holds the address of the cluster."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

from mngr.errors import MngrError
from mngr.providers.helper import CHUNK, Helper, Verb, main, write_all
from mngr.providers.ray.cluster import START_SECONDS, Cluster, explained

_READ_SECONDS = 10.0


class RayHelper(Helper):
    def verbs(self) -> Mapping[str, Verb]:
        with open(f"{self._path}.address") as file:
            self._address = file.read()
        self._cluster = Cluster(self._address)
        return {name: getattr(self._cluster, name) for name in ("create", "hosts", "stop", "start", "destroy", "sweep")}

    def explained(self, error: Exception) -> MngrError:
        return explained(error, self._address)

    def run(self, connection: socket.socket, descriptors: list[int], request: dict[str, Any]) -> int:
        """The exit code of the command line. Its input ends when the program's input ends or the program is gone."""
        actor = self._cluster.actor(request["name"])
        import ray

        stream = ray.get(actor.open.remote(request["line"]), timeout=START_SECONDS)
        stdin, stdout, stderr = descriptors
        over = threading.Event()
        feeder = threading.Thread(target=_copy_input, args=(actor, stream, stdin, connection, over), daemon=True)
        feeder.start()
        code: int | None = None
        try:
            while code is None:
                out, error, code = ray.get(actor.read.remote(stream, _READ_SECONDS))
                write_all(stdout, out)
                write_all(stderr, error)
        finally:
            over.set()
            if code is None:
                actor.close.remote(stream)
            feeder.join()
        return code


def _copy_input(actor: Any, stream: str, stdin: int, connection: socket.socket, over: threading.Event) -> None:
    import ray

    poll = select.poll()
    poll.register(stdin, select.POLLIN)
    poll.register(connection, select.POLLIN)
    try:
        while not over.is_set():
            for fd, _ in poll.poll(200):
                data = os.read(fd, CHUNK)
                if not ray.get(actor.write.remote(stream, data)) or not data:
                    return
    except Exception as error:  # noqa: BLE001 (the host does not read any more; the exit code tells why)
        sys.stderr.write(f"input: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    sys.exit(main(RayHelper))
