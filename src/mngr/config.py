"""Layered TOML settings in which each value knows its source. Reads only; `settings_file` writes.

Refuses keys it does not know. Without settings files, variables and overrides nothing heavy is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mngr.errors import MngrError, UsageError
from mngr.home import host_dir as host_dir  # noqa: PLC0414 (exported)
from mngr.names import suggest
from mngr.settings_schema import DEFAULTS, Layer, as_key, gate, mismatch, read_layer, text_tree
from mngr.settings_values import (
    Key,
    format_key,
    meet,
    put,
    scan_key,
    texts,
    written,
)

if TYPE_CHECKING:
    from mngr.trust import Claim

SCOPES = ("user", "project", "local")
VARIABLE_PREFIX = "MNGR__"
SESSION_PREFIX = "MNGR_PREFIX"  # a variable


class Value(NamedTuple):
    """A setting and where it came from: a file, a variable's name, `-S` or `default`."""

    value: object
    source: str


class Settings:
    """All layers merged key by key, the last one winning. A key is dotted text, or a tuple of its parts. `ignored`
    says which unknown keys were skipped, a sentence each.

    Reading a key that an untrusted repository sets calls `ask` with what needs trust. If that is not there, or says no,
    the read raises `Undecided`. `in_force` reads without what is not trusted."""

    def __init__(self, layers: Sequence[Layer], host_dir: str = "", ignored: Sequence[str] = ()) -> None:
        self.ignored = tuple(ignored)
        self._layers = (Layer("default", DEFAULTS), *layers)
        self._host_dir = host_dir
        self._unknown = any(layer.gated for layer in layers)
        self._strict = True
        self.ask: Callable[[Sequence[Claim]], bool] | None = None
        self._merge()

    def _merge(self) -> None:
        self._merged = {key: Value(item, layer.source) for layer in self._layers for key, item in layer.values.items()}

    @property
    def in_force(self) -> Settings:
        """The same without what is not trusted: reading it asks and raises nothing."""
        view = Settings(self._layers[1:], self._host_dir)
        view._strict = False
        return view

    def withheld(self, key: str | Key = ()) -> list[Key]:
        """The keys at, above or below this one (by default all) that a repository would decide if it were trusted."""
        parts = as_key(key)
        if self._unknown and any(meet(parts, other) for layer in self._layers for other in layer.gated):
            from mngr import trust

            self._unknown = False
            self._admit({claim.name for claim in self.claims() if trust.is_trusted(self._host_dir, claim)})
        found = []
        for at, layer in enumerate(self._layers):
            later = self._layers[at + 1 :]
            found += [k for k in layer.gated if meet(parts, k) and not any(k in other.values for other in later)]
        return sorted(set(found))

    def claims(self) -> list[Claim]:
        """What needs trust and is not known to have it, by file."""
        from mngr import trust

        return [trust.of_settings(layer.root, layer.source, layer.gated) for layer in self._layers if layer.gated]

    def _admit(self, sources: Collection[str]) -> None:
        self._layers = tuple(
            layer._replace(values={**layer.values, **layer.gated}, gated={}) if layer.source in sources else layer
            for layer in self._layers
        )
        self._merge()

    def _at(self, key: Key) -> Value | None:
        if self._unknown or self._strict:
            self._settle(key)
        return _at(self._merged, key)

    def _settle(self, key: Key) -> None:
        if not any(layer.gated for layer in self._layers) or not (withheld := self.withheld(key)) or not self._strict:
            return
        from mngr import trust

        claims = self.claims()
        if self.ask is None or not self.ask(claims):
            raise trust.refused(claims, [format_key(one) for one in withheld])
        self._admit({claim.name for claim in claims})

    def get(self, key: str | Key, default: object = None) -> object:
        """The winning value; for a table, a dict of what all layers set in it."""
        found = self.find(key)
        return default if found is None else found.value

    def find(self, key: str | Key) -> Value | None:
        """The winning value with its source, or None when nothing sets it."""
        return self._at(as_key(key))

    def text(self, key: str | Key, default: str = "") -> str:
        """A string. A number or boolean of an untyped key is given as it was written."""
        found = self.find(key)
        if found is None:
            return default
        if isinstance(found.value, str | int | float):
            return written(found.value)
        raise mismatch(as_key(key), found.source, "a string", found.value)

    def number(self, key: str | Key, default: float = 0) -> float:
        found = self.find(key)
        if found is None:
            return default
        if isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return found.value
        raise mismatch(as_key(key), found.source, "a number", found.value)

    def strings(self, key: str | Key, default: Sequence[str] = ()) -> list[str]:
        """A list of strings; a single string is a list of one."""
        found = self.find(key)
        if found is None:
            return list(default)
        try:
            return texts([found.value] if isinstance(found.value, str) else found.value)
        except ValueError:
            raise mismatch(as_key(key), found.source, "a list of strings", found.value) from None

    def table(self, key: str | Key) -> Mapping[str, Value]:
        """What all layers set in a table, by name. An inner table is a dict whose source names all of its sources."""
        parts = as_key(key)
        found = self._at(parts)
        if found is None:
            return {}
        if not isinstance(found.value, dict):
            raise mismatch(parts, found.source, "a table", found.value)
        return {
            name: _at(self._merged, (*parts, name)) or Value(item, found.source) for name, item in found.value.items()
        }

    def names(self, section: str) -> list[str]:
        """The names that have a table of their own in a section such as `create_templates`, sorted."""
        return sorted({name for layer in self._layers for where, name in layer.named if where == section})

    def explain(self, key: str | Key) -> list[Value]:
        """Every layer's value of this key, the winner last. What is not trusted comes first, and says so."""
        parts = as_key(key)
        self.withheld(parts)
        gated = (
            {k: Value(item, f"{layer.source} (not trusted)") for k, item in layer.gated.items()}
            for layer in self._layers
        )
        untrusted = [found for values in gated if (found := _at(values, parts)) is not None]
        each = ({k: Value(item, layer.source) for k, item in layer.values.items()} for layer in self._layers)
        return untrusted + [found for values in each if (found := _at(values, parts)) is not None]

    def flat(self) -> dict[str, Value]:
        """Every winning value by its full dotted key, sorted, defaults included; without what is not trusted."""
        self.withheld()
        return {format_key(key): self._merged[key] for key in sorted(self._merged)}


