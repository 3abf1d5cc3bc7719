"""Reads the log of Codex: only there it says that it waits, and how long, before it asks its model again. Pure."""

from __future__ import annotations

import re

from mngr.agents import reasons
from mngr.agents.reasons import LOGIN
from mngr.agents.record import seconds_of
from mngr.agents.state import BLOCKED, RUNNING, Status

FILE = "codex-tui.log"
_MARK = b"codex_core::responses_retry: "
_RETRY = re.compile(r"^(\S+Z) .*\((\d+)/\d+ in ([0-9.]+)(ns|µs|ms|s)\)\.\.\. .*?sampling_error=(.*)")
_UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_STATUS = re.compile(r"\bstatus:? (\d{3})\b")
# How long an answer may take that refuses a login again.
_ASKED_SECONDS = 10.0


def waiting(tail: bytes, thread: str, since: float, now: float) -> Status | None:
    """What this thread waits for in the turn that began at `since`; None when the end of the log does not say so."""
    lines = [line for line in tail.split(b"\n") if _MARK in line]
    own = [line for line in lines if b"thread_id=" not in line or f"thread_id={thread}".encode() in line]
    found = _RETRY.match(own[-1].decode(errors="replace")) if own else None
    if found is None:
        return None
    try:
        refused_at = seconds_of(found[1])
    except ValueError:
        return None
    state, reason, until = _judged(found, refused_at)
    if refused_at < since or now >= until + (_ASKED_SECONDS if state == BLOCKED and reason.startswith(LOGIN) else 0.0):
        return None
    return Status(state, reason, refused_at, f"{FILE}: {_MARK.decode().rstrip(': ')}")


def _judged(found: re.Match[str], refused_at: float) -> tuple[str, str, float]:
    """State, reason and when it asks again. A login must be refused twice: a token may just have to be renewed."""
    number, text = int(found[2]), found[5].strip()
    until = refused_at + float(found[3]) * _UNITS[found[4]]
    status = _STATUS.search(text)
    why = reasons.of_error(text, refused_at, int(status[1]) if status else None)
    refused = why.startswith(LOGIN)
    if refused and number > 1:
        return BLOCKED, why, until
    if not why or refused:
        return RUNNING, f"no answer: {reasons.retry_at(until)}: {text}", until
    return BLOCKED, reasons.limited(text, until), until
