"""What `decide` wants done for an attempt; the engine does it, or gives it to a thread. Values only."""

from __future__ import annotations

from typing import NamedTuple

from mngr.mapreduce import attempt_end
from mngr.mapreduce.ledger import LedgerFact


class Start(NamedTuple):
    """Make the agent. `fresh` attempts have no intent in the ledger yet; of others a half-made agent may be there."""

    task: str
    number: int
    agent: str
    fresh: bool


class Restart(NamedTuple):
    """Start the agent of an attempt that has ended again, with its conversation. `fresh` ones are not noted yet; they
    count as a try unless it was the run that stopped the agent."""

    task: str
    number: int
    fresh: bool
    counts: bool = True


class Adopt(NamedTuple):
    """Note that the agent of this attempt was made."""

    task: str
    number: int
    agent_id: str


class Tell(NamedTuple):
    """Send a message: `what` is `task`, or a word of `attempt_end`."""

    task: str
    number: int
    what: str


class End(NamedTuple):
    task: str
    number: int
    reason: str
    because: str
    retry: bool = False
    retry_at: float = 0.0


class Collect(NamedTuple):
    """`agent_id` is empty when the agent does not exist any more."""

    task: str
    number: int
    agent_id: str


class CheckWork(NamedTuple):
    task: str
    number: int


class Stop(NamedTuple):
    """Stop an agent from which everything was collected."""

    task: str
    number: int
    agent_id: str


# A fact is only noted in the ledger.
Action = Start | Restart | Adopt | Tell | End | Collect | CheckWork | Stop | LedgerFact
TASK = "task"
# What the ledger calls a message; it is noted before it is sent, so that it is sent at most once.
NOTED = {
    attempt_end.WARNING: "warned",
    attempt_end.STUCK: "stirred",
    attempt_end.NUDGE: "nudged",
    attempt_end.CONTINUE: "continued",
    attempt_end.RETURN: "returned",
}
