"""Which processes of this machine belong to an agent or to a session. Reads the process table, signals nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from mngr.named_tuples import NamedTuple
from mngr.system import process


class Entry(NamedTuple):
    parent: int
    started: str
    zombie: bool


def of_agent(agent_id: str, roots: Collection[int], server: int | None) -> dict[int, str]:
    """Descendants of `roots`, and processes that left them but carry the agent's id in their environment, with their
    start times. `server` is the tmux server: what leaves an agent's tree becomes a child of one of its ancestors.
    Without it, every process is looked at."""
    marks = [b"MNGR_AGENT_ID=" + agent_id.encode()]
    if server is not None and os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        found = _tree(roots)
        adrift = {child for reaper in _ancestors(server) for child in _children(reaper)} - found
        found |= _tree(_having(marks, adrift))
    else:
        table = _table()
        found = _with_descendants({*roots, *_having(marks, table)}, table)
    return _identified(found)


def tmux_of_agents() -> dict[str, tuple[str, int]]:
    """For each agent whose launch script runs on this machine, the tmux server that runs it: the path of the socket,
    and the process. Empty where there is no /proc."""
    found: dict[str, tuple[str, int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        _, _, script = _text(name, "cmdline").removesuffix(b"\0").partition(b"\0")  # `sh DIR/agents/ID/launch.sh`
        if os.path.basename(script) != b"launch.sh":
            continue
        variables = dict(entry.partition(b"=")[::2] for entry in _text(name, "environ").split(b"\0"))
        socket, _, rest = variables.get(b"TMUX", b"").partition(b",")
        server = rest.partition(b",")[0]
        if server.isdigit() and int(server) in _ancestors(int(name)):
            found[os.fsdecode(os.path.basename(os.path.dirname(script)))] = (os.fsdecode(socket), int(server))
    return found


def _text(pid: str, name: str) -> bytes:
    """A file of a process; empty for one that may not be looked at or has ended."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def descendants(pid: int) -> dict[int, str]:
    """A process and all that descend from it, with their start times."""
    return _identified(_with_descendants({pid}, _table()))


def with_entries(entries: Collection[str]) -> dict[int, str]:
    """Processes that have one of these `NAME=value` entries in their environment, and their descendants, with their
    start times."""
    table = _table()
    marks = [os.fsencode(entry) for entry in entries]
    return _identified(_with_descendants(_having(marks, table), table))


def _identified(found: set[int]) -> dict[int, str]:
    """With their start times, parents mostly first: a shell whose command was ended would go on to the next one."""
    found = found - {os.getpid(), 1, 0}
    entries = {pid: _entry(pid) for pid in sorted(found)}
    return {pid: entry.started for pid, entry in entries.items() if entry is not None and not entry.zombie}


def of_session(leader: int) -> set[int]:
    """Processes of the session that this process leads or led. Its id must still be taken, by itself or a zombie."""
    found = set()
    for pid, entry in _table().items():
        try:
            if not entry.zombie and os.getsid(pid) == leader:
                found.add(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def identify(pid: int) -> tuple[int, str] | None:
    entry = _entry(pid)
    return (pid, entry.started) if entry else None


def still_alive(found: Mapping[int, str]) -> dict[int, str]:
    """Those that still run and are the same process: ids are reused, start times are not."""
    entries = {pid: _entry(pid) for pid in found}
    return {
        pid: started
        for pid, started in found.items()
        if (entry := entries[pid]) is not None and entry.started == started and not entry.zombie
    }


def _with_descendants(roots: set[int], table: Mapping[int, Entry]) -> set[int]:
    found = roots & table.keys()
    grown = True
    while grown:
        children = {pid for pid, entry in table.items() if entry.parent in found} - found
        grown = bool(children)
        found |= children
    return found


def _tree(roots: Iterable[int]) -> set[int]:
    found: set[int] = set()
    left = list(roots)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    """Children are listed under the thread that made them."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it ended meanwhile
    return found


def _ancestors(pid: int) -> list[int]:
    found = []
    while (entry := _entry(pid)) is not None and entry.parent > 0:
        pid = entry.parent
        found.append(pid)
    return found


def _entry(pid: int) -> Entry | None:
    if not os.path.isdir("/proc/self"):
        return _ps_table().get(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may itself hold blanks and parentheses.
    fields = text[text.rfind(b")") + 2 :].split()
    return Entry(parent=int(fields[1]), started=fields[19].decode(), zombie=fields[0] in (b"Z", b"X"))


def _having(marks: Collection[bytes], pids: Iterable[int]) -> set[int]:
    """Those with one of these entries in their environment."""
    if not os.path.isdir("/proc/self"):
        result = process.checked(process.run(["ps", "-A", "-E", "-ww", "-o", "pid=,command="], timeout=10))
        lines = [line.strip() + b" " for line in result.stdout.split(b"\n")]
        return {int(line.split()[0]) for line in lines if any(b" " + mark + b" " in line for mark in marks)}
    found = set()
    for pid in pids:
        text = b"\0" + _text(str(pid), "environ")
        if any(b"\0" + mark + b"\0" in text for mark in marks):
            found.add(pid)
    return found


def _table() -> dict[int, Entry]:
    if not os.path.isdir("/proc/self"):
        return _ps_table()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid: entry for pid in pids if (entry := _entry(pid)) is not None}


def _ps_table() -> dict[int, Entry]:
    """For systems without /proc (macOS)."""
    result = process.checked(process.run(["ps", "-A", "-o", "pid=,ppid=,stat=,lstart="], timeout=10))
    entries = {}
    for line in result.text.split("\n"):
        fields = line.split(None, 3)
        if len(fields) == 4:
            entries[int(fields[0])] = Entry(parent=int(fields[1]), started=fields[3], zombie=fields[2].startswith("Z"))
    return entries
