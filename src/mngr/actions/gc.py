"""Remove what broken-off work left behind, after saving what exists only there. Never what belongs to an agent, and
never what another mngr is making at this moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from functools import partial

from mngr.actions import destroy, leftovers, removal, snapshots
from mngr.actions.agent_process import end_found
from mngr.actions.commits import PUSHED
from mngr.actions.leftovers import MarkedSession
from mngr.actions.site import Site
from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record, seconds_of, timestamp
from mngr.errors import MngrError, TimedOut
from mngr.named_tuples import NamedTuple
from mngr.names import is_id, is_name, new_id
from mngr.system import git as git_tool
from mngr.system import git_settings, trash
from mngr.system.git import Git, worktree_entry
from mngr.system.process import checked, join
from mngr.workspace import copy_git
from mngr.workspace.plan import MIRROR, RSYNC, WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import measure as unsaved_work
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SAVED, SNAPSHOTS, SavedEntry
from mngr.workspace.work.git_files import has_repository
from mngr.workspace.workspace import forget_worktree, repo_lock

REMOVED, WOULD, KEPT, FAILED, FINISHED = "removed", "would remove", "kept", "failed", "finished"
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
    host: str = "local"


class _Seen(NamedTuple):
    """Everything as it was at one moment. `ids` are all agents with a state directory, whatever it holds."""

    records: list[Record]
    ids: set[str]
    places: list[str]
    sessions: list[MarkedSession]
    repos: list[str]


def collect(
    site: Site, *, dry_run: bool = False, saved_before: float | None = None, elsewhere: Collection[str] = ()
) -> Iterator[Leftover]:
    """Remove leftovers one by one, and tell each. One that cannot be removed is told and does not stop the rest. With
    `saved_before` also saved work that is older. `elsewhere` are names of agents on other hosts: their refs stay."""
    if not site.host.is_ours():
        return
    with site.host.locked("gc", timeout=60, what="the clean-up"):
        yield from _trash(site, dry_run)
        yield from _unfinished(site, dry_run)
        seen = _look(site)
        for session in seen.sessions:
            yield _tried(Leftover("session", session.name), dry_run, partial(_end, site, session))
        yield from _interrupted(site, seen, dry_run)
        yield from _restores(site, seen, dry_run)
        yield from _state_dirs(site, seen, dry_run)
        yield from _places(site, seen, dry_run)
        yield from _worktrees(site, seen, dry_run)
        yield from _pushed(seen, dry_run)
        yield from _refs(seen, dry_run, saved_before, elsewhere)
        yield from _locks(site, dry_run)
        _forget_copies(site, seen, dry_run)
        for what, paths in (
            ("program", leftovers.old_programs(site)),
            ("cache", leftovers.old_caches(site)),
            ("temporary file", leftovers.temporary_files(site, seen.ids, seen.records, seen.repos)),
        ):
            for path in paths:
                found = Leftover(what, os.path.basename(path), path)
                yield _tried(found, dry_run, partial(_discard, site))
        yield from _saved(site, saved_before, dry_run)


def _discard(site: Site, found: Leftover) -> Leftover:
    """Remove a file or a tree. What cannot be deleted is in the trash then."""
    left = trash.discard(site.host.dir, found.path)
    return found._replace(action=FAILED, note=left) if left else found


def _trash(site: Site, dry_run: bool) -> Iterator[Leftover]:
    """Removals that were interrupted, and what could not be deleted before."""
    for agent in removal.pending(site):
        if not _is_locked(site, agent.id):
            found = Leftover("interrupted removal", agent.name, agent.workspace.work_dir)
            yield _tried(found, dry_run, partial(_finish_removal, site, agent.id))
    busy = {agent.id for agent in removal.pending(site)}
    for name in trash.names(site.host.dir):
        agent_id = name.removesuffix(".work")
        if agent_id not in busy and not _is_locked(site, agent_id):
            found = Leftover("trash", name, trash.place(site.host.dir, name))
            yield _tried(found, dry_run, lambda it: saved_entry.finish_drop(site.host, it.name))


def _finish_removal(site: Site, agent_id: str, found: Leftover) -> Leftover:
    with site.store.agent_locked(agent_id):
        done = removal.finish(site, agent_id)
    note = f"branch {done.kept_branch} stays" if done.kept_branch else ""
    return found._replace(action=FAILED, note=done.left) if done.left else found._replace(note=note)


def _unfinished(site: Site, dry_run: bool) -> Iterator[Leftover]:
    """Saved work and snapshots that were never complete: what they were made of is where it was."""
    for room, what in ((SAVED, "unfinished saved work"), (SNAPSHOTS, "unfinished snapshot")):
        for path in saved_entry.unfinished(site.host, room):
            found = Leftover(what, os.path.relpath(path, os.path.join(site.host.dir, room)), path)
            yield _tried(found, dry_run, lambda it: saved_entry.discard(site.host, it.path))


def _look(site: Site) -> _Seen:
    # Sessions and work dirs first: an agent that is made meanwhile is then in none of them. The lock is held by those
    # who make a work dir before its record.
    sessions = leftovers.sessions(site)
    places = leftovers.places(site)
    with site.store.locked():
        ids = set(filter(is_id, [*site.host.entries(site.store.dir), *trash.names(site.host.dir)]))
        records, _ = site.store.records()
    used = {os.path.realpath(record.workspace.work_dir) for record in records}
    strays = leftovers.stray_sessions(site, sessions, ids)
    try:
        here = git_tool.locate(site.cwd) if os.path.isdir(site.cwd) else None
    except MngrError:
        here = None  # nothing of a repository that cannot be read is removed
    repos = [record.workspace.repo for record in records if record.workspace.repo]
    for entry in saved_entry.survey(site.host, SAVED)[0]:
        repos += [repo for repo in (entry.agent.workspace.repo if entry.agent else None, entry.repo) if repo]
    return _Seen(
        records=records,
        ids=ids,
        places=[path for path in leftovers.unknown_places(places, ids) if os.path.realpath(path) not in used],
        sessions=[session for session in strays if leftovers.is_of(site, session)],
        repos=list(dict.fromkeys(filter(os.path.isdir, [*repos, *([here.top] if here else [])]))),
    )


def _tried(found: Leftover, dry_run: bool, remove: Callable[[Leftover], Leftover | None]) -> Leftover:
    if dry_run:
        return found._replace(action=WOULD)
    try:
        return remove(found) or found
    except (MngrError, OSError) as error:
        return found._replace(action=FAILED, note=str(error))


def _end(site: Site, session: MarkedSession, found: Leftover) -> Leftover:
    """End a session that no record knows, and every process that carries its agent's id."""
    panes = [pane for pane in site.tmux.panes() if pane.agent_id == session.agent_id]
    server = panes[0].server if panes else None
    processes = site.host.processes_of(session.agent_id, [pane.pid for pane in panes if not pane.dead], server)
    site.tmux.kill(session.name)
    left = ", ".join(map(str, end_found(site, session.agent_id, processes, server)))
    return found._replace(note=f"processes {left} could not be ended") if left else found


