"""What the JSON of every verb looks like: the contract with scripts, printed by `mngr VERB --schema` and checked
against real output by a test. Imported only for that.

Written in short form: "text", "int", "number", "bool" or "any"; a `?` after it means that it may be null, before a key
that the key may be absent; a list holds the form of its items, `{"*": form}` is an object with any keys.
"""

from __future__ import annotations

from mngr.cli import schemas_testing
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_WORDS = {"text": "string", "int": "integer", "number": "number", "bool": "boolean"}

HOST = {
    "id": "text",
    "name": "text",
    "provider": "text",
    "provider_name": "text",
    "state": "text",
    "tags": {"*": "text"},
    "ssh": "any",
    "snapshots": ["any"],
}
_LIMITS = {"idle_seconds": "number?", "idle_mode": "text", "run_seconds": "number?"}
AGENT = {
    "id": "text",
    "name": "text",
    "type": "text",
    "command": "text",
    "state": "text",
    "state_reason": "text",
    "state_since": "text?",
    "exit_code": "int?",
    "signal": "int?",
    "work_dir": "text",
    "transfer": "text",
    "repo": "text?",
    "initial_branch": "text?",
    "base_branch": "text?",
    "base_commit": "text?",
    "create_time": "text",
    "start_time": "text?",
    "archived_at": "text?",
    "runtime_seconds": "number?",
    "idle_seconds": "number?",
    "pid": "int?",
    "session": "text",
    "attached": "bool",
    "labels": {"*": "text"},
    "limits": _LIMITS,
    "project": "text",
    "index": "int",
    "host": HOST,
}
PROBLEM = {"error": "text", "hint": "text"}
ERROR = {**PROBLEM, "exit_code": "int", "?details": "text"}
# One row of a verb that acts on many: what came of it, or the error.
_FAILED_TARGET = {"id": "text", "name": "text", "ok": "bool", **PROBLEM}


def _targets(**facts: Any) -> Any:
    return [{"any of": [{"id": "text", "name": "text", "ok": "bool", **facts}, _FAILED_TARGET]}]


_COPIED = {
    "name": "text",
    "source": "text",
    "target": "text",
    "files": ["text"],
    "saved": "text?",
    "dry_run": "bool",
}
_SAVED = {
    "id": "text",
    "name": "text",
    "reason": "text",
    "saved_at": "text",
    "age": "text",
    "commits": "int",
    "files": "int",
    "uncommitted": ["text"],
    "ignored": ["text"],
    "left_out": [{"path": "text", "megabytes": "number"}],
    "repo": "text",
    "ref": "text",
    "commit": "text",
    "branch": "text?",
}
_SNAPSHOT = {
    "id": "text",
    "name": "text",
    "agent": "text",
    "agent_id": "text?",
    "created_at": "text",
    "age": "text",
    "commits": "int",
    "files": "int",
    "uncommitted": ["text"],
    "ignored": ["text"],
    "left_out": [{"path": "text", "megabytes": "number"}],
    "repo": "text",
    "ref": "text",
    "commit": "text",
    "branch": "text?",
}
_WOULD_KEEP = {"id": "text", "name": "text", "agent": "text", "dry_run": "bool"}
_WOULD_CLONE = {"name": "text", "source": "text", "branch": "text?", "dry_run": "bool"}
_CLONED = {
    "agent_id": "text",
    "name": "text",
    "source": "text",
    "host_id": "text",
    "host_name": "text",
    "work_dir": "text",
    "branch": "text?",
    "session": "text",
}
_SETTING = {"key": "text", "value": "any", "source": "text"}
_USED = {
    "answers": "int",
    "input_tokens": "int",
    "output_tokens": "int",
    "cache_read_tokens": "int",
    "cache_write_tokens": "int",
    "cost_usd": "number?",
    "unpriced": "int",
}

_CREATED = {
    "agent_id": "text",
    "name": "text",
    "host_id": "text",
    "host_name": "text",
    "work_dir": "text",
    "branch": "text?",
    "session": "text",
    "reused": "bool",
}
_PLANNED = {
    "name": "text",
    "type": "text",
    "command": "text",
    "transfer": "text",
    "source": "text",
    "branch": "text?",
    "base_branch": "text?",
    "base_commit": "text?",
    "dry_run": "bool",
}

