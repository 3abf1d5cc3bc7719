"""What `decide` wants done: each is noted, or given to a thread, by the engine. Values only."""

from __future__ import annotations

from mngr.mapreduce import ending
from mngr.mapreduce.breaker import Cluster
from mngr.mapreduce.concurrency import Change
from mngr.records import NamedTuple


class Start(NamedTuple):
    """Make the agent. `fresh` attempts have no intent in the ledger yet; of others a half-made agent may be there."""

    task: str
    number: int
    agent: str
    fresh: bool


class Restart(NamedTuple):
    """Start the agent of an attempt that has ended again, with its conversation. `fresh` ones are not noted yet; they
    count as a try unless it was the run that stopped it."""

    task: str
    number: int
    fresh: bool
    counts: bool = True


class Adopt(NamedTuple):
    """Note that the agent of this attempt was made."""

    task: str
    number: int
    agent_id: str


class Saw(NamedTuple):
    """Note the state in which the agent is now; `until` is when it can continue, as far as it says."""

    task: str
    number: int
    state: str
    reason: str
    until: float = 0.0


class Back(NamedTuple):
    """Note that an agent that was called lost is there again."""

    task: str
    number: int


class Tell(NamedTuple):
    """Send a message: `what` is `task`, or a word of `ending`."""

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
    """`agent_id` is empty when there is no such agent any more."""

    task: str
    number: int
    agent_id: str


class Check(NamedTuple):
    task: str
    number: int


class Stop(NamedTuple):
    """Stop an agent from which everything was collected."""

    task: str
    number: int
    agent_id: str


class Pause(NamedTuple):
    """Note what a person has to see to; empty when it is no longer so."""

    because: str


class Wait(NamedTuple):
    """Note that all agents wait for a limit."""

    until: float
    because: str


Action = Start | Restart | Adopt | Saw | Back | Tell | End | Collect | Check | Stop | Pause | Wait | Change | Cluster
TASK = "task"
# What the ledger calls a message; it is noted before it is sent, so that it is sent at most once.
NOTED = {
    ending.WARNING: "warned",
    ending.STUCK: "stirred",
    ending.NUDGE: "nudged",
    ending.CONTINUE: "continued",
    ending.RETURN: "returned",
}
