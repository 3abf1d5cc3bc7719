"""Which processes of this machine belong to an agent. Reads the process table, signals nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from mngr import process
from mngr.records import NamedTuple


class Entry(NamedTuple):
    parent: int
    started: str
    zombie: bool


def of_agent(agent_id: str, roots: Iterable[int]) -> dict[int, str]:
    """Descendants of `roots`, and every process with the agent's id in its environment, with their start times."""
    table = _table()
    found = {pid for pid in roots if pid in table}
    found |= _carrying(agent_id, table)
    grown = True
    while grown:
        children = {pid for pid, entry in table.items() if entry.parent in found and pid not in found}
        grown = bool(children)
        found |= children
    found -= {os.getpid(), 1, 0}
    return {pid: table[pid].started for pid in found if not table[pid].zombie}


def identify(pid: int) -> tuple[int, str] | None:
    entry = _linux_entry(pid) if os.path.isdir("/proc/self") else _ps_table().get(pid)
    return (pid, entry.started) if entry else None


def still_alive(found: Mapping[int, str]) -> dict[int, str]:
    """Those that still run and are the same process: ids are reused, start times are not."""
    if os.path.isdir("/proc/self"):
        alive = {}
        for pid, started in found.items():
            entry = _linux_entry(pid)
            if entry is not None and entry.started == started and not entry.zombie:
                alive[pid] = started
        return alive
    table = _table()
    return {
        pid: started
        for pid, started in found.items()
        if pid in table and table[pid].started == started and not table[pid].zombie
    }


def _table() -> dict[int, Entry]:
    if not os.path.isdir("/proc/self"):
        return _ps_table()
    entries = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (entry := _linux_entry(int(name))) is not None:
            entries[int(name)] = entry
    return entries


def _linux_entry(pid: int) -> Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may itself hold blanks and parentheses.
    fields = text[text.rfind(b")") + 2 :].split()
    return Entry(parent=int(fields[1]), started=fields[19].decode(), zombie=fields[0] in (b"Z", b"X"))


def _carrying(agent_id: str, table: Mapping[int, Entry]) -> set[int]:
    mark = b"MNGR_AGENT_ID=" + agent_id.encode()
    found = set()
    for pid in table:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if mark in text:
            found.add(pid)
    return found


def _ps_table() -> dict[int, Entry]:
    """For systems without /proc (macOS): a process that left the agent's session is found only through its parents."""
    result = process.checked(process.run(["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="], timeout=10))
    entries = {}
    for line in result.text.split("\n"):
        fields = line.split(None, 3)
        if len(fields) == 4:
            entries[int(fields[0])] = Entry(parent=int(fields[1]), started=fields[3], zombie=fields[2].startswith("Z"))
    return entries
