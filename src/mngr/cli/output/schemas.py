"""The JSON Schema of what a verb prints with `--format json`, derived from the types of its results.

A verb's module has `RESULTS`, the list of its documents, or `results()`, which returns that list, if it needs modules
that the verb does not. Each document is a type (TypedDict, NamedTuple, `list[...]`, `dict[str, ...]`), a dict of such
forms by key, a tuple of types whose keys form one object, or a list of the forms that the items of an array have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from mngr.cli.catalog import Verb
from mngr.cli.output.output import OPEN, ErrorDocument

# Names that modules import for the type checker alone.
_NAMES = {"Any": Any, "Literal": Literal, "NotRequired": NotRequired}
_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def schema(verb: Verb) -> dict[str, Any] | None:
    """None for a verb that prints no JSON."""
    __import__(verb.module)
    module = sys.modules[verb.module]
    forms = module.results() if hasattr(module, "results") else getattr(module, "RESULTS", None)
    if forms is None:
        return None
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"mngr {verb.name} --format json",
        "anyOf": [of(form) for form in (*forms, ErrorDocument)],
    }


def of(form: Any) -> dict[str, Any]:
    """The schema of one type, or of one of the forms in `RESULTS`."""
    if isinstance(form, list):
        return {"type": "array", "items": _any_of(form)}
    if isinstance(form, dict):
        return _object(form.items())
    if isinstance(form, tuple):
        return _object(_hints(form))
    origin, arguments = get_origin(form), get_args(form)
    if form in (Any, object):
        return {}
    if form in _WORDS:
        return {"type": _WORDS[form]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return _any_of(arguments)
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": of(arguments[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": of(arguments[1])}
    if origin is Annotated:
        return {**of(arguments[0]), "additionalProperties": OPEN in arguments}
    return _object(_hints(form))


def fields(form: Any) -> list[str]:
    """The dotted names of all values in an object, with `labels.*` for an object that has any keys."""
    names: list[str] = []
    for name, kind in _hints(form):
        if hasattr(kind, "__annotations__"):
            names += [f"{name}.{inner}" for inner in fields(kind)]
        else:
            names.append(f"{name}.*" if get_origin(kind) in (dict, Mapping) else name)
    return names


def _hints(form: Any) -> list[tuple[str, Any]]:
    if isinstance(form, tuple):
        return [hint for part in form for hint in _hints(part)]
    return list(get_type_hints(form, localns=_NAMES, include_extras=True).items())


def _object(hints: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    kinds = dict(hints)
    optional = {name for name, kind in kinds.items() if get_origin(kind) is NotRequired}
    return {
        "type": "object",
        "properties": {name: of(get_args(kind)[0] if name in optional else kind) for name, kind in kinds.items()},
        "required": [name for name in kinds if name not in optional],
        "additionalProperties": False,
    }


def _any_of(forms: Iterable[Any]) -> dict[str, Any]:
    found = [of(form) for form in forms]
    if all(set(one) == {"type"} for one in found):
        words = [one["type"] for one in found]
        return {"type": words if len(words) > 1 else words[0]}
    return {"anyOf": found} if len(found) > 1 else found[0]
