"""Start, stop, rename and label agents. Their workspaces stay as they are."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import store
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.names import check_name
from mngr.records import NamedTuple
from mngr.tools.tmux import Pane
from mngr.waiting import wait_until

_TERM, _KILL = 15, 9  # importing `signal` for their names would cost a millisecond


class Stopped(NamedTuple):
    """`changed` is False when it was stopped already. `outlived` are processes that not even SIGKILL ended."""

    record: Record
    changed: bool
    outlived: tuple[int, ...] = ()


def stop(
    fleet: Fleet, agent: Agent, *, reason: str = "stopped by `mngr stop`", graceful_seconds: float = 0.0
) -> Stopped:
    """End the agent's whole process tree; workspace, events and last screen stay. Twice is safe."""
    with fleet.store.agent_locked(agent.id) as waited:
        if waited:
            agent = find.agent(fleet, agent.id)
        if agent.state == "UNKNOWN":
            raise MngrError(
                f"whether `{agent.name}` runs is not known: {agent.status.reason}", hint="`mngr doctor` looks into it"
            )
        if agent.state == "STOPPED" and agent.pane is None:
            return Stopped(agent.record, changed=False)
        if agent.state == "FAILED" and (agent.pane is not None or agent.status.exit_code is not None):
            return _clear(fleet, agent, reason)
        return end(fleet, agent, reason, graceful_seconds)


def _clear(fleet: Fleet, agent: Agent, reason: str) -> Stopped:
    """End what is left of an agent that failed. That it failed stays to be seen."""
    outlived = end_processes(fleet, agent)
    _keep_exit(fleet, agent)
    fleet.store.log(agent.id, "stopped", reason=reason, outlived=list(outlived))
    return Stopped(agent.record, changed=agent.pane is not None, outlived=outlived)


def end(fleet: Fleet, agent: Agent, reason: str, graceful_seconds: float = 0.0) -> Stopped:
    """Stop an agent whose lock the caller holds."""
    # Written down first: whoever looks while the processes end sees that this was meant.
    record = fleet.store.change(agent.id, stopped_at=timestamp(), stop_reason=reason)
    try:
        outlived = end_processes(fleet, agent, graceful_seconds)
    except BaseException:
        fleet.store.change(agent.id, stopped_at=agent.record.stopped_at, stop_reason=agent.record.stop_reason)
        raise
    fleet.store.log(agent.id, "stopped", reason=reason, outlived=list(outlived))
    return Stopped(record, changed=True, outlived=outlived)


def end_processes(fleet: Fleet, agent: Agent, graceful_seconds: float = 0.0) -> tuple[int, ...]:
    """Hang up the terminal, then ask, then kill. Returns the processes that are still there after all."""
    pane = agent.pane
    server = pane.server if pane is not None else None
    roots = [pane.pid] if pane is not None and not pane.dead else []
    if agent.record.windows and pane is not None:
        roots += _in_windows(fleet, pane)
    found = fleet.host.processes_of(agent.id, roots, server)
    if graceful_seconds and found and pane is not None:
        # The pane's own process is our launch script, which ends when the command does.
        fleet.host.signal({pid: found[pid] for pid in found if pid != pane.pid}, _TERM)
        wait_until(lambda: pane.pid not in fleet.host.alive(found), timeout=graceful_seconds)
    if pane is not None:
        # The last screen stays readable with `capture` after the session is gone.
        screen = fleet.tmux.capture_and_kill(pane, history=2000)
        fleet.host.write(os.path.join(fleet.store.state_dir(agent.id), store.SCREEN), screen.encode())
    if agent.record.recorded:
        from mngr.agents import recording

        recording.finish(fleet.host, agent.id)
    for number, seconds in ((0, 1.0), (_TERM, 1.0), (_KILL, 10.0)):
        if number:
            # What it started meanwhile belongs to it too.
            found = {**fleet.host.alive(found), **fleet.host.processes_of(agent.id, found, server)}
            fleet.host.signal(found, number)
        if _ended(fleet, found, seconds):
            return ()
    return tuple(sorted(fleet.host.alive(found)))


def _in_windows(fleet: Fleet, pane: Pane) -> list[int]:
    """The processes in the agent's other windows, without that of our own helper, which may be who stops it."""
    lines = (line.split() for line in fleet.tmux.ask_session(pane.session, "#{pane_pid} #{@mngr_limits}"))
    return [int(words[0]) for words in lines if len(words) == 1]


def start(fleet: Fleet, agent_id: str) -> tuple[Record, bool]:
    """Run a stopped or ended agent again, in its workspace. One that runs is left alone (False)."""
    from mngr.actions.create import start_process

    with fleet.store.agent_locked(agent_id):
        agent = find.agent(fleet, agent_id)
        if agent.status.alive:
            if agent.record.limits:
                from mngr.actions import limits

                limits.ensure_watched(fleet, agent)
            return agent.record, False
        if agent.state == "UNKNOWN":
            raise MngrError(
                f"whether `{agent.name}` runs is not known: {agent.status.reason}", hint="`mngr doctor` looks into it"
            )
        if agent.record.started_at is None:
            raise MngrError(
                f"`{agent.name}` was never made completely: {agent.status.reason}",
                hint=f"`mngr destroy {agent.name}`, then create it again",
            )
        _require_work_dir(fleet, agent)
        try:
            # Starting again first ends whatever the old process left behind.
            end_processes(fleet, agent)
            return start_process(fleet, agent.record), True
        except BaseException:
            with held():
                _keep_exit(fleet, agent)
            raise


