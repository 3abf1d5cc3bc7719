"""From scanned words to checked values: defaults, conversion, positional arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mngr.cli.options import APPEND, COUNT, FLAG, PAIR, Args, Option
from mngr.cli.scan import Occurrence, Scan
from mngr.cli.terminal import visible
from mngr.errors import MngrError, UsageError
from mngr.names import nearest

if TYPE_CHECKING:
    from mngr.cli.parser import Parser

GIVEN = "_given"
_MANY = 1_000_000
_POSITIONAL_COUNTS: Mapping[object, tuple[int, int]] = {None: (1, 1), "?": (0, 1), "*": (0, _MANY), "+": (1, _MANY)}


def bind(scan: Scan) -> Args:
    """Check and convert the values, and fill in the defaults. `Parser.bind` is its public name."""
    args = Args()
    args.rest = list(scan.rest)
    chain = scan.parser.chain()
    if len(chain) > 1:
        args.subcommand = scan.parser.prog.rpartition(" ")[2]
    for parser in reversed(chain):
        for option in parser.options:
            setattr(args, option.dest, option.starting_value())
    typed: set[str] = set()
    for found in scan.options:
        _apply(args, found, first=found.option.dest not in typed)
        typed.add(found.option.dest)
    _assign_positionals(scan.parser, args, scan.positionals, typed)
    for parser in chain:
        _check_exclusive(parser, scan.options)
    setattr(args, GIVEN, frozenset(typed))
    return args


def _apply(args: Args, found: Occurrence, *, first: bool) -> None:
    """Store what was typed. A list that was typed replaces the default instead of adding to it."""
    option = found.option
    values = [convert(option, value, found.spelling) for value in found.values]
    if option.how == FLAG:
        setattr(args, option.dest, True)
    elif option.how == PAIR:
        setattr(args, option.dest, found.spelling not in option.negative)
    elif option.how == COUNT:
        setattr(args, option.dest, 1 + (0 if first else getattr(args, option.dest)))
    elif option.how == APPEND:
        setattr(args, option.dest, [*([] if first else getattr(args, option.dest)), *values])
    else:
        setattr(args, option.dest, values[0])


def _assign_positionals(parser: Parser, args: Args, words: list[str], typed: set[str]) -> None:
    """Each takes as many as it may, leaving enough for those after it."""
    positional = [option for option in parser.options if not option.names]
    counts = [_POSITIONAL_COUNTS[option.nargs] for option in positional]
    left = list(words)
    for at, option in enumerate(positional):
        least, most = counts[at]
        reserved = sum(count[0] for count in counts[at + 1 :])
        taken = min(most, max(least, len(left) - reserved))
        if taken > len(left):
            parser.error(f"`{option.shown_name}` is missing")
        if taken == 0:
            continue
        values = [convert(option, word, option.shown_name) for word in left[:taken]]
        left = left[taken:]
        setattr(args, option.dest, values[0] if option.nargs in (None, "?") else values)
        typed.add(option.dest)
    if left:
        hint = f"usage: `{parser.usage_line()}`"
        raise UsageError(f"`{visible(left[0])}` is one argument too many for `{parser.prog}`", hint=hint)


def _check_exclusive(parser: Parser, found: Iterable[Occurrence]) -> None:
    for group in parser.groups:
        names = {one.option.dest: one.spelling for one in found if one.option in group.options}
        if group.exclusive and len(names) > 1:
            first, second, *_ = names.values()
            parser.error(f"`{first}` and `{second}` cannot be used together")


def wanted(option: Option) -> str:
    """What an option's value has to be."""
    if option.type is int:
        return "a whole number"
    if option.type is float:
        return "a number"
    return "a string" if option.type is None else "another value"


def convert(option: Option, text: str, name: str) -> Any:
    """One value as the option wants it, or an error that says what it takes."""
    value: Any = text
    if option.type is not None:
        try:
            value = option.type(text)
        except MngrError as error:
            raise UsageError(f"`{name}`: {error.message}", hint=error.hint, details=error.details) from None
        except (ValueError, TypeError):
            raise UsageError(f"`{name}` takes {wanted(option)}, not {text!r}") from None
    if option.choices is not None and value not in option.choices:
        known = tuple(option.choices)
        close = nearest(text, known) or nearest(text.lower(), known)
        listed = ", ".join(f"`{choice}`" for choice in known)
        hint = f"the closest is `{close}`; it takes {listed}" if close else f"it takes {listed}"
        raise UsageError(f"`{name}` cannot be `{visible(text)}`", hint=hint)
    return value
