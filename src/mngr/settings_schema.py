"""Which settings exist and what they hold: the schema, and checking what one source sets against it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from mngr.errors import UsageError
from mngr.names import suggest
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
    ValueType,
    describe,
    format_key,
    parse_key,
    parse_text,
    put,
    text_value,
)

Schema: TypeAlias = "Mapping[str, Schema | ValueType]"

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
    "providers": {
        "*": {
            **dict.fromkeys(("type", "host_dir", "image", "network", "memory", "address"), TEXT),
            **dict.fromkeys(("hosts", "options", "open", "open_tty", "build", "create", "list"), ARGUMENTS),
            **dict.fromkeys(("stop", "start", "snapshot", "destroy"), ARGUMENTS),
            **dict.fromkeys(("connect_seconds", "cpus", "gpus", "max_hours", "idle_stop_minutes"), NUMBER),
            **dict.fromkeys(("pids", "max_agents", "max_hosts"), WHOLE),
            **dict.fromkeys(("install", "autoscaling"), BOOLEAN),
            "resources": {"*": NUMBER},
        }
    },
    "hosts": dict.fromkeys(("answer_seconds", "verb_seconds"), NUMBER),
    "workspace": {"extra_paths": PATHS},
    "tmux": {"session_prefix": PREFIX, "config": TEXT, "history_lines": WHOLE},
    "saved": {"ignored_max_mb": NUMBER},
    "prices": {"*": dict.fromkeys(("input", "output", "cache_read", "cache_write"), NUMBER)},
    "record": {"max_mb": NUMBER},
    "sandbox": {"readable": ARGUMENTS, "writable": ARGUMENTS},
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
        "lost_seconds": NUMBER,
    },
    "tutorial": {"script": TEXT, "tests": ARGUMENTS, "program": TEXT, "test_command": TEXT},
    "headless": BOOLEAN,
    **{name: {"*": ANY} for name in NO_EFFECT},
}
DEFAULTS: Mapping[Key, object] = {("tmux", "session_prefix"): "mngr-", ("saved", "ignored_max_mb"): 10}
OPTIONS = frozenset({"commands", "create_templates"})
# Other spellings that scripts and settings files use.
ALIASES: Mapping[str, Key] = {
    "prefix": ("tmux", "session_prefix"),
    "work_dir_extra_paths": ("workspace", "extra_paths"),
}
# Plugins and other versions of mngr have keys of their own in these sections.
_SHARED = frozenset({"commands", "agent_types", "plugins", "providers"})

# What a repository may set without its user's trust (`mngr config trust`). A key belongs here only if no value of it,
# or none of those listed, runs a program, names a file of the user's, passes on a variable, spends money or answers a
# question for the user. A new key needs trust until it is added here.
_CODING_AGENTS = ("claude", "codex", "opencode")
_SAFE_TO_CREATE: Mapping[str, tuple[object, ...] | None] = {
    "type": _CODING_AGENTS,
    "permissions": ("ask",),
    "sandbox": (True,),
    "network": ("off",),
    "provider": ("local",),
    **dict.fromkeys(("transfer", "branch", "project", "label", "template", "record", "no_record", "one_shot")),
    **dict.fromkeys(("connect", "no_connect", "idle_timeout", "idle_mode", "timeout", "dry_run")),
    **dict.fromkeys(("ensure_clean", "no_ensure_clean", "include_unclean", "exclude_unclean")),
}
_SAFE_OPTIONS: Mapping[str, Mapping[str, tuple[object, ...] | None]] = {
    "create": _SAFE_TO_CREATE,
    "start": dict.fromkeys(("connect", "no_connect")),
    "clone": dict.fromkeys(("connect", "no_connect", "label", "project", "dry_run")),
    "tmr": {
        "type": _CODING_AGENTS,
        "permissions": ("ask",),
        "sandbox": (True,),
        "network": ("off",),
        **dict.fromkeys(("transfer", "record", "no_record")),
    },
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
    node: Schema | ValueType = SCHEMA
    good: Key = ()
    for part in as_key(key):
        if not isinstance(node, ValueType):
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
    raise UsageError(f"unknown key `{full}`{place}", hint=suggest(part, tuple(node), "key"))


def inner(node: Schema, name: str) -> Schema | ValueType:
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


class Layer(NamedTuple):
    """What one source sets: values by full key, and the named tables it mentions, empty ones included. `gated` are the
    values that count only when the user trusts the repository at `root`."""

    source: str
    values: Mapping[Key, object]
    named: frozenset[Key] = frozenset()
    gated: Mapping[Key, object] = {}
    root: str = ""


def gate(layer: Layer, root: str) -> Layer:
    """The settings of a repository: what runs or grants something is set apart, until its user trusts it."""
    gated = {key: item for key, item in layer.values.items() if not is_safe(key, item)}
    if not gated:
        return layer
    safe = {key: item for key, item in layer.values.items() if key not in gated}
    return layer._replace(values=safe, gated=gated, root=root)


def read_layer(
    tree: Mapping[str, object],
    source: str,
    commands: Collection[str] | None = None,
    ignored: list[str] | None = None,
) -> Layer:
    """Check a whole tree of settings against the schema. `source` is what an error names. Unknown keys where other
    programs have theirs are an error without `ignored`; with it, they are skipped and described there."""
    values: dict[Key, object] = {}
    named: set[Key] = set()
    for key, item, kind in _leaves(_renamed(tree), SCHEMA, (), source, commands, ignored):
        if len(key) == 2 and kind is None:
            named.add(key)
        if kind is None:
            continue
        if key in values:
            raise UsageError(f"`{format_key(key)}` is set twice in `{source}`, once with `-` and once with `_`")
        try:
            values[key] = kind.read(item)
        except ValueError as error:
            raise mismatch(key, source, kind.expected, item, str(error)) from None
    return Layer(source, values, frozenset(named))


def _renamed(tree: Mapping[str, object]) -> Mapping[str, object]:
    """The tree with the usual names in place of their aliases. A value under its usual name wins."""
    found = [name for name in ALIASES if name in tree]
    if not found:
        return tree
    renamed: dict[str, object] = {}
    for name in found:
        put(renamed, ALIASES[name], tree[name])
    for name, item in tree.items():
        if name not in found:
            above = renamed.get(name)
            renamed[name] = {**above, **item} if isinstance(above, dict) and isinstance(item, dict) else item
    return renamed


def _leaves(
    tree: Mapping[str, object],
    node: Schema,
    path: Key,
    source: str,
    commands: Collection[str] | None,
    ignored: list[str] | None,
) -> Iterator[tuple[Key, object, ValueType | None]]:
    """Each value with its key and kind. A table inside a section comes also by itself, without a kind."""
    for name, item in tree.items():
        try:
            key = known_key((*path, name), source, commands)
        except UsageError as error:
            if ignored is None or not may_be_unknown(path):
                raise
            more = "" if error.hint.startswith("known: ") or not error.hint else f"; {error.hint}"
            ignored.append(f"{error.message} (ignored{more})")
            continue
        below = inner(node, key[-1])
        if isinstance(below, ValueType):
            yield key, item, below
        elif not isinstance(item, dict):
            raise mismatch(key, source, "a table", item)
        else:
            yield key, item, None
            yield from _leaves(item, below, key, source, commands, ignored)


def text_tree(key: Key, text: str, source: str = "", commands: Collection[str] | None = None) -> dict[str, object]:
    """The tree that sets one key to a value given as text, read as what the schema expects there."""
    key = known_key(key, source, commands)
    kind: Schema | ValueType = SCHEMA
    for part in key:
        if isinstance(kind, ValueType):
            kind = ANY if kind is ANY else TEXT
        else:
            kind = inner(kind, part)
    tree: dict[str, object] = {}
    put(tree, key, text_value(text, kind) if isinstance(kind, ValueType) else parse_text(text))
    return tree


def mismatch(key: Key, source: str, expected: str, found: object, why: str = "") -> UsageError:
    place = f" in `{source}`" if source else ""
    reason = f" ({why[0].lower()}{why[1:]})" if why else ""
    return UsageError(f"`{format_key(key)}`{place} must be {expected}, not {describe(found)}{reason}")
