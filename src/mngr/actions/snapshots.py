"""Take snapshots of agents and bring them back, in place or as other agents. What a restore replaces is saved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.actions import destroy, find, lifecycle, restore, usage
from mngr.actions.site import Site
from mngr.agent import events, recording
from mngr.agent.record import Record
from mngr.agent.store import RESTORING
from mngr.errors import MngrError, NotFoundError, Undecided
from mngr.named_tuples import NamedTuple
from mngr.names import suggest
from mngr.system.files import MOST_BYTES, content
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import CommandFailed
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import history
from mngr.workspace.work import measure as unsaved_work
from mngr.workspace.work import restore as restoration
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SNAPSHOTS, EntryPlace, SavedEntry
from mngr.workspace.work.measure import UnsavedWork

_TRIES = 8


class Restored(NamedTuple):
    """`saved` is what it replaced, if there was anything. `made` says that the agent was made again, stopped."""

    record: Record
    saved: SavedEntry | None
    note: str
    made: bool
    running: bool


def create(
    site: Site, agent_id: str, name: str | None = None, *, temporary: bool = False, for_others: bool = False
) -> SavedEntry:
    """Keep an agent as it is now, also while it works: what changes under our hands is read again. Nothing of it is
    changed; on failure nothing is left behind. A `temporary` one is in no list and in no event, and the caller drops
    it; one that is `for_others` may outlive this process, and has the recording, too."""
    record = site.store.read(agent_id)
    if record.life.started_at is None:
        raise MngrError(f"`{record.name}` was not fully created", hint=f"`mngr destroy {record.name}`")
    site.host.prepare()
    with site.store.agent_locked(agent_id):
        record = site.store.read(agent_id)
        check_place(record)
        wanted = name or _free_name(site, record)
        place = saved_entry.reserve(site.host, SNAPSHOTS, record.name, record, wanted, for_others=for_others)
        try:
            entry = _settled(site, record, place)
            _keep_conversation(site, record, entry, "env", *([recording.FILE] if for_others else []))
            if not temporary:
                saved_entry.write(site.host, entry)
                site.store.log(agent_id, "snapshot_created", snapshot=entry.id)
        except BaseException:
            with held():
                saved_entry.discard(site.host, os.path.join(site.host.dir, SNAPSHOTS, place.id))
            raise
    return entry


def temporary(site: Site, agent_id: str, *, for_others: bool = False) -> SavedEntry:
    """A snapshot that the caller removes again, with `saved_entry.drop`."""
    return create(site, agent_id, f"moment-{os.urandom(4).hex()}", temporary=True, for_others=for_others)


def would_create(site: Site, agent_id: str, name: str | None) -> str:
    """The name that a snapshot would get. Raises what would be in the way, and changes nothing."""
    record = site.store.read(agent_id)
    check_place(record)
    return name or _free_name(site, record)


def check_place(record: Record) -> None:
    """Raise when there is nothing to take a snapshot of, or what there is belongs to the user and not to the agent."""
    if record.workspace.transfer == NONE:
        raise MngrError(
            f"`{record.name}` works in your own directory `{record.workspace.work_dir}`: "
            "a snapshot would be restored over it",
            hint="commit there instead, or use an agent with a copy of its own",
        )
    if not os.path.isdir(record.workspace.work_dir) or (
        record.workspace.repo is not None and not unsaved_work.own_repository(record)
    ):
        what = "repository" if os.path.isdir(record.workspace.work_dir) else "work directory"
        raise MngrError(
            f"the {what} of `{record.name}` in `{record.workspace.work_dir}` is gone, so there is nothing to keep",
            hint="`mngr snapshot list` shows what can be restored",
        )


def _free_name(site: Site, record: Record) -> str:
    taken = site.host.entries(os.path.join(site.host.dir, SNAPSHOTS, record.name))
    return next(name for name in (f"snap-{number}" for number in range(1, len(taken) + 2)) if name not in taken)


def _settled(site: Site, record: Record, place: EntryPlace) -> SavedEntry:
    """Read the workspace until nothing went away and no commit was made in the meantime; from an agent that never
    rests, what was seen last."""
    git, limit = copy_git.of(site.host, record), site.settings.number("saved.ignored_max_mb", 10)

    def head() -> str:
        return f"{git.current_branch()} {git.commit_of('HEAD')}" if record.workspace.repo else ""

    entry = None
    for tries_left in reversed(range(_TRIES)):
        before = head()
        try:
            found = unsaved_work.measure(site.host, record, ignored_max_mb=limit, whole=True)
            entry = saved_work.keep_workspace(site.host, place, record, found, reason="snapshot", whole=True)
        except (CommandFailed, OSError, ValueError):
            if not tries_left and entry is None:
                raise
            continue
        if head() == before:
            break
    assert entry is not None
    return entry


def _keep_conversation(site: Site, record: Record, entry: SavedEntry, *more: str) -> None:
    state_dir = site.store.state_dir(record.id)
    names = [*history.conversation(site.host, state_dir, record), *more]
    history.copy_files(site.host, state_dir, saved_entry.agent_dir(site.host, entry), names)


def survey(site: Site) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """All snapshots, oldest first, and by their ids `AGENT/NAME` the errors of those that cannot be read."""
    return saved_entry.survey(site.host, SNAPSHOTS) if site.host.is_ours() else ([], {})


def belongs(entry: SavedEntry, agent_id: str) -> bool:
    return entry.agent is not None and entry.agent.id == agent_id


def one(site: Site, word: str) -> SavedEntry:
    """By its id `AGENT/NAME`, or by its name; if several agents have one of that name, that of the implied one."""
    found, broken = survey(site)
    matching = [entry for entry in found if entry.id == word] or [entry for entry in found if entry.label == word]
    if not matching:
        refuse_unreadable(word, broken)
        names = [item for entry in found for item in (entry.id, entry.label)]
        raise NotFoundError(
            f"no snapshot is called `{word}`",
            hint=suggest(word, names, "one") or "`mngr snapshot list` shows all",
        )
    if len(matching) > 1:
        agents = implied(site)
        matching = [entry for entry in matching if len(agents) == 1 and belongs(entry, agents[0].id)] or matching
    if len(matching) > 1:
        ids = ", ".join(f"`{entry.id}`" for entry in matching)
        raise Undecided(f"several agents have a snapshot called `{word}`: {ids}", hint="name one of them in full")
    return matching[0]


def refuse_unreadable(word: str, broken: Mapping[str, MngrError]) -> None:
    """Raise the error of a snapshot that goes by this name or id and cannot be read."""
    for entry_id, error in broken.items():
        if word in (entry_id, entry_id.partition("/")[2]):
            raise error


def implied(site: Site) -> list[Record]:
    """The agents that may be meant when none is named: the one we run in, else the one whose work dir this is, else
    those of this repository or directory."""
    agents = [record for record in _records(site) if record.life.archived_at is None]
    for name, field in (("MNGR_AGENT_ID", "id"), ("MNGR_AGENT_NAME", "name")):
        word = site.environ.get(name)
        if word and (found := [agent for agent in agents if getattr(agent, field) == word]):
            return found
    here = os.path.realpath(site.cwd)
    inside = [agent for agent in agents if f"{here}/".startswith(f"{os.path.realpath(agent.workspace.work_dir)}/")]
    if len(inside) == 1:
        return inside
    repository = _repository(here)
    places: dict[str, str] = {}
    for agent in agents:
        source = agent.workspace.repo or agent.workspace.source
        if source not in places:
            places[source] = _repository(source)
    return [agent for agent in agents if places[agent.workspace.repo or agent.workspace.source] == repository]


def the_implied(site: Site, doing: str) -> Record:
    """The one agent that is meant; which of several is not ours to decide."""
    agents = implied(site)
    if len(agents) == 1:
        return agents[0]
    names = [agent.name for agent in agents] or [agent.name for agent in _records(site)]
    if not names:
        raise NotFoundError(f"there is no agent to {doing}", hint="`mngr create NAME` makes one")
    what = f"{len(agents)} agents work on this repository" if agents else "no agent works on this repository"
    raise Undecided(
        f"which agent to {doing} is not clear: {what}",
        hint=f"name one: {', '.join(f'`{name}`' for name in names[:8])}{' ...' if len(names) > 8 else ''}",
    )


def _records(site: Site) -> list[Record]:
    return site.store.records()[0] if site.host.is_ours() else []


def _repository(directory: str) -> str:
    """What is the same for all work trees of a repository; for plain files the directory."""
    if os.path.isdir(directory):
        found = Git.of_user(directory, cautious=True).run("rev-parse", "--path-format=absolute", "--git-common-dir")
        if found.ok:
            return os.path.realpath(found.text)
    return os.path.realpath(directory)


def restore_to(site: Site, entry: SavedEntry, *, name: str | None = None) -> Restored:
    """Bring an agent back to a snapshot. One that was destroyed is made again, stopped; with another `name` a new one
    is made beside it. The snapshot stays."""
    assert entry.agent is not None
    restore.refuse_claims(entry)
    saved_entry.check_kept(entry)
    if name is None and os.path.lexists(os.path.join(site.store.state_dir(entry.agent.id), "agent.json")):
        return _in_place(site, entry, entry.agent.id)
    wanted = name or entry.agent.name
    branch = f"mngr/{name}" if name is not None and entry.branch is not None else None
    taken_hint = f"`mngr snapshot restore {entry.id} --as {wanted}-2`"
    stop_reason = f"restored from snapshot `{entry.id}`"
    record, _ = restore.make_again(site, entry, wanted, taken_hint, branch=branch, stop_reason=stop_reason)
    site.store.log(record.id, "snapshot_restored", snapshot=entry.id)
    return Restored(record, None, "", made=True, running=False)


def _in_place(site: Site, entry: SavedEntry, agent_id: str) -> Restored:
    with site.store.agent_locked(agent_id):
        agent = find.agent(site, agent_id)
        agent.require_known()
        ran = agent.status.alive
        if ran or agent.pane is not None:
            lifecycle.end(site, agent, f"restored from snapshot `{entry.id}`")
        done = _replace(site, entry, site.store.read(agent_id))
    return done._replace(record=lifecycle.start(site, agent_id)[0], running=True) if ran else done


def _replace(site: Site, entry: SavedEntry, record: Record) -> Restored:
    """Save what is there, and put back what the snapshot holds. Until that is done, a mark says which snapshot it is.
    The caller holds the agent's lock."""
    mark = os.path.join(site.store.state_dir(record.id), RESTORING)
    restoration.relink(record)
    entry_saved, keep = _save(site, entry, record)
    site.host.write(mark, entry.id.encode(), durable=True)
    branch, note = restoration.put_back(site.host, entry, record, keep)
    usage.record_usage(site, record)
    _bring_conversation(site, entry, record)
    record = site.store.change(record.id, **_settings(entry, branch))
    site.store.log(record.id, "snapshot_restored", snapshot=entry.id, saved=entry_saved.id if entry_saved else None)
    site.host.remove(mark)
    return Restored(record, entry_saved, note, made=False, running=False)