def _interrupted(site: Site, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """Agents whose creation was broken off: nobody worked there."""
    for record in seen.records:
        if (
            record.life.started_at is not None
            or record.life.creator is None
            or site.host.is_elsewhere(record.life.machine, record.life.boot_id)
            or site.host.alive(dict([record.life.creator]))
        ):
            continue
        if _is_locked(site, record.id):
            continue
        found = Leftover("interrupted creation", record.name, record.workspace.work_dir)

        yield _tried(found, dry_run, partial(_destroy, site, record.id))


def _restores(site: Site, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """Restores of snapshots that were broken off half-way."""
    for record in seen.records:
        if site.store.is_restoring(record.id) and not _is_locked(site, record.id):
            found = Leftover("interrupted restore", record.name, record.workspace.work_dir, action=FINISHED)
            yield _tried(found, dry_run, partial(_finish_restore, site, record.id))


def _finish_restore(site: Site, agent_id: str, found: Leftover) -> None:
    with site.store.agent_locked(agent_id):
        snapshots.resume(site, site.store.read(agent_id))


def _destroy(site: Site, agent_id: str, found: Leftover) -> Leftover:
    done = destroy.destroy(site, agent_id, force=True)
    found = found._replace(saved=done.entry.id if done.entry else None)
    return found._replace(action=FAILED, note=done.left) if done.left else found


def _state_dirs(site: Site, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """State directories without a record. One that holds a history is told and kept: a person may be repairing it."""
    for agent_id in sorted(seen.ids):
        path = site.store.state_dir(agent_id)
        with site.store.locked():
            names = site.host.entries(path)
            broken = os.path.isdir(path) and leftovers.RECORD not in names and not _is_locked(site, agent_id)
        if not broken:
            continue
        found = Leftover("state directory", agent_id, path)
        worth = [name for name in names if name not in _WORTHLESS and not name.endswith(".draft")]
        if worth:
            yield found._replace(action=KEPT, note=f"it has no record, but holds {', '.join(sorted(worth))}")
        else:
            yield _tried(found, dry_run, lambda it: site.store.forget(it.name))


def _places(site: Site, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    for path in seen.places:
        found = Leftover("work dir", os.path.basename(path), path)
        short = path.rpartition("-")[2]
        locks = [name for name in site.host.entries(os.path.join(site.host.dir, "locks")) if short in name]
        if not os.path.lexists(path) or any(_is_locked(site, name) for name in locks):
            continue  # somebody removes it or works on it right now
        if os.path.islink(path) or not os.path.isdir(path):
            yield found._replace(action=KEPT, note="it is no directory, and not ours")
            continue
        yield _remove_place(site, found, dry_run)


def _remove_place(site: Site, found: Leftover, dry_run: bool) -> Leftover:
    try:
        record = _as_record(site, found.path)
        limit = site.settings.number("saved.ignored_max_mb", 10)
        measured = unsaved_work.measure(site.host, record, ignored_max_mb=limit)
        if measured.left_out:
            return found._replace(action=KEPT, note=f"it holds {measured.describe_left_out()}, too large to be saved")
        found = found._replace(note=measured.describe())
        if dry_run:
            return found._replace(action=WOULD)
        entry = saved_work.save_agent(site.host, record, measured, "gc")
        if record.workspace.transfer == WORKTREE and record.workspace.repo is not None:
            common = _common_dir(record.workspace.repo)
            with repo_lock(site.host, common):
                done = _discard(site, found)
                forget_worktree(common, found.path)
        else:
            done = _discard(site, found)
        return done._replace(saved=entry.id if entry else None)
    except (MngrError, OSError) as error:
        return found._replace(action=FAILED, note=str(error))


def _as_record(site: Site, path: str) -> Record:
    """A record for a work dir that has none, made up from what is there, so that its work can be saved and restored.
    Its branch counts as the user's: it stays, and so do its commits."""
    name, _, short = os.path.basename(path).rpartition("-")
    name = name if is_name(name) else "leftover"
    own = new_id("agent")
    at = timestamp(os.stat(path).st_mtime)
    branch, repo, transfer = None, None, RSYNC
    if has_repository(path):
        branch = copy_git.at(site.host, path, None, shared=False).current_branch()
        if os.path.isfile(os.path.join(path, ".git")):
            common = git_settings.common_dir(worktree_entry(path) or path)
            repo = os.path.dirname(common) if os.path.basename(common) == ".git" else common
            transfer = WORKTREE
        else:  # where it was copied from is not known
            repo, transfer = os.path.join(path, ".git", "source-not-known"), MIRROR
    return Record(
        id=f"agent-{short}{own[14:]}" if is_id(f"agent-{short}{own[14:]}") else own,
        name=name,
        spec=AgentSpec(kind="command", command="sh", project=name),
        workspace=AgentWorkspace(path, transfer, repo=repo, branch=branch),
        life=AgentLife(session=site.session(name), created_at=at, started_at=at),
    )


def _worktrees(site: Site, seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """git's notes of worktrees that are gone with their records."""
    used = {os.path.realpath(record.workspace.work_dir) for record in seen.records}
    for repo in seen.repos:
        with site.store.locked():
            lost = leftovers.unknown_places(leftovers.lost_worktrees(site, _common_dir(repo)), seen.ids)
        for path in lost:
            if os.path.realpath(path) not in used:
                found = Leftover("worktree", os.path.basename(path), path, note=f"in {repo}")
                yield _tried(found, dry_run, partial(_forget_worktree, site, repo))


def _common_dir(repo: str) -> str:
    return Git.of_user(repo).must("rev-parse", "--path-format=absolute", "--git-common-dir")


def _forget_worktree(site: Site, repo: str, found: Leftover) -> None:
    common = _common_dir(repo)
    with repo_lock(site.host, common):
        forget_worktree(common, found.path)


def _forget_copies(site: Site, seen: _Seen, dry_run: bool) -> None:
    """Remove git's settings for copies that are gone. They hold nothing, so nobody is told."""
    used = {copy_git.key(record.workspace.work_dir) for record in seen.records}
    used |= {copy_git.key(path) for path in leftovers.places(site)}
    room = os.path.join(site.host.dir, copy_git.DIRECTORY)
    for name in set() if dry_run else set(site.host.entries(room)).difference(used):
        site.host.remove(os.path.join(room, name))


def _pushed(seen: _Seen, dry_run: bool) -> Iterator[Leftover]:
    """What names a commit for as long as it is pushed to an agent, of processes that have ended."""
    for repo in seen.repos:
        git = Git.of_user(repo)
        listed = git.run("for-each-ref", "--format=%(refname) %(objectname)", f"{PUSHED}-*")
        for ref, _, commit in (line.partition(" ") for line in listed.text.split("\n") if listed.ok and line):
            if leftovers.is_over(ref.rpartition("-")[2]):
                yield _tried(Leftover("ref", ref, repo), dry_run, partial(_drop_ref, git, commit))


def _refs(seen: _Seen, dry_run: bool, saved_before: float | None, elsewhere: Collection[str]) -> Iterator[Leftover]:
    """`refs/mngr/pulled/NAME` of agents that are gone, unless it is the last thing that holds its commits: that goes
    only with saved work that is as old."""
    agents = [*(record.name for record in seen.records), *elsewhere]
    names = {name for agent in agents for name in (agent, f"{agent}-uncommitted")}
    prefix = "refs/mngr/pulled/"
    for repo in seen.repos:
        git = Git.of_user(repo)
        listed = git.run("for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)", prefix)
        for line in filter(None, listed.text.split("\n") if listed.ok else []):
            ref, commit, at = line.split(" ")
            if ref.removeprefix(prefix) in names:
                continue
            found = Leftover("ref", ref, repo)
            alone = checked(git.rev_list("--max-count=1", commit, "--not", f"--exclude={prefix}*", "--all")).text
            if alone and not (saved_before is not None and float(at) < saved_before):
                take = join(["git", "-C", repo, "branch", ref.removeprefix(prefix), ref])
                yield found._replace(action=KEPT, note=f"it holds commits found nowhere else; take them: `{take}`")
            else:
                yield _tried(found, dry_run, partial(_drop_ref, git, commit))


def _drop_ref(git: Git, commit: str, found: Leftover) -> None:
    git.must("update-ref", "-d", found.name, commit)


def _locks(site: Site, dry_run: bool) -> Iterator[Leftover]:
    room = os.path.join(site.host.dir, "locks")
    for name in sorted(site.host.entries(room)):
        agent_id = name.partition(".")[0]
        if not is_id(agent_id) or os.path.lexists(site.store.state_dir(agent_id)) or _is_locked(site, name):
            continue
        path = os.path.join(room, name)
        yield _tried(Leftover("lock", name, path), dry_run, lambda it: site.host.remove_lock(it.name))


def _saved(site: Site, before: float | None, dry_run: bool) -> Iterator[Leftover]:
    """Saved work that is older, if that is asked for. What cannot be read is reported in any case, and kept."""
    entries, broken = saved_entry.survey(site.host, SAVED)
    for name, error in broken.items():
        yield Leftover("saved work", name, action=KEPT, note=error.message)
    for entry in entries:
        if before is not None and seconds_of(entry.saved_at) < before:
            found = Leftover("saved work", entry.id, entry.repo, note=f"saved at {entry.saved_at} on {entry.reason}")
            yield _tried(found, dry_run, partial(_drop_saved, site, entry))


def _drop_saved(site: Site, entry: SavedEntry, found: Leftover) -> None:
    saved_entry.drop(site.host, entry)


def _is_locked(site: Site, name: str) -> bool:
    """Whether another mngr holds this lock right now. Looking leaves no lock file that was not there."""
    path = os.path.join(site.host.dir, "locks", name)
    if not os.path.exists(path):
        return False
    try:
        with site.host.locked(name, timeout=0, what=name):
            return False
    except TimedOut:
        return True
