"""Remove what broken-off work left behind, after saving what exists only there. Never what belongs to an agent, and
never what another mngr is making at this moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from mngr.actions import destroy, leftovers
from mngr.actions.fleet import Fleet
from mngr.actions.leftovers import Session
from mngr.agents.record import Record, seconds_of, timestamp
from mngr.errors import MngrError, TimedOut
from mngr.names import is_id, is_name, new_id
from mngr.process import join
from mngr.records import NamedTuple
from mngr.tools import git as git_tool
from mngr.tools.git import Git
from mngr.waiting import wait_until
from mngr.workspaces import make, saved, work
from mngr.workspaces.plan import MIRROR, RSYNC, WORKTREE

REMOVED, WOULD, KEPT, FAILED = "removed", "would remove", "kept", "failed"
_TERM, _KILL = 15, 9
# What a state directory may hold and nobody would miss.
_WORTHLESS = ("env", "launch.sh", "limits.sh", "screen.txt")


class Leftover(NamedTuple):
    """One thing that was found. `action` is what became of it, `saved` where its work is kept, `note` says more."""

    what: str
    name: str
    path: str = ""
    action: str = REMOVED
    saved: str | None = None
    note: str = ""


class _Seen(NamedTuple):
    """Everything as it was at one moment. `ids` are all agents with a state directory, whatever it holds."""

    records: list[Record]
    ids: set[str]
    places: list[str]
    sessions: list[Session]
    repos: list[str]


def collect(fleet: Fleet, *, dry_run: bool = False, saved_before: float | None = None) -> Iterator[Leftover]:
    """Remove leftovers one by one, and tell each. One that cannot be removed is told and does not stop the rest. With
    `saved_before` also saved work that is older."""
    if not fleet.host.is_ours():
        return
    with fleet.host.locked("gc", timeout=60, what="the clean-up"):
        seen = _look(fleet)
        for session in seen.sessions:
            yield _tried(Leftover("session", session.name), dry_run, partial(_end, fleet, session))
        yield from _interrupted(fleet, seen, dry_run)
        yield from _state_dirs(fleet, seen, dry_run)
        yield from _places(fleet, seen, dry_run)
        yield from _worktrees(fleet, seen, dry_run)
        yield from _refs(fleet, seen, dry_run, saved_before)
        yield from _locks(fleet, dry_run)
        yield from _saved(fleet, saved_before, dry_run)


def _look(fleet: Fleet) -> _Seen:
    # Sessions and work dirs first: an agent that is made meanwhile is then in none of them. The lock is held by those
    # who make a work dir before its record.
    sessions = leftovers.sessions(fleet)
    places = leftovers.places(fleet)
    with fleet.store.locked():
        ids = set(filter(is_id, fleet.host.entries(fleet.store.dir)))
        records, _ = fleet.store.records()
    used = {os.path.realpath(record.work_dir) for record in records}
    strays = leftovers.stray_sessions(fleet, sessions, ids)
    here = git_tool.look(fleet.host, fleet.cwd) if os.path.isdir(fleet.cwd) and not _is_bare(fleet) else None
    repos = [record.repo for record in records if record.repo]
    for entry in saved.survey(fleet.host)[0]:
        repos += [repo for repo in (entry.agent.repo if entry.agent else None, entry.repo) if repo]
    return _Seen(
        records=records,
        ids=ids,
        places=[path for path in leftovers.unknown_places(places, ids) if os.path.realpath(path) not in used],
        sessions=[session for session in strays if leftovers.is_of(fleet, session)],
        repos=list(dict.fromkeys(filter(os.path.isdir, [*repos, *([here.top] if here else [])]))),
    )


def _is_bare(fleet: Fleet) -> bool:
    return Git(fleet.host, fleet.cwd, cautious=True).run("rev-parse", "--is-bare-repository").text == "true"


def _tried(found: Leftover, dry_run: bool, remove: Callable[[Leftover], Leftover | None]) -> Leftover:
    if dry_run:
        return found._replace(action=WOULD)
    try:
        return remove(found) or found
    except (MngrError, OSError) as error:
        return found._replace(action=FAILED, note=str(error))


def _end(fleet: Fleet, session: Session, found: Leftover) -> Leftover:
    """End a session that no record knows, and every process that carries its agent's id."""
    panes = [pane for pane in fleet.tmux.panes() if pane.agent_id == session.agent_id]
    server = panes[0].server if panes else None
    processes = fleet.host.processes_of(session.agent_id, [pane.pid for pane in panes if not pane.dead], server)
    fleet.tmux.kill(session.name)
    for number in (0, _TERM, _KILL):
        if number:
            fleet.host.signal(processes, number)
        wait_until(partial(_ended, fleet, processes), timeout=1.0)
        # What it started meanwhile belongs to it too, wherever it went.
        processes = {**fleet.host.alive(processes), **fleet.host.processes_of(session.agent_id, (), None)}
        if not processes:
            return found
    left = ", ".join(map(str, sorted(fleet.host.alive(processes))))
    return found._replace(note=f"processes {left} could not be ended") if left else found


