"""Limits of agents: set them, keep a watcher beside each limited agent, and stop one that reached a limit."""

from __future__ import annotations

import os
import signal
import sys
import time

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent import launch, limits, state
from mngr.agent.limits import Limits, LimitVerdict
from mngr.agent.record import Record, seconds_of
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry

# Our program by its place: another mngr on the host, or a file of the agent called like a module, is not run instead.
_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ENFORCE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from mngr.actions.limits import enforce_for_watcher; enforce_for_watcher(sys.argv[2])"
)
_MARK = "#{@mngr_limits}\t#{pane_id}\t#{@mngr_limits_failed}"


class Enforced(NamedTuple):
    """`verdict` is None for an agent that does not run. `entry` is the work that was saved before it was stopped."""

    agent: AgentView
    verdict: LimitVerdict | None
    entry: SavedEntry | None = None


def change(site: Site, agent_id: str, wanted: Limits) -> Record:
    """Give an agent new limits. A running one gets a new watcher, so that they hold from now on."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        agent.require_known()  # one that runs unseen would have no watcher
        record = site.store.change(agent_id, limits=wanted.stored())
        if agent.status.alive and agent.pane is not None:
            watch(site, record.changed(session=agent.pane.session))
        site.store.log(agent_id, "limited", **wanted._asdict())
    return record


def watch(site: Site, record: Record) -> None:
    """Start the watcher of a running agent, in place of one that it may have. Without limits there is none."""
    for pane_id, _ in _watchers(site, record):
        site.tmux.kill_pane(pane_id)
    wanted = limits.of(record.spec.limits)
    if not wanted.any:
        return
    state_dir = site.store.state_dir(record.id)
    path = os.path.join(state_dir, limits.FILE)
    if not record.spec.reports and wanted.idle_mode == limits.AGENT:
        wanted = wanted._replace(idle_mode=limits.OUTPUT)  # all that can be known of such a kind
    text = limits.script(
        record.id,
        wanted,
        started=_started(record),
        state_dir=state_dir,
        exports=launch.env_text({"MNGR_HOST_DIR": site.host.dir}),
        enforce=[sys.executable, "-I", "-X", "utf8", "-c", _ENFORCE, _PACKAGES, record.id],
    )
    site.host.write(path, text.encode("utf-8", "surrogateescape"), 0o700)
    site.tmux.add_helper(record.life.session, limits.WINDOW, ["sh", path], {"limits": record.id})


def enforce_for_watcher(agent_id: str) -> None:
    """Enforce the limits of one agent, and print the seconds until they should be looked at again; nothing when the
    agent does not run any more. A failure is logged as an event of the agent."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the watcher's window goes with the agent that is stopped
    site = Site()
    try:
        verdict = enforce(site, agent_id).verdict
    except Exception as error:
        if agent_id in site.host.entries(site.store.dir):
            site.store.log(agent_id, "limit_failed", reason=f"{type(error).__name__}: {error}")
        raise
    if verdict is not None and not verdict.reason:
        sys.stdout.write(f"{verdict.seconds_left}\n")


def is_unused(waiting_seconds: str) -> bool:
    """Whether no agent here works, nor has waited for its user for less than this. An unknown one works."""
    site = Site()
    views, errors = find.listing(site)
    if errors:
        return False
    latest = time.time() - float(waiting_seconds)
    waiting = [view for view in views if view.state in (state.WAITING, state.BLOCKED)]
    busy = [view for view in views if view.status.alive or view.state == state.UNKNOWN]
    return all(view in waiting and view.status.since < latest for view in busy)


def end_all(reason: str) -> None:
    """Stop every agent that runs here, as a limit does: their host is about to end."""
    site = Site()
    for view in find.listing(site)[0]:
        if view.status.alive:
            with site.store.agent_locked(view.id):
                _stop(site, find.agent(site, view.id), LimitVerdict(reason, "host limit", 0))


def is_watched(site: Site, record: Record) -> bool:
    """Whether it has a watcher that can enforce its limits."""
    return any(not failure for _, failure in _watchers(site, record))


def enforce(site: Site, agent_id: str, *, dry_run: bool = False) -> Enforced:
    """Stop the agent if one of its limits is reached, after saving what exists only there. Its work dir stays, so a
    failure to save does not keep it running; the reason mentions it."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        agent.require_known()
        if not agent.status.alive or agent.pane is None:
            return Enforced(agent, None)
        verdict = _judge(site, agent)
        if dry_run or not verdict.reason:
            return Enforced(agent, verdict)
        return _stop(site, agent, verdict)


def _judge(site: Site, agent: AgentView) -> LimitVerdict:
    """Whether a limit is reached at this moment."""
    wanted = limits.of(agent.record.spec.limits)
    since = _idle_since(site, agent, wanted.idle_mode) if wanted.idle_seconds is not None else None
    return limits.judge(wanted, started=_started(agent.record), idle_since=since, now=time.time())


def explain(site: Site, agent_id: str) -> str:
    """The limits of one agent and whether they are watched, in one line."""
    agent = find.agent(site, agent_id)
    wanted = limits.of(agent.record.spec.limits)
    text = f"limits: {wanted.describe()}"
    if not wanted.any or not agent.status.alive:
        return text
    watchers = _watchers(site, agent.record)
    if all(failure for _, failure in watchers):
        why = watchers[0][1] if watchers else "its watcher was ended"
        return f"{text}; not enforced: {why}; `mngr start {agent.name}` starts the watcher again"
    verdict = _judge(site, agent)
    return f"{text}; " + (verdict.reason or f"not before {limits.span(verdict.seconds_left)} from now")


def _stop(site: Site, agent: AgentView, verdict: LimitVerdict) -> Enforced:
    from mngr.actions import destroy, lifecycle

    entry, reason = None, verdict.reason
    try:
        entry = saved_work.save_agent(site.host, agent.record, destroy.measure(site, agent.record), verdict.saved_as)
    except (MngrError, OSError) as error:
        reason += f"; its work was not saved: {error}"
    site.store.log(agent.id, "limit_reached", reason=reason, saved=entry.id if entry else None)
    done = lifecycle.end(site, agent, reason)
    return Enforced(agent._replace(record=done.record), verdict, entry)


def _idle_since(site: Site, agent: AgentView, mode: str) -> float | None:
    assert agent.pane is not None
    if mode == limits.USER:
        activity = site.tmux.ask_session(agent.pane.session, "#{session_activity}")
        typed = float(activity[0]) if activity and activity[0] else time.time()
        return max(typed, limits.last_message(site.store.events_since_start(agent.id)))
    if mode == limits.AGENT and agent.record.spec.reports:
        return agent.status.since if agent.state in ("WAITING", "BLOCKED") else None
    return agent.pane.active_at


def _watchers(site: Site, record: Record) -> list[tuple[str, str]]:
    """The panes of its watchers, each with why it cannot enforce the limits."""
    lines = (line.split("\t") for line in site.tmux.ask_session(record.life.session, _MARK))
    return [(line[1], line[2]) for line in lines if line[0] == record.id]


def _started(record: Record) -> float:
    return seconds_of(record.life.started_at or record.life.created_at)