def load(
    *,
    host_dir: str,
    cwd: str,
    environ: Mapping[str, str],
    overrides: Sequence[str] = (),
    commands: Collection[str] | None = None,
) -> Settings:
    """Read every layer that applies in `cwd`. `commands` are the good names under `[commands]`; None accepts all."""
    home = environ.get("HOME") or ""
    files = [(os.path.join(host_dir, "settings.toml"), "")]
    root = project_root(cwd, host_dir)
    if root is not None:
        files += [
            (os.path.join(root, ".mngr", name), f".mngr/{name}") for name in ("settings.toml", "settings.local.toml")
        ]
    layers = []
    ignored: list[str] = []
    for path, source in files:
        of_user = not source
        source = source or short(path, home)
        tree = read_file(path, source)
        if tree is not None:
            layer = read_layer(tree, source, commands, ignored)
            layers.append(layer if of_user or root is None else gate(layer, root))
    if environ.get(SESSION_PREFIX):
        layers.append(read_layer({"prefix": environ[SESSION_PREFIX]}, SESSION_PREFIX))
    named = {key for layer in layers for key in layer.named}
    for variable in sorted(name for name in environ if name.startswith(VARIABLE_PREFIX)):
        tree = _variable_tree(_variable_key(variable, named), environ[variable], variable, commands)
        layers.append(read_layer(tree, variable, commands, ignored))
    for override in overrides:
        layers.append(read_layer(text_tree(*_split_override(override), "-S", commands), "-S", commands))
    return Settings(layers, host_dir, ignored)


