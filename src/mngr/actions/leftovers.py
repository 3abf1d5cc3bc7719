"""What broken-off work may have left behind: sessions, work dirs, worktrees and locks that no record knows. Looks only:
changes and removes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence

from mngr.actions.site import Site
from mngr.actions.source_cache import FILES, REPOSITORIES
from mngr.agent.record import Record
from mngr.named_tuples import NamedTuple
from mngr.names import is_id
from mngr.workspace import copy_git
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work.entry import SAVED, SNAPSHOTS
from mngr.workspace.workspace import NOTE

RECORD = "agent.json"
_ROOMS = ("worktrees", "clones")


class MarkedSession(NamedTuple):
    """A tmux session that carries our mark: whose it is, and where that agent's record should be."""

    agent_id: str
    name: str
    state_dir: str


def sessions(site: Site) -> list[MarkedSession]:
    """Every session that carries our mark, of any state directory. Raises when tmux does not answer."""
    form = "#{@mngr_agent}\t#{session_name}\t#{pane_start_command}"
    rows = [line.split("\t", 2) for line in site.tmux.ask_all(form)]
    return [MarkedSession(row[0], row[1], launched_from(row[2])) for row in rows if len(row) == 3 and row[0]]


def launched_from(start_command: str) -> str:
    """The state directory of the agent that a pane was started for, from tmux's own note: `sh DIR/launch.sh`."""
    import shlex

    try:
        script = shlex.split(start_command)[-1:]
    except ValueError:
        script = []
    return os.path.dirname(script[0]) if script else ""


def stray_sessions(site: Site, found: Iterable[MarkedSession], known: set[str]) -> list[MarkedSession]:
    """Sessions of agents that no record knows, here or in another state directory on the same tmux server."""
    strays = [
        session
        for session in found
        if session.agent_id not in known and not os.path.exists(os.path.join(session.state_dir, RECORD))
    ]
    still = sessions(site) if strays else []
    return [session for session in strays if session in still]  # one being destroyed is no stray


def is_of(site: Site, session: MarkedSession) -> bool:
    """Whether a session was started for this state directory."""
    return os.path.realpath(os.path.dirname(session.state_dir)) == os.path.realpath(site.store.dir)


def recorded_ids(site: Site) -> set[str]:
    """Agents that have a record, also one that cannot be read."""
    ids = filter(is_id, entries(site.store.dir))
    return {agent_id for agent_id in ids if os.path.lexists(os.path.join(site.store.state_dir(agent_id), RECORD))}


def places(site: Site) -> list[str]:
    """The work dirs in our own rooms."""
    rooms = [os.path.join(site.host.dir, room) for room in _ROOMS]
    return [os.path.join(room, name) for room in rooms for name in sorted(entries(room))]


def unknown_places(paths: Iterable[str], agent_ids: Iterable[str]) -> list[str]:
    """Those whose name ends in the short id of none of the agents: it stays when an agent is renamed, and a record
    that cannot be read still has its id in the name of its directory."""
    short = {agent_id[6:14] for agent_id in agent_ids}
    return [path for path in paths if path.rpartition("-")[2] not in short]


def lost_worktrees(site: Site, common_dir: str) -> list[str]:
    """Worktrees in our room that git has a note of and that are gone, or whose note is not whole: with one of those,
    git itself fails in the whole repository."""
    room = os.path.realpath(os.path.join(site.host.dir, "worktrees"))
    found = []
    for name in sorted(entries(os.path.join(common_dir, "worktrees"))):
        note = os.path.join(common_dir, "worktrees", name)
        path = os.path.dirname(os.fsdecode(_read(os.path.join(note, "gitdir"))).removesuffix("\n"))
        if path and os.path.dirname(os.path.realpath(path)) == room and not os.path.lexists(path):
            found.append(path)
        elif not path or not all(_read(os.path.join(note, part)) for part in NOTE):
            found.append(os.path.join(room, name))
    return [path for path in found if is_id(f"agent-{path.rpartition('-')[2]}{'0' * 24}")]