def resume(site: Site, record: Record) -> None:
    """Finish a restore that was interrupted, if there was one. What is there is saved once more: somebody may have
    worked on it. A snapshot that is gone by now cannot be restored, and what is there stays. The caller holds the
    agent's lock."""
    mark = os.path.join(site.store.state_dir(record.id), RESTORING)
    entry_id = content(mark).decode(errors="replace")
    if not entry_id:
        return
    entry = next((entry for entry in survey(site)[0] if entry.id == entry_id), None)
    if entry is None or not belongs(entry, record.id):
        site.host.remove(mark)
        return
    saved_entry.check_kept(entry)
    _replace(site, entry, record)


def _save(site: Site, entry: SavedEntry, record: Record) -> tuple[SavedEntry | None, list[str]]:
    """Keep all that is about to be replaced: files, commits, and what was said since. Returns also the paths that are
    too large for that."""
    found: UnsavedWork = destroy.measure(site, record)
    moved = restoration.endangered(entry, record)
    found = found._replace(refs=tuple({**dict(moved), **dict(found.refs)}.items()))
    places = (site.store.state_dir(record.id), saved_entry.agent_dir(site.host, entry))
    now, then = (_conversation(site, place, record) for place in places)
    done = saved_work.save_agent(site.host, record, found, "snapshot restore", always=bool(moved or now != then))
    if done is not None:
        _keep_conversation(site, record, done)
    return done, [item.path for item in found.left_out]