def _is_repository(directory: str) -> bool:
    """Whether this is the top of a work tree: some sandboxes leave an empty `.git` behind, which is none."""
    place = os.path.join(directory, ".git")
    return os.path.isfile(place) or os.path.exists(os.path.join(place, "HEAD"))


def project_root(cwd: str, host_dir: str) -> str | None:
    """The nearest directory at or above `cwd` with project settings or a `.git`.

    A directory whose `.mngr` is the host directory itself (HOME, as a rule) is nobody's project.
    """
    here = os.path.abspath(cwd)
    while True:
        place = os.path.join(here, ".mngr")
        repository = _is_repository(here)
        if os.path.isdir(place):
            if os.path.realpath(place) == os.path.realpath(host_dir):
                if repository:
                    return None
            elif any(os.path.exists(os.path.join(place, n)) for n in ("settings.toml", "settings.local.toml")):
                return here
        if repository:
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def scope_path(scope: str, host_dir: str, cwd: str) -> str:
    """The settings file of a scope, whether or not it exists. Outside any project, `cwd` is where one would begin."""
    if scope not in SCOPES:
        raise UsageError(f"no scope is called `{scope}`", hint=suggest(scope, SCOPES, "scope"))
    if scope == "user":
        return os.path.join(host_dir, "settings.toml")
    place = os.path.join(project_root(cwd, host_dir) or os.path.abspath(cwd), ".mngr")
    if os.path.realpath(place) == os.path.realpath(host_dir):
        raise UsageError(
            f"`{place}` holds the user's settings, not a project's",
            hint="use `--scope user`, or change to a project's directory",
        )
    return os.path.join(place, "settings.toml" if scope == "project" else "settings.local.toml")


def read_file(path: str, source: str) -> dict[str, object] | None:
    """The TOML of a settings file, unchecked; None when there is no such file. `source` is what an error names."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MngrError(f"cannot read `{source}`: {error.strerror}", hint=f"check it: `ls -ld {path}`") from None
    return parse_toml(data, source)


def parse_toml(data: bytes, source: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"`{source}` is not UTF-8 text (at line {line})") from None
    except RecursionError:
        raise UsageError(f"`{source}` is nested too deeply") from None
    except ValueError as error:
        lines = data.rstrip(b"\n").count(b"\n") + 1
        said = str(error).replace("at end of document", f"at line {lines}, the end of the file")
        raise UsageError(f"`{source}` is not valid TOML: {said}") from None


def _variable_tree(key: Key, text: str, variable: str, commands: Collection[str] | None) -> dict[str, object]:
    """The tree that a variable sets. An unknown key is left to `read_layer`, which knows where that is a mistake."""
    try:
        return text_tree(key, text, variable, commands)
    except UsageError:
        tree: dict[str, object] = {}
        put(tree, key, text)
        return tree


def _variable_key(variable: str, named: Collection[Key]) -> Key:
    """`MNGR__AGENT_TYPES__MY_CLI__COMMAND` -> `agent_types.my-cli.command`, when a type of that name exists."""
    parts = variable.removeprefix(VARIABLE_PREFIX).split("__")
    if not all(parts):
        raise UsageError(f"`{variable}` names no setting", hint="write `MNGR__SECTION__KEY=value`")
    key = [part.lower() for part in parts]
    for section, name in sorted(named):
        if section == key[0] and key[1:2] == [name.lower().replace("-", "_")]:
            key[1] = name
    if key[0] == "agent_types" and key[2:3] == ["env"]:
        key[3:] = ["__".join(parts[3:])] if parts[3:] else []
    return tuple(key)


def _split_override(override: str) -> tuple[Key, str]:
    key, rest = scan_key(override)
    if not rest.startswith("="):
        raise UsageError(f"`-S {override}` gives no value", hint="write `-S KEY=VALUE`")
    return key, rest[1:]


def _at(values: Mapping[Key, Value], key: Key) -> Value | None:
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


def short(path: str, home: str) -> str:
    """A path as a person writes it."""
    home = home.rstrip("/")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path
