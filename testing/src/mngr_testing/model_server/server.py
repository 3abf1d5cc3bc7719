"""The loopback HTTP server in front of the scripted model."""

from __future__ import annotations

import itertools
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any

from mngr.errors import MngrError
from mngr_testing.model_server.handler import Handler
from mngr_testing.model_server.log import LoggedRequest, RequestLog, UsageTotals
from mngr_testing.model_server.model import ScriptedModel
from mngr_testing.model_server.programs import arguments, environment
from mngr_testing.model_server.script import Rule, check_rules

STOP_SECONDS = 5.0


class ModelServer:
    """Serves from entering to leaving the context. Leaving it cuts every connection."""

    def __init__(
        self, rules: Iterable[Rule | tuple[str, str]] = (), log_path: str | None = None, port: int = 0
    ) -> None:
        self._model = ScriptedModel(check_rules(rules))
        self._log = RequestLog(log_path)
        self._port = port
        self._server: ModelListener | None = None

    def __enter__(self) -> ModelServer:
        try:
            self._server = ModelListener(self._port, self._model, self._log)
        except OSError as error:
            raise MngrError(
                f"cannot listen on port {self._port}: {error.strerror}", hint="port 0 takes a free one"
            ) from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="model server", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()
            self._thread.join(STOP_SECONDS)

    @property
    def url(self) -> str:
        """Without a path: `http://127.0.0.1:PORT`."""
        if self._server is None:
            raise MngrError("the model server is not running", hint="use it as `with ModelServer() as server:`")
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def log(self) -> list[LoggedRequest]:
        return self._log.snapshot()

    def wait_for(self, predicate: Callable[[LoggedRequest], object], timeout: float) -> LoggedRequest:
        """The first request that fits, now or later. Raises TimedOut."""
        return self._log.wait_for(predicate, timeout)

    def usage(self) -> UsageTotals:
        """All tokens reported so far."""
        return self._log.usage()

    def env(self, program: str) -> dict[str, str]:
        """Variables that point `claude`, `codex` or `opencode` here."""
        return environment(program, self.url)

    def args(self, program: str, model: str = "scripted") -> list[str]:
        """Arguments that the program needs besides the variables."""
        return arguments(program, self.url, model)


class ModelListener(ThreadingHTTPServer):
    """One thread for each connection; remembers them all, to end them at once."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port: int, model: ScriptedModel, log: RequestLog) -> None:
        self.model = model
        self.log = log
        self._mark = os.urandom(4).hex()
        self._numbers = itertools.count(1)
        self._connections: dict[threading.Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", port), Handler)

    def server_bind(self) -> None:
        """As inherited, but without asking for the name of the address, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def next_id(self) -> str:
        """Unique, also among several servers: conversations outlive them."""
        return f"{self._mark}{next(self._numbers):06}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is nothing to report."""

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """As inherited, but the thread and its connection are remembered until both are done with."""
        if isinstance(request, socket.socket):
            thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
            self._connections[thread] = request
            thread.start()

    def _serve(self, connection: socket.socket, client_address: Any) -> None:
        try:
            self.process_request_thread(connection, client_address)
        finally:
            self._connections.pop(threading.current_thread(), None)

    def stop(self) -> None:
        """Take no more connections, cut those there are, and wait for their threads."""
        self.shutdown()
        self.server_close()
        end = time.monotonic() + STOP_SECONDS
        left = list(self._connections.items())
        for _, connection in left:
            _cut(connection)
        for thread, _ in left:
            thread.join(max(0.0, end - time.monotonic()))


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
