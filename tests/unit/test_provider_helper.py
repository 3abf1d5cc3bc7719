"""What the helper of a provider answers when the provider's package fails."""

import json
import socket
from collections.abc import Mapping

import pytest

from mngr.errors import MngrError
from mngr.providers.helper import Helper, Verb


class Failing(Helper):
    error: Exception

    def verbs(self) -> Mapping[str, Verb]:
        return {"ask": self._fail}

    def _fail(self) -> None:
        raise self.error

    def run(self, connection: socket.socket, descriptors: list[int], name: str, line: str) -> int:
        raise self.error

    def explained(self, error: Exception) -> MngrError:
        return MngrError(f"the package says: {error}")


@pytest.mark.parametrize(("do", "more"), [("ask", {}), ("run", {"name": "a", "line": "true"})])
@pytest.mark.parametrize("error", [ConnectionError("no cluster"), TimeoutError("too late"), ValueError("bad")])
def test_an_error_of_the_package_reaches_the_caller_also_when_it_is_one_of_the_system(
    error: Exception, do: str, more: dict[str, str]
) -> None:
    local, far = socket.socketpair()
    with local:
        helper = Failing(far, "")
        helper.error = error
        local.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
        helper._serve_one(far)
        assert json.loads(local.recv(4096))["error"] == f"the package says: {error}"
