"""What an agent answers to a message: known when it stops working, from its transcript."""

from __future__ import annotations

from typing import NamedTuple

from mngr import waiting
from mngr.actions import message, transcript, wait
from mngr.actions.message import Delivery
from mngr.actions.site import Site
from mngr.agents.state import BLOCKED, FAILED, STOPPED
from mngr.errors import MngrError

# A program writes its record a moment after it says that it is done.
_WRITTEN_SECONDS = 3.0


class Reply(NamedTuple):
    """`text` is all that the agent said since the message: empty when it only used tools. `reason` is that of its
    state: of one that is blocked, what it needs."""

    delivery: Delivery
    text: str
    reason: str


def ask(site: Site, agent_id: str, text: str, *, start: bool = False, timeout: float | None = None) -> Reply:
    """Deliver the message, and wait until the agent stops working, for whatever reason. Raises when nothing was
    delivered, when it ended without a good exit, and TimedOut; in the last two cases it has the message."""
    record = site.store.read(agent_id)
    before = transcript.read(site, agent_id)
    if not before.kept:
        raise MngrError(
            f"an agent of type `{record.kind}` keeps no transcript, so its answer is not known",
            hint=f"send it without `--wait-reply`; `mngr capture {record.name}` shows its screen",
        )
    known = len(_said(before.entries))
    delivery = message.deliver(site, agent_id, text, start=start)
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
