"""What broken-off work may have left behind: sessions, work dirs, worktrees and locks that no record knows. Looks only:
changes and removes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mngr.actions.fleet import Fleet
from mngr.names import is_id
from mngr.records import NamedTuple
from mngr.tools.git import Git

RECORD = "agent.json"
_ROOMS = ("worktrees", "clones")


class Session(NamedTuple):
    """A tmux session that carries our mark: whose it is, and where that agent's record should be."""

    agent_id: str
    name: str
    state_dir: str


def sessions(fleet: Fleet) -> list[Session]:
    """Every session that carries our mark, of any state directory. Raises when tmux does not answer."""
    form = "#{@mngr_agent}\t#{session_name}\t#{pane_start_command}"
    rows = [line.split("\t", 2) for line in fleet.tmux.ask_all(form)]
    return [Session(row[0], row[1], launched_from(row[2])) for row in rows if len(row) == 3 and row[0]]


def launched_from(start_command: str) -> str:
    """The state directory of the agent that a pane was started for, from tmux's own note: `sh DIR/launch.sh`."""
    import shlex

    try:
        script = shlex.split(start_command)[-1:]
    except ValueError:
        script = []
    return os.path.dirname(script[0]) if script else ""


def stray_sessions(fleet: Fleet, found: Iterable[Session], known: set[str]) -> list[Session]:
    """Sessions of agents that no record knows, here or in another state directory on the same tmux server."""
    strays = [
        session
        for session in found
        if session.agent_id not in known and not os.path.exists(os.path.join(session.state_dir, RECORD))
    ]
    still = sessions(fleet) if strays else []
    return [session for session in strays if session in still]  # one being destroyed is no stray


def is_of(fleet: Fleet, session: Session) -> bool:
    """Whether a session was started for this state directory."""
    return os.path.realpath(os.path.dirname(session.state_dir)) == os.path.realpath(fleet.store.dir)


def recorded_ids(fleet: Fleet) -> set[str]:
    """Agents that have a record, also one that cannot be read."""
    ids = filter(is_id, entries(fleet.store.dir))
    return {agent_id for agent_id in ids if os.path.lexists(os.path.join(fleet.store.state_dir(agent_id), RECORD))}


def places(fleet: Fleet) -> list[str]:
    """The work dirs in our own rooms."""
    rooms = [os.path.join(fleet.host.dir, room) for room in _ROOMS]
    return [os.path.join(room, name) for room in rooms for name in sorted(entries(room))]


def unknown_places(paths: Iterable[str], agent_ids: Iterable[str]) -> list[str]:
    """Those whose name ends in the short id of none of the agents: it stays when an agent is renamed, and a record
    that cannot be read still has its id in the name of its directory."""
    short = {agent_id[6:14] for agent_id in agent_ids}
    return [path for path in paths if path.rpartition("-")[2] not in short]


def lost_worktrees(fleet: Fleet, repo: str) -> list[str]:
    """Worktrees in our room that git has a note of and that are gone."""
    listed = Git(fleet.host, repo).run("worktree", "list", "--porcelain")
    room = os.path.realpath(os.path.join(fleet.host.dir, "worktrees"))
    paths = [line[9:] for line in listed.text.split("\n") if line.startswith("worktree ")] if listed.ok else []
    return [path for path in paths if os.path.dirname(os.path.realpath(path)) == room and not os.path.lexists(path)]


def entries(path: str) -> list[str]:
    """Names in a directory; none when it cannot be read."""
    try:
        return os.listdir(path)
    except OSError:
        return []
