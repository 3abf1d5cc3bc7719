"""Start, stop, rename and label agents. Their workspaces stay as they are."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr.actions import find
from mngr.actions.agent_process import end_processes, start_process
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.record import Record, is_moment, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import check_name
from mngr.system.interrupts import held
from mngr.system.tmux import SessionExists


class Stopped(NamedTuple):
    """`changed` is False when it was stopped already. `outlived` are processes that not even SIGKILL ended."""

    record: Record
    changed: bool
    outlived: tuple[int, ...] = ()


def stop(
    site: Site, agent_id: str, *, reason: str = "stopped by `mngr stop`", graceful_seconds: float = 0.0
) -> Stopped:
    """End the agent's whole process tree; workspace, events and last screen stay. Twice is safe."""
    with site.store.agent_locked(agent_id):
        return _stop(site, agent_id, reason, graceful_seconds)


def _stop(site: Site, agent_id: str, reason: str, graceful_seconds: float = 0.0) -> Stopped:
    agent = find.agent(site, agent_id)
    agent.require_known()
    if agent.state == "STOPPED" and agent.pane is None:
        return Stopped(agent.record, changed=False)
    if agent.state in ("DONE", "FAILED") and (agent.pane is not None or agent.status.exit_code is not None):
        return _clear(site, agent, reason)
    return end(site, agent, reason, graceful_seconds)


def _clear(site: Site, agent: AgentView, reason: str) -> Stopped:
    """End what is left of an agent that ended by itself. How it ended stays to be seen."""
    outlived = end_processes(site, agent)
    _keep_exit(site, agent)
    site.store.log(agent.id, "stopped", reason=reason, outlived=list(outlived))
    return Stopped(agent.record, changed=agent.pane is not None, outlived=outlived)


def end(site: Site, agent: AgentView, reason: str, graceful_seconds: float = 0.0) -> Stopped:
    """Stop an agent whose lock the caller holds."""
    # Written down first: whoever looks while the processes end sees that this was meant.
    record = site.store.change(agent.id, stopped_at=timestamp(), stop_reason=reason)
    try:
        outlived = end_processes(site, agent, graceful_seconds)
    except BaseException:
        site.store.change(agent.id, stopped_at=agent.record.life.stopped_at, stop_reason=agent.record.life.stop_reason)
        raise
    site.store.log(agent.id, "stopped", reason=reason, outlived=list(outlived))
    return Stopped(record, changed=True, outlived=outlived)


