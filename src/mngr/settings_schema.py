"""Which settings exist, and of which kind: the schema of a settings file, and what makes a key a good one. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mngr.errors import UsageError
from mngr.names import suggest
from mngr.records import TYPE_CHECKING
from mngr.settings_values import (
    ANY,
    ARGUMENTS,
    BOOLEAN,
    HOME,
    NUMBER,
    PATHS,
    PERMISSIONS,
    PREFIX,
    TEXT,
    WHOLE,
    Key,
    Kind,
    format_key,
    parse_key,
)

if TYPE_CHECKING:
    from typing import TypeAlias


Schema: TypeAlias = "Mapping[str, Schema | Kind]"

# Accepted so that a settings file written for another version works; nothing here reads them.
NO_EFFECT = ("retry", "logging")

# `*` stands for any name. What `commands` and `create_templates` hold is checked against the command's own options.
SCHEMA: Schema = {
    "commands": {"*": {"*": ANY}},
    "create_templates": {"*": {"*": ANY}},
    "agent_types": {
        "*": {
            "parent_type": TEXT,
            "command": TEXT,
            "cli_args": ARGUMENTS,
            "env": {"*": TEXT},
            "permissions": PERMISSIONS,
            **dict.fromkeys(("ready", "busy", "blocked", "refused"), TEXT),
            **dict.fromkeys(("first_prompt", "resume", "one_shot", "record"), TEXT),
            **dict.fromkeys(("home_env", "home_links"), ARGUMENTS),
        }
    },
    "workspace": {"extra_paths": PATHS},
    "tmux": {"session_prefix": PREFIX, "config": TEXT, "history_lines": WHOLE},
    "saved": {"ignored_max_mb": NUMBER},
    "prices": {"*": dict.fromkeys(("input", "output", "cache_read", "cache_write"), NUMBER)},
    "record": {"max_mb": NUMBER},
    "plugins": {"*": {"enabled": BOOLEAN}},
    "tmr": {
        "prepare": TEXT,
        "test_command": TEXT,
        "gate_command": TEXT,
        "env": {"*": TEXT},
        "paths": {"implementation": ARGUMENTS, "non_implementation": ARGUMENTS, "read_only": ARGUMENTS},
        "prompt": TEXT,
        "max_jobs": WHOLE,
        "test_seconds": NUMBER,
        "job_seconds": NUMBER,
        "baseline_repeats": WHOLE,
        "effect_runs": WHOLE,
        "largest_file_mb": NUMBER,
        "home": HOME,
        "mutants": WHOLE,
        "second_opinion": BOOLEAN,
    },
    "tutorial": {"script": TEXT, "tests": ARGUMENTS, "program": TEXT, "test_command": TEXT},
    "headless": BOOLEAN,
    **{name: {"*": ANY} for name in NO_EFFECT},
}
DEFAULTS: Mapping[Key, object] = {("tmux", "session_prefix"): "mngr-", ("saved", "ignored_max_mb"): 10}
NOT_YET = frozenset({"providers"})
OPTIONS = frozenset({"commands", "create_templates"})
# Other spellings that scripts and settings files use.
ALIASES: Mapping[str, Key] = {
    "prefix": ("tmux", "session_prefix"),
    "work_dir_extra_paths": ("workspace", "extra_paths"),
}
# Plugins and other versions of mngr have keys of their own in these sections.
_SHARED = frozenset({"commands", "agent_types", "plugins"})

# What a repository may set without its user's trust (`mngr config trust`). A key belongs here only if no value of it,
# or none of those listed, runs a program, names a file of the user's, passes on a variable, spends money or answers a
# question for the user. A new key needs trust until it is added here.
_CODING_AGENTS = ("claude", "codex", "opencode")
_SAFE_TO_CREATE = {
    "type": _CODING_AGENTS,
    "permissions": ("ask",),
    "provider": ("local",),
    **dict.fromkeys(("transfer", "branch", "project", "label", "template", "record", "no_record", "one_shot")),
    **dict.fromkeys(("connect", "no_connect", "idle_timeout", "idle_mode", "timeout", "dry_run")),
    **dict.fromkeys(("ensure_clean", "no_ensure_clean", "include_unclean", "exclude_unclean")),
}
_SAFE_OPTIONS: Mapping[str, Mapping[str, tuple[str, ...] | None]] = {
    "create": _SAFE_TO_CREATE,
    "start": dict.fromkeys(("connect", "no_connect")),
    "clone": dict.fromkeys(("connect", "no_connect", "label", "project", "dry_run")),
    "tmr": {"type": _CODING_AGENTS, "permissions": ("ask",), **dict.fromkeys(("transfer", "record", "no_record"))},
    **{verb: {"*": None} for verb in ("list", "usage", "diff", "event", "transcript")},
}
_SAFE: frozenset[Key] = frozenset(
    {
        ("headless",),
        ("workspace", "extra_paths"),  # only below the directory that is copied
        *(("tmux", name) for name in ("session_prefix", "history_lines")),
        ("saved", "ignored_max_mb"),
        ("record", "max_mb"),
        *(("tmr", name) for name in ("max_jobs", "test_seconds", "job_seconds", "baseline_repeats", "effect_runs")),
        ("tmr", "largest_file_mb"),
        *(("tmr", "paths", name) for name in ("implementation", "non_implementation", "read_only")),
    }
)


def is_safe(key: Key, value: object) -> bool:
    """Whether this may come from a repository that its user has not trusted."""
    if key in (("tutorial", "script"), ("tutorial", "tests")):
        paths = value if isinstance(value, list) else [value]
        return not any(str(path).startswith(("/", "~")) or ".." in str(path).split("/") for path in paths)
    if len(key) != 3 or key[0] not in OPTIONS:
        return key in _SAFE or key[0] in NO_EFFECT
    options = _SAFE_TO_CREATE if key[0] == "create_templates" else _SAFE_OPTIONS.get(key[1], {})
    if key[2] in ("format", "quiet", "verbose", "headless") or "*" in options:
        return True
    good = options.get(key[2], ())
    return good is None or value in good


def known_key(key: str | Key, source: str = "", commands: Collection[str] | None = None) -> Key:
    """The key's parts as the schema spells them, or an error that names the nearest good key."""
    node: Schema | Kind = SCHEMA
    good: Key = ()
    for part in as_key(key):
        if not isinstance(node, Kind):
            part = _known_part(good, part, node, source, commands)
            node = inner(node, part)
        good = (*good, part)
    return good


