"""Whether a value that came from another machine is what its annotation says. Pure.

An annotation is read as text, since most of them are text at run time: unions, the usual containers, and classes by
their name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple

_ANY = frozenset({"Any", "object"})
_PLAIN: Mapping[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "bytes": bytes,
    "None": type(None),
}
_MANY: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("Sequence", "Iterable", "Collection", "Iterator"), (list, tuple, set, frozenset)),
    **{kind.__name__: kind for kind in (list, tuple, set, frozenset)},
}
_TABLES = frozenset({"Mapping", "dict", "MutableMapping"})


class _Shape(NamedTuple):
    name: str
    parts: tuple[_Shape, ...] = ()


def fits(value: object, annotation: object) -> bool:
    """A class that is not a record or an error of ours fits no annotation."""
    return _fits(value, _shape(text_of(annotation)))


def fields_fit(record: Any) -> bool:
    """Whether all fields of a record are what its class says."""
    kind: Any = type(record)
    return all(_fits(value, shape) for value, shape in zip(record, _fields(kind), strict=True))


@cache
def _fields(kind: Any) -> tuple[_Shape, ...]:
    return tuple(_shape(text_of(found)) for found in kind.__annotations__.values())


def text_of(annotation: object) -> str:
    text = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(text, str):
        return text
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        return annotation.__name__
    return repr(annotation)


@cache
def _shape(text: str) -> _Shape:
    unions = _split(text, "|")
    if len(unions) > 1:
        return _Shape("|", tuple(map(_shape, unions)))
    name, bracket, rest = text.strip().strip("'\"").partition("[")
    name = name.rpartition(".")[2] if name != "..." else name
    name = "None" if name == "NoneType" else name
    return _Shape(name, tuple(map(_shape, _split(rest.removesuffix("]"), ","))) if bracket else ())


def _split(text: str, at: str) -> list[str]:
    """The parts between separators that are in no brackets."""
    found, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == at and not depth:
            found.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*found, text[start:])]


def _fits(value: object, shape: _Shape) -> bool:
    name, parts = shape
    if name in _PLAIN:
        return isinstance(value, _PLAIN[name]) and (name == "bool" or not isinstance(value, bool))
    if name in _ANY:
        return True
    if name == "|":
        return any(_fits(value, part) for part in parts)
    if name in _TABLES:
        if not isinstance(value, dict):
            return False
        keys, items = parts or (_Shape("Any"), _Shape("Any"))
        return all(_fits(key, keys) and _fits(item, items) for key, item in value.items())
    if name in _MANY:
        return isinstance(value, _MANY[name]) and not hasattr(value, "_fields") and _items_fit(value, shape)
    ours = hasattr(value, "_fields") or isinstance(value, MngrError)
    return ours and any(kind.__name__ == name for kind in type(value).__mro__)


def _items_fit(value: Any, shape: _Shape) -> bool:
    parts = shape.parts
    if shape.name == "tuple" and parts and parts[-1].name != "...":
        return len(value) == len(parts) and all(map(_fits, value, parts))
    return not parts or all(_fits(item, parts[0]) for item in value)
