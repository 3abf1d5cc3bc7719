"""Ends the processes of a session and removes its directory, and says how to do so by hand. Only what is marked."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence

from mngr import files, process
from mngr.hosts import processes
from mngr.waiting import Deadline, wait_until

_SECONDS_TO_END = 2.0
_SECONDS_TO_DIE = 10.0


def marks(root: str) -> tuple[str, ...]:
    """What every process of a session has in its environment, unless it took care to lose it."""
    return (f"HOME={root}/home", f"TMUX_TMPDIR={root}/t")


def of_environment(root: str) -> dict[int, str]:
    return processes.with_entries(marks(root))


def of_session(leader: int) -> dict[int, str]:
    """The processes of a session, with their start times."""
    found = (processes.identify(pid) for pid in processes.of_session(leader))
    return dict(entry for entry in found if entry is not None)


def end(
    find: Callable[[], Mapping[int, str]],
    *,
    ask: Sequence[int] = (signal.SIGTERM,),
    seconds: float = _SECONDS_TO_END,
) -> None:
    """Ask all processes found to end, by these signals, then kill what is left of them, and what they started
    meanwhile."""
    found = find()
    if not found:
        return
    for number in ask:
        _signal(found, number)
    wait_until(lambda: not processes.still_alive(found), timeout=seconds)
    deadline = Deadline(_SECONDS_TO_DIE)
    while (left := find()) and not deadline.passed:
        _signal(left, signal.SIGKILL)
        deadline.pause(0.01)


def clean(root: str) -> None:
    """End everything that runs in an environment and remove its directory. Twice is safe."""
    end(lambda: of_environment(root))
    files.remove_tree(root)


def remove_script(root: str) -> str:
    """A shell script that does what `clean` does, without Python, and then removes itself."""
    first, second = (process.quote(mark) for mark in marks(root))
    return _SCRIPT.format(root=process.quote(root), first=first, second=second)


def _signal(found: Mapping[int, str], number: int) -> None:
    for pid in processes.still_alive(found):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


_SCRIPT = """\
#!/bin/sh
# Ends what still runs in the environment that this test left, and removes it. Twice is safe.
root={root}
running() {{
    if [ -d /proc/self ]; then
        grep -lF -e {first} -e {second} /proc/[0-9]*/environ 2>/dev/null | sed 's,^/proc/,,; s,/.*,,'
    else
        ps -A -E -ww -o pid=,command= | grep -F -e {first} -e {second} | grep -v grep | awk '{{ print $1 }}'
    fi
}}
end() {{
    for pid in $(running); do
        kill "-$1" "$pid" 2>/dev/null
    done
}}
end TERM
tries=0
while [ -n "$(running)" ] && [ "$tries" -lt 50 ]; do
    [ "$tries" -lt 5 ] || end KILL
    tries=$((tries + 1))
    sleep 0.1
done
if [ -d "$root" ]; then
    chmod -R u+rwx "$root" 2>/dev/null
    rm -rf -- "$root" || exit 1
fi
rm -f -- "$(dirname "$0")/environment.json" "$0"
"""
