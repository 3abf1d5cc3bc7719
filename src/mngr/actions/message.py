"""Deliver a message to an agent: once, whole, in order, with a log of every step."""

from __future__ import annotations

from collections.abc import Callable

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.record import Record
from mngr.agent.state import BLOCKED, FAILED, STARTING, STOPPED, WAITING
from mngr.errors import MngrError, TimedOut
from mngr.named_tuples import NamedTuple
from mngr.names import new_id
from mngr.system import waiting
from mngr.system.tmux import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.programs.driver import AgentContext, Driver, Wording

# What a terminal in canonical mode takes in one line; the rest of a longer one is dropped by the kernel.
LONGEST_LINE = 4095
_READY_SECONDS = 30.0
# Programs on a busy machine answer nothing for many seconds, above all after their start.
_ACKNOWLEDGE_SECONDS = 30.0
# A program writes its record a moment after it says that it is done.
_WRITTEN_SECONDS = 3.0
# What tmux holds for a program is gone when that reads it; one that reads nothing for so long does not read.
_READS_SECONDS, _READ_ALL_SECONDS = 10.0, 60.0
_CONTROL = {"\x7f", *map(chr, range(32))}.difference("\n\t")


class Delivery(NamedTuple):
    """`acknowledged` is None when this kind of agent cannot tell."""

    message_id: str
    name: str
    acknowledged: bool | None
    blocked: bool


class Reply(NamedTuple):
    """`text` is all that the agent said since the message: empty when it only used tools. `reason` is that of its
    state: of one that is blocked, what it needs."""

    delivery: Delivery
    text: str
    reason: str


def _nobody(text: str) -> None:
    """Tells nobody."""


def deliver(
    site: Site, agent_id: str, text: str, *, start: bool = False, tell: Callable[[str], None] = _nobody
) -> Delivery:
    """Give the text to the agent, and wait until its program has it in its own record, where the kind keeps one. Never
    given twice. Messages of several senders come one after another. One that waits for its turn, or was typed, while
    the agent asks something is held until that is answered; the sender is told."""
    text = clean(text)
    record = site.store.read(agent_id)
    if record.spec.one_shot:
        raise MngrError(
            f"`{record.name}` does one task and takes no messages", hint="an agent made without `--one-shot` does"
        )
    known = _driver(record)
    wording = known.wording(text) if known is not None else None
    if start:
        from mngr.actions import lifecycle

        lifecycle.start(site, agent_id)
    guards = site.store.state_dir(agent_id)
    what, seconds = f"the terminal of `{record.name}`", known.ready_seconds if known is not None else 0.0
    with site.host.locked(f"{agent_id}.message", timeout=300, what=what, guards=guards) as waited:
        agent, pane = _ready(site, record, _READY_SECONDS + seconds)
        if _may_ask(agent):
            from mngr.actions import question

            if question.works(agent) or (waited and question.asked(agent)):
                question.hold(site, agent, tell)
                agent, pane = _ready(site, record, _READY_SECONDS + seconds)
            question.refuse_blocked(agent)
        _check_line_length(site, agent, pane, text)
        message_id = new_id("msg")
        site.store.log(agent_id, "message_queued", message_id=message_id, text=text, **changes(wording))
        if known is None or wording is None:
            before = site.host.unread(pane.tty)
            site.tmux.paste(pane.pane_id, text, enter=True)
            _await_taken(site, agent, pane, before, text)
            site.store.log(agent_id, "message_delivered", message_id=message_id)
            return Delivery(message_id, record.name, None, blocked=False)
        place = site.place(agent.record, pane)
        mark = known.mark(place)
        typed = not known.deliver(place, wording.sent)
        if typed:
            before = site.host.unread(pane.tty)
            _type(site, known, agent, place, pane, wording.sent, tell)
            if known.received(place, mark) is None:
                _await_taken(site, agent, pane, before, wording.sent)
        return _acknowledged(site, known, place, wording, message_id, mark=mark, typed=typed, tell=tell)


def first(site: Site, agent_id: str, text: str) -> Delivery:
    """See to the message that an agent was made with: wait until a program that began with it acknowledges it; send it
    to any other."""
    text = clean(text)
    record = site.store.read(agent_id)
    known = _driver(record)
    if known is None or not known.takes_prompt(record):
        return deliver(site, agent_id, text)
    queued = next((event for event in site.store.events(agent_id) if event.get("type") == "message_queued"), {})
    message_id = str(queued.get("message_id"))
    return _acknowledged(site, known, site.place(record), known.wording(text), message_id)


