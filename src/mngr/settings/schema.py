"""Which settings exist and what they hold: the schema, and checking what one source sets against it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import suggest
from mngr.settings.values import (
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Schema: TypeAlias = "Mapping[str, Schema | ValueType]"
# Whether a repository may set an option (verb, name, value) that its user has not trusted.
SafeOption: TypeAlias = Callable[[str, str, object], bool]

# Accepted so that a settings file written for another version works; nothing here reads them.
NO_EFFECT = ("retry", "logging")


def _safe(kind: ValueType) -> ValueType:
    """A key that a repository may set without its user's trust (`mngr config trust`), in the sense of the options that
    are safe: see `Option` in `mngr.cli.parser.parser`."""
    return kind._replace(safe=True)


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
            **dict.fromkeys(
                (
                    "connect_seconds",
                    "cpus",
                    "gpus",
                    "max_hours",
                    "idle_stop_minutes",
                    "waiting_minutes",
                    "ready_seconds",
                ),
                NUMBER,
            ),
            **dict.fromkeys(("pids", "max_agents", "max_hosts"), WHOLE),
            **dict.fromkeys(("install", "autoscaling"), BOOLEAN),
            "resources": {"*": NUMBER},
        }
    },
    "hosts": dict.fromkeys(("answer_seconds", "verb_seconds"), NUMBER),
    "workspace": {"extra_paths": _safe(PATHS)},  # only below the directory that is copied
    "tmux": {"session_prefix": _safe(PREFIX), "config": TEXT, "history_lines": _safe(WHOLE)},
    "saved": {"ignored_max_mb": NUMBER},
    "prices": {"*": dict.fromkeys(("input", "output", "cache_read", "cache_write"), NUMBER)},
    "record": {"max_mb": NUMBER},
    "sandbox": {"readable": ARGUMENTS, "writable": ARGUMENTS},
    "plugins": {"*": {"enabled": BOOLEAN}},
    "tmr": {
        **dict.fromkeys(("prepare", "test_command", "gate_command", "prompt"), TEXT),
        "env": {"*": TEXT},
        "paths": dict.fromkeys(("implementation", "non_implementation", "read_only"), _safe(ARGUMENTS)),
        **dict.fromkeys(("max_jobs", "baseline_repeats", "effect_runs", "mutants"), WHOLE),
        **dict.fromkeys(("test_seconds", "job_seconds", "largest_file_mb", "lost_seconds"), NUMBER),
        "home": HOME,
        "second_opinion": BOOLEAN,
    },
    "tutorial": {"script": TEXT, "tests": ARGUMENTS, "program": TEXT, "test_command": TEXT},
    "headless": BOOLEAN,
    **{name: {"*": _safe(ANY)} for name in NO_EFFECT},
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


def is_safe(key: Key, value: object, safe_option: SafeOption | None = None) -> bool:
    """Whether this may come from a repository that its user has not trusted. Of options `safe_option` knows it, and
    without it none may."""
    if key in (("tutorial", "script"), ("tutorial", "tests")):
        paths = value if isinstance(value, list) else [value]
        return not any(str(path).startswith(("/", "~")) or ".." in str(path).split("/") for path in paths)
    if len(key) != 3 or key[0] not in OPTIONS:
        kind = resolve(key)[1]
        return isinstance(kind, ValueType) and kind.safe
    verb = "create" if key[0] == "create_templates" else key[1]
    return safe_option is not None and safe_option(verb, key[2], value)


def resolve(key: str | Key, source: str = "") -> tuple[Key, Schema | ValueType]:
    """The key as the schema spells it, and what it holds. Raises for an unknown key, naming the nearest good one.
    Inside a value, any key is good."""
    node: Schema | ValueType = SCHEMA
    good: Key = ()
    place = f" in `{source}`" if source else ""
    for part in as_key(key):
        full = format_key((*good, part))
        if isinstance(node, ValueType):
            good = (*good, part)
            continue
        if not part or "\0" in part:
            raise UsageError(f"`{full}`{place} is not a key: a name is empty or holds a NUL byte")
        if part not in node and "*" not in node:
            raise UsageError(f"unknown key `{full}`{place}", hint=suggest(part, tuple(node), "key"))
        good = (*good, part.replace("_", "-") if good == ("plugins",) else part)
        node = node.get(part) or node["*"]
    return good, node


def as_key(key: str | Key) -> Key:
    """The parts of a dotted key; an option of a command or template may be written with `-` or `_`."""
    parts = parse_key(key) if isinstance(key, str) else key
    if parts and parts[0] in ALIASES:
        parts = (*ALIASES[parts[0]], *parts[1:])
    if len(parts) > 2 and parts[0] in OPTIONS:
        return (*parts[:2], parts[2].replace("-", "_"), *parts[3:])
    return parts


class Value(NamedTuple):
    """A setting and where it came from: a file, a variable's name, `-S` or `default`."""

    value: object
    source: str


