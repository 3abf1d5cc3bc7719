"""Run a command where an agent works: in its work dir, with its variables. The agent's own process is not involved."""

import os

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import launch
from mngr.errors import MngrError, TimedOut
from mngr.process import Result, run_attached

_TERM, _KILL = 15, 9


def execute(fleet: Fleet, agent: Agent, command: str, *, timeout: float, cwd: str | None = None) -> Result:
    """Run to the end and return the result, whatever its exit code. Past the deadline it is killed."""
    argv, env = prepare(fleet, agent, command, cwd)
    return fleet.host.run(argv, timeout=timeout, env=env)


def attached(fleet: Fleet, agent: Agent, command: str, *, timeout: float, cwd: str | None = None) -> int:
    """Run on our own terminal; the exit code. Past the deadline it is ended with all that it started, and TimedOut
    raised."""
    argv, env = prepare(fleet, agent, command, cwd)
    try:
        return run_attached(argv, env=env, timeout=timeout, end=lambda pid: _end(fleet, pid))
    except TimedOut:
        raise TimedOut(f"`{command}` did not end within {timeout:g} s") from None


def _end(fleet: Fleet, pid: int) -> None:
    """Ask a process and its descendants to end, then kill them. They are in our own process group, so it is no help."""
    from mngr.hosts.processes import descendants
    from mngr.waiting import wait_until

    found: dict[int, str] = {}
    for number in (_TERM, _KILL):
        found.update(descendants(pid))
        fleet.host.signal(found, number)
        if wait_until(lambda: not fleet.host.alive(found), timeout=2.0):
            return


def prepare(fleet: Fleet, agent: Agent, command: str, cwd: str | None = None) -> tuple[list[str], dict[str, str]]:
    """The argument list and environment of such a command."""
    record = agent.record
    directory = os.path.join(record.work_dir, cwd) if cwd else record.work_dir
    if not os.path.isdir(directory):
        raise MngrError(f"the directory `{directory}` of `{agent.name}` does not exist")
    state_dir = fleet.store.state_dir(record.id)
    env = {**launch.inherited(fleet.environ), **launch.identity(record, state_dir, fleet.host.dir)}
    script = 'cd "$0" || exit; [ -f "$1" ] && . "$1"; exec sh -c "$2"'
    return ["sh", "-c", script, directory, os.path.join(state_dir, "env"), command], env
