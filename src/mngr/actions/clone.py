"""Copy an agent on its host: its work, its conversation and its settings, as a new agent that runs. The source is not
touched and may run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr.actions import restore
from mngr.actions import snapshots as taking
from mngr.actions.agent_process import start_process
from mngr.actions.create import undo_create, with_hidden
from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.record import Record, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import check_name
from mngr.system import inside, process
from mngr.system.interrupts import held
from mngr.workspace.plan import NONE, WORKTREE, Plan
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work.entry import SavedEntry
from mngr.workspace.workspace import copy_into, refuse_taken_branch


class CloneRequest(NamedTuple):
    """What is to differ from the source. `rest` are arguments for its program, in place of those it was made with. The
    caller's machine, which has the settings of agent types, makes the `command` of them."""

    name: str
    rest: tuple[str, ...] = ()
    command: str = ""
    env: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    project: str | None = None


def free_name(site: Site, source: str) -> str:
    """NAME-2, or the next that is free."""
    taken = set(site.store.names())
    stem = source[:56]
    return next(name for number in range(2, len(taken) + 3) if (name := f"{stem}-{number}") not in taken)


def check(site: Site, agent_id: str, request: CloneRequest) -> tuple[str | None, str]:
    """The branch and the command that the clone would get. Raises what would be in the way, and changes nothing."""
    record = check_source(site, agent_id, request.name)
    check_name(request.name)
    check_free(site, request.name, record.name)
    branch = f"mngr/{request.name}" if record.workspace.repo is not None else None
    if record.workspace.transfer == WORKTREE and record.workspace.repo is not None:
        try:
            refuse_taken_branch(Plan(WORKTREE, record.workspace.repo, branch=branch, create_branch=True))
        except MngrError as error:
            hint = f"choose another name: `mngr clone {record.name} OTHER-NAME`"
            raise MngrError(error.message, hint=hint) from None
    return branch, request.command or record.spec.command


def check_free(site: Site, name: str, source: str) -> None:
    """Raise when an agent of this name cannot be made here."""
    process.require_program("tmux")
    if site.host.is_ours() and name in site.store.names():
        raise MngrError(f"an agent named `{name}` exists already", hint=f"`mngr clone {source} OTHER-NAME`")


def check_source(site: Site, agent_id: str, name: str) -> Record:
    """The agent. Raises when there is nothing to copy, or nothing of its own."""
    record = site.store.read(agent_id)
    if record.life.started_at is None:
        raise MngrError(f"`{record.name}` was not fully created", hint=f"`mngr destroy {record.name}`")
    if record.workspace.transfer == NONE:
        raise MngrError(
            f"`{record.name}` works in your own directory `{record.workspace.work_dir}`, "
            "and has no copy that could be cloned",
            hint=f"begin at its files: `mngr create {name} --from {process.quote(record.workspace.work_dir)}`",
        )
    taking.check_place(record)
    return record


def clone(site: Site, agent_id: str, request: CloneRequest) -> Record:
    """Make the copy and start it. On any failure nothing is left."""
    branch, command = check(site, agent_id, request)
    entry = taking.temporary(site, agent_id)
    try:
        return start_kept(site, entry, request, branch, command)
    finally:
        with held():
            saved_entry.drop(site.host, entry)


def start_kept(
    site: Site, entry: SavedEntry, request: CloneRequest, branch: str | None, command: str, *, large: bool = True
) -> Record:
    """Make an agent of a snapshot and start it. `large` files, which are in no snapshot, are copied from the work dir
    of the source, if that is on this host. On any failure nothing is left."""
    old = entry.agent
    assert old is not None
    wanted = old.changed(
        created_at=timestamp(),
        command=command,
        command_shown=old.spec.command_shown if command == old.spec.command else with_hidden(command, request.env),
        labels={key: value for key, value in {**old.spec.labels, **request.labels}.items() if key != "project"},
        project=request.project or request.labels.get("project") or old.spec.project,
    )
    record, workspace = restore.make_again(
        site,
        entry._replace(agent=wanted),
        request.name,
        f"`mngr clone {old.name} OTHER-NAME`",
        branch=branch,
        with_events=False,  # what was said is its own; what happened, and what it cost, happened to the other
        started_at=None,
        stopped_at=None,
        creator=site.host.myself(),
    )
    with site.store.agent_locked(record.id):
        try:
            if large:
                _bring_large(entry, record)
            env = os.path.join(site.store.state_dir(record.id), "env")
            more = launch.env_text(request.env).encode("utf-8", "surrogateescape")
            site.host.write(env, site.host.read(env) + more)
            facts = {"name": record.name, "kind": record.spec.kind, "transfer": record.workspace.transfer}
            site.store.log(record.id, "created", **facts, cloned_from=old.name)
            return start_process(site, record)
        except BaseException:
            with held():
                undo_create(site, record.id, workspace)
            raise


def _bring_large(entry: SavedEntry, record: Record) -> None:
    """What git ignores and is too large to be kept is on this host, so it is copied."""
    assert entry.agent is not None
    root = entry.agent.workspace.work_dir
    for path in (left_out.rstrip("/") for left_out, _ in entry.left_out):
        above, name = os.path.split(path)
        if inside.facts(root, path) is not None and inside.facts(record.workspace.work_dir, path) is None:
            with inside.directory(root, above) as fd:
                source = os.path.join(inside.for_programs(fd, os.path.join(root, above)), name)
                copy_into(source, record.workspace.work_dir, path)