def temporary_files(site: Site, known: Collection[str], records: Sequence[Record], repos: Iterable[str]) -> list[str]:
    """What a process makes for as long as it works, of processes that have ended: indexes for git, drafts of files.
    What may be of another machine, or on the way to one, is a day old."""
    from glob import escape, glob

    top = escape(site.host.dir)
    rooms = ["", "hosts/*/", "saved/*/", "snapshots/*/*/", *(f"agents/{record.id}/" for record in records)]
    found = [path for room in rooms for path in glob(f"{top}/{room}*.*.*.draft") if is_over(path.split(".")[-3])]
    stores = (os.path.join(site.host.dir, room, "files.git") for room in (SAVED, SNAPSHOTS))
    for repo in (*repos, *stores, *glob(f"{top}/{copy_git.DIRECTORY}/*")):
        for git_dir in (repo, os.path.join(repo, ".git")):
            names = (name for name in entries(git_dir) if name.startswith("mngr-index-"))
            found += [os.path.join(git_dir, name) for name in names if is_over(name.split("-")[2])]
    sent = _old(site, os.path.join(site.host.dir, FILES), 1)
    found += [path for path in sent if is_id(os.path.basename(path)) and os.path.basename(path) not in known]
    if len(site.host.entries(os.path.join(site.host.dir, "machines"))) > 1:
        found = [path for path in found if _is_old(path, 1)]
    return found + [path for path in glob(f"{top}/between-*.git") if _is_old(path, 1)]


def is_over(pid: str) -> bool:
    """Whether the process with this id has ended."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OSError):
        return False
    return False


def entries(path: str) -> list[str]:
    """Names in a directory; none when it cannot be read."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def old_programs(site: Site) -> list[str]:
    """Copies of our program of other versions, which other machines put here, that nothing uses any more: no process,
    and no script or record of an agent. A machine that still has such a version puts it here again."""
    room = os.path.join(site.host.dir, "lib")
    ours = os.path.realpath(__file__)
    old = [path for path in _old(site, room, _PROGRAM_DAYS) if not ours.startswith(os.path.realpath(path) + "/")]
    if not old:
        return []
    agents = (os.path.join(site.store.dir, name) for name in site.host.entries(site.store.dir))
    texts = [os.path.join(agent, name) for agent in agents for name in site.host.entries(agent)]
    texts = [text for text in texts if text.endswith(("/agent.json", ".sh"))]
    texts += [f"/proc/{name}/cmdline" for name in site.host.entries("/proc") if name.isdigit()]
    used = b"\n".join(map(_read, texts))
    return [path for path in old if os.fsencode(f"/lib/{os.path.basename(path)}") not in used]


def old_caches(site: Site) -> list[str]:
    """Caches of repositories of other machines that no agent, saved work or snapshot needs. One that is wanted again
    is filled again."""
    found = _old(site, os.path.join(site.host.dir, REPOSITORIES), _CACHE_DAYS)
    if not found:
        return []
    records, broken = site.store.records()
    kept = [saved_entry.survey(site.host, room) for room in (SAVED, SNAPSHOTS)]
    if broken or any(errors for _, errors in kept):
        return []  # what cannot be read may need one
    entries = [entry for some, _ in kept for entry in some]
    used = {*(record.workspace.repo for record in records), *(entry.repo for entry in entries)}
    used |= {entry.agent.workspace.repo for entry in entries if entry.agent}
    return [path for path in found if path not in used]


_PROGRAM_DAYS, _CACHE_DAYS = 1, 30


def _old(site: Site, room: str, days: int) -> list[str]:
    """The directories in a room in which nothing was made or removed for so long."""
    paths = [os.path.join(room, name) for name in sorted(site.host.entries(room))]
    looked = {path: (path, f"{path}/.git", f"{path}/.git/objects") for path in paths if os.path.isdir(path)}
    return [path for path, inside in looked.items() if all(_is_old(one, days) for one in inside)]


def _is_old(path: str, days: int) -> bool:
    """Whether nothing changed there for so long. What is gone is old."""
    try:
        return os.stat(path).st_mtime < time.time() - days * 86400
    except FileNotFoundError:
        return True


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
