"""Deliver a message to an agent: once, whole, in order, with a log of every step."""

from __future__ import annotations

from collections.abc import Callable

from mngr import waiting
from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents.state import BLOCKED, STARTING, WAITING
from mngr.errors import MngrError, TimedOut
from mngr.names import new_id
from mngr.records import TYPE_CHECKING, NamedTuple
from mngr.tools.tmux import Pane

if TYPE_CHECKING:
    from mngr.agents.kinds.driver import Driver, Place, Wording

# What a terminal in canonical mode takes in one line; the rest of a longer one is dropped by the kernel.
LONGEST_LINE = 4095
_READY_SECONDS = 30.0
# Programs on a busy machine answer nothing for many seconds, above all after their start.
_ACKNOWLEDGE_SECONDS = 30.0


class Delivery(NamedTuple):
    """`acknowledged` is None when this kind of agent cannot tell."""

    message_id: str
    name: str
    acknowledged: bool | None
    blocked: bool


def deliver(fleet: Fleet, agent: Agent, text: str, *, start: bool = False) -> Delivery:
    """Give the text to the agent, and wait until its program has it in its own record, where the kind keeps one. Never
    given twice. Messages of several senders come one after another."""
    text = clean(text)
    if agent.record.one_shot:
        raise MngrError(
            f"`{agent.name}` does one task and takes no messages", hint="an agent made without `--one-shot` does"
        )
    known = _driver(agent)
    wording = known.wording(text) if known is not None else None
    if start and not agent.status.alive:
        from mngr.actions import lifecycle

        lifecycle.start(fleet, agent.id)
        agent = find.agent(fleet, agent.id)
    guards = fleet.store.state_dir(agent.id)
    turn = fleet.host.locked(f"{agent.id}.message", timeout=300, what=f"the terminal of `{agent.name}`", guards=guards)
    with turn as waited:
        if agent.state == STARTING or waited or agent.record.driver:  # whose state decides what is done
            agent = _past_start(fleet, agent, _READY_SECONDS + (known.ready_seconds if known is not None else 0.0))
        pane = _open_terminal(agent)
        _refuse_blocked(agent)
        _check_line_length(fleet, agent, pane, text)
        message_id = new_id("msg")
        fleet.store.log(agent.id, "message_queued", message_id=message_id, text=text, **changes(wording))
        if known is None or wording is None:
            fleet.tmux.paste(pane.pane_id, text, enter=True)
            fleet.store.log(agent.id, "message_delivered", message_id=message_id)
            return Delivery(message_id, agent.name, None, blocked=False)
        place = fleet.place(agent.record, pane)
        mark = known.mark(place)
        typed = not known.deliver(place, wording.sent)
        if typed:
            _type(fleet, agent, pane, _occupied(known, agent, place), wording.sent)
        fleet.store.log(agent.id, "message_delivered", message_id=message_id)
        if known.received(place, mark) is None:
            return Delivery(message_id, agent.name, None, blocked=False)
        _await_acknowledgement(
            fleet,
            agent,
            lambda: wording.recorded in (known.received(place, mark) or ()),
            typed=typed,
        )
        fleet.store.log(agent.id, "message_acknowledged", message_id=message_id)
        return Delivery(message_id, agent.name, True, blocked=find.agent(fleet, agent.id).state == BLOCKED)


def first(fleet: Fleet, agent: Agent, text: str) -> Delivery:
    """See to the message that an agent was made with: one whose program began with it has to acknowledge it, to any
    other it is sent."""
    text = clean(text)
    known = _driver(agent)
    if known is None or not known.takes_prompt(agent.record):
        return deliver(fleet, agent, text)
    queued = next(event for event in fleet.store.events(agent.id) if event.get("type") == "message_queued")
    message_id = str(queued.get("message_id"))
    place = fleet.place(agent.record)
    recorded = known.wording(text).recorded
    fleet.store.log(agent.id, "message_delivered", message_id=message_id)
    if known.received(place, None) is None:
        return Delivery(message_id, agent.name, None, blocked=False)
    seconds = known.ready_seconds + 30.0
    _await_acknowledgement(
        fleet, agent, lambda: recorded in (known.received(place, None) or ()), typed=False, seconds=seconds
    )
    fleet.store.log(agent.id, "message_acknowledged", message_id=message_id)
    return Delivery(message_id, agent.name, True, blocked=find.agent(fleet, agent.id).state == BLOCKED)


