"""Limits of agents: set them, keep a watcher beside each limited agent, and stop one that reached a limit."""

from __future__ import annotations

import os
import sys
import time

from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import launch, limits, watcher
from mngr.agents.limits import Limits, Verdict
from mngr.agents.record import Record, seconds_of
from mngr.errors import MngrError
from mngr.records import NamedTuple
from mngr.workspaces.saved import Entry

_MARK = "#{@mngr_limits}\t#{pane_id}"


class Enforced(NamedTuple):
    """`verdict` is None for an agent that does not run. `entry` is the work that was saved before it was stopped."""

    agent: Agent
    verdict: Verdict | None
    entry: Entry | None = None


def change(fleet: Fleet, agent_id: str, wanted: Limits) -> Record:
    """Give an agent new limits. A running one gets a new watcher, so that they hold from now on."""
    with fleet.store.agent_locked(agent_id):
        agent = find.agent(fleet, agent_id)
        record = fleet.store.change(agent_id, limits=wanted.stored())
        if agent.status.alive and agent.pane is not None:
            watch(fleet, record._replace(session=agent.pane.session))
        fleet.store.log(agent_id, "limited", **wanted._asdict())
    return record


def watch(fleet: Fleet, record: Record) -> None:
    """Start the watcher of a running agent, in place of one that it may have. Without limits there is none."""
    for pane_id in _watchers(fleet, record):
        fleet.tmux.kill_pane(pane_id)
    wanted = limits.of(record.limits)
    if not wanted.any:
        return
    state_dir = fleet.store.state_dir(record.id)
    path = os.path.join(state_dir, watcher.FILE)
    if not record.reports and wanted.idle_mode == limits.AGENT:
        wanted = wanted._replace(idle_mode=limits.OUTPUT)  # all that can be known of such a kind
    needs = {"MNGR_HOST_DIR": fleet.host.dir}
    needs.update({name: fleet.environ[name] for name in ("PYTHONPATH",) if name in fleet.environ})
    # Without `-P`, a file of the agent called like a module of ours would be run.
    program = [sys.executable, "-P", "-c", "from mngr.cli.main import start; start()"]
    text = watcher.script(
        record.id,
        wanted,
        started=_started(record),
        state_dir=state_dir,
        exports=launch.env_text(needs),
        enforce=[*program, "limit", record.id, "--enforce", "--format", "{seconds_left}"],
    )
    fleet.host.write(path, text.encode("utf-8", "surrogateescape"), 0o700)
    fleet.tmux.add_helper(record.session, watcher.WINDOW, ["sh", path], {"limits": record.id})


def ensure_watched(fleet: Fleet, agent: Agent) -> None:
    """Start the watcher of a running agent if it was ended by somebody."""
    if not is_watched(fleet, agent.record):
        watch(fleet, agent.record)


def is_watched(fleet: Fleet, record: Record) -> bool:
    return bool(_watchers(fleet, record))


def enforce(fleet: Fleet, agent_id: str) -> Enforced:
    """Stop the agent if one of its limits is reached, after saving what exists only there. Its work dir stays, so a
    failure to save is told in the reason and is none to go on running."""
    with fleet.store.agent_locked(agent_id):
        agent = find.agent(fleet, agent_id)
        if agent.state == "UNKNOWN":
            raise MngrError(f"whether `{agent.name}` runs is not known: {agent.status.reason}")
        if not agent.status.alive or agent.pane is None:
            return Enforced(agent, None)
        verdict = judge(fleet, agent)
        if not verdict.reason:
            return Enforced(agent, verdict)
        return _stop(fleet, agent, verdict)


def judge(fleet: Fleet, agent: Agent) -> Verdict:
    """Whether a limit is reached at this moment."""
    wanted = limits.of(agent.record.limits)
    now = time.time()
    since = _idle_since(fleet, agent, wanted.idle_mode) if wanted.idle_seconds is not None else None
    return limits.judge(wanted, started=_started(agent.record), idle_since=since, now=now)


def explain(fleet: Fleet, agent: Agent) -> str:
    """The limits of one agent and whether they are watched, in one line."""
    wanted = limits.of(agent.record.limits)
    text = f"limits: {wanted.describe()}"
    if not wanted.any or not agent.status.alive:
        return text
    if not is_watched(fleet, agent.record):
        return f"{text}; its watcher was ended: `mngr start {agent.name}` starts it again"
    verdict = judge(fleet, agent)
    return f"{text}; " + (verdict.reason or f"not before {limits.span(verdict.seconds_left)} from now")


def _stop(fleet: Fleet, agent: Agent, verdict: Verdict) -> Enforced:
    from mngr.actions import destroy, lifecycle
    from mngr.workspaces import saved

    entry, reason = None, verdict.reason
    try:
        entry = saved.save_agent(fleet.host, agent.record, destroy.measure(fleet, agent.record), verdict.saved_as)
    except (MngrError, OSError) as error:
        reason += f"; its work was not saved: {error}"
    fleet.store.log(agent.id, "limit_reached", reason=reason, saved=entry.id if entry else None)
    done = lifecycle.end(fleet, agent, reason)
    return Enforced(agent._replace(record=done.record), verdict, entry)


def _idle_since(fleet: Fleet, agent: Agent, mode: str) -> float | None:
    assert agent.pane is not None
    if mode == limits.USER:
        activity = fleet.tmux.ask_session(agent.pane.session, "#{session_activity}")
        typed = float(activity[0]) if activity and activity[0] else time.time()
        return max(typed, limits.last_message(fleet.store.events_since_start(agent.id)))
    if mode == limits.AGENT and agent.record.reports:
        return agent.status.since if agent.state in ("WAITING", "BLOCKED") else None
    return agent.pane.active_at


def _watchers(fleet: Fleet, record: Record) -> list[str]:
    lines = (line.split("\t") for line in fleet.tmux.ask_session(record.session, _MARK))
    return [line[1] for line in lines if line[0] == record.id]


def _started(record: Record) -> float:
    return seconds_of(record.started_at or record.created_at)
