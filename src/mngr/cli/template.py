"""`--format '{name}\\t{host.name}'`: a line for each row. Pure; refuses fields that do not exist."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.errors import UsageError
from mngr.names import nearest

_ESCAPES = {"t": "\t", "n": "\n", "\\": "\\"}


class TemplatePart(NamedTuple):
    text: str
    is_field: bool


def parse(template: str) -> tuple[TemplatePart, ...]:
    """Take a template apart. `{{` and `}}` are braces, `\\t`, `\\n` and `\\\\` what they are in a shell's printf."""
    parts: list[TemplatePart] = []
    plain, end = "", 0
    for found in re.finditer(r"\{\{|\}\}|\\[tn\\]|\{\s*([^{}]*?)\s*\}|[{}]", template):
        plain, end = plain + template[end : found.start()], found.end()
        if found[1]:
            parts += [TemplatePart(plain, False)] if plain else []
            parts.append(TemplatePart(found[1], True))
            plain = ""
        elif found[0] in ("{{", "}}"):
            plain += found[0][0]
        elif found[0][0] == "\\":
            plain += _ESCAPES[found[0][1]]
        elif found[0] == "}":
            raise UsageError(f"the template has a `}}` without its `{{`: {template!r}", hint="write `}}` for a brace")
        else:
            hint = "write `{name}`, or `{{{{` for a brace"
            raise UsageError(f"the template has a `{{` that names no field: {template!r}", hint=hint)
    plain += template[end:]
    return (*parts, TemplatePart(plain, False)) if plain else tuple(parts)


def check(parts: Iterable[TemplatePart], known: Sequence[str]) -> None:
    """Raise for a field that no row can have. `labels.*` among the known allows anything below `labels`."""
    for part in parts:
        if part.is_field and not is_known(_own_name(part.text, known), known):
            raise unknown_field(part.text, known)


def is_known(field: str, known: Sequence[str]) -> bool:
    """Whether a field exists, or is a table that holds fields that do."""
    if field in known:
        return True
    return any(k.endswith(".*") and (field == k[:-2] or field.startswith(k[:-1])) for k in known) or any(
        k.startswith(f"{field}.") for k in known
    )


def unknown_field(field: str, known: Sequence[str]) -> UsageError:
    names = [k.removesuffix(".*") for k in known]
    close = nearest(field, names)
    listed = ", ".join(f"`{name}`" for name in names)
    return UsageError(
        f"there is no field `{field}`", hint=f"the closest field is `{close}`" if close else f"the fields are {listed}"
    )


def fields_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The dotted names of all values in the rows, in order of appearance."""
    found: dict[str, None] = {}
    for row in rows:
        _collect(row, "", found)
    return list(found)


def lookup(row: Mapping[str, Any], field: str) -> Any:
    """The value at a dotted name, None when it is missing. A key that has a dot itself is found too."""
    if field in row:
        return row[field]
    head, dot, rest = field.partition(".")
    while dot:
        inner = row.get(head)
        if isinstance(inner, Mapping):
            found = lookup(inner, rest)
            if found is not None:
                return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def render(parts: Iterable[TemplatePart], row: Mapping[str, Any]) -> str:
    return "".join(plain_text(lookup(row, _own_name(part.text, row))) if part.is_field else part.text for part in parts)


def _own_name(field: str, known: Container[str]) -> str:
    """A row about an agent has its fields without `agent.` before them, which scripts for the original write."""
    return field if "agent" in known else field.removeprefix("agent.")


def plain_text(value: Any) -> str:
    """A value as text: a missing one is empty, a table or list is JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple):
        from mngr.cli.output import to_json

        return to_json(value)
    return str(value)


def _collect(row: Mapping[str, Any], prefix: str, found: dict[str, None]) -> None:
    for key, value in row.items():
        if isinstance(value, Mapping) and value:
            _collect(value, f"{prefix}{key}.", found)
        else:
            found[f"{prefix}{key}"] = None
