"""The safety net: work that would go is kept under refs, with an entry that says whose it was and why."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError, NotFoundError
from mngr.hosts.host import Host
from mngr.names import suggest
from mngr.workspaces import saved_entry
from mngr.workspaces.saved_entry import EntryPlace, SavedEntry
from mngr.workspaces.unsaved_work import UnsavedWork


def survey(host: Host) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """All of them, oldest first, and by their ids the errors of those that cannot be read."""
    return saved_entry.survey(
        host, _dir(host), (name for name in host.entries(_dir(host)) if not name.endswith(".git"))
    )


def entries(host: Host) -> list[SavedEntry]:
    """All of them, oldest first. Raises when one cannot be read."""
    found, broken = survey(host)
    for error in broken.values():
        raise error
    return found


def find(host: Host, name: str) -> SavedEntry:
    """By its id, or the newest one of an agent of that name."""
    all_entries, broken = survey(host)
    if name in broken:
        raise broken[name]
    matching = [entry for entry in all_entries if entry.id == name] or [
        entry for entry in all_entries if entry.name == name
    ]
    if matching:
        return matching[-1]
    raise NotFoundError(
        f"no saved work is called `{name}`",
        hint=suggest(name, [entry.id for entry in all_entries], "one") or "`mngr saved list` shows all",
    )


def save_agent(
    host: Host, record: Record, found: UnsavedWork, reason: str, *, always: bool = False
) -> SavedEntry | None:
    """Keep what `found` names. Nothing to keep gives None, unless it is `always` wanted. The workspace itself is not
    changed."""
    if not (found.any or found.ignored or always):
        return None
    place = reserve(host, record.name, record)
    entry = saved_entry.keep_workspace(place, record, found, reason=reason, at=timestamp())
    saved_entry.write(host, entry)
    return entry


def save_files(host: Host, name: str, directory: str, paths: Sequence[str], reason: str) -> SavedEntry:
    """Keep some files of any directory as they are now, before something writes over them."""
    place = reserve(host, name, None)
    commit, parent = saved_entry.keep_plain(place, directory, "", paths, f"Files saved on {reason}\n")
    entry = SavedEntry(
        place.id, name, reason, timestamp(), place.store, place.ref, commit, parent, 0, tuple(paths), (), (), (), None
    )
    saved_entry.write(host, entry)
    return entry


def _dir(host: Host) -> str:
    return os.path.join(host.dir, saved_entry.SAVED)


def reserve(host: Host, name: str, record: Record | None) -> EntryPlace:
    """A free id `NAME-N`, taken by making its directory, and refs that are free in the repository of this agent."""
    number = 1
    while True:
        try:
            os.mkdir(os.path.join(_dir(host), f"{name}-{number}"), 0o700)
            break
        except FileExistsError:
            number += 1
    ref = f"refs/mngr/saved/{name}/{number}"
    return EntryPlace(
        f"{name}-{number}", saved_entry.free_ref(record, ref) if record else ref, os.path.join(_dir(host), "files.git")
    )
