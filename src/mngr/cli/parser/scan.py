"""From the words of a command line to checked values: options and names mix freely, and every mistake names what was
meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from mngr.cli.output.terminal import visible
from mngr.cli.parser.parser import APPEND, COUNT, FLAG, GIVEN, PAIR, Args, Option, Parser
from mngr.errors import MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import nearest, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MANY = 1_000_000
_POSITIONAL_COUNTS: Mapping[object, tuple[int, int]] = {None: (1, 1), "?": (0, 1), "*": (0, _MANY), "+": (1, _MANY)}


class Occurrence(NamedTuple):
    """An option as it was typed, with its values."""

    option: Option
    spelling: str
    values: list[str]


def parse(parser: Parser, argv: Sequence[str]) -> Args:
    """Read a whole command line. `--help` and `--version` are only flags here."""
    return bind(scan(parser, argv))


def scan(parser: Parser, argv: Sequence[str]) -> Scan:
    """Take the words apart. Stops at `--help` and `--version`; raises for an option that does not exist."""
    found = Scan(parser, argv)
    found.read()
    return found


def bind(scan: Scan) -> Args:
    """Check and convert the values, and fill in the defaults."""
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
        from mngr.cli.parser.helptext import usage_line

        hint = f"usage: `{usage_line(parser)}`"
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


class Scan:
    """The words of a command line taken apart from the left, before any value is checked. `parser` is the one of the
    subcommand, `words` are those still to be read, `notes` say which words change nothing."""

    def __init__(self, parser: Parser, argv: Sequence[str]) -> None:
        self.parser = parser
        self.words = list(argv)
        self.asked = ""
        self.options: list[Occurrence] = []
        self.positionals: list[str] = []
        self.rest: list[str] = []
        self.notes: list[str] = []
        self._arguments_by_option = 0

    def values(self, dest: str) -> list[str]:
        return [value for found in self.options if found.option.dest == dest for value in found.values]

    def read(self) -> None:
        while self.words and not self.asked:
            word = self.words.pop(0)
            if word == "--":
                if self.parser.rest is None:
                    self.positionals += self.words
                else:
                    self.rest = self.words
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            elif self.parser.subcommands:
                self._enter(word)
            else:
                self.positionals.append(word)
        if self.parser.subcommands and not self.asked:
            self._enter_default()

    def _find(self, spelling: str) -> Option | None:
        for parser in self.parser.chain():
            if spelling in parser.by_name:
                return parser.by_name[spelling]
        default = self.parser.subcommands.get(self.parser.default_subcommand or "")
        if default is not None and spelling in default.by_name:
            self.parser = default
            return default.by_name[spelling]
        return None

    def _long(self, word: str) -> None:
        spelling, equals, value = word.partition("=")
        option = self._find(spelling)
        if option is not None:
            self._take(option, spelling, value if equals else None)
        elif not self._take_original(spelling, value if equals else None):
            raise self._unknown(spelling)

    def _short(self, word: str) -> None:
        """`-n NAME`, `-nNAME`, `-qv`. A long option typed with one dash is not a group of letters."""
        if len(word) > 2 and self._find("-" + word.partition("=")[0]) is not None:
            raise self._unknown(word.partition("=")[0])
        letters = word[1:]
        while letters and not self.asked:
            spelling, letters = f"-{letters[0]}", letters[1:]
            option = self._find(spelling)
            if option is None:
                if len(word) == 2 and self._take_original(spelling, None):
                    return
                raise self._unknown(spelling if len(word) == 2 else word)
            if option.nargs == 0:
                self._take(option, spelling, None)
            else:
                self._take(option, spelling, letters or None)
                return

    def _take(self, option: Option, spelling: str, value: str | None) -> None:
        values: list[str] = []
        if option.nargs == 0:
            if value is not None:
                raise UsageError(f"`{spelling}` takes no value", hint=f"write `{spelling}` alone")
            if option.dest in ("help", "version", "schema"):
                self.asked = option.dest
        else:
            values = [self._following(option, spelling) if value is None else value]
        self.options.append(Occurrence(option, spelling, values))

    def _take_original(self, spelling: str, value: str | None) -> bool:
        """Take an option of the original mngr that ours has in another form or does not need. False for any other."""
        from mngr.cli.parser import compatibility

        prog = self.parser.prog
        known = compatibility.option(prog, spelling)
        if known is None or (value is not None and not known.takes_value):
            return False
        if known.what == compatibility.REFUSED:
            raise UsageError(f"`{spelling}` is not an option of `{prog}`", hint=f"instead: {known.text}")
        if known.takes_value and value is None:
            value = self._following(Option(spelling), spelling)
        if known.what == compatibility.IGNORED:
            self.notes += [f"`{spelling}` changes nothing: {known.text}"] if known.text else []
        elif known.text == "X":
            self.positionals.insert(self._arguments_by_option, value or "")
            self._arguments_by_option += 1
        else:
            self.words = [*(word.replace("X", value or "") for word in known.text.split()), *self.words]
        return True

    def _following(self, option: Option, spelling: str) -> str:
        if self.words and not self._is_option(self.words[0]):
            return self.words.pop(0)
        hint = f"`{self.parser.prog} --help` shows what it takes"
        long = next((name for name in option.names if name.startswith("--")), None)
        if long is not None and self.words and self.words[0] != "--":
            hint = f"a value that begins with a dash is written with `=`: `{long}={visible(self.words[0])}`"
        raise UsageError(f"`{spelling}` needs a value", hint=hint)

    def _is_option(self, word: str) -> bool:
        """Whether a word that could be a value is more likely the next option."""
        if word.startswith("--"):
            return not any(c.isspace() for c in word)
        return word.startswith("-") and self._find(word) is not None

    def _enter(self, word: str) -> None:
        parts, prog = self.parser.subcommands, self.parser.prog
        if word in parts:
            self.parser = parts[word]
            return
        from mngr.cli.parser import compatibility

        # In the original, the word may stand for another part than in ours.
        hint = "" if nearest(word, tuple(parts)) else compatibility.PARTS.get(prog, "").replace("X", visible(word))
        if not hint and self._is_for_default(word):
            self._enter_default()
            self.positionals.append(word)
            return
        hint = f"instead: {hint}" if hint else suggest(word, tuple(parts), "one")
        raise UsageError(f"`{visible(word)}` is not a part of `{prog}`", hint=hint)

    def _is_for_default(self, word: str) -> bool:
        """Whether the default subcommand takes any words, and this word is not a typo of a subcommand."""
        default = self.parser.subcommands.get(self.parser.default_subcommand or "")
        if default is None or not any(not option.names and option.nargs == "*" for option in default.options):
            return False
        return os.path.lexists(word.partition("::")[0]) or not nearest(word, tuple(self.parser.subcommands))

    def _enter_default(self) -> None:
        if self.parser.default_subcommand is None:
            known = ", ".join(f"`{name}`" for name in self.parser.subcommands)
            raise UsageError(
                f"`{self.parser.prog}` needs one of {known}",
                hint=f"`{self.parser.prog} --help` explains them",
            )
        self.parser = self.parser.subcommands[self.parser.default_subcommand]

    def _unknown(self, option: str) -> UsageError:
        known = [name for parser in self.parser.chain() for name in parser.by_name]
        close = nearest(option, known) or nearest(f"-{option}", known)
        prog = self.parser.prog
        hints = [f"the closest option is `{close}`"] if close else []
        if self.parser.rest is not None:
            hints.append("what is meant for the program itself goes after `--`")
        hint = "; ".join([*hints, f"`{prog} --help` shows all"])
        return UsageError(f"`{visible(option)}` is not an option of `{prog}`", hint=hint)


def option_values(words: Sequence[str], *names: str) -> list[str]:
    """The values that an option has on a command line, found without a parser, since the words may be invalid."""
    found: list[str] = []
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if word in names:
            found += words[at + 1 : at + 2]
        elif equals and name in names:
            found.append(value)
        elif word[:2] in names and not word.startswith("--"):
            found.append(word[2:])
    return found
