"""Agents and kept work from one machine to another, through this one: git carries the commits, the rest goes along with
the calls. What was on the way is removed at the end, however that goes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mngr.actions import clone as cloning
from mngr.actions import destroy as destroying
from mngr.actions import find, lifecycle, portable, restore, wait
from mngr.actions.clone import CloneRequest
from mngr.actions.portable import Portable
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.agent.state import ENDED, FAILED
from mngr.errors import UNREACHED, MngrError, TimedOut
from mngr.named_tuples import NamedTuple
from mngr.names import check_name, new_id
from mngr.programs import kind
from mngr.system import process
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.transfer import destroy as removal
from mngr.transfer import given, usage
from mngr.workspace.work.entry import SavedEntry

# A program that is not there, or cannot find what it needs, fails at once.
_FAILS_SECONDS = 1.0
Accept = Callable[[SavedEntry], SavedEntry]
_PUSH = ("push", "-q", "--force", "--no-verify", "--no-signed")


class Moved(NamedTuple):
    """`record` is that of the agent on the target. `left_out` are files that git ignores and that are too large to go
    along, with their size in MB."""

    record: Record
    left_out: tuple[tuple[str, float], ...]


def check(source: Site, agent_id: str, target: Site, name: str) -> Record:
    """Raise what would be in the way of `clone` or `migrate` to another machine. Changes nothing."""
    check_name(name)
    record = source.run(cloning.check_source, agent_id, name)
    target.run(cloning.check_free, name, record.name)
    return record


def check_migrate(source: Site, agent_id: str, target: Site, name: str) -> Record:
    """The same for `migrate`, which must leave nothing behind."""
    record = check(source, agent_id, target, name)
    source.run(portable.check_complete, agent_id)
    return record


def refuse(entry: SavedEntry) -> SavedEntry:
    """What is done about claims of another machine when nobody is asked: see `SavedEntry.claims`."""
    restore.refuse_claims(entry)
    return entry


def with_command(source: Site, record: Record, request: CloneRequest) -> CloneRequest:
    """With the command that its arguments make, by the agent types of the caller's settings."""
    if not request.rest:
        return request
    return request._replace(command=kind.resolve(record.spec.kind, source.local.settings).command_line(request.rest))


def clone_there(site: Site, agent_id: str, request: CloneRequest) -> Record:
    """Copy an agent on its own machine."""
    made = site.run(cloning.clone, agent_id, request)
    if not site.is_local:
        given.note_clone(site.local.host, agent_id, made, request.env)
    return made


def clone(source: Site, agent_id: str, target: Site, request: CloneRequest, accept: Accept = refuse) -> Moved:
    """Copy an agent to another machine and start the copy. The source is not changed. On failure nothing is left.
    `accept` returns the entry without its claims, or raises."""
    record = check(source, agent_id, target, request.name)
    branch = f"mngr/{request.name}" if record.workspace.repo is not None else None
    with _sent(source, agent_id, target, new_id("agent"), accept) as (entry, left_out):
        assert entry.agent is not None
        command = with_command(source, entry.agent, request).command or entry.agent.spec.command
        made = target.run(cloning.start_kept, entry, request, branch, command, large=False)
        if not target.is_local:
            given.note_clone(target.local.host, entry.agent.id, made, request.env)
    return Moved(made, left_out)


def migrate(source: Site, agent_id: str, target: Site, name: str, accept: Accept = refuse) -> Record:
    """Move an agent to another machine: it stops, is made again there with its id, compared, started if it ran, and
    only then destroyed here. On failure nothing is left there, and the source runs again."""
    check_migrate(source, agent_id, target, name)
    view = source.run(find.agent, agent_id)
    view.require_known()
    ran, record = view.status.alive, view.record
    if ran:
        source.run(lifecycle.stop, agent_id)
    try:
        usage.record_usage(source, record)
        with _sent(source, agent_id, target, agent_id, accept) as (entry, left_out):
            if left_out:
                raise MngrError(f"`{left_out[0][0]}` of `{record.name}` is too large to go along")
            made = target.run(portable.as_agent, entry, name, source.name)
        if ran:
            made = _started(target, made, f"{record.name}@{source.name}")
    except _TwoOfThem:
        raise
    except BaseException:
        if ran:
            with held():
                source.run(lifecycle.start, agent_id)
        raise
    try:
        if ran:
            source.run(destroying.destroy, agent_id, discard=True, settled=True, moved=True)
        else:
            removal.destroy(source, record, discard=True)
        if target.is_local:
            given.forget(target.host, agent_id)
    except MngrError as error:
        raise MngrError(
            f"`{name}` is on `{target.name}` now, but the one on `{source.name}` could not be removed",
            details=error.explained(),
            hint=f"`mngr destroy {record.name}@{source.name}`, and if that stops it: `mngr start {name}@{target.name}`",
        ) from None
    return made