# A verb whose parts or options print different documents has several.
FORMS: dict[str, list[Any]] = {
    "create": [
        _CREATED,
        _PLANNED,
        _CLONED,
        _WOULD_CLONE,
        {"name": "text", "reused": "bool", "dry_run": "bool"},
        [{"any of": [{**_CREATED, "ok": "bool"}, {"name": "text", "ok": "bool", **PROBLEM}]}],
        [
            {
                "any of": [
                    {**_PLANNED, "ok": "bool"},
                    {"name": "text", "ok": "bool", "reused": "bool", "dry_run": "bool"},
                    {"name": "text", "ok": "bool", **PROBLEM},
                ]
            }
        ],
    ],
    "list": [
        {"agents": [AGENT], "errors": [PROBLEM]},
        {"name": "text", "state": "text", "reason": "text", "evidence": "text"},
    ],
    "wait": [{"agents": [AGENT]}],
    "message": [
        {
            "successful_agents": ["text"],
            "failed_agents": [{"agent": "text", **PROBLEM}],
            "blocked_agents": ["text"],
            "message_ids": {"*": "text"},
            "acknowledged": {"*": "bool?"},
            "?replies": {"*": "text"},
        }
    ],
    "exec": [
        {
            "results": [
                {
                    "agent": "text",
                    "success": "bool",
                    "exit_code": "int?",
                    "stdout": "text",
                    "stderr": "text",
                    "?error": "text",
                }
            ]
        }
    ],
    "capture": [
        {"name": "text", "live": "bool", "screen": "text"},
        {"name": "text", "file": "text", "bytes": "int"},
    ],
    "event": [[{"event_id": "text", "timestamp": "text", "source": "text", "type": "text", "*": "any"}]],
    "transcript": [[{"timestamp": "text", "role": "text", "text": "text", "*": "any"}]],
    "usage": [
        {
            "by": "text",
            "usage": [{"name": "text", "id": "text?", **_USED}],
            "total": _USED,
            "errors": [PROBLEM],
        }
    ],
    "diff": [{"name": "text", "base_commit": "text?", "diff": "text"}],
    "pull": [
        {
            "name": "text",
            "branch": "text?",
            "commit": "text",
            "commits": "int",
            "new": "int",
            "uncommitted": "int",
            "already_here": "bool",
            "dry_run": "bool",
        },
        _COPIED,
    ],
    "push": [{"name": "text", "commit": "text", "commits": "int", "dry_run": "bool"}, _COPIED],
    "git": [],
    "rsync": [_COPIED],
    "observe": [
        {
            "event_id": "text",
            "timestamp": "text",
            "source": "text",
            "type": "text",
            "?error": "text",
            "?agent_id": "text",
            "?name": "text",
            "?state": "text",
            "?agent": AGENT,
        }
    ],
    "merge": [
        {"name": "text", "into": "text", "commits": "int", "uncommitted": "int", "commit": "text", "dry_run": "bool"}
    ],
    "saved": [
        {"saved": [_SAVED], "errors": [PROBLEM]},
        _SAVED,
        {"id": "text", "work_dir": "text", "?agent_id": "text", "?name": "text", "?branch": "text?"},
    ],
    "snapshot": [
        {"snapshots": [_SNAPSHOT], "errors": [PROBLEM]},
        {**_SNAPSHOT, "?dry_run": "bool"},
        _WOULD_KEEP,
        [{"any of": [{**_SNAPSHOT, "ok": "bool"}, {**_WOULD_KEEP, "ok": "bool"}, _FAILED_TARGET]}],
        {
            "snapshot": "text",
            "agent_id": "text",
            "name": "text",
            "work_dir": "text",
            "branch": "text?",
            "saved": "text?",
            "made": "bool",
            "running": "bool",
        },
        {"destroyed": ["text"], "dry_run": "bool"},
    ],
    "clone": [_CLONED, _WOULD_CLONE],
    "start": [_targets(started="bool", dry_run="bool")],
    "stop": [_targets(stopped="bool", outlived=["int"], archived="bool", dry_run="bool")],
    "archive": [_targets(archived="bool", archived_at="text?", dry_run="bool")],
    "destroy": [
        _targets(saved="text?", kept_branch="text?", outlived=["int"]),
        _targets(dry_run="bool", commits="int", uncommitted=["text"]),
    ],
    "rename": [{"id": "text", "old": "text", "name": "text", "dry_run": "bool"}],
    "label": [_targets(labels={"*": "text"}, dry_run="bool")],
    "limit": [
        _targets(limits=_LIMITS, dry_run="bool"),
        _targets(stopped="bool", reason="text", seconds_left="int?", saved="text?", dry_run="bool"),
    ],
    "cleanup": [
        _targets(action="text", outlived=["int"], dry_run="bool"),
        _targets(action="text", saved="text?", kept_branch="text?", dry_run="bool"),
        _targets(action="text", commits="int", uncommitted=["text"], dry_run="bool"),
    ],
    "gc": [
        {
            "leftovers": [
                {
                    "what": "text",
                    "name": "text",
                    "path": "text",
                    "action": "text",
                    "saved": "text?",
                    "note": "text",
                }
            ]
        }
    ],
    "doctor": [
        {
            "checks": [{"name": "text", "status": "text", "found": "text", "hint": "text", "items": ["text"]}],
            "ok": "bool",
        }
    ],
    "config": [
        {"settings": [_SETTING]},
        _SETTING,
        {"key": "text", "value": "any", "scope": "text", "path": "text"},
        {"key": "text", "scope": "text", "path": "text"},
        {"scope": "text", "path": "text", "changed": "bool"},
        {"scope": "text", "path": "text", "exists": "bool"},
        {"paths": [{"scope": "text", "path": "text?", "exists": "bool"}]},
        {"key": "text", "values": [{**_SETTING, "wins": "bool"}]},
        {"root": "text", "trusted": [{"file": "text", "lines": ["text"]}]},
        {"root": "text", "removed": "int"},
    ],
    "plugin": [
        {
            "plugins": [
                {
                    "name": "text",
                    "version": "text",
                    "package": "text",
                    "active": "bool",
                    "enabled": "bool",
                    "verbs": ["text"],
                    "types": ["text"],
                    "recipes": ["text"],
                    "problems": ["text"],
                }
            ]
        },
        {"installed": ["text"], "plugins": ["text"], "dry_run": "bool"},
        {"uninstalled": ["text"], "dry_run": "bool"},
        [{"name": "text", "enabled": "bool", "changed": "bool", "path": "text", "dry_run": "bool"}],
    ],
    "help": [[{"name": "text", "summary": "text"}]],
    **schemas_testing.FORMS,
}
FORMS["git"] = [*FORMS["merge"], *FORMS["push"]]


def schema(verb: str) -> dict[str, Any] | None:
    """The JSON Schema of what `mngr VERB --format json` prints; None for a verb that prints none."""
    forms = FORMS.get(verb)
    if forms is None:
        return None
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"mngr {verb} --format json",
        "anyOf": [_expand(form) for form in (*forms, ERROR)],
    }


def _expand(form: Any) -> dict[str, Any]:
    if isinstance(form, str):
        if form == "any":
            return {}
        word = _WORDS[form.removesuffix("?")]
        return {"type": [word, "null"]} if form.endswith("?") else {"type": word}
    if isinstance(form, list):
        return {"type": "array", "items": _expand(form[0])}
    if "any of" in form:
        return {"anyOf": [_expand(part) for part in form["any of"]]}
    named = {key: value for key, value in form.items() if key != "*"}
    return {
        "type": "object",
        "properties": {key.removeprefix("?"): _expand(value) for key, value in named.items()},
        "required": [key for key in named if not key.startswith("?")],
        "additionalProperties": _expand(form["*"]) if "*" in form else False,
    }
