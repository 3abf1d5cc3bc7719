"""Pick agents, events or sums with an expression over their fields; see `mngr help filters`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, get_type_hints

from mngr.cli import expression as expressions
from mngr.cli.expression import NO_VALUE


def parse(expression: str) -> Callable[[Mapping[str, Any]], bool]:
    """A test on one agent's fields. What an agent does not have (a label, an exit code) matches nothing."""
    from mngr.actions.agent_fields import AgentFields

    hints = get_type_hints(AgentFields, localns={"Any": Any})
    matches = parse_over(expression, hints, [name for name, hint in hints.items() if hint is str])

    def matches_agent(fields: Mapping[str, Any]) -> bool:
        host = {key: value for key, value in fields["host"].items() if value is not None}  # for `has(host.ssh)`
        return matches({**fields, "host": host})

    return matches_agent


def parse_over(
    expression: str, names: Collection[str], texts: Collection[str] = ()
) -> Callable[[Mapping[str, Any]], bool]:
    """A test on fields with these names, of which `texts` always are text. A field that is missing matches nothing."""
    kinds = dict.fromkeys(names, expressions.ANY) | dict.fromkeys(texts, expressions.TEXT)
    if "labels" in kinds:
        kinds["labels"] = expressions.TEXTS
    found = expressions.parse(expression, kinds)

    def matches(fields: Mapping[str, Any]) -> bool:
        try:
            return found.value(fields) is True
        except (*NO_VALUE, RecursionError):
            return False

    return matches