class _TwoOfThem(MngrError):
    """The one on the target may run, so the source must not."""


def _started(target: Site, made: Record, source: str) -> Record:
    """Start what was made on the target from the agent at the address `source`. If it cannot run there it is removed,
    and this raises why."""
    try:
        started = target.run(lifecycle.start, made.id)[0]
        try:
            (view,) = target.run(wait.until, [made.id], ENDED, any_of=False, timeout=_FAILS_SECONDS)
        except TimedOut:
            return started
        if view.state == FAILED:
            raise MngrError(f"`{made.name}` does not run on `{target.name}`: {view.status.reason}")
        return started
    except BaseException as error:
        with held():
            try:
                target.run(destroying.destroy, made.id, discard=True, settled=True)
            except MngrError:
                raise _TwoOfThem(
                    f"`{made.name}` may run on `{target.name}`, which does not answer; it is stopped where it was",
                    details=str(error),
                    hint=f"once it answers: `mngr destroy {made.name}@{target.name}`, then `mngr start {source}`",
                    exit_code=UNREACHED,
                ) from None
        raise


@contextmanager
def _sent(
    source: Site, agent_id: str, target: Site, new_id: str, accept: Accept
) -> Iterator[tuple[SavedEntry, tuple[tuple[str, float], ...]]]:
    """The agent as a snapshot on the target with this id, for as long as the block takes."""
    packed = source.run(portable.pack, agent_id)
    try:
        sound = given.checked(source, packed)
        came = carry(
            source, sound._replace(entry=accept(sound.entry)), target, packed.entry.room, new_id, temporary=True
        )
        try:
            yield came, packed.entry.left_out
        finally:
            drop(target, came)
    finally:
        drop(source, packed.entry)


def carry(
    source: Site, packed: Portable, target: Site, room: str, agent_id: str | None = None, *, temporary: bool = False
) -> SavedEntry:
    """Bring kept work, which `given.checked` has seen, to another machine, among its saved work or its snapshots. Its
    agent may get another id. The caller drops a `temporary` one."""
    entry = packed.entry
    if entry.agent is not None and agent_id is not None:
        packed = packed._replace(entry=entry._replace(agent=entry.agent._replace(id=agent_id)))
    came = target.run(portable.reserve, packed._replace(files={}), room)
    try:
        if not target.is_local:
            given.note_moved(target.local.host, packed)
        _carry_refs(source, entry, target, came)
        return target.run(portable.complete, came, packed.files, temporary=temporary)
    except BaseException:
        drop(target, came)
        raise


def _carry_refs(source: Site, old: SavedEntry, target: Site, new: SavedEntry) -> None:
    host = source.local.host
    if target.is_local:
        _fetch(source, old, Git.of_user(new.repo), new.refs_below)
    elif source.is_local:
        _push(Git.of_user(old.repo), old.refs_below, target, new)
    else:
        between = os.path.join(host.dir, f"between-{os.urandom(4).hex()}.git")
        try:
            checked(process.run(["git", "init", "-q", "--bare", between], timeout=60), "git init failed")
            _fetch(source, old, Git.of_store(between), new.refs_below)
            _push(Git.of_store(between), new.refs_below, target, new)
        finally:
            with held():
                host.remove(between)


def _fetch(source: Site, old: SavedEntry, here: Git, below: str) -> None:
    there = source.git_path(old.repo)
    spec = _refspec(old, old.refs_below, below)
    with source.carrying():
        here.fetch(there.path, spec, env=there.env, doing=f"the work could not be fetched from `{source.name}`")


def _push(here: Git, below: str, target: Site, new: SavedEntry) -> None:
    there = target.git_path(new.repo)
    spec = _refspec(new, below, new.refs_below)
    with target.carrying():
        here.must(*_PUSH, there.path, spec, env=there.env, doing=f"the work could not be sent to `{target.name}`")


def _refspec(entry: SavedEntry, old: str, new: str) -> str:
    return f"+{old}:{new}" if entry.plain_files else f"+{old}/*:{new}/*"


def drop(site: Site, entry: SavedEntry) -> None:
    """Forget what was on the way. Never raises for a host that cannot be reached."""
    with held(), suppress(MngrError):  # the error that led here is the one to report
        site.run(portable.drop, entry)