def _ended(fleet: Fleet, processes: Mapping[int, str]) -> bool:
    return not fleet.host.alive(processes)


def _interrupted(fleet: Fleet, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """Agents whose creation was broken off: nobody worked there."""
    for record in seen.records:
        if record.started_at is not None or record.creator is None or fleet.host.alive(dict([record.creator])):
            continue
        if _is_locked(fleet, record.id):
            continue
        found = Leftover("interrupted creation", record.name, record.work_dir)

        yield _tried(found, dry_run, partial(_destroy, fleet, record.id))


def _destroy(fleet: Fleet, agent_id: str, found: Leftover) -> Leftover:
    done = destroy.destroy(fleet, agent_id, force=True)
    return found._replace(saved=done.entry.id if done.entry else None)


def _state_dirs(fleet: Fleet, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """State directories without a record. One that holds a history is told and kept: a person may be repairing it."""
    for agent_id in sorted(seen.ids):
        path = fleet.store.state_dir(agent_id)
        with fleet.store.locked():
            names = fleet.host.entries(path)
            broken = os.path.isdir(path) and leftovers.RECORD not in names and not _is_locked(fleet, agent_id)
        if not broken:
            continue
        found = Leftover("state directory", agent_id, path)
        worth = [name for name in names if name not in _WORTHLESS and not name.endswith(".draft")]
        if worth:
            yield found._replace(action=KEPT, note=f"it has no record, but holds {', '.join(sorted(worth))}")
        else:
            yield _tried(found, dry_run, lambda it: fleet.store.forget(it.name))


def _places(fleet: Fleet, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    for path in seen.places:
        found = Leftover("work dir", os.path.basename(path), path)
        short = path.rpartition("-")[2]
        locks = [name for name in fleet.host.entries(os.path.join(fleet.host.dir, "locks")) if short in name]
        if not os.path.lexists(path) or any(_is_locked(fleet, name) for name in locks):
            continue  # somebody removes it or works on it right now
        if os.path.islink(path) or not os.path.isdir(path):
            yield found._replace(action=KEPT, note="it is no directory, and not ours")
            continue
        yield _remove_place(fleet, found, dry_run)


def _remove_place(fleet: Fleet, found: Leftover, dry_run: bool) -> Leftover:
    try:
        record = _as_record(fleet, found.path)
        limit = fleet.settings.number("saved.ignored_max_mb", 10)
        measured = work.only_here(fleet.host, record, ignored_max_mb=limit)
        notes = [measured.describe()] if measured.any else []
        notes += [f"`{item.path}` ({item.megabytes:.0f} MB, ignored by git) is not saved" for item in measured.left_out]
        found = found._replace(note="; ".join(notes))
        if dry_run:
            return found._replace(action=WOULD)
        entry = saved.save_agent(fleet.host, record, measured, "gc")
        if record.transfer == WORKTREE and record.repo is not None:
            _forget_worktree(fleet, record.repo, found)
        else:
            fleet.host.remove(found.path)
        return found._replace(saved=entry.id if entry else None)
    except (MngrError, OSError) as error:
        return found._replace(action=FAILED, note=str(error))


def _as_record(fleet: Fleet, path: str) -> Record:
    """A record for a work dir that has none, made up from what is there, so that its work can be saved and restored.
    Its branch counts as the user's: it stays, and so do its commits."""
    name, _, short = os.path.basename(path).rpartition("-")
    name = name if is_name(name) else "leftover"
    own = new_id("agent")
    at = timestamp(os.stat(path).st_mtime)
    branch, repo, transfer = None, None, RSYNC
    if work.has_repository(path):
        git = Git(fleet.host, path)
        branch = git.current_branch()
        if os.path.isfile(os.path.join(path, ".git")):
            common = git.must("rev-parse", "--path-format=absolute", "--git-common-dir")
            repo = os.path.dirname(common) if os.path.basename(common) == ".git" else common
            transfer = WORKTREE
        else:  # where it was copied from is not known
            repo, transfer = os.path.join(path, ".git", "source-not-known"), MIRROR
    return Record(
        id=f"agent-{short}{own[14:]}" if is_id(f"agent-{short}{own[14:]}") else own,
        name=name,
        kind="command",
        command="sh",
        work_dir=path,
        transfer=transfer,
        session=fleet.settings.text("tmux.session_prefix", "mngr-") + name,
        created_at=at,
        project=name,
        repo=repo,
        branch=branch,
        started_at=at,
    )


def _worktrees(fleet: Fleet, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """git's notes of worktrees that are gone with their records."""
    used = {os.path.realpath(record.work_dir) for record in seen.records}
    for repo in seen.repos:
        with fleet.store.locked():
            lost = leftovers.unknown_places(leftovers.lost_worktrees(fleet, repo), seen.ids)
        for path in lost:
            if os.path.realpath(path) in used:
                continue
            found = Leftover("worktree", os.path.basename(path), path, note=f"in {repo}")

            yield _tried(found, dry_run, partial(_forget_worktree, fleet, repo))


def _forget_worktree(fleet: Fleet, repo: str, found: Leftover) -> None:
    common = Git(fleet.host, repo).must("rev-parse", "--path-format=absolute", "--git-common-dir")
    make.remove_worktree(fleet.host, repo, common, found.path)


def _refs(fleet: Fleet, seen: _Seen, dry_run: bool, saved_before: float | None) -> Iterator[Leftover]:
    """`refs/mngr/pulled/NAME` of agents that are gone, unless it is the last thing that holds its commits: that goes
    only with saved work that is as old."""
    names = {name for record in seen.records for name in (record.name, f"{record.name}-uncommitted")}
    prefix = "refs/mngr/pulled/"
    for repo in seen.repos:
        git = Git(fleet.host, repo)
        listed = git.run("for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)", prefix)
        for line in filter(None, listed.text.split("\n") if listed.ok else []):
            ref, commit, at = line.split(" ")
            if ref.removeprefix(prefix) in names:
                continue
            found = Leftover("ref", ref, repo)
            alone = git.must("rev-list", "--max-count=1", commit, "--not", f"--exclude={prefix}*", "--all")
            if alone and not (saved_before is not None and float(at) < saved_before):
                take = join(["git", "-C", repo, "branch", ref.removeprefix(prefix), ref])
                yield found._replace(action=KEPT, note=f"it holds commits found nowhere else; take them: `{take}`")
            else:
                yield _tried(found, dry_run, partial(_drop_ref, git, commit))


def _drop_ref(git: Git, commit: str, found: Leftover) -> None:
    git.must("update-ref", "-d", found.name, commit)


def _locks(fleet: Fleet, dry_run: bool) -> Iterator[Leftover]:
    room = os.path.join(fleet.host.dir, "locks")
    for name in sorted(fleet.host.entries(room)):
        agent_id = name.partition(".")[0]
        if not is_id(agent_id) or os.path.lexists(fleet.store.state_dir(agent_id)) or _is_locked(fleet, name):
            continue
        path = os.path.join(room, name)
        yield _tried(Leftover("lock", name, path), dry_run, lambda it: fleet.host.remove_lock(it.name))


def _saved(fleet: Fleet, before: float | None, dry_run: bool) -> Iterator[Leftover]:
    """Saved work that is older, if that is asked for. What cannot be read is reported in any case, and kept."""
    entries, broken = saved.survey(fleet.host)
    for name, error in broken.items():
        yield Leftover("saved work", name, action=KEPT, note=error.message)
    for entry in entries:
        if before is not None and seconds_of(entry.saved_at) < before:
            found = Leftover("saved work", entry.id, entry.repo, note=f"saved at {entry.saved_at} on {entry.reason}")
            yield _tried(found, dry_run, partial(_drop_saved, fleet, entry))


def _drop_saved(fleet: Fleet, entry: saved.Entry, found: Leftover) -> None:
    saved.drop(fleet.host, entry)


def _is_locked(fleet: Fleet, name: str) -> bool:
    """Whether another mngr holds this lock right now. Looking leaves no lock file that was not there."""
    path = os.path.join(fleet.host.dir, "locks", name)
    if not os.path.exists(path):
        return False
    try:
        with fleet.host.locked(name, timeout=0, what=name):
            return False
    except TimedOut:
        return True
