"""What the agent tells mngr: its events and its transcript, in the state directory. Without one, nothing."""

import os
import sys
from typing import Any

from mngr.agent import events
from mngr.agent.record import timestamp
from mngr.secrets import env_values, mask_fields
from mngr.system.files import append_line

RUNNING = "RUNNING"
LONGEST_TEXT = 20_000


class AgentLog:
    """Appends to `events.jsonl` and `transcript.jsonl`. A failure is said on the terminal once and ends no work."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._complained = False
        self._state = ("", "")
        try:  # the values of the variables that the user gave this agent
            with open(os.path.join(state_dir, "env"), encoding="utf-8", errors="surrogateescape") as file:
                self._secrets = env_values(file.read())
        except OSError:
            self._secrets = ()

    def event(self, type: str, **fields: Any) -> None:
        self._append(events.FILE, events.new_event("agent", type, **mask_fields(fields, self._secrets)))

    def state(self, state: str, reason: str = "") -> None:
        """Recorded when it differs from the last one."""
        if (state, reason) != self._state:
            self._state = (state, reason)
            self.event("state", state=state, reason=readable(reason))

    def prompt(self, data: bytes, begins_a_turn: bool) -> None:
        """A message came. Who is told so finds the turn that it began, not the wait before it."""
        import hashlib

        if begins_a_turn:
            self.state(RUNNING)
        self.event("prompt", text_sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        self.turn("user", text=data.decode(errors="replace"))

    def turn(self, role: str, **fields: Any) -> None:
        """A line of the transcript."""
        shown = {name: readable(value) if isinstance(value, str) else value for name, value in fields.items()}
        self._append("transcript.jsonl", {"timestamp": timestamp(), "role": role, **mask_fields(shown, self._secrets)})

    def _append(self, name: str, line: dict[str, Any]) -> None:
        try:
            if self._state_dir:
                append_line(os.path.join(self._state_dir, name), line)
        except OSError as error:
            if not self._complained:
                sys.stderr.write(f"cannot record in `{self._state_dir}`: {error.strerror}\n")
            self._complained = True


def shortened(text: str) -> str:
    """The end of a long text, with a note on what is missing."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"({len(text) - LONGEST_TEXT} characters left out)\n{text[-LONGEST_TEXT:]}"


def readable(text: str) -> str:
    """Bytes that are not UTF-8 were kept as lone surrogates; a JSON file must not hold them."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
