"""The words of a command line taken apart by a parser's options. Checks that options exist, and no value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mngr.cli.terminal import visible
from mngr.errors import UsageError
from mngr.names import nearest, suggest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.cli.parser import Parser

_MANY = 1_000_000


class Occurrence:
    """An option as it was typed, with its values."""

    __slots__ = ("action", "option", "values")

    def __init__(self, action: argparse.Action, option: str, values: list[str]) -> None:
        self.action = action
        self.option = option
        self.values = values


class Scan:
    """The words of a command line taken apart, before any value is checked. `parser` is the one of the subcommand."""

    __slots__ = ("asked", "options", "parser", "positionals", "rest")

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.asked = ""
        self.options: list[Occurrence] = []
        self.positionals: list[str] = []
        self.rest: list[str] = []

    def values(self, dest: str) -> list[str]:
        return [value for found in self.options if found.action.dest == dest for value in found.values]


class Scanner:
    """One pass over the words, from the left."""

    def __init__(self, parser: Parser, argv: Sequence[str]) -> None:
        self.words = list(argv)
        self.found = Scan(parser)

    def scan(self) -> Scan:
        found = self.found
        while self.words and not found.asked:
            word = self.words.pop(0)
            if word == "--":
                if found.parser.rest is None:
                    found.positionals += self.words
                else:
                    found.rest = self.words
                break
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            elif found.parser.subcommands:
                self._enter(word)
            else:
                found.positionals.append(word)
        if found.parser.subcommands and not found.asked:
            self._enter_default()
        return found

    def _find(self, option: str) -> argparse.Action | None:
        for parser in self.found.parser.chain():
            action = parser._option_string_actions.get(option)
            if action is not None:
                return action
        default = self.found.parser.subcommands.get(self.found.parser.default_subcommand or "")
        if default is not None and option in default._option_string_actions:
            self.found.parser = default
            return default._option_string_actions[option]
        return None

    def _long(self, word: str) -> None:
        option, equals, value = word.partition("=")
        action = self._find(option)
        if action is None:
            raise self._unknown(option)
        self._take(action, option, value if equals else None)

    def _short(self, word: str) -> None:
        """`-n NAME`, `-nNAME`, `-qv`. A long option typed with one dash is not a group of letters."""
        if len(word) > 2 and self._find("-" + word.partition("=")[0]) is not None:
            raise self._unknown(word.partition("=")[0])
        letters = word[1:]
        while letters and not self.found.asked:
            option, letters = f"-{letters[0]}", letters[1:]
            action = self._find(option)
            if action is None:
                raise self._unknown(option if len(word) == 2 else word)
            if action.nargs == 0:
                self._take(action, option, None)
            else:
                self._take(action, option, letters or None)
                return

    def _take(self, action: argparse.Action, option: str, value: str | None) -> None:
        if action.nargs == 0:
            if value is not None:
                raise UsageError(f"`{option}` takes no value", hint=f"write `{option}` alone")
            if action.dest in ("help", "version"):
                self.found.asked = action.dest
            values = []
        elif value is not None:
            values = [value]
        else:
            values = self._following(action, option)
        self.found.options.append(Occurrence(action, option, values))

    def _following(self, action: argparse.Action, option: str) -> list[str]:
        wanted = action.nargs if isinstance(action.nargs, int) else 1
        most = _MANY if action.nargs in ("*", "+") else wanted
        values: list[str] = []
        while self.words and len(values) < most and action.nargs != "?" and not self._is_option(self.words[0]):
            values.append(self.words.pop(0))
        if len(values) < wanted and action.nargs not in ("?", "*"):
            what = "a value" if wanted == 1 else f"{wanted} values"
            hint = f"`{self.found.parser.prog} --help` shows what it takes"
            long = next((name for name in action.option_strings if name.startswith("--")), None)
            if long is not None and self.words and self.words[0] != "--":
                hint = f"a value that begins with a dash is written with `=`: `{long}={visible(self.words[0])}`"
            raise UsageError(f"`{option}` needs {what}", hint=hint)
        return values

    def _is_option(self, word: str) -> bool:
        """Whether a word that could be a value is more likely the next option."""
        if word.startswith("--"):
            return not any(c.isspace() for c in word)
        return word.startswith("-") and self._find(word) is not None

    def _enter(self, word: str) -> None:
        child = self.found.parser.subcommands.get(word)
        if child is None:
            raise UsageError(
                f"`{visible(word)}` is not a part of `{self.found.parser.prog}`",
                hint=suggest(word, tuple(self.found.parser.subcommands), "one"),
            )
        self.found.parser = child

    def _enter_default(self) -> None:
        if self.found.parser.default_subcommand is None:
            known = ", ".join(f"`{name}`" for name in self.found.parser.subcommands)
            raise UsageError(
                f"`{self.found.parser.prog}` needs one of {known}",
                hint=f"`{self.found.parser.prog} --help` explains them",
            )
        self.found.parser = self.found.parser.subcommands[self.found.parser.default_subcommand]

    def _unknown(self, option: str) -> UsageError:
        known = [o for parser in self.found.parser.chain() for o in parser._option_string_actions]
        close = nearest(option, known) or nearest(f"-{option}", known)
        prog = self.found.parser.prog
        hints = [f"the closest option is `{close}`"] if close else []
        if self.found.parser.rest is not None:
            hints.append("what is meant for the program itself goes after `--`")
        hint = "; ".join([*hints, f"`{prog} --help` shows all"])
        return UsageError(f"`{visible(option)}` is not an option of `{prog}`", hint=hint)
