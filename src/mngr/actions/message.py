"""Deliver a message to an agent: once, whole, in order, with a log of every step."""

from __future__ import annotations

import os

from mngr import waiting
from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents.state import BLOCKED, STARTING
from mngr.errors import MngrError, TimedOut
from mngr.names import new_id
from mngr.records import NamedTuple
from mngr.tools.tmux import Pane

# What a terminal in canonical mode takes in one line; the rest of a longer one is dropped by the kernel.
LONGEST_LINE = 4095
_READY_SECONDS = 30.0
_ACKNOWLEDGE_SECONDS = 10.0


class Delivery(NamedTuple):
    """`acknowledged` is None when this kind of agent cannot tell."""

    message_id: str
    name: str
    acknowledged: bool | None
    blocked: bool


def deliver(fleet: Fleet, agent: Agent, text: str, *, start: bool = False) -> Delivery:
    """Paste the text into the agent's terminal, press Enter apart from it, and wait until the agent says that it has
    it, where the kind can say so. Never pasted twice. Messages of several senders come one after another."""
    text = clean(text)
    if start and not agent.status.alive:
        from mngr.actions import lifecycle

        lifecycle.start(fleet, agent.id)
        agent = find.agent(fleet, agent.id)
    turn = fleet.host.locked(f"{agent.id}.message", timeout=300, what=f"the terminal of `{agent.name}`")
    with turn as waited:
        if agent.state == STARTING or waited:
            agent = _past_start(fleet, agent)
        pane = _open_terminal(agent)
        _check_line_length(fleet, agent, pane, text)
        message_id = new_id("msg")
        fleet.store.log(agent.id, "message_queued", message_id=message_id, text=text)
        before = len(fleet.store.events(agent.id)) if agent.record.reports else 0
        fleet.tmux.paste(pane.pane_id, text, enter=not agent.record.reports)
        if agent.record.reports:
            fleet.tmux.press(pane.pane_id, "Enter")
        fleet.store.log(agent.id, "message_delivered", message_id=message_id)
        if not agent.record.reports:
            return Delivery(message_id, agent.name, None, blocked=False)
        _await_acknowledgement(fleet, agent, pane, text, before)
        fleet.store.log(agent.id, "message_acknowledged", message_id=message_id)
        return Delivery(message_id, agent.name, True, blocked=find.agent(fleet, agent.id).state == BLOCKED)


def clean(text: str) -> str:
    """The text with plain newlines. Control characters are refused: a terminal would act on them, not read them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not text:
        raise MngrError("the message is empty")
    bad = sorted({character for character in text if _is_control(character)})
    if bad:
        shown = ", ".join(f"0x{ord(character):02x}" for character in bad[:4])
        raise MngrError(
            f"the message holds control characters ({shown}) that a terminal would act on",
            hint="send the text in a file: `mngr push NAME:message.txt FILE`, and tell the agent to read it",
        )
    return text


def _is_control(character: str) -> bool:
    """Also halves of a character, which no terminal can be sent; odd bytes, as Python carries them, can be."""
    if character < " ":
        return character not in "\n\t"
    return character == "\x7f" or "\ud800" <= character < "\udc80" or "\udcff" < character <= "\udfff"


def _past_start(fleet: Fleet, agent: Agent) -> Agent:
    """The agent as it is now, or as soon as it is ready for input."""

    def ready() -> Agent | None:
        seen = find.agent(fleet, agent.id)
        return None if seen.state == STARTING else seen

    seen = waiting.wait_until(ready, timeout=_READY_SECONDS, every=0.05)
    if seen is None:
        raise TimedOut(
            f"`{agent.name}` was not ready within {_READY_SECONDS:g} s",
            hint=f"`mngr capture {agent.name}` shows its screen",
        )
    return seen


def _open_terminal(agent: Agent) -> Pane:
    if agent.status.alive and agent.pane is not None:
        return agent.pane
    reason = f" ({agent.status.reason})" if agent.status.reason else ""
    raise MngrError(
        f"`{agent.name}` is {agent.state}{reason} and cannot take a message",
        hint=f"`mngr message {agent.name} --start -m ...` starts it first",
    )


def _check_line_length(fleet: Fleet, agent: Agent, pane: Pane, text: str) -> None:
    """A program that reads lines would get only the first part of a very long one."""
    longest = max(len(line.encode("utf-8", "surrogateescape")) for line in text.split("\n"))
    if longest <= LONGEST_LINE:
        return
    try:
        line_by_line = fleet.host.reads_lines(pane.tty)
    except OSError as error:
        raise MngrError(f"the terminal of `{agent.name}` cannot be looked at: {error.strerror}") from None
    if line_by_line:
        raise MngrError(
            f"a line of {longest} bytes is too long: `{agent.name}` reads its terminal line by line, "
            f"and such a line holds at most {LONGEST_LINE} bytes",
            hint="break the line, or put the text into a file: `mngr push NAME:message.txt FILE`",
        )


def _await_acknowledgement(fleet: Fleet, agent: Agent, pane: Pane, text: str, before: int) -> None:
    """Wait for the agent's own note of this very text. A lost Enter is pressed again; the text never pasted again."""
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    deadline = waiting.Deadline(_ACKNOWLEDGE_SECONDS)
    presses = 0
    path = os.path.join(fleet.store.state_dir(agent.id), "events.jsonl")
    for _ in waiting.changes([path], deadline=deadline, at_least_every=2.0):
        for event in fleet.store.events(agent.id)[before:]:
            if event.get("type") == "prompt" and event.get("text_sha256") == digest:
                return
        if not find.agent(fleet, agent.id).status.alive:
            raise MngrError(
                f"`{agent.name}` ended before it took the message",
                hint=f"`mngr capture {agent.name}` shows its last screen",
            )
        if presses < 3 and deadline.left(_ACKNOWLEDGE_SECONDS) < _ACKNOWLEDGE_SECONDS - 2.0 * (presses + 1):
            fleet.tmux.press(pane.pane_id, "Enter")
            presses += 1
    raise TimedOut(
        f"`{agent.name}` did not acknowledge the message within {_ACKNOWLEDGE_SECONDS:g} s: it may be in its input box",
        hint=f"`mngr capture {agent.name}` shows its screen",
    )
