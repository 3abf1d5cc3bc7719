"""Settings as defaults of options: `[commands.create] connect = false`. A key or value that does not fit is an error
that names where it was set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mngr.cli.parser.parser import COUNT, PAIR, Args, Option, Parser, given
from mngr.cli.parser.scan import convert, wanted
from mngr.errors import UsageError
from mngr.names import suggest
from mngr.settings.layers import Value

# These make no sense as a default.
_NEVER = frozenset({"help", "version", "setting", "schema"})
_TARGETS: dict[str, dict[str, tuple[Option, str]]] = {}  # by verb
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def set_defaults(parser: Parser, table: Mapping[str, Value], section: str) -> None:
    """The option keeps the new default for every parse that follows."""
    for option, value in _resolve(parser, table, section):
        for member in parser.family():
            for own in member.options:
                if own.dest == option.dest:
                    own.default = value


def overwrite(parser: Parser, args: Args, table: Mapping[str, Value], section: str) -> None:
    typed = given(args)
    for option, value in _resolve(parser, table, section):
        if option.dest not in typed:
            setattr(args, option.dest, value)


def is_safe(verb: str, key: str, value: object) -> bool:
    """Whether a repository that its user has not trusted may set this option of a verb to this value: as the option
    itself says. Of plugins, and what fits no option: never."""
    target = _known_targets(verb).get(key)
    if target is None or not target[0].safe:
        return False
    try:
        return target[0].safe is True or _value(*target, value) in target[0].safe
    except UsageError:
        return False


def _known_targets(verb: str) -> dict[str, tuple[Option, str]]:
    """Of a verb of ours, which is loaded once; none of any other."""
    if verb not in _TARGETS:
        from mngr.cli import catalog
        from mngr.cli.dispatch import command_parser

        entry = catalog.find(verb)
        _TARGETS[verb] = _targets(command_parser(entry)) if entry is not None and entry.name == verb else {}
    return _TARGETS[verb]


def untyped(parser: Parser, args: Args, keys: Iterable[str]) -> bool:
    """Whether the command line leaves the value of any of these keys to the settings."""
    targets, typed = _targets(parser), given(args)
    return any(key not in targets or targets[key][0].dest not in typed for key in keys)


def setting_keys(parser: Parser) -> list[str]:
    """The keys that `[commands.<command>]` may hold."""
    return sorted(_targets(parser))


def _resolve(parser: Parser, table: Mapping[str, Value], section: str) -> list[tuple[Option, Any]]:
    targets = _targets(parser)
    resolved: dict[str, tuple[Option, Any]] = {}
    for key, found in table.items():
        target = targets.get(key.replace("-", "_"))
        if target is None:
            raise UsageError(
                f"`{section}.{key}`, set in `{found.source}`, is not an option of `{parser.prog}`",
                hint=suggest(key, sorted(targets), "key") or f"`{parser.prog} --help` shows the options",
            )
        try:
            value = _value(*target, found.value)
        except UsageError as error:
            raise UsageError(f"`{section}.{key}`, set in `{found.source}`, {error.message}", hint=error.hint) from None
        resolved[target[0].dest] = (target[0], value)
    return list(resolved.values())


def _targets(parser: Parser) -> dict[str, tuple[Option, str]]:
    """Every key with the option it stands for, and that option's spelling: the long options, and the name under which
    the value is stored."""
    targets: dict[str, tuple[Option, str]] = {}
    every = [option for member in parser.family() for option in member.options]
    options = [option for option in every if option.names and option.dest not in _NEVER]
    for option in options:
        for spelling in option.spellings:
            if spelling.startswith("--"):
                targets.setdefault(spelling[2:].replace("-", "_"), (option, spelling))
    for option in options:
        targets.setdefault(option.dest, (option, option.names[0]))
    return targets


def _value(option: Option, spelling: str, value: object) -> Any:
    """The value as the option would have stored it. An error has no subject yet."""
    if option.how == COUNT:
        return _count(value)
    if option.how == PAIR:
        return _flag(value) != (spelling in option.negative)
    if option.nargs == 0:
        return _flag(value)
    return [_one(option, item) for item in _items(value)] if option.repeatable else _one(option, value)


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


def _one(option: Option, value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"must be {wanted(option)}, not {value!r}")
    try:
        return convert(option, str(value), "")
    except UsageError as error:
        raise UsageError(error.message.removeprefix("``").lstrip(": "), hint=error.hint) from None
