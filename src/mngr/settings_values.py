"""Dotted keys and kinds of value, as people write them in TOML, in variables and after `-S`. Knows no setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from mngr.errors import UsageError
from mngr.names import is_name

Key: TypeAlias = tuple[str, ...]

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_DEEPEST = 20


class ValueType(NamedTuple):
    """What a key holds. `read` returns the value as the program uses it and raises ValueError for any other."""

    expected: str
    read: Callable[[object], object]


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError
    return value


def _one_of(*words: str) -> ValueType:
    def read(value: object) -> str:
        if value not in words:
            raise ValueError
        return _text(value)

    quoted = [f'"{word}"' for word in words]
    return ValueType(f"{', '.join(quoted[:-1])} or {quoted[-1]}", read)


def texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise ValueError
    return [_text(item) for item in value]


def _prefix(value: object) -> str:
    if not is_name(f"a{_text(value)}"):
        raise ValueError
    return _text(value)


def _arguments(value: object) -> list[str]:
    if not isinstance(value, str):
        return texts(value)
    import shlex

    return shlex.split(_text(value))


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, float) and 0 <= value < float("inf"):
        return value
    return _whole(value)


def _paths(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return dict.fromkeys(texts(value), "copy")
    for path, how in value.items():
        if not isinstance(how, str) or how.lower() not in ("copy", "share"):
            raise ValueError(f"`{path}` is {describe(how)}")
    return {_text(path): how.lower() for path, how in value.items()}


def _any(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return [_any(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_text(name): _any(item, depth + 1) for name, item in value.items()}
    if isinstance(value, bool | float) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    return _text(value)


TEXT = ValueType("a string", _text)
PERMISSIONS = _one_of("ask", "edits", "tests", "bypass")
HOME = _one_of("empty", "user")
PREFIX = ValueType("a string of letters, digits, `-` and `_`", _prefix)
ARGUMENTS = ValueType("a list of strings, or one string in shell quoting", _arguments)
BOOLEAN = ValueType("true or false", _boolean)
WHOLE = ValueType("a whole number, 0 or more", _whole)
NUMBER = ValueType("a number, 0 or more", _number)
PATHS = ValueType('a list of paths, or a table of paths that are each "copy" or "share"', _paths)
ANY = ValueType("a string, number, boolean, list or table", _any)


def text_value(text: str, kind: ValueType) -> object:
    parsed = parse_text(text)
    # An untyped `1.10` or `12e3` may be a branch or a commit: only what would be written back the same is a number.
    if kind is ANY and isinstance(parsed, int | float) and written(parsed) != text:
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
    bare = text.strip()
    if bare in ("true", "false"):
        return bare == "true"
    if not bare or bare[0] not in "[{+-0123456789":
        return text
    import tomllib

    try:
        tree = tomllib.loads(f"x = {bare}")
    except (ValueError, RecursionError):
        return text
    value = tree["x"]
    if len(tree) > 1 or ("#" in bare and bare[-1] not in "]}"):
        return text
    if isinstance(value, list | dict) or (isinstance(value, int | float) and abs(value) < 2**63):
        return value
    return text


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
    return written(value) if isinstance(value, int | float) else str(value)


def written(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe(value: object) -> str:
    if isinstance(value, str):
        return "a string with a NUL byte" if "\0" in value else f"the string `{value[:40]}{'...' * (len(value) > 40)}`"
    if isinstance(value, bool):
        return f"`{written(value)}`"
    if isinstance(value, int | float):
        return f"the number `{value}`" if isinstance(value, float) or abs(value) < 2**63 else "a number too large"
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str | list)), None)
        return "a list" if odd is None else f"a list that holds {describe(odd)}"
    return "a table" if isinstance(value, dict) else "a date or time"


def parse_key(text: str) -> Key:
    """Take a dotted key apart; parts may be quoted as in TOML: `agent_types."my cli".command`."""
    parts = tuple(text.split("."))
    if all(part and _BARE.issuperset(part) for part in parts):
        return parts
    parts, rest = scan_key(text)
    if rest:
        raise _not_a_key(text)
    return parts


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


def scan_key(text: str) -> tuple[Key, str]:
    """The key at the beginning of a text, and what follows it."""
    import re

    part = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^\s."'=]+)\s*""")
    parts: list[str] = []
    end = -1
    while end < 0 or text.startswith(".", end):
        found = part.match(text, end + 1)
        if found is None:
            raise _not_a_key(text)
        parts.append(_unquote(found[1], text))
        end = found.end()
    return tuple(parts), text[end:]


def _unquote(part: str, text: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    import tomllib

    try:
        return str(tomllib.loads(f"x = {part}")["x"])
    except ValueError:
        raise _not_a_key(text) from None


def _not_a_key(text: str) -> UsageError:
    return UsageError(f"`{text}` is not a key", hint='write `section.key`, or `section."a name".key`')
