"""Layered TOML settings in which each value knows its source. Reads only; `settings_file` writes.

Refuses keys it does not know. Without settings files, variables and overrides nothing heavy is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mngr.errors import MngrError, UsageError
from mngr.settings.schema import DEFAULTS, Layer, SafeOption, as_key, gate, mismatch, read_layer, text_layer, value_at
from mngr.settings.schema import Value as Value  # noqa: PLC0414 (exported)
from mngr.settings.values import Key, format_key, meet, parse_key, toml_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.settings.trust import Claim

SCOPES = ("user", "project", "local")
FILES = {"project": ".mngr/settings.toml", "local": ".mngr/settings.local.toml"}
VARIABLE_PREFIX = "MNGR__"
SESSION_PREFIX = "MNGR_PREFIX"  # a variable
_MOST_BYTES = 250_000
_MOST_DOTS = 2_000_000  # the squares of those in each line


class Settings:
    """All layers merged key by key, the last one winning. A key is dotted text, or a tuple of its parts. `ignored`
    says which unknown keys were skipped, a sentence each. `layers` are those above the defaults.

    Reading a key that an untrusted repository sets calls `ask` with what needs trust. If that is not there, or says no,
    the read raises `Undecided`. `trusted_only` reads without what is not trusted."""

    def __init__(self, layers: Sequence[Layer], ignored: Sequence[str] = ()) -> None:
        self.ignored = tuple(ignored)
        self.ask: Callable[[Sequence[Claim]], bool] | None = None
        self._merge(layers)

    def _merge(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        every = (Layer("default", DEFAULTS), *layers)
        self._merged = {key: Value(item, layer.source) for layer in every for key, item in layer.values.items()}

    @property
    def trusted_only(self) -> Settings:
        """The same without what is not trusted: reading it asks and raises nothing."""
        return Settings([layer._replace(untrusted={}) for layer in self.layers])

    def untrusted_keys(self, key: str | Key = ()) -> list[Key]:
        """The keys at, above or below this one (by default all) that a repository would decide if it were trusted."""
        parts = as_key(key)
        found: set[Key] = set()
        for layer in self.layers:
            found = {k for k in found if k not in layer.values} | {k for k in layer.untrusted if meet(parts, k)}
        return sorted(found)

    def claims(self) -> list[Claim]:
        """What needs trust and does not have it, by file."""
        from mngr.settings import trust

        return [trust.of_settings(layer) for layer in self.layers if layer.untrusted]

    def find(self, key: str | Key) -> Value | None:
        """The winning value with its source, or None when nothing sets it."""
        parts = as_key(key)
        if any(layer.untrusted for layer in self.layers) and (untrusted := self.untrusted_keys(parts)):
            from mngr.settings import trust

            claims = self.claims()
            if self.ask is None or not self.ask(claims):
                raise trust.refused(claims, [format_key(one) for one in untrusted])
            self._merge([layer.trusted() for layer in self.layers])
        return value_at(self._merged, parts)

    def get(self, key: str | Key, default: object = None) -> object:
        """The winning value; for a table, a dict of what all layers set in it."""
        found = self.find(key)
        return default if found is None else found.value

    def text(self, key: str | Key, default: str = "") -> str:
        """A string. A number or boolean of an untyped key is given as it was written."""
        found = self.find(key)
        if found is None:
            return default
        if isinstance(found.value, str | int | float):
            return found.value if isinstance(found.value, str) else toml_text(found.value)
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
        items = found.value if isinstance(found.value, list) else [found.value]
        if all(isinstance(item, str) for item in items):
            return list(map(str, items))
        raise mismatch(as_key(key), found.source, "a list of strings", found.value)

    def table(self, key: str | Key) -> Mapping[str, Value]:
        """What all layers set in a table, by name. An inner table is a dict whose source names all of its sources."""
        parts = as_key(key)
        found = self.find(parts)
        if found is None:
            return {}
        if not isinstance(found.value, dict):
            raise mismatch(parts, found.source, "a table", found.value)
        return {
            name: value_at(self._merged, (*parts, name)) or Value(item, found.source)
            for name, item in found.value.items()
        }

    def named(self, section: str) -> dict[str, str]:
        """The names that have a table of their own in a section such as `commands`, each with its last source."""
        every = {name: layer.source for layer in self.layers for where, name in layer.named if where == section}
        return dict(sorted(every.items()))

    def names(self, section: str) -> list[str]:
        return list(self.named(section))

    def explain(self, key: str | Key) -> list[Value]:
        """Every layer's value of this key, the winner last. What is not trusted comes first, and says so."""
        parts = as_key(key)
        untrusted = [layer.find(parts, untrusted=True) for layer in self.layers]
        each = [layer.find(parts) for layer in (Layer("default", DEFAULTS), *self.layers)]
        return [found for found in (*untrusted, *each) if found is not None]

    def flat(self) -> dict[str, Value]:
        """Every winning value by its full dotted key, sorted, defaults included; without what is not trusted."""
        return {format_key(key): self._merged[key] for key in sorted(self._merged)}