def changes(wording: Wording | None) -> dict[str, str]:
    """What a message's event says about what the program makes of its text."""
    return {"altered": wording.altered} if wording is not None and wording.altered else {}


def _driver(agent: Agent) -> Driver | None:
    if not agent.record.driver and not agent.record.reports:
        return None
    from mngr.agents.kinds import driver

    return driver.of(agent.record)


def _refuse_blocked(agent: Agent, *, typed: bool = True) -> None:
    """A program that asks something would take the text, and the Enter, for the answer. One of our own form is meant to
    be answered so; and who waits for a rate limit, or could not log in to its model, takes messages, unless its screen
    asks for the login."""
    reason = agent.status.reason
    if agent.state != BLOCKED or not agent.record.driver:
        return
    from mngr.agents.reasons import is_account, is_rate_limit

    if is_rate_limit(reason) or (is_account(reason) and "screen" not in agent.status.evidence):
        return
    if not typed:
        raise MngrError(
            f"`{agent.name}` is BLOCKED ({reason}), and has not begun with the message",
            hint=f"`mngr connect {agent.name}` to answer; its program has the message and goes on with it then",
        )
    raise MngrError(
        f"`{agent.name}` is BLOCKED ({reason}), and would take the message for the answer",
        hint=f"`mngr connect {agent.name}` to answer, then send it again",
    )


def _occupied(known: Driver, agent: Agent, place: Place) -> str:
    """What stands in the way of a message, such as one that a killed `mngr` typed and did not send. While it works, the
    key that clears the box would end the work."""
    rests = agent.state in (WAITING, BLOCKED)  # BLOCKED by what `_refuse_blocked` lets pass: its turn failed
    return known.occupied(place.screen()) if agent.record.driver and rests else ""


def _type(fleet: Fleet, agent: Agent, pane: Pane, occupied: str, text: str) -> None:
    """Bracketed paste, and Enter apart from it. What stands in the input box is cleared first, and noted."""
    if occupied:
        fleet.store.log(agent.id, "input_cleared", text=occupied)
        fleet.tmux.press(pane.pane_id, "C-c")
    fleet.tmux.paste(pane.pane_id, text)
    if agent.record.driver:
        _refuse_blocked(find.agent(fleet, agent.id))  # it may have asked something at this very moment
    fleet.tmux.press(pane.pane_id, "Enter")


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


def _past_start(fleet: Fleet, agent: Agent, seconds: float) -> Agent:
    """The agent as it is now, or as soon as it is ready for input."""

    def ready() -> Agent | None:
        seen = find.agent(fleet, agent.id)
        return None if seen.state == STARTING else seen

    seen = waiting.wait_until(ready, timeout=seconds, every=0.05)
    if seen is None:
        raise TimedOut(
            f"`{agent.name}` was not ready within {seconds:g} s",
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


def _await_acknowledgement(
    fleet: Fleet, agent: Agent, taken: Callable[[], bool], *, typed: bool, seconds: float = _ACKNOWLEDGE_SECONDS
) -> None:
    """Wait for the program's own note of this very text. A lost Enter is pressed again; the text never given again."""
    deadline = waiting.Deadline(seconds)
    presses = 0
    for _ in waiting.changes([fleet.store.state_dir(agent.id)], deadline=deadline, at_least_every=1.0):
        if taken():
            return
        now = find.agent(fleet, agent.id)
        if (now.state == BLOCKED or not now.status.alive) and taken():  # and it was over at once
            return
        if not now.status.alive:
            raise MngrError(
                f"`{agent.name}` ended before it took the message",
                hint=f"`mngr capture {agent.name}` shows its last screen",
            )
        if agent.record.driver:
            _refuse_blocked(now, typed=typed)
        if typed and presses < 3 and deadline.left(seconds) < seconds - 2.0 * (presses + 1) and now.pane is not None:
            fleet.tmux.press(now.pane.pane_id, "Enter")
            presses += 1
    raise TimedOut(
        f"`{agent.name}` did not acknowledge the message within {seconds:g} s: it may be in its input box",
        hint=f"`mngr capture {agent.name}` shows its screen",
    )
