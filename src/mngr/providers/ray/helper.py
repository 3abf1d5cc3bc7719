"""`python -m mngr.providers.ray.helper SOCKET`: the one process that has Ray's package. `RAY_ADDRESS` says where."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping

from mngr.errors import MngrError
from mngr.providers.helper import Helper, Verb, fed, main, write_all
from mngr.providers.ray.cluster import START_SECONDS, Cluster, explained

_READ_SECONDS = 10.0


class RayHelper(Helper):
    def verbs(self) -> Mapping[str, Verb]:
        self._address = os.environ["RAY_ADDRESS"]
        self._cluster = Cluster(self._address)
        return {name: getattr(self._cluster, name) for name in ("create", "hosts", "destroy", "sweep")}

    def explained(self, error: Exception) -> MngrError:
        return explained(error, self._address)

    def run(self, connection: socket.socket, descriptors: list[int], name: str, line: str) -> int:
        actor = self._cluster.actor(name)
        import ray

        stream = ray.get(actor.open.remote(line), timeout=START_SECONDS)
        stdin, stdout, stderr = descriptors
        code: int | None = None
        with fed(lambda data: bool(ray.get(actor.write.remote(stream, data))), stdin, connection):
            try:
                while code is None:
                    out, error, code = ray.get(actor.read.remote(stream, _READ_SECONDS))
                    write_all(stdout, out)
                    write_all(stderr, error)
            finally:
                if code is None:
                    actor.close.remote(stream)
        return code


if __name__ == "__main__":
    sys.exit(main(RayHelper))
