"""The processes of an agent: start its tmux session, and end everything that it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr.actions.site import Site
from mngr.agent import launch, store
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system.interrupts import held
from mngr.system.process import join
from mngr.system.tmux import Pane, Session, SessionExists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from mngr.actions.view import AgentView

    class TmuxOptions(TypedDict):
        history_lines: int
        config: str | None


_TERM, _KILL = 15, 9  # importing `signal` for their names would cost a millisecond


def start_process(site: Site, record: Record, *, message_follows: bool = False) -> Record:
    """Run the agent's command in a new session, and note this in its record. With `message_follows` the agent does not
    count as WAITING before it has its first message. The caller holds the agent's lock, or nobody knows the agent."""
    options = tmux_options(site)
    session = _session(site, record)
    follows = {"message_follows": True} if message_follows and not record.spec.one_shot else {}
    started_at = site.store.log(record.id, "started", session=record.life.session, **follows)["timestamp"]
    for name in (record.life.session, f"{record.life.session}-{record.short_id}"):
        with held():  # a session that runs and a record that says so come together
            try:
                site.tmux.start(session._replace(name=name), **options, running=lambda: _socket_in_use(site))
            except SessionExists:
                continue  # another state directory on this tmux server has an agent of this name
            started = site.store.change(
                record.id,
                session=name,
                started_at=started_at,
                stopped_at=None,
                stop_reason="",
                archived_at=None,
                **site.host.here(),
                creator=None,
            )
        if started.spec.limits:
            from mngr.actions import limits

            limits.watch(site, started)
        return started
    raise MngrError(
        f"tmux has sessions called `{record.life.session}` and `{name}` already",
        hint=f"`{join(site.tmux.argv('ls'))}` shows them",
    )


def _socket_in_use(site: Site) -> str:
    """The socket of a tmux server that runs agents of this state directory; empty when none does."""
    ours = site.host.entries(site.store.dir)
    if len(ours) < 2:
        return ""
    from mngr.system.process_table import tmux_of_agents

    running = tmux_of_agents()
    sockets = (running[agent_id][0] for agent_id in ours if agent_id in running)
    return next(filter(os.path.exists, sockets), "")


def _session(site: Site, record: Record) -> Session:
    """The session to start. Writes the scripts that it runs."""
    from mngr.system import inside

    state_dir = site.store.state_dir(record.id)
    root, task = launch.task_place(record, state_dir)
    try:
        inside.remove_links(root, f"{task}/artifacts", below=os.path.dirname(task))
        inside.make_directory(root, f"{task}/artifacts")
    except inside.UnsafePath as error:
        error.hint = f"`mngr start {record.name}` starts it once a directory is there"
        raise
    env, wrapped = launch.inherited(site.environ), launch.in_shell
    if record.spec.sandbox:
        from mngr.agent import sandbox

        sandbox.remove_links(site.place(record))
        env, wrapped = sandbox.inherited(record.spec.driver, site.environ), sandbox.in_sandbox
    command, own = _command(site, record, launch.identity(record, state_dir, site.host.dir))
    if record.spec.sandbox:
        write_sandbox(site, record)
    scripts = {"launch": launch.script(wrapped(launch.on_this_machine(command), state_dir), own, state_dir)}
    for name, line in record.spec.windows.items():
        scripts[f"window-{name}"] = launch.window_script(wrapped(line, state_dir), own, state_dir)
    for name, text in scripts.items():
        path = os.path.join(state_dir, f"{name}.sh")
        site.host.write(path, text.encode("utf-8", "surrogateescape"), 0o700)
    return Session(
        name=record.life.session,
        command=["sh", os.path.join(state_dir, "launch.sh")],
        work_dir=record.workspace.work_dir,
        env=env,
        marks={"agent": record.id},
        windows=[(name, ["sh", os.path.join(state_dir, f"window-{name}.sh")]) for name in record.spec.windows],
        recorder=_recorder(site, record),
    )


