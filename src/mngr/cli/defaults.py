"""Settings as defaults of options: `[commands.create] connect = false`. A key or value that does not fit is an error
that names where it was set."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from mngr.cli.binding import convert, is_repeatable, wanted
from mngr.cli.parser import BooleanPair, Parser, given
from mngr.errors import UsageError
from mngr.names import suggest
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from mngr.config import Value

# These make no sense as a default.
_NEVER = frozenset({"help", "version", "setting"})
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class _Target(NamedTuple):
    action: argparse.Action
    option: str


def set_defaults(parser: Parser, table: Mapping[str, Value], section: str) -> None:
    """The option keeps the new default for every parse that follows."""
    for action, value in _resolve(parser, table, section):
        for member in parser.family():
            for own in member.own_actions():
                if own.dest == action.dest:
                    own.default = value


def overwrite(parser: Parser, args: argparse.Namespace, table: Mapping[str, Value], section: str) -> None:
    typed = given(args)
    for action, value in _resolve(parser, table, section):
        if action.dest not in typed:
            setattr(args, action.dest, value)


def setting_keys(parser: Parser) -> list[str]:
    """The keys that `[commands.<command>]` may hold."""
    return sorted(_targets(parser))


def _resolve(parser: Parser, table: Mapping[str, Value], section: str) -> list[tuple[argparse.Action, Any]]:
    targets = _targets(parser)
    resolved: dict[str, tuple[argparse.Action, Any]] = {}
    for key, found in table.items():
        target = targets.get(key.replace("-", "_"))
        if target is None:
            raise UsageError(
                f"`{section}.{key}`, set in `{found.source}`, is not an option of `{parser.prog}`",
                hint=suggest(key, sorted(targets), "key") or f"`{parser.prog} --help` shows the options",
            )
        action = target.action
        before = resolved.get(action.dest)
        try:
            value = _value(target, found.value, None if before is None else before[1])
        except UsageError as error:
            raise UsageError(f"`{section}.{key}`, set in `{found.source}`, {error.message}", hint=error.hint) from None
        if value is not None:
            resolved[action.dest] = (action, value)
    return list(resolved.values())


def _targets(parser: Parser) -> dict[str, _Target]:
    """Every key with the option it stands for: the long options, and the name under which the value is stored."""
    targets: dict[str, _Target] = {}
    actions = [action for member in parser.family() for action in member.own_actions() if action.option_strings]
    for action in actions:
        if action.dest in _NEVER:
            continue
        for option in action.option_strings:
            if option.startswith("--"):
                targets.setdefault(option[2:].replace("-", "_"), _Target(action, option))
    for action in actions:
        if action.dest not in _NEVER and (action.nargs != 0 or isinstance(action.const, bool | None)):
            targets.setdefault(action.dest, _Target(action, action.option_strings[0]))
    return targets


def _value(target: _Target, value: object, before: Any) -> Any:
    """The value as the option would have stored it; None when it changes nothing. An error has no subject yet."""
    action, option = target
    if isinstance(action, argparse._CountAction):
        return _count(value)
    if action.nargs == 0:
        on = _flag(value)
        if isinstance(action, BooleanPair):
            return on != (option in action.negative)
        if isinstance(action.const, bool):
            return action.const if on else not action.const
        if not on:
            return None
        return [*(before or ()), action.const] if is_repeatable(action) else action.const
    if is_repeatable(action) or action.nargs in ("*", "+") or isinstance(action.nargs, int):
        return [_one(action, item) for item in _items(value)]
    return _one(action, value)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    raise UsageError(f"must be true or false, not {value!r}")


def _count(value: object) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and value >= 0:
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise UsageError(f"must be a whole number, not {value!r}")


def _items(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    return [value]


def _one(action: argparse.Action, value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"must be {wanted(action)}, not {value!r}")
    try:
        return convert(action, str(value), "")
    except UsageError as error:
        raise UsageError(error.message.removeprefix("``").lstrip(": "), hint=error.hint) from None
