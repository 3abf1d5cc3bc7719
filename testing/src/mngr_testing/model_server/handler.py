"""One connection: reads requests, lets the model decide, writes answers at the pace of the script."""

from __future__ import annotations

import json
import select
import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mngr_testing.model_server import openai_chat
from mngr_testing.model_server.answer import StreamPiece, TokenCounts
from mngr_testing.model_server.log import LoggedRequest
from mngr_testing.model_server.model import (
    APIS,
    MESSAGES,
    Api,
    ModelDecision,
    RequestRefused,
    is_side,
    models,
    program_of,
    read_body,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr_testing.model_server.script import ScriptedFailure
    from mngr_testing.model_server.server import ModelListener

BIGGEST_BODY = 256 * 1024 * 1024
GARBAGE = b"\x00\xfe\xff}{ these bytes are no answer of any model ]\n" * 3
MESSAGES_OF = {
    400: "the script says that this request is wrong",
    401: "the script says that this key is not valid",
    402: "the script says that the credit balance is too low",
    404: "the script says that the model does not exist",
    429: "the script says that the rate limit is reached",
    529: "Overloaded",
}


class ClientGone(Exception):
    """The client hung up, or the server stops."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "mngr-model-server"
    sys_version = ""
    disable_nagle_algorithm = True
    server: ModelListener

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            pass

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ClientGone):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the log has it."""

    def do_HEAD(self) -> None:
        self._begin()
        self._send(200, b"", {}, answer="status")

    def do_GET(self) -> None:
        self._begin()
        if _plain(self.path) == "/models":
            self._json(200, models(), answer="status")
        else:
            self._refuse(RequestRefused(404, f"nothing is at {self.path}"))

    def do_POST(self) -> None:
        self._begin()
        path = _plain(self.path)
        try:
            raw = self._body()
            if path == "/messages/count_tokens":
                self._count_tokens(raw)
            elif path in APIS:
                self._turn(APIS[path], raw)
            else:
                raise RequestRefused(404, f"nothing is at {self.path}")
        except RequestRefused as refused:
            self._refuse(refused)
        except (OSError, ClientGone):
            self._end(answer="gone")
            raise
        except Exception as error:  # whatever a stranger sends, it gets an answer and the log has it
            if self.entry.first_byte_at is not None:
                raise
            self._refuse(RequestRefused(500, f"the model server failed: {error!r}"))

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815

    def _refuse(self, refused: RequestRefused, headers: Mapping[str, str] | None = None) -> None:
        error = _api(self.path).error(refused.status, refused.message, self.entry.id)
        self._json(refused.status, error, headers, answer="status", text=refused.message)

    def _begin(self) -> None:
        if self.command != "POST" and self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True
        self.entry = self.server.log.put(
            LoggedRequest(
                self.server.next_id(),
                time.time(),
                method=self.command,
                path=self.path,
                program=program_of(self.headers.get("User-Agent", "")),
                auth=_auth(self.headers),
            )
        )

    def _end(self, **known: Any) -> None:
        if self.entry.ended_at is None:
            self._note(ended_at=time.time(), **known)

    def _note(self, **known: Any) -> None:
        self.entry = self.server.log.put(self.entry._replace(**known))

    def _body(self) -> bytes:
        length, encoding = self.headers.get("Content-Length", ""), self.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise RequestRefused(415, f"the encoding `{encoding}` is not supported")
        if not length.isdecimal() or int(length) > BIGGEST_BODY:
            self.close_connection = True
            if length.isdecimal():
                raise RequestRefused(413, "the body is too big")
            raise RequestRefused(411, "the request needs a Content-Length")
        raw = self.rfile.read(int(length))
        if len(raw) < int(length):
            raise ClientGone
        return raw

    def _count_tokens(self, raw: bytes) -> None:
        asked = MESSAGES.parse(read_body(raw))
        self._note(api="count_tokens", model=asked.model, user_text=asked.text, side=True)
        self._json(200, {"input_tokens": max(1, len(raw) // 4)}, answer="text")

    def _turn(self, api: Api, raw: bytes) -> None:
        self._note(api=api.name)
        asked = api.parse(read_body(raw))
        side = is_side(asked, self.entry.program)
        self._note(
            model=asked.model,
            session=asked.session,
            user_text=asked.text,
            side=side,
            stream=asked.stream,
            step=asked.step,
        )
        made = self.server.model.decide(asked, side=side, id=self.entry.id, size=len(raw))
        self._note(attempt=made.attempt)
        self._pause(made.think_seconds)
        if made.failure is None:
            self._answer(api, made)
        elif made.failure.kind == "status":
            self._fail(made.failure)
        elif made.failure.kind == "garbage":
            kind = "text/event-stream" if made.asked.stream else "application/json"
            self._send(200, GARBAGE, {"Content-Type": kind}, answer="garbage")
        else:
            self._drop(api, made)

    def _fail(self, failure: ScriptedFailure) -> None:
        status, headers = failure.status, dict(failure.headers)
        if failure.text.startswith("{"):
            self._json(status, json.loads(failure.text), headers, answer="status", text=failure.text)
            return
        message = failure.text or MESSAGES_OF.get(status, "the script says that the server failed")
        self._refuse(RequestRefused(status, message), headers)

    def _answer(self, api: Api, made: ModelDecision) -> None:
        answer = made.answer
        call = answer.call
        known = {
            "answer": "tool" if call else "text",
            "text": answer.text,
            "tool": call.name if call else "",
            "tool_input": call.input if call else "",
            "usage": answer.usage if made.asked.include_usage or not made.asked.stream else TokenCounts(),
        }
        if not made.asked.stream:
            self._pause(sum(part.seconds for part in answer.parts))
            self._json(200, api.whole(answer), None, **known)
            return
        *most, last = _pieces(api, made)
        self._start_stream()
        for piece in most:
            self._pause(piece.pause_seconds)
            self._chunk(piece.data)
        self._end(**known)
        self._chunk(last.data)
        self._chunk(b"")

    def _drop(self, api: Api, made: ModelDecision) -> None:
        """Half of the answer, and then the end of the connection."""
        self.close_connection = True
        if made.asked.stream:
            pieces = _pieces(api, made)
            self._start_stream()
            self._end(answer="drop")
            for piece in pieces[: len(pieces) // 2]:
                self._chunk(piece.data)
        else:
            data = json.dumps(api.whole(made.answer)).encode()
            self._first_byte(200)
            self._head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
            self._end(answer="drop")
            self.wfile.write(data[: len(data) // 2])

    def _json(
        self, status: int, value: Mapping[str, Any], headers: Mapping[str, str] | None = None, **known: Any
    ) -> None:
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})}, **known)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str], **known: Any) -> None:
        """A whole answer. The log has its end before the client has, so that who got it finds it there."""
        self._first_byte(status)
        self._end(**known)
        self._head(status, {**headers, "Content-Length": str(len(data))})
        self.wfile.write(data)

    def _start_stream(self) -> None:
        self._first_byte(200)
        kind = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        self._head(200, {**kind, "Transfer-Encoding": "chunked"})

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("request-id", f"req_{self.entry.id}")
        self.send_header("x-request-id", f"req_{self.entry.id}")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _first_byte(self, status: int) -> None:
        self._note(status=status, first_byte_at=time.time())

    def _pause(self, seconds: float) -> None:
        """Wait so long, but no longer than the client does: its socket becomes readable when it hangs up."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self.connection, select.POLLIN | select.POLLHUP)
            if not poll.poll(left * 1000):
                return
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientGone
            poll.modify(self.connection, select.POLLHUP)
            if poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise ClientGone


def _pieces(api: Api, made: ModelDecision) -> list[StreamPiece]:
    if api.name == "chat":
        return openai_chat.stream(made.answer, made.asked.include_usage)
    return api.stream(made.answer)


def _plain(path: str) -> str:
    return urlsplit(path).path.rstrip("/").removeprefix("/v1")


def _api(path: str) -> Api:
    """Whose form an error has."""
    plain = _plain(path)
    return APIS.get(plain, MESSAGES if plain.startswith("/messages") else APIS["/responses"])


def _auth(headers: Any) -> str:
    if headers.get("x-api-key"):
        return "x-api-key"
    kind = headers.get("Authorization", "").split(" ")[0].lower()
    return kind[:20] or "none"
