"""Copy an agent on its host: its work, its conversation and its settings, as a new agent that runs. The source is not
touched and may run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr import process
from mngr.actions import restore
from mngr.actions.agent import Agent
from mngr.actions.create import start_process, take_back
from mngr.actions.fleet import Fleet
from mngr.agents import launch
from mngr.agents.kinds import kind as kinds
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError
from mngr.interrupts import held
from mngr.names import check_name
from mngr.process import checked
from mngr.records import NamedTuple
from mngr.workspaces import make, snapshots
from mngr.workspaces.kept import Entry
from mngr.workspaces.plan import NONE, WORKTREE, Plan

COPY_SECONDS = 3600.0


class Wish(NamedTuple):
    """What is to differ from the source. `rest` are arguments for its program, in place of those it was made with."""

    name: str
    rest: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    project: str | None = None


def free_name(fleet: Fleet, source: Agent) -> str:
    """NAME-2, or the next that is free."""
    taken = set(fleet.store.names())
    stem = source.name[:56]
    return next(name for number in range(2, len(taken) + 3) if (name := f"{stem}-{number}") not in taken)


def check(fleet: Fleet, source: Agent, wish: Wish) -> tuple[str | None, str]:
    """The branch and the command that the clone would get. Raises what would be in the way, and changes nothing."""
    record = source.record
    check_name(wish.name)
    process.require_program("tmux")
    if wish.name in fleet.store.names():
        raise MngrError(f"an agent named `{wish.name}` exists already", hint=f"`mngr clone {source.name} OTHER-NAME`")
    if record.started_at is None:
        raise MngrError(f"`{source.name}` was never made completely", hint=f"`mngr destroy {source.name}`")
    if record.transfer == NONE:
        raise MngrError(
            f"`{source.name}` works in your own directory `{record.work_dir}`, and has no copy that could be cloned",
            hint=f"begin at its files: `mngr create {wish.name} --from {process.quote(record.work_dir)}`",
        )
    snapshots.check_place(record)
    branch = f"mngr/{wish.name}" if record.repo is not None else None
    if record.transfer == WORKTREE and record.repo is not None and branch is not None:
        planned = Plan(WORKTREE, record.repo, branch=branch, create_branch=True)
        if blocked := make.why_no_branch(fleet.host, planned):
            raise MngrError(blocked.message, hint=f"choose another name: `mngr clone {source.name} OTHER-NAME`")
    if not wish.rest:
        return branch, record.command
    return branch, kinds.resolve(record.kind, fleet.settings).command_line(wish.rest)


def clone(fleet: Fleet, source: Agent, wish: Wish) -> Record:
    """Make the copy and start it. On any failure nothing is left."""
    branch, command = check(fleet, source, wish)
    fleet.host.prepare()
    with fleet.store.agent_locked(source.id):
        entry = snapshots.take(
            fleet.host,
            fleet.store.read(source.id),
            fleet.store.state_dir(source.id),
            f"clone-{os.urandom(4).hex()}",
            ignored_max_mb=fleet.settings.number("saved.ignored_max_mb", 10),
        )
    try:
        return _start(fleet, entry, wish, branch, command)
    finally:
        with held():
            snapshots.drop(fleet.host, entry)


def _start(fleet: Fleet, entry: Entry, wish: Wish, branch: str | None, command: str) -> Record:
    old = entry.agent
    assert old is not None
    wanted = old._replace(
        created_at=timestamp(),
        command=command,
        command_shown=_shown(command, old, wish),
        labels={key: value for key, value in {**old.labels, **wish.labels}.items() if key != "project"},
        project=wish.project or wish.labels.get("project") or old.project,
    )
    record, workspace = restore.make_again(
        fleet,
        entry._replace(agent=wanted),
        wish.name,
        branch=branch,
        history=snapshots.agent_dir(fleet.host, entry),
        taken_hint=f"`mngr clone {old.name} OTHER-NAME`",
        with_events=False,  # what was said is its own; what happened, and what it cost, happened to the other
        started_at=None,
        stopped_at=None,
        creator=fleet.host.myself(),
    )
    with fleet.store.agent_locked(record.id):
        try:
            _bring_large(fleet, entry, record)
            env = os.path.join(fleet.store.state_dir(record.id), "env")
            more = launch.env_text(wish.env).encode("utf-8", "surrogateescape")
            fleet.host.write(env, fleet.host.read(env) + more)
            facts = {"name": record.name, "kind": record.kind, "transfer": record.transfer}
            fleet.store.log(record.id, "created", **facts, cloned_from=old.name)
            return start_process(fleet, record)
        except BaseException:
            with held():
                take_back(fleet, record.id, workspace)
            raise


def _shown(command: str, old: Record, wish: Wish) -> str:
    """The command with secrets hidden, if it has any."""
    if command == old.command:
        return old.command_shown
    from mngr.secrets import mask

    shown = mask(command, wish.env.values())
    return shown if shown != command else ""


def _bring_large(fleet: Fleet, entry: Entry, record: Record) -> None:
    """What git ignores and is too large to be kept is on this host, so it is copied."""
    assert entry.agent is not None
    for path, _ in entry.left_out:
        source = os.path.join(entry.agent.work_dir, path.rstrip("/"))
        target = os.path.join(record.work_dir, path.rstrip("/"))
        if os.path.lexists(source) and not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            copied = fleet.host.run(["cp", "-a", "--", source, target], timeout=COPY_SECONDS)
            checked(copied, f"`{path}` could not be copied")
