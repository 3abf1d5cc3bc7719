"""What `decide` wants: orders, which the engine gives to a thread, and facts for the ledger. Values only."""

from __future__ import annotations

from typing import Any, NamedTuple

from mngr.mapreduce import attempt_end
from mngr.mapreduce.ledger import LedgerFact, fact

START = "start"  # make the agent
RESTART = "restart"  # start the agent of an attempt that has ended again, with its conversation
ADOPT = "adopt"  # note that the agent was made
TELL = "tell"
COLLECT = "collect"  # without an id, the agent does not exist any more
CHECK = "check"
STOP = "stop"  # the agent from which everything was collected


class Order(NamedTuple):
    """What to `do` for an attempt, and to which agent. `fresh` starts and restarts are not in the ledger yet; of others
    a killed orchestrator may have done half. A restart `counts` as a try unless the run itself stopped the agent.
    `what` it is told is `TASK` or a word of `attempt_end`, `because` of a problem."""

    do: str
    task: str
    number: int
    agent_id: str = ""
    fresh: bool = False
    counts: bool = True
    what: str = ""
    because: str = ""


Action = Order | LedgerFact
TASK = "task"
# What the ledger calls a message; it is noted before it is sent, so that it is sent at most once.
NOTED = {
    attempt_end.WARNING: "warned",
    attempt_end.STUCK: "stirred",
    attempt_end.NUDGE: "nudged",
    attempt_end.CONTINUE: "continued",
    attempt_end.RETURN: "returned",
}


def ended(task: str, number: int, reason: str, because: str, retry_at: float | None = None, **more: Any) -> LedgerFact:
    """The end of an attempt. Its task is tried again from `retry_at` on, if that is given."""
    retry = {"retry": retry_at is not None, "retry_at": retry_at or 0.0}
    return fact("ended", task=task, number=number, reason=reason, because=because, **retry, **more)
