"""The script that an agent's program runs at its own events: it notes the event, and the state that follows from it.
Shell only, so that it works on any host; it prints nothing and never fails, since programs show both to the user."""

from __future__ import annotations

from mngr.agents import events
from mngr.process import quote

FILE = "hooks.jsonl"
SCRIPT = "hook.sh"


def script(state_dir: str, home: str, source: str) -> str:
    """`hook.sh NAME [STATE [REASON]]`, with what the program says on standard input, as one JSON value. That goes to
    `hooks.jsonl` in the agent's home, and the state, if one is given, to the agent's events."""
    return _SCRIPT.format(
        hooks=quote(f"{home}/{FILE}"), events=quote(f"{state_dir}/{events.FILE}"), source=source, draft=quote(home)
    )


# A long line goes through a file, which `cat` appends in one piece: two hooks at once do not mix.
_SCRIPT = """#!/bin/sh
now=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
case $now in *N*) now=$(date -u +%Y-%m-%dT%H:%M:%SZ) ;; esac
payload=$(tr -d '\\n\\r')
line=$(printf '{{"timestamp": "%s", "hook": "%s", "payload": %s}}' "$now" "$1" "${{payload:-null}}")
if [ ${{#line}} -lt 4000 ]; then
    printf '%s\\n' "$line" >> {hooks}
else
    draft={draft}/hook.$$
    printf '%s\\n' "$line" > "$draft" && cat "$draft" >> {hooks}
    rm -f "$draft"
fi 2>/dev/null
if [ -n "$2" ]; then
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
    about=$(printf '"event_id": "evt-%s", "timestamp": "%s", "source": "{source}"' "$id" "$now")
    printf '{{%s, "type": "state", "state": "%s", "reason": "%s"}}\\n' "$about" "$2" "$3" >> {events}
fi 2>/dev/null
exit 0
"""
