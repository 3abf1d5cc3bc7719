"""What an agent answers to a message: known when it stops working, from its transcript."""

from __future__ import annotations

from mngr import waiting
from mngr.actions import message, transcript, wait
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.actions.message import Delivery
from mngr.agents.state import BLOCKED, FAILED, STOPPED
from mngr.errors import MngrError
from mngr.records import NamedTuple

# A program writes its record a moment after it says that it is done.
_WRITTEN_SECONDS = 3.0


class Reply(NamedTuple):
    """`text` is all that the agent said since the message: empty when it only used tools. `reason` is that of its
    state: of one that is blocked, what it needs."""

    delivery: Delivery
    text: str
    reason: str


def ask(fleet: Fleet, agent: Agent, text: str, *, start: bool = False, timeout: float | None = None) -> Reply:
    """Deliver the message, and wait until the agent stops working, for whatever reason. Raises when nothing was
    delivered, when it ended without a good exit, and TimedOut; in the last two cases it has the message."""
    before = transcript.read(fleet, agent)
    if not before.kept:
        raise MngrError(
            f"an agent of type `{agent.record.kind}` keeps no transcript, so that its answer cannot be told",
            hint=f"send it without `--wait-reply`; `mngr capture {agent.name}` shows its screen",
        )
    known = len(_said(before.entries))
    delivery = message.deliver(fleet, agent, text, start=start)
    (rested,) = wait.until(fleet, [agent.id], wait.RESTING, any_of=False, timeout=timeout)
    if rested.state in (FAILED, STOPPED):
        raise MngrError(
            f"`{agent.name}` got the message, and is {rested.state} ({rested.status.reason})",
            hint=f"`mngr transcript {agent.name}` has what it said",
        )

    def written() -> bool:
        entries = transcript.read(fleet, agent).entries
        return len(_said(entries)) > known and entries[-1]["role"] == "assistant"

    waiting.wait_until(written, timeout=0 if rested.state == BLOCKED else _WRITTEN_SECONDS, every=0.05)
    said = _said(transcript.read(fleet, agent).entries)[known:]
    delivery = delivery._replace(blocked=rested.state == BLOCKED)
    return Reply(delivery, "\n".join(said), rested.status.reason)


def _said(entries: list[dict[str, object]]) -> list[str]:
    return [str(entry["text"]) for entry in entries if entry["role"] == "assistant"]
