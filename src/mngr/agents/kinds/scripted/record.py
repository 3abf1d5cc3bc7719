"""What the agent tells mngr: its events and its transcript, in the state directory. Without one, nothing."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from mngr.agents import events
from mngr.agents.record import timestamp
from mngr.files import append_line
from mngr.secrets import env_values, mask_fields

RUNNING = "RUNNING"
LONGEST_TEXT = 20_000


class AgentLog:
    """Appends to `events.jsonl` and `transcript.jsonl`. A failure is said on the terminal once and ends no work."""

    def __init__(self, state_dir: str, complain: Callable[[str], None]) -> None:
        self._state_dir = state_dir
        self._complain = complain
        self._state = ("", "")
        self._secrets = _secrets(state_dir)

    def ready(self) -> None:
        self._event("ready")

    def state(self, state: str, reason: str = "") -> None:
        """Recorded when it differs from the last one."""
        if (state, reason) != self._state:
            self._state = (state, reason)
            self._event("state", state=state, reason=readable(reason))

    def prompt(self, data: bytes, begins_a_turn: bool) -> None:
        """A message came. Who is told so finds the turn that it began, not the wait before it."""
        import hashlib

        if begins_a_turn:
            self.state(RUNNING)
        self._event("prompt", text_sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
        self.turn("user", data.decode(errors="replace"))

    def usage(self, given: str, counts: Sequence[int], cost_usd: float | None, model: str) -> None:
        """`counts` are tokens: input, output, read from a cache, written to it."""
        read, written, cache_read, cache_write = counts
        self._event(
            "usage",
            input_tokens=read,
            output_tokens=written,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            cost_usd=cost_usd,
            model=model,
        )
        self.turn("usage", given)

    def tool_call(self, tool: str, input: str, text: str | None = None) -> None:
        extra = {} if text is None else {"text": readable(shortened(text))}
        self._transcript({"role": "tool_call", "tool": tool, "input": readable(input), **extra})

    def tool_result(self, tool: str, text: str, exit_code: int) -> None:
        line = {"role": "tool_result", "tool": tool, "text": readable(shortened(text)), "exit_code": exit_code}
        self._transcript(line)

    def turn(self, role: str, text: str) -> None:
        self._transcript({"role": role, "text": readable(text)})

    def _event(self, type: str, **fields: Any) -> None:
        if self._state_dir:
            event = events.new_event("agent", type, **mask_fields(fields, self._secrets))
            self._attempt(lambda: events.append(self._state_dir, event))

    def _transcript(self, line: dict[str, Any]) -> None:
        if self._state_dir:
            path = os.path.join(self._state_dir, "transcript.jsonl")
            masked = {"timestamp": timestamp(), **mask_fields(line, self._secrets)}
            self._attempt(lambda: append_line(path, masked))

    def _attempt(self, append: Callable[[], None]) -> None:
        try:
            append()
        except OSError as error:
            complain, self._complain = self._complain, lambda text: None
            complain(f"cannot record in `{self._state_dir}`: {error.strerror}")


def _secrets(state_dir: str) -> tuple[str, ...]:
    """The values of the variables that the user gave this agent."""
    try:
        with open(os.path.join(state_dir, "env"), encoding="utf-8", errors="surrogateescape") as file:
            return env_values(file.read())
    except OSError:
        return ()


def shortened(text: str) -> str:
    """The end of a long text, with a note on what is missing."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"({len(text) - LONGEST_TEXT} characters left out)\n{text[-LONGEST_TEXT:]}"


def readable(text: str) -> str:
    """Bytes that are not UTF-8 were kept as lone surrogates; a JSON file must not hold them."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