def _conversation(site: Site, directory: str, record: Record) -> dict[str, bytes]:
    """What was said. Events are what happened, and are never taken back."""
    names = [name for name in history.conversation(site.host, directory, record) if name != events.FILE]
    return {name: site.host.read_tail(os.path.join(directory, name), MOST_BYTES)[0] for name in names}


def _bring_conversation(site: Site, entry: SavedEntry, record: Record) -> None:
    state_dir, kept = site.store.state_dir(record.id), saved_entry.agent_dir(site.host, entry)
    then = _conversation(site, kept, record)
    for name in _conversation(site, state_dir, record):
        if name not in then:
            site.host.remove(os.path.join(state_dir, name))
    lost = [] if events.FILE in site.host.entries(state_dir) else [events.FILE]
    history.copy_files(site.host, kept, state_dir, [*then, "env", *lost])


def _settings(entry: SavedEntry, branch: str | None) -> dict[str, object]:
    assert entry.agent is not None
    past = entry.agent.workspace
    fields: dict[str, object] = {
        "spec": entry.agent.spec,
        "branch": past.branch,
        "base_branch": past.base_branch,
        "base_commit": past.base_commit,
        "origin": past.origin,
        "shared_paths": past.shared_paths,
    }
    if branch is not None and branch != entry.branch and entry.branch == entry.agent.workspace.branch:
        fields |= {"branch": branch, "created_branch": True}
    return fields


def remove(site: Site, chosen: Sequence[SavedEntry]) -> None:
    """Forget snapshots for good."""
    for entry in chosen:
        saved_entry.drop(site.host, entry)
        if entry.agent is not None and os.path.isdir(site.store.state_dir(entry.agent.id)):
            site.store.log(entry.agent.id, "snapshot_destroyed", snapshot=entry.id)
