"""From scanned words to checked values: defaults, conversion, positional arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from mngr.cli.scan import Occurrence, Scan
from mngr.cli.terminal import visible
from mngr.errors import MngrError, UsageError
from mngr.names import nearest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from mngr.cli.parser import Parser

GIVEN = "_given"
_MANY = 1_000_000
_POSITIONAL_COUNTS: Mapping[object, tuple[int, int]] = {None: (1, 1), "?": (0, 1), "*": (0, _MANY), "+": (1, _MANY)}


def bind(scan: Scan) -> argparse.Namespace:
    """Check and convert the values, and fill in the defaults. `Parser.bind` is its public name."""
    namespace = argparse.Namespace(rest=list(scan.rest))
    chain = scan.parser.chain()
    if len(chain) > 1:
        namespace.subcommand = scan.parser.prog.rpartition(" ")[2]
    actions = [action for parser in reversed(chain) for action in parser.own_actions()]
    for action in actions:
        _set_default(namespace, action)
    given: set[str] = set()
    for found in scan.options:
        _apply(scan.parser, namespace, found, first=found.action.dest not in given)
        given.add(found.action.dest)
    _assign_positionals(scan.parser, namespace, scan.positionals, given)
    for action in actions:
        empty = getattr(namespace, action.dest, None) in (None, [])
        if action.option_strings and action.required and empty:
            scan.parser.error(f"`{action.option_strings[-1]}` is required")
    for parser in chain:
        _check_exclusive(parser, scan.options)
    setattr(namespace, GIVEN, frozenset(given))
    return namespace


def _set_default(namespace: argparse.Namespace, action: argparse.Action) -> None:
    default = action.default
    if action.dest == argparse.SUPPRESS or default is argparse.SUPPRESS or hasattr(namespace, action.dest):
        return
    if is_repeatable(action) or action.nargs in ("*", "+"):
        default = list(default or ())
    elif isinstance(default, str) and action.option_strings and action.type is not None:
        default = convert(action, default, action.option_strings[-1])
    setattr(namespace, action.dest, default)


def _apply(parser: Parser, namespace: argparse.Namespace, found: Occurrence, *, first: bool) -> None:
    action = found.action
    if first and is_repeatable(action):
        setattr(namespace, action.dest, [])  # what was typed replaces the default instead of adding to it
    if first and isinstance(action, argparse._CountAction):
        setattr(namespace, action.dest, 0)
    values = [convert(action, value, found.option) for value in found.values]
    single = action.nargs is None or (action.nargs == "?" and values)
    if action.nargs == "?" and not values:
        action(parser, namespace, action.const, found.option)
    else:
        action(parser, namespace, values[0] if single else values, found.option)


def _assign_positionals(parser: Parser, namespace: argparse.Namespace, words: list[str], typed: set[str]) -> None:
    """Each takes as many as it may, leaving enough for those after it."""
    actions = [action for action in parser.own_actions() if not action.option_strings]
    counts = [_positional_count(action) for action in actions]
    left = list(words)
    for at, action in enumerate(actions):
        least, most = counts[at]
        reserved = sum(count[0] for count in counts[at + 1 :])
        taken = min(most, max(least, len(left) - reserved))
        if taken > len(left):
            parser.error(f"`{shown_name(action)}` is missing")
        if taken == 0:
            continue
        values = [convert(action, word, shown_name(action)) for word in left[:taken]]
        left = left[taken:]
        setattr(namespace, action.dest, values[0] if action.nargs in (None, "?") else values)
        typed.add(action.dest)
    if left:
        hint = f"usage: `{parser.usage_line()}`"
        raise UsageError(f"`{visible(left[0])}` is one argument too many for `{parser.prog}`", hint=hint)


def _positional_count(action: argparse.Action) -> tuple[int, int]:
    if isinstance(action.nargs, int):
        return action.nargs, action.nargs
    return _POSITIONAL_COUNTS[action.nargs]


def _check_exclusive(parser: Parser, options: Iterable[Occurrence]) -> None:
    for group in parser._mutually_exclusive_groups:
        members = [found for found in options if found.action in group._group_actions]
        names = list({id(found.action): found.option for found in members}.values())
        if len(names) > 1:
            parser.error(f"`{names[0]}` and `{names[1]}` cannot be used together")
        if group.required and not names:
            choices = ", ".join(f"`{action.option_strings[-1]}`" for action in group._group_actions)
            parser.error(f"one of {choices} is required")


def is_repeatable(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction | argparse._AppendConstAction)


def shown_name(action: argparse.Action) -> str:
    """What a value is called in help and errors."""
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.replace("_", "-").upper()


def wanted(action: argparse.Action) -> str:
    """What an option's value has to be."""
    if action.type is int:
        return "a whole number"
    if action.type is float:
        return "a number"
    return "a string" if action.type is None else "another value"


def convert(action: argparse.Action, text: str, name: str) -> Any:
    """One value as the option wants it, or an error that says what it takes."""
    value: Any = text
    if callable(action.type):
        try:
            value = action.type(text)
        except MngrError as error:
            raise UsageError(f"`{name}`: {error.message}", hint=error.hint, details=error.details) from None
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            said = str(error) if isinstance(error, argparse.ArgumentTypeError) else ""
            raise UsageError(
                f"`{name}`: {said}" if said else f"`{name}` takes {wanted(action)}, not {text!r}"
            ) from None
    if action.choices is not None and value not in action.choices:
        known = tuple(str(choice) for choice in action.choices)
        close = nearest(text, known) or nearest(text.lower(), known)
        listed = ", ".join(f"`{choice}`" for choice in known)
        hint = f"the closest is `{close}`; it takes {listed}" if close else f"it takes {listed}"
        raise UsageError(f"`{name}` cannot be `{visible(text)}`", hint=hint)
    return value
