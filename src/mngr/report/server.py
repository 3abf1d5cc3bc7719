"""The same pages while things change: a web server for its user alone. Answers GET, from memory and the source; no
address of it is ever a path on disk.

Every user of this machine can connect to it, so all its addresses begin with a random token. A cookie would not do:
browsers send it to the servers of others on this machine, too."""

from __future__ import annotations

import errno
import hmac
import os
import socketserver
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mngr.errors import MngrError
from mngr.report import site as sites
from mngr.report.source import Source, is_id, script

ADDRESS = "127.0.0.1"
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}


class PageServer(ThreadingHTTPServer):
    """Listens from its making on; `serve_forever` answers. Port 0 takes one that is free."""

    daemon_threads = True

    def __init__(self, source: Source, port: int = 0) -> None:
        self.source = source
        self.token = os.urandom(16).hex()
        self.site = sites.make(source, live=True)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            why = "it is in use" if taken else str(error)
            raise MngrError(
                f"cannot listen on port {port}: {why}", hint="leave `--port` out to take a free one"
            ) from None

    def server_bind(self) -> None:
        # That of HTTPServer asks a name server who 127.0.0.1 is.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "mngr"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        if not self._is_ours():
            self._answer(403, b"this server answers only its own pages\n", "text/plain")
            return
        token, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._answer(403, b"open the address that `serve` printed, all of it\n", "text/plain")
            return
        try:
            found = self._find(path)
        except Exception as error:  # noqa: BLE001 (whoever opens the address is told)
            self._answer(500, f"{type(error).__name__}: {error}\n".encode(errors="replace"), "text/plain")
            return
        if found is None:
            self._answer(404, b"not found\n", "text/plain")
        else:
            self._answer(200, *found)

    def _find(self, path: str) -> tuple[bytes, str] | None:
        kind, _, rest = path.partition("/")
        if path in ("", "index.html"):
            return self.server.site.page, _TYPES["html"]
        if kind == "assets" and rest in self.server.site.assets:
            return self.server.site.assets[rest], _TYPES[rest.rpartition(".")[2]]
        if kind == "data" and rest.endswith(".js"):
            id = rest.removesuffix(".js")
            value = self.server.site.facts if id == "site" else self._load(id)
            return None if value is None else (script(id, value), _TYPES["js"])
        if kind == "version" and is_id(rest):
            version = self.server.source.version(rest)
            return None if version is None else (version.encode(), "text/plain")
        return None

    def _load(self, id: str) -> Any:
        return self.server.source.load(id) if is_id(id) else None

    def _is_ours(self) -> bool:
        """Asked by the name we gave, and by our own page or by the person: a page from elsewhere can reach this
        port too, under a name of its own that points here, or with a script element."""
        port = self.server.server_port
        known = (f"{ADDRESS}:{port}", f"localhost:{port}")
        return self.headers.get("Host") in known and self.headers.get("Sec-Fetch-Site") in (None, "none", "same-origin")

    def _answer(self, status: int, body: bytes, type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{type}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", f"{self.server.site.policy}; frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal shows the address, and stays readable."""