def start(site: Site, agent_id: str) -> tuple[Record, bool]:
    """Run a stopped or ended agent again, in its workspace. One that runs is left alone (False)."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        if agent.status.alive:
            if agent.record.spec.limits:
                from mngr.actions import limits

                if not limits.is_watched(site, agent.record):  # somebody ended its watcher
                    limits.watch(site, agent.record)
            return agent.record, False
        agent.require_known()
        if agent.record.life.started_at is None:
            raise MngrError(
                f"`{agent.name}` was not fully created: {agent.status.reason}",
                hint=f"`mngr destroy {agent.name}`, then create it again",
            )
        if site.store.is_restoring(agent_id):
            from mngr.actions import snapshots

            snapshots.resume(site, agent.record)
            agent = find.agent(site, agent_id)
        _require_work_dir(agent)
        try:
            # Starting again first ends whatever the old process left behind.
            end_processes(site, agent)
            return start_process(site, agent.record), True
        except BaseException:
            with held():
                _keep_exit(site, agent)
            raise


def _keep_exit(site: Site, before: AgentView) -> None:
    """After a start that failed: log again how the last run ended, if neither tmux nor the events tell any more."""
    try:
        now = find.agent(site, before.id)
        if now.state == "FAILED" and now.status.exit_code is None and before.status.exit_code is not None:
            at = timestamp(before.status.since)
            site.store.log(before.id, "exited", exit_code=before.status.exit_code, timestamp=at)
    except (MngrError, OSError):
        pass  # the error of the start is the one to report


def adopt(site: Site, agent_id: str) -> Record:
    """Note that an agent was started, when whoever started it was killed before it could. Any other is left alone."""
    with site.store.agent_locked(agent_id):
        record = site.store.read(agent_id)
        agent = find.agent(site, agent_id)
        ran = agent.pane is not None or agent.status.exit_code is not None
        if record.life.started_at is not None or not ran:
            return record
        times = [event.get("timestamp") for event in site.store.events(agent_id) if event.get("type") == "started"]
        known = [at for at in times if is_moment(at)]  # the agent can write events too
        return site.store.change(
            agent_id,
            started_at=known[-1] if known else timestamp(),
            **site.host.here(),
            creator=None,
            session=agent.pane.session if agent.pane is not None else record.life.session,
        )


def archive(site: Site, agent_id: str) -> tuple[Record, bool]:
    """Stop an agent and put it away: everything of it stays, `list` does not show it, `start` brings it back. Twice is
    safe (False)."""
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        if agent.record.life.archived_at is not None and not agent.status.alive:
            return agent.record, False
        _stop(site, agent_id, "stopped by `mngr archive`")
        record = site.store.change(agent_id, archived_at=timestamp())
        site.store.log(agent_id, "archived")
    return record, True


def unarchive(site: Site, agent_id: str) -> tuple[Record, bool]:
    """Show it in `list` again; it stays stopped. Twice is safe (False)."""
    with site.store.agent_locked(agent_id):
        record = site.store.read(agent_id)
        if record.life.archived_at is None:
            return record, False
        record = site.store.change(agent_id, archived_at=None)
        site.store.log(agent_id, "unarchived")
    return record, True


def check_rename(site: Site, agent_id: str, name: str) -> None:
    """Raise when an agent cannot be called that."""
    check_name(name)
    if any(other.name == name and other.id != agent_id for other in site.store.records()[0]):
        raise MngrError(f"an agent named `{name}` exists already", hint="`mngr list` shows all names")


def rename(site: Site, agent_id: str, name: str) -> Record:
    """Give an agent another name. Its branch, its directory and its running process's variables keep the old one."""
    with site.store.agent_locked(agent_id), site.store.locked():
        check_rename(site, agent_id, name)
        agent = find.agent(site, agent_id)
        agent.require_known()  # its session has to be renamed with it
        old, session = agent.record, site.session(name)
        with held():  # one without the other would leave `connect` without its session
            if agent.pane is not None and agent.pane.session != session:
                session = _rename_session(site, agent.pane.session, session, old.short_id)
            changed = old.changed(name=name, session=session)
            site.store.write(changed)
    site.store.log(agent_id, "renamed", old=old.name, new=name)
    return changed


def _rename_session(site: Site, old: str, new: str, short_id: str) -> str:
    """Another state directory on this tmux server may have a session of that name: then the agent's id is added."""
    try:
        site.tmux.rename(old, new)
    except SessionExists:
        new = f"{new}-{short_id}"
        if old != new:
            site.tmux.rename(old, new)
    return new


def label(site: Site, agent_id: str, set_to: Mapping[str, str], remove: tuple[str, ...] = ()) -> Record:
    """Set and remove labels in one change. Removing one that is not there is fine. The label `project` is the agent's
    project."""
    with site.store.locked():
        old = site.store.read(agent_id)
        labels = {key: value for key, value in {**old.spec.labels, **set_to}.items() if key not in remove}
        changed = old.changed(project=labels.pop("project", "") or old.spec.project, labels=labels)
        site.store.write(changed)
    site.store.log(agent_id, "labeled", labels=labels)
    return changed


def _require_work_dir(agent: AgentView) -> None:
    if not os.path.isdir(agent.record.workspace.work_dir):
        raise MngrError(
            f"the work directory of `{agent.name}`, `{agent.record.workspace.work_dir}`, is gone",
            hint=f"`mngr destroy {agent.name}` removes what is left; `mngr saved list` shows what was saved",
        )
