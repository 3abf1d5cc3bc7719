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

# What a terminal in canonical mode takes in one line; the rest of a longer one is dropped by the kernel.
LONGEST_LINE = 4095
_READY_SECONDS = 30.0
_ACKNOWLEDGE_SECONDS = 10.0


class Delivery(NamedTuple):
    """`acknowledged` is None when this kind of agent cannot tell."""

    message_id: str
    name: str
    acknowledged: bool | None
    blocked_by: str = ""


def deliver(fleet: Fleet, agent_id: str, text: str, *, start: bool = False) -> Delivery:
    """Paste the text into the agent's terminal, press Enter apart from it, and wait until the agent says that it has
    it, where the kind can say so. Never pasted twice. Messages of several senders come one after another."""
    text = clean(text)
    if start and not find.agent(fleet, agent_id).status.alive:
        from mngr.actions import lifecycle

        lifecycle.start(fleet, agent_id)
    with fleet.store.host.locked(f"{agent_id}.message", timeout=300, what="the agent's terminal"):
        agent = _ready(fleet, agent_id)
        assert agent.pane is not None
        _check_line_length(fleet, agent, text)
        blocked_by = agent.status.reason if agent.state == BLOCKED else ""
        message_id = new_id("msg")
        fleet.store.log(agent_id, "message_queued", message_id=message_id, text=text)
        before = len(fleet.store.events(agent_id)) if agent.record.reports else 0
        fleet.tmux.paste(agent.pane.pane_id, text)
        fleet.tmux.press(agent.pane.pane_id, "Enter")
        fleet.store.log(agent_id, "message_delivered", message_id=message_id)
        if not agent.record.reports:
            return Delivery(message_id, agent.name, None, blocked_by)
        _await_acknowledgement(fleet, agent, text, before)
        fleet.store.log(agent_id, "message_acknowledged", message_id=message_id)
        return Delivery(message_id, agent.name, True, "")


def clean(text: str) -> str:
    """The text with plain newlines. Control characters are refused: a terminal would act on them, not read them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not text:
        raise MngrError("the message is empty")
    bad = sorted(
        {character for character in text if (character < " " and character not in "\n\t") or character == "\x7f"}
    )
    if bad:
        shown = ", ".join(f"0x{ord(character):02x}" for character in bad[:4])
        raise MngrError(
            f"the message holds control characters ({shown}) that a terminal would act on",
            hint="send the text in a file: `mngr push NAME:message.txt FILE`, and tell the agent to read it",
        )
    return text


def _ready(fleet: Fleet, agent_id: str) -> Agent:
    def past_start() -> Agent | None:
        agent = find.agent(fleet, agent_id)
        return None if agent.state == STARTING else agent

    agent = waiting.wait_until(past_start, timeout=_READY_SECONDS, every=0.05)
    if agent is None:
        raise TimedOut(
            f"`{find.agent(fleet, agent_id).name}` was not ready within {_READY_SECONDS:g} s",
            hint="`mngr capture` shows its screen",
        )
    if not agent.status.alive or agent.pane is None:
        reason = f" ({agent.status.reason})" if agent.status.reason else ""
        raise MngrError(
            f"`{agent.name}` is {agent.state}{reason} and cannot take a message",
            hint=f"`mngr message {agent.name} --start -m ...` starts it first",
        )
    return agent


def _check_line_length(fleet: Fleet, agent: Agent, text: str) -> None:
    """A program that reads lines would get only the first part of a very long one."""
    assert agent.pane is not None
    longest = max(len(line.encode("utf-8", "surrogateescape")) for line in text.split("\n"))
    if longest <= LONGEST_LINE:
        return
    try:
        line_by_line = fleet.host.reads_lines(agent.pane.tty)
    except OSError as error:
        raise MngrError(f"the terminal of `{agent.name}` cannot be looked at: {error.strerror}") from None
    if line_by_line:
        raise MngrError(
            f"a line of {longest} bytes is too long: `{agent.name}` reads its terminal line by line, "
            f"and such a line holds at most {LONGEST_LINE} bytes",
            hint="break the line, or put the text into a file: `mngr push NAME:message.txt FILE`",
        )


def _await_acknowledgement(fleet: Fleet, agent: Agent, text: str, before: int) -> None:
    """Wait for the agent's own note of this very text. A lost Enter is pressed again; the text never pasted again."""
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    deadline = waiting.Deadline(_ACKNOWLEDGE_SECONDS)
    presses = 0
    path = os.path.join(fleet.store.state_dir(agent.id), "events.jsonl")
    assert agent.pane is not None
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
            fleet.tmux.press(agent.pane.pane_id, "Enter")
            presses += 1
    raise TimedOut(
        f"`{agent.name}` did not acknowledge the message within {_ACKNOWLEDGE_SECONDS:g} s: it may be in its input box",
        hint=f"`mngr capture {agent.name}` shows its screen",
    )