def value_at(values: Mapping[Key, Value], key: Key) -> Value | None:
    """The value of a key, the table of all keys below it, or a part of the table that is a key's value."""
    if key in values:
        return values[key]
    below = {other[len(key) :]: value for other, value in values.items() if other[: len(key)] == key}
    if below:
        tree: dict[str, object] = {}
        for rest, value in below.items():
            put(tree, rest, value.value)
        return Value(tree, ", ".join(dict.fromkeys(value.source for value in below.values())))
    for end in range(len(key) - 1, 0, -1):
        if key[:end] in values:
            item, source = values[key[:end]]
            for part in key[end:]:
                if not isinstance(item, dict) or part not in item:
                    return None
                item = item[part]
            return Value(item, source)
    return None


class Layer(NamedTuple):
    """What one source sets: values by full key, and the named tables that it mentions, empty ones included. `untrusted`
    are the values that count only when the user trusts the repository at `root`."""

    source: str
    values: Mapping[Key, object]
    named: frozenset[Key] = frozenset()
    untrusted: Mapping[Key, object] = {}
    root: str = ""

    def find(self, key: Key, *, untrusted: bool = False) -> Value | None:
        """What it sets for a key, or what it would set if it were trusted."""
        note = " (not trusted)" if untrusted else ""
        values = self.untrusted if untrusted else self.values
        return value_at({k: Value(item, self.source + note) for k, item in values.items()}, key)

    def trusted(self) -> Layer:
        """The same once the user trusts it."""
        return self._replace(values={**self.values, **self.untrusted}, untrusted={})


def gate(layer: Layer, root: str, safe_option: SafeOption | None = None) -> Layer:
    """The settings of a repository: what runs or grants something is set apart, until its user trusts it."""
    untrusted = {key: item for key, item in layer.values.items() if not is_safe(key, item, safe_option)}
    safe = {key: item for key, item in layer.values.items() if key not in untrusted}
    return layer._replace(values=safe, untrusted=untrusted, root=root)


def read_layer(
    tree: Mapping[str, object], source: str, ignored: list[str] | None = None, *, as_text: bool = False
) -> Layer:
    """Check a whole tree of settings against the schema. `source` is what an error names. Unknown keys where other
    programs have theirs are an error without `ignored`; with it, they are skipped and described there. With `as_text`,
    strings are read as what the schema expects in their place. An alias counts less than the usual name."""
    values: dict[Key, object] = {}
    named: set[Key] = set()
    tables: list[tuple[Key, Mapping[str, object]]] = [((), tree)]
    for path, table in tables:
        for name, item in table.items():
            try:
                key, kind = resolve((*path, name), source)
            except UsageError as error:
                if ignored is None or (path and path[0] not in _SHARED):
                    raise
                ignored.append(as_ignored(error))
                continue
            if as_text and isinstance(item, str):
                item = text_value(item, kind) if isinstance(kind, ValueType) else parse_text(item)
            if isinstance(kind, ValueType):
                try:
                    values[key] = kind.read(item)
                except ValueError as error:
                    raise mismatch(key, source, kind.expected, item, str(error)) from None
            elif isinstance(item, dict):
                named |= {key} if len(key) == 2 else set()
                tables.append((key, item))
            else:
                raise mismatch(key, source, "a table", item)
    return Layer(source, values, frozenset(named))


def as_ignored(error: UsageError) -> str:
    """The warning in place of an error about an unknown key."""
    more = "" if error.hint.startswith("known: ") or not error.hint else f"; {error.hint}"
    return f"{error.message} (ignored{more})"


def text_layer(key: Key, text: str, source: str, ignored: list[str] | None = None) -> Layer:
    """The layer that sets one key to a value given as text, read as what the schema expects there."""
    tree: dict[str, object] = {}
    put(tree, key, text)
    return read_layer(tree, source, ignored, as_text=True)


def mismatch(key: Key, source: str, expected: str, found: object, why: str = "") -> UsageError:
    place = f" in `{source}`" if source else ""
    reason = f" ({why[0].lower()}{why[1:]})" if why else ""
    return UsageError(f"`{format_key(key)}`{place} must be {expected}, not {describe(found)}{reason}")
