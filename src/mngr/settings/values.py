"""Dotted keys and kinds of value, as people write them in TOML, in variables and after `-S`. Knows no setting."""

from __future__ import annotations

from collections.abc import Callable

from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Key: TypeAlias = tuple[str, ...]

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_DEEPEST = 20
_LARGEST = 2**63


class ValueType(NamedTuple):
    """What a key holds. `convert` makes a value of another form what the program uses, or raises ValueError. A `safe`
    key may come from a repository that its user has not trusted."""

    expected: str
    fits: Callable[[object], bool]
    convert: Callable[[object], object] | None = None
    safe: bool = False

    def read(self, value: object) -> object:
        """The value as the program uses it. Raises ValueError for one that does not fit."""
        if self.convert is not None:
            value = self.convert(value)
        if not self.fits(value):
            raise ValueError
        return value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _is_number(value: object) -> bool:
    return _is_whole(value) or (isinstance(value, float) and 0 <= value < float("inf"))


def _is_paths(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(path) and how in ("copy", "share") for path, how in value.items())


def _is_any(value: object, depth: int = 0) -> bool:
    if isinstance(value, list | dict):
        names = value if isinstance(value, dict) else ()
        items = value.values() if isinstance(value, dict) else value
        return depth < _DEEPEST and all(map(_is_text, names)) and all(_is_any(item, depth + 1) for item in items)
    return isinstance(value, bool | float) or _is_text(value) or (isinstance(value, int) and abs(value) < _LARGEST)


def _as_arguments(value: object) -> object:
    import shlex

    return shlex.split(value) if isinstance(value, str) else value


def _as_paths(value: object) -> object:
    if isinstance(value, list) and _is_texts(value):
        return dict.fromkeys(value, "copy")
    if isinstance(value, dict):
        return {path: how.lower() if isinstance(how, str) else how for path, how in value.items()}
    return value


def _one_of(*words: str) -> ValueType:
    quoted = [f'"{word}"' for word in words]
    return ValueType(f"{', '.join(quoted[:-1])} or {quoted[-1]}", lambda value: value in words)


TEXT = ValueType("a string", _is_text)
PERMISSIONS = _one_of("ask", "edits", "tests", "bypass")
HOME = _one_of("empty", "user")
PREFIX = ValueType(
    "a string of letters, digits, `-` and `_`", lambda value: isinstance(value, str) and is_name(f"a{value}")
)
ARGUMENTS = ValueType("a list of strings, or one string in shell quoting", _is_texts, _as_arguments)
BOOLEAN = ValueType("true or false", lambda value: isinstance(value, bool))
WHOLE = ValueType("a whole number, 0 or more", _is_whole)
NUMBER = ValueType("a number, 0 or more", _is_number)
PATHS = ValueType('a list of paths, or a table of paths that are each "copy" or "share"', _is_paths, _as_paths)
ANY = ValueType("a string, number, boolean, list or table", _is_any)


def text_value(text: str, kind: ValueType) -> object:
    """What a text means for a key of this kind: a value of TOML if that fits, else the text itself."""
    parsed = parse_text(text)
    # An untyped `1.10` or `12e3` may be a branch or a commit: only what would be written back the same is a number.
    if kind.fits is _is_any and isinstance(parsed, int | float) and toml_text(parsed) != text:
        return text
    for value in (parsed, text):
        try:
            kind.read(value)
        except ValueError:
            continue
        return value
    return parsed


def parse_text(text: str) -> object:
    """The boolean, number, list or inline table that the text is in TOML, else the text itself."""
    import tomllib

    try:
        tree = tomllib.loads(f"x = {text}")
    except (ValueError, RecursionError):
        return text
    value = tree["x"]
    if len(tree) > 1 or not isinstance(value, bool | int | float | list | dict):
        return text
    return text if isinstance(value, int | float) and not abs(value) < _LARGEST else value


def toml_text(value: object) -> str:
    """A value as it would stand in a settings file, on one line."""
    if isinstance(value, str):
        import json

        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{format_key((name,))} = {toml_text(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(value: object) -> str:
    """A value in an error message."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return "a number too large"
    text = toml_text(value)
    return f"`{text if len(text) <= 42 else f'{text[:40]}...'}`"


def parse_key(text: str) -> Key:
    """Take a dotted key apart; parts may be quoted as in TOML: `agent_types."my cli".command`."""
    parts = text.split(".")
    if all(part and _BARE.issuperset(part) for part in parts):
        return tuple(parts)
    import tomllib

    end = "the end of the key"
    try:
        tree: object = None if {"\n", "\r"} & {*text} else tomllib.loads(f"{text} = '{end}'")
    except (ValueError, RecursionError):
        tree = None
    key: Key = ()
    while isinstance(tree, dict) and len(tree) == 1:
        ((part, tree),) = tree.items()
        key = (*key, part)
    if tree != end:
        raise UsageError(f"`{text}` is not a key", hint='write `section.key`, or `section."a name".key`')
    return key


def format_key(key: Key) -> str:
    """The dotted text of a key, quoted where TOML needs it; `parse_key` is the inverse."""
    return ".".join(part if part and _BARE.issuperset(part) else toml_text(part) for part in key)


def put(tree: dict[str, object], key: Key, value: object) -> None:
    """Set a key in nested tables, making those that are absent."""
    for part in key[:-1]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = tree[part] = {}
        tree = inner
    tree[key[-1]] = value


def meet(one: Key, other: Key) -> bool:
    """Whether one of the keys is the other, or a table that holds it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