def write_sandbox(site: Site, record: Record, *, started: bool = True) -> None:
    """Decide what an agent in a sandbox sees. Before its first start its git configuration may be changed."""
    from mngr.agent import sandbox

    readable, writable = (site.settings.strings(f"sandbox.{name}") for name in ("readable", "writable"))
    sandbox.write(site.place(record), readable=readable, writable=writable, started=started)


def _command(site: Site, record: Record, own: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """What runs, with its variables: the record's command, or what its driver makes of it."""
    if not record.spec.driver and not record.spec.one_shot:
        return record.spec.command, own
    from mngr.programs import driver
    from mngr.programs.driver import PROMPT

    known = driver.of(record)
    if known is None:
        return record.spec.command, own
    place = site.place(record)
    site.host.make_dir(place.home)
    first = record.life.started_at is None or record.spec.one_shot
    found = known.prepare(place, prompted=first and PROMPT in site.host.entries(place.state_dir))
    return found.command, {**own, **found.env}


def tmux_options(site: Site) -> TmuxOptions:
    """What holds for the whole tmux server. Raises when the settings name a file that is not there."""
    path = site.settings.text("tmux.config", "")
    if path and not os.path.isfile(os.path.expanduser(path)):
        raise MngrError(f"`tmux.config` names `{path}`, which does not exist")
    lines = int(site.settings.number("tmux.history_lines", 50000))
    return {"history_lines": lines, "config": os.path.expanduser(path) if path else None}


def _recorder(site: Site, record: Record) -> list[str]:
    if not record.spec.recorded:
        return []
    from mngr.agent import recording

    max_mb = site.settings.number("record.max_mb", recording.MAX_MB)
    return recording.recorder_argv(record, site.host, site.store.state_dir(record.id), max_mb)


def end_processes(site: Site, agent: AgentView, graceful_seconds: float = 0.0) -> tuple[int, ...]:
    """Hang up the terminal, then ask, then kill. Returns the processes that are still there after all. Raises for an
    agent whose processes may be on another machine."""
    pane = agent.pane
    if pane is None and site.host.is_elsewhere(agent.record.life.machine, agent.record.life.boot_id):
        agent.require_known()
    server = pane.server if pane is not None else None
    roots = [pane.pid] if pane is not None and not pane.dead else []
    if agent.record.spec.windows and pane is not None:
        roots += _in_windows(site, pane)
    found = site.host.processes_of(agent.id, roots, server)
    if graceful_seconds and found and pane is not None:
        # The pane's own process is our launch script, which ends when the command does.
        site.host.signal({pid: found[pid] for pid in found if pid != pane.pid}, _TERM)
        from mngr.system.waiting import wait_until

        wait_until(lambda: pane.pid not in site.host.alive(found), timeout=graceful_seconds)
    if pane is not None:
        # The last screen stays readable with `capture` after the session is gone.
        screen = site.tmux.capture_and_kill(pane, history=2000)
        site.host.write(os.path.join(site.store.state_dir(agent.id), store.SCREEN), screen.encode())
    if agent.record.spec.recorded:
        from mngr.agent import recording

        recording.finish(site.host, agent.id)
    return end_found(site, agent.id, found, server)


def end_found(site: Site, agent_id: str, found: Mapping[int, str], server: int | None) -> tuple[int, ...]:
    """Wait for processes that were hung up, then ask them to end, then kill them. Returns those still there."""
    from mngr.system.waiting import wait_until

    for number, seconds in ((0, 1.0), (_TERM, 1.0), (_KILL, 10.0)):
        if number:
            # What it started meanwhile belongs to it too.
            found = {**site.host.alive(found), **site.host.processes_of(agent_id, found, server)}
            site.host.signal(found, number)
        if wait_until(lambda: not site.host.alive(found), timeout=seconds, every=0.003):  # noqa: B023
            return ()
    return tuple(sorted(site.host.alive(found)))


def _in_windows(site: Site, pane: Pane) -> list[int]:
    """The processes in the agent's other windows, without that of our own helper, which may be who stops it."""
    lines = (line.split() for line in site.tmux.ask_session(pane.session, "#{pane_pid} #{@mngr_limits}"))
    return [int(words[0]) for words in lines if len(words) == 1]
