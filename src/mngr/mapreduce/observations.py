"""See the agents of a run: their states, whether they wrote an outcome, what they used. Changes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mngr.actions import outcome, transcript
from mngr.actions import usage as spending
from mngr.agent.record import CorruptRecord
from mngr.agent.state import FAILED, STOPPED, UNKNOWN
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce import task_names, task_table
from mngr.mapreduce.attempt_end import Observation
from mngr.mapreduce.state import Attempt, AttemptUsage, RunState, TaskState
from mngr.transfer import usage as usage_report

if TYPE_CHECKING:
    from mngr.actions.site import Site
    from mngr.mapreduce.host_pool import HostPool

# What no event tells (a process killed with its terminal) is looked for this often.
_SECONDS_BETWEEN_LOOKS = 5.0
# Some states are known only once they have lasted a while, and no event tells that they have.
_SETTLED_SECONDS = 1.0
# Looking may take this share of the time, so that agents that report without pause do not keep a core busy.
_SHARE_FOR_LOOKING = 0.2
# And this much when there is something to do; a look at a thousand agents takes a second.
_SHARE_FOR_WORK = 0.5


class Looks(NamedTuple):
    """When the agents were looked at last, and whether there was news of one of them then. Without values: never."""

    began_at: float = -math.inf
    ended_at: float = -math.inf
    news: bool = False

    def is_old(self, now: float) -> bool:
        """Whether nothing should be decided any more from what was seen: noting and doing things takes time too."""
        return now >= self.ended_at + _SETTLED_SECONDS

    def due(self, now: float, *, news: bool, work: bool = False) -> bool:
        """Whether to look again; `news` is whether an event told something since, `work` whether something is to be
        decided."""
        since = now - self.began_at
        if since >= _SECONDS_BETWEEN_LOOKS:
            return True
        if work and since >= (self.ended_at - self.began_at) / _SHARE_FOR_WORK:
            return True
        settled = self.news and now >= self.ended_at + _SETTLED_SECONDS
        return (news or settled) and since >= (self.ended_at - self.began_at) / _SHARE_FOR_LOOKING


def of_run(fleet: Fleet, run: str) -> list[Agent]:
    """Every agent with the label of the run, those of other roles included, oldest first."""
    return [agent for agent in fleet.list().agents if agent.record.spec.labels.get(task_names.RUN) == run]


def intended(agents: Iterable[Agent], run: str, role: str) -> dict[str, Agent]:
    """The agents of this role by the name that their attempt gave them. Somebody may have renamed or cloned one: of
    several with the same labels, the oldest is the one that was made for the attempt."""
    found: dict[str, Agent] = {}
    for agent in agents:
        labels = agent.record.spec.labels
        number = labels.get(task_names.ATTEMPT, "")
        if labels.get(task_names.ROLE) == role and number.isdecimal():
            found.setdefault(task_names.agent_name(run, labels.get(task_names.TASK, ""), int(number)), agent)
    return found


def look(fleet: Fleet, wanted: Mapping[str, tuple[str, str]], pool: HostPool | None = None) -> dict[str, Observation]:
    """These agents, by the names given here, each with its id and its host, which is empty for this machine. One that
    does not exist is left out; one whose record cannot be read, or whose host does not answer, is UNKNOWN, and `lost`
    when its host is gone for good."""
    ids: dict[str, list[str]] = {}
    for agent_id, host in sorted(wanted.values()):
        ids.setdefault(host, []).append(agent_id)
    far = {host: (some,) for host, some in sorted(ids.items()) if host}
    answers: dict[str, Any] = pool.ask(far, outcome.listing) if pool is not None else {}
    if "" in ids:
        answers[""] = fleet.local.run(outcome.listing, ids[""])
    answered = {host: answer for host, answer in answers.items() if not isinstance(answer, MngrError)}
    found = {host: {view.id: (view, wrote) for view, wrote in views} for host, (views, _) in answered.items()}
    seen = {}
    for name, (agent_id, host) in wanted.items():
        answer = answers.get(host) or MngrError(f"`{host}` is not a host of this run")
        if isinstance(answer, MngrError):
            gone = pool is not None and pool.is_lost(host)
            seen[name] = Observation(name, agent_id, UNKNOWN, answer.message, lost=gone)
            continue
        _, errors = answer
        if agent_id in found[host]:
            view, wrote = found[host][agent_id]
            site = pool.site(host) if pool is not None else fleet.local
            seen[name] = observe(name, Agent(site, view.record, view), wrote)
            continue
        corrupt = [error.message for error in errors if isinstance(error, CorruptRecord) and agent_id in error.message]
        if corrupt:
            seen[name] = Observation(name, agent_id, UNKNOWN, corrupt[0])
    return seen


def observe(name: str, agent: Agent, wrote: bool | None = None) -> Observation:
    """An agent as it is seen by the clock of this machine. `wrote` is whether it has an outcome, if that is known."""
    record, status, pane, ahead = agent.record, agent.status, agent.pane, agent.site.clock_skew
    vanished = pane is None and status.exit_code is None
    return Observation(
        agent=name,
        agent_id=agent.id,
        state=status.state,
        reason=status.reason,
        since=status.since - ahead if status.since else 0.0,
        active_at=pane.active_at - ahead if pane is not None else 0.0,
        reports=record.spec.reports,
        outcome=agent.site.run(outcome.exists, agent.id) if wrote is None else wrote,
        lost=vanished and (status.state == FAILED or (status.state == STOPPED and record.life.stopped_at is None)),
        half_made=vanished and record.life.started_at is None,
    )


def open_attempts(state: RunState) -> Iterable[tuple[str, Attempt]]:
    """Attempts whose agents still matter, each with the id of its task."""
    parts = task_table.table(state.tasks).parts
    begun = (task for part in parts for task in part.computed(_not_over))
    return ((task.id, a) for task in begun for a in task.attempts if not a.released)


def _not_over(tasks: Sequence[TaskState]) -> list[TaskState]:
    return [task for task in tasks if task.attempts and not task.over]


def usage(site: Site, agent_id: str, pool: HostPool | None = None) -> AttemptUsage | None:
    """What the agent used since it was made; None when that cannot be read at the moment. What it wrote to a cache, it
    read and paid for."""
    try:
        if pool is None or site.is_local:
            found = usage_report.total(site, agent_id)
        else:
            answer = pool.ask({site.name: ([agent_id],)}, spending.collected)[site.name]
            if isinstance(answer, MngrError):
                return None
            found = usage_report.priced(answer, site.settings)
    except (MngrError, OSError):
        return None
    read = found.input_tokens + found.cache_write_tokens
    return AttemptUsage(read, found.output_tokens, found.cache_read_tokens, found.cost_usd or 0.0, found.unpriced)


def told(site: Site, agent_id: str) -> bool | None:
    """Whether the agent got a message: None when nobody tried, False when that is not known."""
    types = [event.get("type") for event in site.run(transcript.events, agent_id)]
    if "message_queued" not in types:
        return None
    return any(word in types for word in ("prompt", "message_delivered"))