def _known_part(path: Key, part: str, node: Schema, source: str, commands: Collection[str] | None) -> str:
    full = format_key((*path, part))
    place = f" in `{source}`" if source else ""
    if path == ("commands",) and commands is not None:
        for command in sorted(commands):
            if command.replace("-", "_") == part.replace("-", "_"):
                return command
        raise UsageError(f"unknown key `{full}`{place}", hint=suggest(part, tuple(commands), "command"))
    if not part or "\0" in part:
        raise UsageError(f"`{full}`{place} is not a key: a name is empty or holds a NUL byte")
    if len(path) == 2 and path[0] in OPTIONS:
        return part.replace("-", "_")
    if path == ("plugins",):
        return part.replace("_", "-")
    if part in node or "*" in node:
        return part
    if not path and part == "default_host_dir":
        hint = "set the variable instead: `export MNGR_HOST_DIR=DIRECTORY`"
        raise UsageError(f"`{full}`{place} has no effect: settings are read from the host directory", hint=hint)
    if not path and part in NOT_YET:
        hint = suggest("", tuple(SCHEMA), "section")
        raise UsageError(f"`{full}`{place} is not a setting of this version of mngr", hint=hint)
    raise UsageError(f"unknown key `{full}`{place}", hint=suggest(part, tuple(node), "key"))


def inner(node: Schema, name: str) -> Schema | Kind:
    return node[name] if name in node else node["*"]


def may_be_unknown(path: Key) -> bool:
    """Whether an unknown key in this table is skipped with a warning. Our own sections have no foreign keys."""
    return not path or path[0] in _SHARED


def as_key(key: str | Key) -> Key:
    """The parts of a dotted key; an option of a command or template may be written with `-` or `_`."""
    parts = parse_key(key) if isinstance(key, str) else key
    if parts and parts[0] in ALIASES:
        parts = (*ALIASES[parts[0]], *parts[1:])
    if len(parts) > 2 and parts[0] in OPTIONS:
        return (*parts[:2], parts[2].replace("-", "_"), *parts[3:])
    return parts
