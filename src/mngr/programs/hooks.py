"""The script that an agent's program runs at its own events: it notes the event, and the state that follows from it.
Shell only, so that it works on any host; it prints nothing and never fails, since programs show both to the user."""

from __future__ import annotations

import json
from typing import Any

from mngr.agent import events
from mngr.agent.reasons import shortened
from mngr.json_values import objects, table
from mngr.programs.driver import AgentContext
from mngr.system.files import read_lines
from mngr.system.process import quote

FILE = "hooks.jsonl"
_NAME = "hook.sh"


def write_script(agent: AgentContext, source: str) -> str:
    """Write the script, and return its command: `COMMAND NAME [STATE [REASON]]`, with what the program says on standard
    input, as one JSON value. That goes to `hooks.jsonl` in the agent's home, and the state, if one is given, to the
    agent's events. Of a prompt, the state is written first: whoever sees the prompt sees the state too."""
    path, home = f"{agent.home}/{_NAME}", agent.home
    names = {
        "hooks": quote(f"{home}/{FILE}"),
        "events": quote(f"{agent.state_dir}/{events.FILE}"),
        "draft": quote(home),
    }
    agent.host.write(path, _SCRIPT.format(source=source, **names).encode("utf-8", "surrogateescape"), 0o700)
    return f"sh {quote(path)}"


def last(agent: AgentContext, hook: str) -> object:
    """What the program said to the last of these hooks."""
    found = hooked(agent.tail(FILE), hook)
    return found[-1].get("payload") if found else None


def hooked(data: bytes, hook: str) -> list[dict[str, Any]]:
    mark = hook.encode()
    lines = read_lines(b"\n".join(line for line in data.split(b"\n") if mark in line[:200]))
    return [line for line in lines if line.get("hook") == hook]


def prompts(data: bytes) -> list[str]:
    payloads = [line.get("payload") for line in hooked(data, "UserPromptSubmit")]
    return [str(payload.get("prompt") or "") for payload in payloads if isinstance(payload, dict)]


def asked(agent: AgentContext) -> str:
    """What the program last asked a permission for, as a reason."""
    return permission(last(agent, "PermissionRequest"))


def permission(payload: object) -> str:
    if not isinstance(payload, dict):
        return "permission: it asks for something"
    tool, given = str(payload.get("tool_name") or "a tool"), table(payload.get("tool_input"))
    if tool == "AskUserQuestion":
        first = next(objects(given.get("questions")), {})
        return shortened(f"question: {first.get('question', '')}")
    for name in ("command", "file_path", "notebook_path", "url", "pattern", "path", "plan", "description"):
        if isinstance(given.get(name), str):
            return shortened(f"permission: {tool}: {given[name]}")
    return shortened(f"permission: {tool}" + (f": {json.dumps(given, ensure_ascii=False)}" if given else ""))


# A long line goes through a file, which `cat` appends in one piece: two hooks at once do not mix.
_SCRIPT = """#!/bin/sh
now=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
case $now in *N*) now=$(date -u +%Y-%m-%dT%H:%M:%SZ) ;; esac
payload=$(tr -d '\\n\\r')
line=$(printf '{{"timestamp": "%s", "hook": "%s", "payload": %s}}' "$now" "$1" "${{payload:-null}}")
note() {{
    if [ ${{#line}} -lt 4000 ]; then
        printf '%s\\n' "$line" >> {hooks}
    else
        draft={draft}/hook.$$
        printf '%s\\n' "$line" > "$draft" && cat "$draft" >> {hooks}
        rm -f "$draft"
    fi
}}
report() {{
    [ -n "$2" ] || return 0
    id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')
    about=$(printf '"event_id": "evt-%s", "timestamp": "%s", "source": "{source}"' "$id" "$now")
    printf '{{%s, "type": "state", "state": "%s", "reason": "%s"}}\\n' "$about" "$2" "$3" >> {events}
}}
case $1 in
    UserPromptSubmit) report "$@"; note ;;
    *) note; report "$@" ;;
esac 2>/dev/null
exit 0
"""
