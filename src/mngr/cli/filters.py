"""Pick agents with an expression (CEL) over the fields of `list --format json`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from mngr.actions.agent_fields import AgentFields
from mngr.errors import UsageError
from mngr.names import suggest

# CEL has a `type` of its own; names in a container come before the language's.
_CONTAINER = "agent"


def parse(expression: str) -> Callable[[Mapping[str, Any]], bool]:
    """A test on one agent's fields. What an agent does not have (a label, an exit code) matches nothing."""
    hints = get_type_hints(AgentFields)
    matches = parse_over(expression, hints, [name for name, hint in hints.items() if hint is str])

    def matches_agent(fields: Mapping[str, Any]) -> bool:
        host = {key: value for key, value in fields["host"].items() if value is not None}  # for `has(host.ssh)`
        return matches({**fields, "host": host})

    return matches_agent


def parse_over(
    expression: str, names: Collection[str], texts: Collection[str] = ()
) -> Callable[[Mapping[str, Any]], bool]:
    """A test on fields with these names, of which `texts` always are text. A field that is missing matches nothing."""
    from cel_expr_python import cel

    kinds = dict.fromkeys(names, cel.Type.DYN) | dict.fromkeys(texts, cel.Type.STRING)
    if "labels" in kinds:
        kinds["labels"] = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
    environment = cel.NewEnv(
        variables={f"{_CONTAINER}.{name}": kind for name, kind in kinds.items()}, container=_CONTAINER
    )
    try:
        program = environment.compile(_plain(expression))
    except RuntimeError as error:
        raise _not_an_expression(expression, str(error), names) from None
    if program.return_type().name() not in ("BOOL", "DYN"):
        raise UsageError(
            f"the filter `{expression}` is not a yes-or-no question", hint='for example `state == "RUNNING"`'
        )

    def matches(fields: Mapping[str, Any]) -> bool:
        known = {f"{_CONTAINER}.{name}": _plain(fields[name]) for name in names if name in fields}
        return program.eval(data=known).value() is True

    return matches


def _plain(value: Any) -> Any:
    """The value with a replacement character for each byte that is not UTF-8: the library crashes on those."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


def _not_an_expression(expression: str, said: str, names: Collection[str]) -> UsageError:
    lines = [line.strip() for line in said.removesuffix("[INVALID_ARGUMENT]").split("\n")]
    what = (lines[0].partition("ERROR: <input>:")[2] or lines[0]).removesuffix(f" (in container '{_CONTAINER}')")
    _, found, rest = said.partition("undeclared reference to '")
    hint = suggest(rest.partition("'")[0], tuple(names), "field") if found else ""
    return UsageError(
        f"the filter `{expression}` cannot be read: {what}",
        hint=hint or 'for example `state == "DONE" && idle_seconds > 600`; `mngr help filters` explains them',
    )
