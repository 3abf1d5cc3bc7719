"""Bring kept work back: as a stopped agent with its workspace as it was, or as plain files."""

from __future__ import annotations

import os
from typing import Any

from mngr.actions import removal, usage
from mngr.actions.create import undo_create
from mngr.actions.site import Site
from mngr.agent import events
from mngr.agent.record import AgentLife, Record, timestamp
from mngr.errors import MngrError, NotFoundError, Undecided
from mngr.names import check_name, new_id, suggest
from mngr.system import trash
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, Plan
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import history
from mngr.workspace.work import restore as restoration
from mngr.workspace.work.entry import SAVED, SavedEntry
from mngr.workspace.workspace import Workspace, refuse_taken


def survey(site: Site) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """All saved work, oldest first, and by their ids the errors of entries that cannot be read."""
    return saved_entry.survey(site.host, SAVED) if site.host.is_ours() else ([], {})


def find(site: Site, word: str) -> SavedEntry:
    """Saved work by its id, or the newest of an agent of that name. `AGENT/N` is an id that is no name."""
    entries, broken = survey(site)
    agent, _, number = word.rpartition("/")
    by_id, by_name = (f"{agent}-{number}" if agent else word), ("" if agent else word)
    if by_id in broken:
        raise broken[by_id]
    entry = next((one for one in entries if one.id == by_id and agent in ("", one.name)), None)
    named = [one for one in entries if one.name == by_name]
    if entry and named:
        raise Undecided(
            f"`{word}` is saved work of `{entry.name}`, and the name of an agent with saved work `{named[-1].id}`",
            hint=f"name one of them: `{_explicit(entry)}` or `{_explicit(named[-1])}`",
        )
    if entry or named:
        return entry or named[-1]
    raise NotFoundError(
        f"no saved work is called `{word}`",
        hint=suggest(word, [entry.id for entry in entries], "one") or "`mngr saved list` shows all",
    )


def _explicit(entry: SavedEntry) -> str:
    return f"{entry.name}/{entry.id.removeprefix(f'{entry.name}-')}"


def show(site: Site, entry: SavedEntry, *, patch: bool, colour: bool) -> tuple[bytes, bytes]:
    """Its commits and its uncommitted files, as git prints them."""
    git, how = Git.of_user(entry.repo), ["--color=always"] if colour else []
    log = checked(git.run("log", "--oneline", *how, f"-{entry.commits}", entry.parent)).stdout if entry.commits else b""
    if entry.commit == entry.parent:
        return log, b""
    words = ["diff", "--patch" if patch else "--stat", *how, entry.parent, entry.commit]
    return log, checked(git.run(*words)).stdout


def as_agent(site: Site, entry: SavedEntry, *, name: str | None = None, branch: str | None = None) -> Record:
    """A stopped agent that `start` runs again. The saved work stays saved."""
    if entry.agent is None:
        raise MngrError(
            f"`{entry.id}` holds files, not an agent",
            hint=f"`mngr saved restore {entry.id} --to DIR` writes them to a directory",
        )
    name = name or entry.agent.name
    taken_hint = f"`mngr saved restore {entry.id} --name {name}-2`"
    stop_reason = f"restored from saved work `{entry.id}`"
    record, _ = make_again(site, entry, name, taken_hint, branch=branch, stop_reason=stop_reason)
    site.store.log(record.id, "restored", saved=entry.id)
    return record


def refuse_claims(entry: SavedEntry) -> None:
    """Raise when another machine says what the agent runs, and the user has not accepted that."""
    if entry.claims:
        raise Undecided(
            f"`{entry.name}` comes from another machine, which says what it runs: this machine did not give it that",
            details="\n".join(entry.claims),
            hint="read it, and add `--trust-host` if it may run",
        )


