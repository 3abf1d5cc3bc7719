"""Pick agents with an expression (CEL) over the fields of `list --format json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mngr.errors import UsageError
from mngr.names import suggest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


_TEXT = (
    "id",
    "name",
    "type",
    "command",
    "state",
    "state_reason",
    "work_dir",
    "transfer",
    "project",
    "session",
    "create_time",
)
_ANY = (
    "state_since",
    "exit_code",
    "signal",
    "repo",
    "initial_branch",
    "base_branch",
    "base_commit",
    "start_time",
    "runtime_seconds",
    "idle_seconds",
    "pid",
    "attached",
    "index",
    "host",
)
_TYPE = "agent_type"
FIELDS = (*_TEXT, *_ANY, "labels")


def parse(expression: str) -> Callable[[Mapping[str, Any]], bool]:
    """A test on one agent's fields. What an agent does not have (a label, an exit code) matches nothing."""
    from cel_expr_python import cel

    kinds = dict.fromkeys(_TEXT, cel.Type.STRING) | dict.fromkeys(_ANY, cel.Type.DYN)
    kinds[_TYPE] = kinds.pop("type")
    environment = cel.NewEnv(variables={**kinds, "labels": cel.Type.Map(cel.Type.STRING, cel.Type.STRING)})
    try:
        program = environment.compile(_without_type_word(expression))
    except RuntimeError as error:
        raise _not_an_expression(expression, str(error)) from None
    if program.return_type().name() not in ("BOOL", "DYN"):
        raise UsageError(
            f"the filter `{expression}` is not a yes-or-no question", hint='for example `state == "RUNNING"`'
        )

    def matches(fields: Mapping[str, Any]) -> bool:
        data = {name: fields[name] for name in FIELDS}
        data[_TYPE] = data.pop("type")
        return program.eval(data=data).value() is True

    return matches


def _without_type_word(expression: str) -> str:
    """`type` is a function of the language and cannot be a field of ours under that name; strings stay as they are."""
    import re

    pattern = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?<![\w.])type(?!\w|\s*\()"""
    return re.sub(pattern, lambda found: _TYPE if found[0] == "type" else found[0], expression)


def _not_an_expression(expression: str, said: str) -> UsageError:
    lines = [line.strip() for line in said.removesuffix("[INVALID_ARGUMENT]").split("\n")]
    what = lines[0].partition("ERROR: <input>:")[2] or lines[0]
    _, found, rest = said.partition("undeclared reference to '")
    hint = suggest(rest.partition("'")[0], FIELDS, "field") if found else ""
    return UsageError(
        f"the filter `{expression}` cannot be read: {what}", hint=hint or "`mngr help filters` explains them"
    )