def host_dir(environ: Mapping[str, str]) -> str:
    """Where this user's state and settings live: `$MNGR_HOST_DIR`, else `~/.mngr`; absolute."""
    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("MNGR_HOST_DIR") or "~/.mngr"
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.abspath(os.path.expanduser(path))


def load(
    *,
    host_dir: str,
    cwd: str,
    environ: Mapping[str, str],
    overrides: Sequence[str] = (),
    safe_option: SafeOption | None = None,
) -> Settings:
    """Read every layer that applies in `cwd`. `safe_option` says which options of verbs need no trust."""
    ignored: list[str] = []
    layers = [read_scope("user", host_dir, cwd, environ, ignored)]
    if project_root(cwd, host_dir) is not None:
        for scope in FILES:
            layer = read_scope(scope, host_dir, cwd, environ, ignored, safe_option)
            if layer.untrusted:
                from mngr.settings import trust

                layer = layer.trusted() if trust.is_trusted(host_dir, trust.of_settings(layer)) else layer
            layers.append(layer)
    if environ.get(SESSION_PREFIX):
        layers.append(read_layer({"prefix": environ[SESSION_PREFIX]}, SESSION_PREFIX))
    named = {key for layer in layers for key in layer.named}
    for variable in sorted(name for name in environ if name.startswith(VARIABLE_PREFIX)):
        layers.append(text_layer(_variable_key(variable, named), environ[variable], variable, ignored))
    layers += [text_layer(*_split_override(override), "-S") for override in overrides]
    return Settings(layers, ignored)


def read_scope(
    scope: str,
    host_dir: str,
    cwd: str,
    environ: Mapping[str, str],
    ignored: list[str] | None = None,
    safe_option: SafeOption | None = None,
) -> Layer:
    """What the file of one scope sets; that of a repository is untrusted, trusted or not."""
    path, source = scope_path(scope, host_dir, cwd), source_name(scope, host_dir, environ)
    with naming_the_editor(scope):
        data = read_bytes(path, source)
        layer = read_layer(parse_toml(data, source) if data else {}, source, ignored)
    return layer if scope == "user" else gate(layer, os.path.dirname(os.path.dirname(path)), safe_option)


@contextmanager
def naming_the_editor(scope: str) -> Iterator[None]:
    """An error about a settings file says how to open the file."""
    try:
        yield
    except UsageError as error:
        hint = f"`mngr config edit --scope {scope}` opens the file"
        raise UsageError(error.message, hint=f"{error.hint}; {hint}" if error.hint else hint) from None


def source_name(scope: str, host_dir: str, environ: Mapping[str, str]) -> str:
    """What the file of a scope is called in output and errors."""
    if scope != "user":
        return FILES[scope]
    path, home = os.path.join(host_dir, "settings.toml"), (environ.get("HOME") or "").rstrip("/")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path


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
            elif any(os.path.exists(os.path.join(here, name)) for name in FILES.values()):
                return here
        if repository:
            return here
        parent = os.path.dirname(here)
        if parent == here:
            return None
        here = parent


def scope_path(scope: str, host_dir: str, cwd: str) -> str:
    """The settings file of a scope, whether or not it exists. Outside any project, `cwd` is where one would begin."""
    if scope == "user":
        return os.path.join(host_dir, "settings.toml")
    root = project_root(cwd, host_dir) or os.path.abspath(cwd)
    path = os.path.join(root, FILES[scope])
    if os.path.realpath(os.path.dirname(path)) == os.path.realpath(host_dir):
        raise UsageError(
            f"`{os.path.dirname(path)}` holds the user's settings, not a project's",
            hint="use `--scope user`, or change to a project's directory",
        )
    return path


def read_bytes(path: str, source: str) -> bytes:
    """The content of a settings file, which may be a link, since what it says is not trusted for its place; empty if
    there is none. Raises for what is not a regular file, or too large for settings."""
    if not os.path.lexists(path):
        return b""
    from mngr.system import files

    try:
        data = files.read_followed(path, _MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise MngrError(f"cannot read `{source}`: {error.strerror}", hint=f"check it: `ls -ld {path}`") from None
    if len(data) > _MOST_BYTES:
        raise MngrError(f"`{source}` is larger than {_MOST_BYTES // 1000} kB", hint=f"check it: `ls -ld {path}`")
    return data


def parse_toml(data: bytes, source: str) -> dict[str, object]:
    import tomllib

    # Python's parser takes seconds for a key of thousands of parts.
    if sum(line.count(b".") ** 2 for line in data.split(b"\n")) > _MOST_DOTS:
        raise UsageError(f"`{source}` is nested too deeply")
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
    """`KEY=VALUE` at the first `=` that no quotes hold."""
    for at, char in enumerate(override):
        if char == "=":
            try:
                return parse_key(override[:at].strip()), override[at + 1 :]
            except UsageError:
                continue
    raise UsageError(f"invalid setting `-S {override}`", hint="write `-S KEY=VALUE`")