def ask(
    site: Site,
    agent_id: str,
    text: str,
    *,
    start: bool = False,
    timeout: float | None = None,
    tell: Callable[[str], None] = _nobody,
) -> Reply:
    """Deliver the message, and wait until the agent stops working, for whatever reason. Raises when nothing was
    delivered, when it ended without a good exit, and TimedOut; in the last two cases it has the message."""
    from mngr.actions import transcript, wait

    record = site.store.read(agent_id)
    before = transcript.read(site, agent_id)
    if not before.kept:
        raise MngrError(
            f"an agent of type `{record.spec.kind}` keeps no transcript, so its answer is not known",
            hint=f"send it without `--wait-reply`; `mngr capture {record.name}` shows its screen",
        )
    known = len(_said(before.entries))
    delivery = deliver(site, agent_id, text, start=start, tell=tell)
    (rested,) = wait.until(site, [agent_id], wait.RESTING, any_of=False, timeout=timeout)
    if rested.state in (FAILED, STOPPED):
        raise MngrError(
            f"`{record.name}` got the message, and is {rested.state} ({rested.status.reason})",
            hint=f"`mngr transcript {record.name}` has what it said",
        )

    def written() -> bool:
        entries = transcript.read(site, agent_id).entries
        return len(_said(entries)) > known and entries[-1]["role"] == "assistant"

    waiting.wait_until(written, timeout=0 if rested.state == BLOCKED else _WRITTEN_SECONDS, every=0.05)
    said = _said(transcript.read(site, agent_id).entries)[known:]
    delivery = delivery._replace(blocked=rested.state == BLOCKED)
    return Reply(delivery, "\n".join(said), rested.status.reason)


def _said(entries: list[dict[str, object]]) -> list[str]:
    return [str(entry["text"]) for entry in entries if entry["role"] == "assistant"]


def _acknowledged(
    site: Site,
    known: Driver,
    place: AgentContext,
    wording: Wording,
    message_id: str,
    *,
    mark: int = 0,
    typed: bool | None = None,
    tell: Callable[[str], None] = _nobody,
) -> Delivery:
    """Log that the program was given the message, and wait until the program's own record has it, if it keeps one.
    `typed` is None for the message that the program began with."""
    record = place.record
    site.store.log(record.id, "message_delivered", message_id=message_id)
    if known.received(place, mark) is None:
        return Delivery(message_id, record.name, None, blocked=False)
    _await_acknowledgement(
        site,
        record,
        lambda: any(known.same(wording.recorded, one) for one in known.received(place, mark) or ()),
        typed=bool(typed),
        seconds=_ACKNOWLEDGE_SECONDS + (known.ready_seconds if typed is None else 0.0),
        tell=tell,
    )
    site.store.log(record.id, "message_acknowledged", message_id=message_id)
    return Delivery(message_id, record.name, True, blocked=find.agent(site, record.id).state == BLOCKED)


def changes(wording: Wording | None) -> dict[str, str]:
    """What a message's event says about what the program makes of its text."""
    return {"altered": wording.altered} if wording is not None and wording.altered else {}


def _driver(record: Record) -> Driver | None:
    if not record.spec.driver and not record.spec.reports:
        return None
    from mngr.programs import driver

    return driver.of(record)


def _type(
    site: Site,
    known: Driver,
    agent: AgentView,
    place: AgentContext,
    pane: Pane,
    text: str,
    tell: Callable[[str], None],
) -> None:
    """Bracketed paste, and Enter apart from it. What stands in the input box, such as a message that a killed `mngr`
    typed and did not send, is cleared first, and noted; but while it works the key for that would end the work."""
    rests = agent.state in (WAITING, BLOCKED)  # BLOCKED by what `refuse_blocked` lets pass: its turn failed
    if agent.record.spec.driver and rests and (occupied := known.occupied(place.screen())):
        site.store.log(agent.id, "input_cleared", text=occupied)
        site.tmux.press(pane.pane_id, "C-c")
    site.tmux.paste(pane.pane_id, text)
    if agent.record.spec.driver and _may_ask(now := find.agent(site, agent.id)):  # at this very moment
        from mngr.actions import question

        if agent.record.spec.driver == "screen":  # it has no queue, and proves nothing
            question.refuse_blocked(now)
        elif question.asked(now):
            question.hold(site, now, tell, typed=True)
    site.tmux.press(pane.pane_id, "Enter")


def _await_taken(site: Site, agent: AgentView, pane: Pane, before: int, text: str) -> None:
    """Wait until the terminal has all of the text and the Enter; `before` are the bytes that nobody had read before.
    What does not fit there is held by tmux until the program reads, and lost if one of them ends. Raise TimedOut when
    the program does not read."""
    fits = before + len(text.encode("utf-8", "surrogateescape")) < LONGEST_LINE
    if fits and not before:
        return
    patience, last = waiting.Deadline(_READS_SECONDS), -1

    def taken() -> bool:
        """Whether all of it is read, or nothing more of it comes."""
        nonlocal patience, last
        unread = site.host.unread(pane.tty)
        if unread != last:
            patience, last = waiting.Deadline(_READS_SECONDS), unread
        if not unread or (fits and unread != before):
            last = 0
        return not last or patience.passed

    if not waiting.wait_until(taken, timeout=_READ_ALL_SECONDS, every=0.02) or last:
        raise TimedOut(
            f"`{agent.name}` does not read its terminal, which holds only a part of the message",
            hint=f"`mngr capture {agent.name}` shows its screen; when it reads, it gets the rest: do not send it again",
        )


