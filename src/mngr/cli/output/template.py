"""`--format '{name}\\t{host.name}'`: a line for each row. Pure; refuses fields that do not exist."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from mngr.errors import UsageError
from mngr.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ESCAPES = {r"\t": "\t", r"\n": "\n", r"\\": "\\"}


class Template:
    """The user's text taken apart: `{{` and `}}` are braces, `\\t`, `\\n` and `\\\\` as in printf."""

    def __init__(self, text: str) -> None:
        import string

        self._parts: list[tuple[str, str]] = []  # what stands before a field, and the field
        try:
            for plain, field, spec, conversion in string.Formatter().parse(text):
                if field is not None and (not field.strip() or spec or conversion):
                    raise ValueError
                plain = re.sub(r"\\[tn\\]", lambda found: _ESCAPES[found[0]], plain)
                self._parts.append((plain, (field or "").strip()))
        except ValueError:
            hint = "write `{name}` for a field, `{{` and `}}` for braces"
            raise UsageError(f"the template has a brace that belongs to no field: {text!r}", hint=hint) from None

    def check(self, known: Sequence[str]) -> None:
        """Raise for a field that no row can have. `labels.*` among the known allows anything below `labels`."""
        for _, field in self._parts:
            if field and not _is_known(_own_name(field, known), known):
                names = [k.removesuffix(".*") for k in known]
                close = nearest(field, names)
                listed = ", ".join(f"`{name}`" for name in names)
                hint = f"the closest field is `{close}`" if close else f"the fields are {listed}"
                raise UsageError(f"there is no field `{field}`", hint=hint)

    def render(self, row: Mapping[str, Any]) -> str:
        return "".join(
            plain + (plain_text(lookup(row, _own_name(field, row))) if field else "") for plain, field in self._parts
        )


def _is_known(field: str, known: Sequence[str]) -> bool:
    """Whether a field exists, or is a table that holds fields that do."""
    return any(
        field == k or k.startswith(f"{field}.") or (k.endswith(".*") and (field == k[:-2] or field.startswith(k[:-1])))
        for k in known
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
        from mngr.cli.output.output import to_json

        return to_json(value)
    return str(value)


def _collect(row: Mapping[str, Any], prefix: str, found: dict[str, None]) -> None:
    for key, value in row.items():
        if isinstance(value, Mapping) and value:
            _collect(value, f"{prefix}{key}.", found)
        else:
            found[f"{prefix}{key}"] = None
