"""Run a command where an agent works: in its work dir, with its variables. The agent's own process is not involved."""

import os

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import launch
from mngr.errors import MngrError
from mngr.process import Result


def execute(fleet: Fleet, agent: Agent, command: str, *, timeout: float, cwd: str | None = None) -> Result:
    """Run to the end and return the result, whatever its exit code. Past the deadline it is killed."""
    argv, env = prepare(fleet, agent, command, cwd)
    return fleet.host.run(argv, timeout=timeout, env=env)


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