def _may_ask(agent: AgentView) -> bool:
    """Whether `question` has to look at it: what most agents do not need is not loaded."""
    return bool(agent.record.spec.driver) and (agent.state == BLOCKED or agent.record.spec.driver == "screen")


def clean(text: str) -> str:
    """The text with plain newlines. Control characters are refused: a terminal would act on them, not read them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    if not text:
        raise MngrError("the message is empty")
    # Halves of a character are refused too: no terminal can be sent them. Odd bytes, as Python carries them, it can.
    bad = sorted({one for one in text if one in _CONTROL or "\ud800" <= one < "\udc80" or "\udcff" < one <= "\udfff"})
    if bad:
        shown = ", ".join(f"0x{ord(character):02x}" for character in bad[:4])
        raise MngrError(
            f"the message holds control characters ({shown}) that a terminal would act on",
            hint="send the text in a file: `mngr push NAME:message.txt FILE`, and tell the agent to read it",
        )
    return text


def _ready(site: Site, record: Record, seconds: float) -> tuple[AgentView, Pane]:
    """The agent and its terminal, as soon as it takes input."""

    def past_start() -> AgentView | None:
        seen = find.agent(site, record.id)
        return None if seen.state == STARTING else seen

    agent = waiting.wait_until(past_start, timeout=seconds, every=0.05)
    if agent is None:
        raise TimedOut(
            f"`{record.name}` was not ready within {seconds:g} s",
            hint=f"`mngr capture {record.name}` shows its screen",
        )
    if agent.status.alive and agent.pane is not None:
        return agent, agent.pane
    agent.require_known()
    reason = f" ({agent.status.reason})" if agent.status.reason else ""
    raise MngrError(
        f"`{agent.name}` is {agent.state}{reason} and cannot take a message",
        hint=f"`mngr message {agent.name} --start -m ...` starts it first",
    )


def _check_line_length(site: Site, agent: AgentView, pane: Pane, text: str) -> None:
    """A program that reads lines would get only the first part of a very long one."""
    longest = max(len(line.encode("utf-8", "surrogateescape")) for line in text.split("\n"))
    if longest <= LONGEST_LINE:
        return
    try:
        line_by_line = site.host.reads_lines(pane.tty)
    except OSError as error:
        raise MngrError(f"the terminal of `{agent.name}` cannot be looked at: {error.strerror}") from None
    if line_by_line:
        raise MngrError(
            f"a line of {longest} bytes is too long: `{agent.name}` reads its terminal line by line, "
            f"and such a line holds at most {LONGEST_LINE} bytes",
            hint="break the line, or put the text into a file: `mngr push NAME:message.txt FILE`",
        )


def _await_acknowledgement(
    site: Site,
    record: Record,
    taken: Callable[[], bool],
    *,
    typed: bool,
    seconds: float,
    tell: Callable[[str], None],
    held: bool = False,
) -> None:
    """Wait for the program's own note of this very text. A lost Enter is pressed again; the text never given again. If
    the program asks something meanwhile, that is waited for, once: an Enter would be the answer."""
    deadline = waiting.Deadline(seconds)
    presses = 0
    for _ in waiting.changes([site.store.state_dir(record.id)], deadline=deadline, at_least_every=1.0):
        if taken():
            return
        now = find.agent(site, record.id)
        if (now.state == BLOCKED or not now.status.alive) and taken():  # and it was over at once
            return
        if not now.status.alive:
            raise MngrError(
                f"`{record.name}` ended before it took the message",
                hint=f"`mngr capture {record.name}` shows its last screen",
            )
        if _may_ask(now):
            from mngr.actions import question

            if question.asked(now) and typed and not held:
                question.hold(site, now, tell, typed=True, until=taken)
                _await_acknowledgement(site, record, taken, typed=True, seconds=seconds, tell=tell, held=True)
                return
            question.refuse_blocked(now, typed=typed)
        if typed and presses < 3 and deadline.left(seconds) < seconds - 2.0 * (presses + 1) and now.pane is not None:
            site.tmux.press(now.pane.pane_id, "Enter")
            presses += 1
    raise TimedOut(
        f"`{record.name}` did not acknowledge the message within {seconds:g} s: it may be in its input box",
        hint=f"`mngr capture {record.name}` shows its screen",
    )
