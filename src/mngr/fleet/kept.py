"""Saved work and snapshots on all hosts: which there are, where one is, and bringing it to another host."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mngr.actions import destroy as destroying
from mngr.actions import portable, restore, snapshots
from mngr.actions.site import Site
from mngr.actions.snapshots import Restored
from mngr.errors import MngrError, NotFoundError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.named_tuples import NamedTuple
from mngr.transfer import given, moves
from mngr.workspace.work.entry import SAVED, SavedEntry

Survey = Callable[[Site], tuple[list[SavedEntry], dict[str, MngrError]]]


class KeptEntry(NamedTuple):
    """An entry and the site that it is on."""

    site: Site
    entry: SavedEntry


class KeptListing(NamedTuple):
    """All that could be seen, oldest first, by their ids the errors of those that cannot be read, and the hosts that
    did not answer."""

    entries: list[KeptEntry]
    broken: dict[str, MngrError]
    unreached: list[MngrError]


def everywhere(fleet: Fleet, survey: Survey) -> KeptListing:
    """Saved work (`restore.survey`) or snapshots (`snapshots.survey`) of this machine and of all known hosts."""
    listing = KeptListing([], {}, [])
    for site, answer in fleet.hosts.ask_each(fleet.hosts.sites(), lambda site: site.run(survey)):
        if isinstance(answer, MngrError):
            listing.unreached.append(answer)
            continue
        listing.entries.extend(KeptEntry(site, entry) for entry in answer[0])
        listing.broken.update(answer[1])
    listing.entries.sort(key=lambda kept: kept.entry.saved_at)
    return listing


def find(fleet: Fleet, word: str, verb: Callable[[Site, str], SavedEntry]) -> KeptEntry:
    """The entry that a word means: on this machine, else on the others; `WORD@HOST` says where. `verb` finds it on one
    machine. When none has it, a host that did not answer is an error: it may be there."""
    name, at, host = word.rpartition("@")
    if at:
        address = fleet.hosts.address(f"@{host}")
        site = fleet.hosts.site(address.host or "", address.provider)
        return KeptEntry(site, site.run(verb, name))
    try:
        return KeptEntry(fleet.local, fleet.local.run(verb, word))
    except NotFoundError as error:
        missing: MngrError = error
    found: list[KeptEntry] = []
    others = [site for site in fleet.hosts.sites() if not site.is_local]
    for site, answer in fleet.hosts.ask_each(others, lambda site: site.run(verb, word)):
        if not isinstance(answer, MngrError):
            found.append(KeptEntry(site, answer))
        elif not isinstance(answer, NotFoundError):
            missing = answer
    if not found:
        raise missing
    return max(found, key=lambda kept: kept.entry.saved_at)


def target(fleet: Fleet, kept: KeptEntry, text: str | None) -> tuple[Site, str | None]:
    """Where `NAME`, `[NAME]@HOST` or nothing says that an entry is restored, and under which name."""
    if text is None or "@" not in text:
        return kept.site, text
    address = fleet.hosts.address(text)
    return fleet.hosts.site(address.host or "local", address.provider), address.name or kept.entry.name


@contextmanager
def brought(kept: KeptEntry, target: Site, accept: moves.Accept | None = None) -> Iterator[SavedEntry]:
    """The entry on the target, for as long as the block takes. It stays where it was. `accept` returns it without its
    claims, or raises; without, they go along."""
    accept = accept or (lambda entry: entry)
    if kept.site is target:
        yield accept(kept.entry) if target.is_local else kept.entry
        return
    packed = given.checked(kept.site, kept.site.run(portable.export, kept.entry))
    packed = packed._replace(entry=accept(packed.entry))
    came = moves.carry(kept.site, packed, target, kept.entry.room, temporary=True)
    try:
        yield came
    finally:
        moves.drop(target, came)


def restore_saved(
    fleet: Fleet, found: KeptEntry, name: str | None, branch: str | None, accept: moves.Accept = moves.refuse
) -> Agent:
    """Make a stopped agent of saved work: where it is, or at `[NAME]@HOST`."""
    site, own = target(fleet, found, name)
    with brought(found, site, accept) as entry, fleet.hosts.occupied(site):
        return Agent(site, site.run(restore.as_agent, entry, name=own, branch=branch))


def restore_snapshot(fleet: Fleet, found: KeptEntry, name: str | None, accept: moves.Accept = moves.refuse) -> Restored:
    """Bring the agent back to a snapshot, or make one of it: where it is, or at `[NAME]@HOST`."""
    site, own = target(fleet, found, name)
    with brought(found, site, accept) as entry, fleet.hosts.occupied(site):
        return site.run(snapshots.restore_to, entry, name=own)


def bring_home(site: Site) -> list[str]:
    """Copy all that is found only on a host to this machine: its saved work and its snapshots as they are, the work of
    its agents as saved work. Returns the ids they have here. What is here already does not come twice."""
    local, brought = site.local, []
    for survey in (restore.survey, snapshots.survey):
        found, broken = site.run(survey)
        for error in broken.values():
            raise error
        here = {(entry.name, entry.commit) for entry in local.run(survey)[0]}
        for entry in found:
            if (entry.name, entry.commit) not in here:
                packed = given.checked(site, site.run(portable.export, entry))
                brought.append(moves.carry(site, packed, local, entry.room).id)
    for agent_id in site.run(destroying.with_work):
        packed = site.run(portable.pack, agent_id)
        try:
            sound = given.checked(site, packed)
            named = sound._replace(entry=sound.entry._replace(reason="host destroy"))
            brought.append(moves.carry(site, named, local, SAVED).id)
        finally:
            moves.drop(site, packed.entry)
    return brought