def make_again(
    site: Site,
    entry: SavedEntry,
    name: str,
    taken_hint: str,
    *,
    branch: str | None = None,
    with_events: bool = True,
    **fields: Any,
) -> tuple[Record, Workspace]:
    """A stopped agent with the workspace, the variables and the conversation of an entry, and other `fields` of its
    record. One that is gone gets its old id again. On failure nothing is left behind."""
    old = entry.agent
    assert old is not None
    check_name(name)
    refuse_claims(entry)
    removal.resume(site, old.id)
    record = _reserve(site, old, name, taken_hint)
    workspace = None

    def note(plan: Plan) -> None:
        """The branch that is about to be made is known to whoever has to remove it."""
        if plan.transfer == NONE:
            return
        made = plan.create_branch or (old.workspace.created_branch and plan.branch == old.workspace.branch)
        repo, source = (plan.repo.top if plan.repo else None), old.workspace.source
        if not plan.repo and old.workspace.repo is not None:
            source = ""
        fields = {"transfer": plan.transfer, "repo": repo, "source": source, "branch": plan.branch}
        site.store.change(record.id, **fields, created_branch=made)

    with site.store.agent_locked(record.id):
        try:
            workspace = restoration.restore_into(site.host, entry, record.workspace.work_dir, branch, note)
            _bring_history(site, saved_entry.agent_dir(site.host, entry), record, with_events)
            made = {"started_at": old.life.started_at or timestamp(), "stopped_at": timestamp(), "creator": None}
            record = site.store.change(record.id, **{**made, **fields})
            if record.spec.driver or record.spec.reports:
                usage.start_counting(site.host, record.id)
        except BaseException:
            with held():
                undo_create(site, record.id, workspace)
            raise
    return record, workspace


def as_files(site: Site, entry: SavedEntry, directory: str, *, branch: str | None = None) -> str:
    """The workspace at a directory of the user's choice, with no agent; of an agent in place its outcome and artifacts.
    Refuses one that holds anything."""
    target = site.path(directory)
    refuse_taken(target)
    if entry.agent is not None and entry.agent.workspace.transfer == NONE:
        kept = saved_entry.agent_dir(site.host, entry)
        history.copy_files(site.host, kept, target, history.results(kept))
        return target
    try:
        restoration.restore_into(site.host, entry, target, branch)
    finally:
        copy_git.forget(site.host, target)
    return target


def _reserve(site: Site, old: Record, name: str, taken_hint: str) -> Record:
    """Take an id, the name and a free index; from here on the agent is visible as STARTING. It is the old id, so that
    what belongs to it still does, when nothing has that and its directories."""
    with site.store.locked():
        others = site.store.records()[0]
        if any(other.name == name for other in others):
            raise MngrError(f"an agent named `{name}` exists already", hint=taken_hint)
        in_place = old.workspace.transfer == NONE
        directories = (old.workspace.work_dir, site.work_dir(old.workspace.transfer, old.name, old.id))
        rooms = (
            site.store.state_dir(old.id),
            trash.place(site.host.dir, old.id),
            trash.place(site.host.dir, f"{old.id}.work"),
            *(() if in_place else directories),
        )
        agent_id = new_id("agent") if any(map(os.path.lexists, rooms)) else old.id
        taken = {other.life.number for other in others}
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        life = AgentLife(
            session=site.session(name),
            created_at=old.life.created_at,
            number=free if old.life.number in taken else old.life.number,
            creator=site.host.myself(),
            **site.host.here(),
        )
        work_dir = directories[0] if in_place else site.work_dir(old.workspace.transfer, name, agent_id)
        record = old.changed(id=agent_id, name=name, work_dir=work_dir, life=life)
        site.host.make_dir(site.store.state_dir(agent_id))
        site.store.write(record, durable=False)
    return record


def _bring_history(site: Site, directory: str, record: Record, with_events: bool) -> None:
    state_dir = site.store.state_dir(record.id)
    site.host.write(os.path.join(state_dir, "env"), b"")
    names = history.kept(site.host, directory, record) if with_events else _said(site, directory, record)
    history.copy_files(site.host, directory, state_dir, ["env", *names])


def _said(site: Site, directory: str, record: Record) -> list[str]:
    return [name for name in history.conversation(site.host, directory, record) if name != events.FILE]
