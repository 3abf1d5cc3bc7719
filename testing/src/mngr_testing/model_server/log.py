"""The requests and answers of the server: in memory, and as JSON lines if a path is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from mngr.errors import MngrError, TimedOut
from mngr.system.files import append_line
from mngr_testing.model_server.answer import TokenCounts


class LoggedRequest(NamedTuple):
    """One request. It is in the log from its arrival on; what is not known yet is empty.

    `answer` is `text`, `tool`, `status`, `drop`, `garbage`, or `gone` when the client did not wait for the end.
    Times are seconds since 1970. `usage` is what a whole answer reported; an answer that was cut short counts nothing.
    """

    id: str
    arrived_at: float
    method: str = ""
    path: str = ""
    api: str = ""
    model: str = ""
    program: str = ""
    auth: str = "none"
    session: str = ""
    user_text: str = ""
    side: bool = False
    stream: bool = False
    step: int = 0
    attempt: int = 0
    first_byte_at: float | None = None
    ended_at: float | None = None
    answer: str = ""
    status: int = 0
    text: str = ""
    tool: str = ""
    tool_input: str = ""
    usage: TokenCounts = TokenCounts()


class UsageTotals(NamedTuple):
    """Reported tokens: of the turns, and of what the programs asked besides."""

    turns: TokenCounts
    side: TokenCounts


class RequestLog:
    """Entries in the order of arrival. Safe for many threads."""

    def __init__(self, path: str | None = None) -> None:
        """Makes the file, so that a wrong path is seen before the first request."""
        self._path = path
        if path:
            try:
                with open(path, "ab"):
                    pass
            except OSError as error:
                raise MngrError(f"cannot write the log `{path}`: {error.strerror}") from None
        self._entries: dict[str, LoggedRequest] = {}
        self._changed = threading.Condition()

    def put(self, entry: LoggedRequest) -> LoggedRequest:
        """Add the entry, or replace what was known of it. One that ended is written to the file."""
        with self._changed:
            if entry.ended_at is not None and self._path:
                append_line(self._path, {**entry._asdict(), "usage": entry.usage._asdict()})
            self._entries[entry.id] = entry
            self._changed.notify_all()
        return entry

    def snapshot(self) -> list[LoggedRequest]:
        with self._changed:
            return list(self._entries.values())

    def wait_for(self, predicate: Callable[[LoggedRequest], object], timeout: float) -> LoggedRequest:
        """The first entry that fits, now or later. Raises TimedOut, which says what there was instead."""
        end = time.monotonic() + timeout
        with self._changed:
            while True:
                for entry in self._entries.values():
                    if predicate(entry):
                        return entry
                left = end - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            seen = "\n".join(_line(entry) for entry in self._entries.values())
        raise TimedOut(f"no request like this came within {timeout:g} s", details=seen or "no request at all")

    def usage(self) -> UsageTotals:
        entries = self.snapshot()
        return UsageTotals(
            _sum([entry.usage for entry in entries if not entry.side]),
            _sum([entry.usage for entry in entries if entry.side]),
        )


def _sum(usages: list[TokenCounts]) -> TokenCounts:
    return TokenCounts(*(sum(values) for values in zip(*usages, strict=True))) if usages else TokenCounts()


def _line(entry: LoggedRequest) -> str:
    asked = f"{entry.method} {entry.path} by {entry.program or 'unknown'}: {entry.user_text[:80]!r}"
    return f"{asked} -> {entry.answer or 'not answered yet'} {entry.status or ''} {entry.tool or entry.text[:80]!r}"
