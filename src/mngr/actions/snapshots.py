"""Take snapshots of agents and bring them back, in place or as other agents. What a restore replaces is saved."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.actions import destroy, find, lifecycle, restore, usage
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents import events
from mngr.agents.record import Record
from mngr.errors import MngrError, NotFoundError, Undecided
from mngr.names import suggest
from mngr.records import NamedTuple
from mngr.tools.git import Git
from mngr.workspaces import putback, saved, snapshots
from mngr.workspaces.kept import Entry
from mngr.workspaces.snapshots import name_of
from mngr.workspaces.work import Work


class Restored(NamedTuple):
    """`saved` is what it replaced, if there was anything. `made` says that the agent was made again, stopped."""

    record: Record
    saved: Entry | None
    note: str
    made: bool
    running: bool


# What an agent is and where it runs stays when its work, its command and its labels go back.
_IDENTITY = (
    *("id", "name", "work_dir", "session", "created_at", "host", "number", "boot_id", "creator", "started_at"),
    *("stopped_at", "stop_reason", "archived_at", "transfer", "repo", "source", "created_branch"),
)


def create(fleet: Fleet, agent: Agent, name: str | None = None) -> Entry:
    """Keep an agent as it is now; it may work on meanwhile. Nothing of it is changed."""
    if agent.record.started_at is None:
        raise MngrError(f"`{agent.name}` was never made completely", hint=f"`mngr destroy {agent.name}`")
    fleet.host.prepare()
    with fleet.store.agent_locked(agent.id):
        record = fleet.store.read(agent.id)
        entry = snapshots.take(
            fleet.host,
            record,
            fleet.store.state_dir(agent.id),
            name or snapshots.free_name(fleet.host, record.name),
            ignored_max_mb=fleet.settings.number("saved.ignored_max_mb", 10),
        )
        fleet.store.log(agent.id, "snapshot_created", snapshot=entry.id)
    return entry


def entries(fleet: Fleet, agent: Agent | None = None) -> list[Entry]:
    """All snapshots, or those of one agent, oldest first. Raises when one cannot be read."""
    found, broken = survey(fleet)
    for error in broken.values():
        raise error
    return [entry for entry in found if agent is None or belongs(entry, agent)]


def survey(fleet: Fleet) -> tuple[list[Entry], dict[str, MngrError]]:
    """All snapshots, oldest first, and by their ids `AGENT/NAME` the errors of those that cannot be read."""
    return snapshots.survey(fleet.host) if fleet.host.is_ours() else ([], {})


def belongs(entry: Entry, agent: Agent) -> bool:
    return entry.agent is not None and entry.agent.id == agent.id


def one(fleet: Fleet, word: str) -> Entry:
    """By its id `AGENT/NAME`, or by its name; if several agents have one of that name, that of the implied one."""
    found, broken = survey(fleet)
    matching = [entry for entry in found if entry.id == word] or [entry for entry in found if name_of(entry) == word]
    if not matching:
        refuse_unreadable(word, broken)
        names = [item for entry in found for item in (entry.id, name_of(entry))]
        raise NotFoundError(
            f"no snapshot is called `{word}`",
            hint=suggest(word, names, "one") or "`mngr snapshot list` shows all",
        )
    if len(matching) > 1:
        agents = implied(fleet)
        matching = [entry for entry in matching if len(agents) == 1 and belongs(entry, agents[0])] or matching
    if len(matching) > 1:
        ids = ", ".join(f"`{entry.id}`" for entry in matching)
        raise Undecided(f"several agents have a snapshot called `{word}`: {ids}", hint="name one of them in full")
    return matching[0]


def refuse_unreadable(word: str, broken: Mapping[str, MngrError]) -> None:
    """Raise the error of a snapshot that goes by this name or id and cannot be read."""
    for entry_id, error in broken.items():
        if word in (entry_id, entry_id.partition("/")[2]):
            raise error


def implied(fleet: Fleet) -> list[Agent]:
    """The agents that may be meant when none is named: the one we run in, else the one whose work dir this is, else
    those of this repository or directory."""
    agents = [agent for agent in find.listing(fleet).agents if agent.record.archived_at is None]
    for name, field in (("MNGR_AGENT_ID", "id"), ("MNGR_AGENT_NAME", "name")):
        word = fleet.environ.get(name)
        if word and (found := [agent for agent in agents if getattr(agent, field) == word]):
            return found
    here = os.path.realpath(fleet.cwd)
    inside = [agent for agent in agents if f"{here}/".startswith(f"{os.path.realpath(agent.record.work_dir)}/")]
    if len(inside) == 1:
        return inside
    repository = _repository(fleet, here)
    places: dict[str, str] = {}
    for agent in agents:
        source = agent.record.repo or agent.record.source
        if source not in places:
            places[source] = _repository(fleet, source)
    return [agent for agent in agents if places[agent.record.repo or agent.record.source] == repository]


def the_implied(fleet: Fleet, doing: str) -> Agent:
    """The one agent that is meant; which of several is not ours to decide."""
    agents = implied(fleet)
    if len(agents) == 1:
        return agents[0]
    names = [agent.name for agent in agents] or [agent.name for agent in find.listing(fleet).agents]
    if not names:
        raise NotFoundError(f"there is no agent to {doing}", hint="`mngr create NAME` makes one")
    what = f"{len(agents)} agents work on this repository" if agents else "no agent works on this repository"
    raise Undecided(
        f"which agent to {doing} is not clear: {what}",
        hint=f"name one: {', '.join(f'`{name}`' for name in names[:8])}{' ...' if len(names) > 8 else ''}",
    )


def _repository(fleet: Fleet, directory: str) -> str:
    """What is the same for all work trees of a repository; for plain files the directory."""
    if os.path.isdir(directory):
        found = Git(fleet.host, directory).run("rev-parse", "--path-format=absolute", "--git-common-dir")
        if found.ok:
            return os.path.realpath(found.text)
    return os.path.realpath(directory)


def restore_to(fleet: Fleet, entry: Entry, *, name: str | None = None) -> Restored:
    """Bring an agent back to a snapshot. One that was destroyed is made again, stopped; with another `name` a new one
    is made beside it. The snapshot stays."""
    assert entry.agent is not None
    snapshots.check_kept(fleet.host, entry)
    living = [record.id for record in fleet.store.records()[0]]
    if name is None and entry.agent.id in living:
        return _in_place(fleet, entry, entry.agent.id)
    wanted = name or entry.agent.name
    branch = None if name is None else f"mngr/{name}" if entry.branch is not None else None
    record, _ = restore.make_again(
        fleet,
        entry,
        wanted,
        branch=branch,
        history=snapshots.agent_dir(fleet.host, entry),
        taken_hint=f"`mngr snapshot restore {entry.id} --as {wanted}-2`",
        stop_reason=f"restored from snapshot `{entry.id}`",
    )
    fleet.store.log(record.id, "snapshot_restored", snapshot=entry.id)
    return Restored(record, None, "", made=True, running=False)


def _in_place(fleet: Fleet, entry: Entry, agent_id: str) -> Restored:
    with fleet.store.agent_locked(agent_id):
        agent = find.agent(fleet, agent_id)
        if agent.state == "UNKNOWN":
            raise MngrError(
                f"whether `{agent.name}` runs is not known: {agent.status.reason}", hint="`mngr doctor` looks into it"
            )
        ran = agent.status.alive
        if ran or agent.pane is not None:
            lifecycle.end(fleet, agent, f"restored from snapshot `{entry.id}`")
        record = fleet.store.read(agent_id)
        putback.relink(fleet.host, record)
        entry_saved = _save(fleet, entry, record)
        spare = [path for path, _ in entry_saved.left_out] if entry_saved else []
        branch, note = putback.put_back(fleet.host, entry, record, spare)
        usage.settle(fleet, record)
        _bring_conversation(fleet, entry, record)
        record = fleet.store.change(agent_id, **_settings(entry, record, branch))
        fleet.store.log(agent_id, "snapshot_restored", snapshot=entry.id, saved=entry_saved.id if entry_saved else None)
    if ran:
        record, _ = lifecycle.start(fleet, agent_id)
    return Restored(record, entry_saved, note, made=False, running=ran)


def _save(fleet: Fleet, entry: Entry, record: Record) -> Entry | None:
    """Keep all that is about to be replaced: files, commits, and what was said since."""
    found: Work = destroy.measure(fleet, record)
    moved = putback.endangered(fleet.host, entry, record)
    known = dict(found.refs)
    found = found._replace(refs=(*found.refs, *((ref, tip) for ref, tip in moved if ref not in known)))
    state_dir = fleet.store.state_dir(record.id)
    said = _conversation(fleet, state_dir, record) != _conversation(
        fleet, snapshots.agent_dir(fleet.host, entry), record
    )
    done = saved.save_agent(fleet.host, record, found, "snapshot restore", always=bool(moved or said))
    if done is not None:
        directory = saved.agent_dir(fleet.host, done)
        snapshots.copy_files(fleet.host, state_dir, directory, snapshots.conversation(fleet.host, state_dir, record))
    return done


def _conversation(fleet: Fleet, directory: str, record: Record) -> dict[str, bytes]:
    """What was said. Events are what happened, and are never taken back."""
    names = [name for name in snapshots.conversation(fleet.host, directory, record) if name != events.FILE]
    return {name: fleet.host.read(os.path.join(directory, name)) for name in names}


def _bring_conversation(fleet: Fleet, entry: Entry, record: Record) -> None:
    state_dir, history = fleet.store.state_dir(record.id), snapshots.agent_dir(fleet.host, entry)
    then = _conversation(fleet, history, record)
    for name in _conversation(fleet, state_dir, record):
        if name not in then:
            fleet.host.remove(os.path.join(state_dir, name))
    snapshots.copy_files(fleet.host, history, state_dir, then)
    fleet.host.write(os.path.join(state_dir, "env"), fleet.host.read(os.path.join(history, "env")))
    if not os.path.exists(os.path.join(state_dir, events.FILE)) and events.FILE in fleet.host.entries(history):
        fleet.host.write(os.path.join(state_dir, events.FILE), fleet.host.read(os.path.join(history, events.FILE)))


def _settings(entry: Entry, now: Record, branch: str | None) -> dict[str, object]:
    assert entry.agent is not None
    fields: dict[str, object] = {name: value for name, value in entry.agent._asdict().items() if name not in _IDENTITY}
    if branch is not None and branch != entry.branch and entry.branch == entry.agent.branch:
        fields |= {"branch": branch, "created_branch": True}
    return fields


def remove(fleet: Fleet, chosen: Sequence[Entry]) -> None:
    """Forget snapshots for good."""
    for entry in chosen:
        snapshots.drop(fleet.host, entry)
        if entry.agent is not None and os.path.isdir(fleet.store.state_dir(entry.agent.id)):
            fleet.store.log(entry.agent.id, "snapshot_destroyed", snapshot=entry.id)