def _keep_exit(fleet: Fleet, before: Agent) -> None:
    """After a start that failed: log again how the last run ended, if neither tmux nor the events tell any more."""
    try:
        now = find.agent(fleet, before.id)
        if now.state == "FAILED" and now.status.exit_code is None and before.status.exit_code is not None:
            at = timestamp(before.status.since)
            fleet.store.log(before.id, "exited", exit_code=before.status.exit_code, timestamp=at)
    except (MngrError, OSError):
        pass  # the error of the start is the one to report


def adopt(fleet: Fleet, agent_id: str) -> Record:
    """Note that an agent was started, when whoever started it was killed before it could. Any other is left alone."""
    with fleet.store.agent_locked(agent_id):
        record = fleet.store.read(agent_id)
        agent = find.agent(fleet, agent_id)
        ran = agent.pane is not None or agent.status.exit_code is not None
        if record.started_at is not None or not ran:
            return record
        starts = [event for event in fleet.store.events(agent_id) if event.get("type") == "started"]
        return fleet.store.change(
            agent_id,
            started_at=starts[-1]["timestamp"] if starts else timestamp(),
            boot_id=fleet.host.boot_id(),
            creator=None,
            session=agent.pane.session if agent.pane is not None else record.session,
        )


def archive(fleet: Fleet, agent: Agent) -> tuple[Record, bool]:
    """Stop an agent and put it away: everything of it stays, `list` does not show it, `start` brings it back. Twice is
    safe (False)."""
    if agent.record.archived_at is not None and not agent.status.alive:
        return agent.record, False
    stop(fleet, agent, reason="stopped by `mngr archive`")
    with fleet.store.agent_locked(agent.id):
        record = fleet.store.change(agent.id, archived_at=timestamp())
        fleet.store.log(agent.id, "archived")
    return record, True


def unarchive(fleet: Fleet, agent: Agent) -> tuple[Record, bool]:
    """Show it in `list` again; it stays stopped. Twice is safe (False)."""
    with fleet.store.agent_locked(agent.id):
        if fleet.store.read(agent.id).archived_at is None:
            return agent.record, False
        record = fleet.store.change(agent.id, archived_at=None)
        fleet.store.log(agent.id, "unarchived")
    return record, True


def check_rename(fleet: Fleet, agent_id: str, name: str) -> None:
    """Raise when an agent cannot be called that."""
    check_name(name)
    if any(other.name == name and other.id != agent_id for other in fleet.store.records()[0]):
        raise MngrError(f"an agent named `{name}` exists already", hint="`mngr list` shows all names")


def rename(fleet: Fleet, agent_id: str, name: str) -> Record:
    """Give an agent another name. Its branch, its directory and its running process's variables keep the old one."""
    with fleet.store.agent_locked(agent_id), fleet.store.locked():
        check_rename(fleet, agent_id, name)
        old = fleet.store.read(agent_id)
        session = fleet.settings.text("tmux.session_prefix", "mngr-") + name
        running = [pane.session for pane in fleet.tmux.panes() if pane.agent_id == agent_id]
        changed = old._replace(name=name, session=session)
        with held():  # one without the other would leave `connect` without its session
            if running and running[0] != session:
                fleet.tmux.rename(running[0], session)
            fleet.store.write(changed)
    fleet.store.log(agent_id, "renamed", old=old.name, new=name)
    return changed


def label(fleet: Fleet, agent_id: str, set_to: Mapping[str, str], remove: tuple[str, ...] = ()) -> Record:
    """Set and remove labels in one change. Removing one that is not there is fine. The label `project` is the agent's
    project."""
    with fleet.store.locked():
        old = fleet.store.read(agent_id)
        labels = {key: value for key, value in {**old.labels, **set_to}.items() if key not in remove}
        changed = old._replace(project=labels.pop("project", "") or old.project, labels=labels)
        fleet.store.write(changed)
    fleet.store.log(agent_id, "labeled", labels=labels)
    return changed


def _ended(fleet: Fleet, processes: Mapping[int, str], seconds: float) -> bool:
    return bool(wait_until(lambda: not fleet.host.alive(processes), timeout=seconds, every=0.003))


def _require_work_dir(fleet: Fleet, agent: Agent) -> None:
    if not os.path.isdir(agent.record.work_dir):
        raise MngrError(
            f"the work directory of `{agent.name}`, `{agent.record.work_dir}`, is gone",
            hint=f"`mngr destroy {agent.name}` removes what is left; `mngr saved list` shows what was saved",
        )
